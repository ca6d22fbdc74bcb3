"""`python -m relay`: serve the agents' door until told to stop; streams are let go on for a while then."""

from __future__ import annotations

import asyncio
import sys

import uvicorn

from domain.errors import WatchbillError
from relay.app import Door
from relay.settings import RelaySettings
from store.database import migrate, open_store
from telemetry import told
from telemetry.logs import configure


async def serve(settings: RelaySettings) -> None:
    store = open_store(settings.store)
    door = Door(store, settings.models, settings.relay_limit, settings.relay_models_limit, settings.names)
    config = uvicorn.Config(
        door.app(),
        settings.relay_host,
        settings.relay_port,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=settings.relay_drain,
    )
    try:
        await uvicorn.Server(config).serve()
    finally:
        store.close()


def main() -> int:
    settings = told.read(RelaySettings)
    configure()
    try:
        migrate(settings.store)
        asyncio.run(serve(settings))
    except (WatchbillError, OSError) as error:
        print(f"watchbill relay: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
