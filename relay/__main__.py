"""`python -m relay`: serve the agents' door until told to stop; streams are let go on for a while then."""

from __future__ import annotations

import sys

from doors import serving
from relay.app import Door
from relay.settings import RelaySettings
from store.database import open_store


async def serve(settings: RelaySettings) -> None:
    store = open_store(settings.store)
    door = Door(store, settings.models, settings.relay_limit, settings.relay_models_limit, settings.names)
    try:
        await serving.listen(
            door.app(),
            settings.relay_host,
            settings.relay_port,
            access_log=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=settings.relay_drain,
        )
    finally:
        store.close()


if __name__ == "__main__":
    sys.exit(serving.serve_as("relay", RelaySettings, serve))
