"""`python -m relay`: serve the agents' door until told to stop; streams are let go on for a while then."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack

import uvloop

from doors import serving
from pricing.prices import Prices
from relay.app import Door
from relay.bookkeeper import Bookkeeper
from relay.graph import Graph
from relay.metrics import shown
from relay.models import Limits
from relay.price_file import own_prices
from relay.settings import RelaySettings
from store.database import open_store


async def serve(settings: RelaySettings) -> None:
    prices = Prices(own_prices(settings.prices) if settings.prices else None)
    limits = Limits(settings.relay_models_limit, settings.relay_output, settings.relay_patience)
    upstreams = settings.upstreams
    store = open_store(settings.store)
    books = Bookkeeper(store)
    books.start()
    try:
        door = Door(Graph(store), books, prices, upstreams, settings.relay_limit, limits, names=settings.names)
        async with AsyncExitStack() as stack:
            if settings.metrics_address:
                await stack.enter_async_context(shown(door.metrics, *settings.metrics_address))
            await serving.listen(
                door.app(),
                settings.relay_host,
                settings.relay_port,
                http="httptools",
                access_log=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=settings.relay_drain,
            )
    finally:
        # Nothing is asked any more, so nothing waits while what calls came to is written down.
        books.close()
        store.close()


if __name__ == "__main__":
    sys.exit(serving.serve_as("relay", RelaySettings, serve, loop_factory=uvloop.new_event_loop))
