"""`python -m relay`: serve the agents' door until told to stop; streams are let go on for a while then."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

import uvicorn
import uvloop
from starlette.types import ASGIApp

from domain.errors import WatchbillError
from relay.app import Door
from relay.bookkeeping import Unkept
from relay.graph import Graph
from relay.metrics import shown
from relay.models import Limits
from relay.price_file import own_prices
from relay.prices import Prices
from relay.settings import RelaySettings
from store.database import Store, migrate, open_store
from telemetry import told
from telemetry.logs import configure


async def serve(settings: RelaySettings, store: Store) -> None:
    graph = Graph(store)
    prices = Prices(own_prices(settings.prices) if settings.prices else None)
    limits = Limits(settings.relay_models_limit, settings.relay_output)
    door = Door(graph, Unkept(graph), prices, settings.upstreams, settings.relay_limit, limits, names=settings.names)
    async with AsyncExitStack() as stack:
        if settings.metrics_address:
            await stack.enter_async_context(shown(door.metrics, *settings.metrics_address))
        await uvicorn.Server(_config(door.app(), settings)).serve()


def _config(app: ASGIApp, settings: RelaySettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        settings.relay_host,
        settings.relay_port,
        http="httptools",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=settings.relay_drain,
    )


def main() -> int:
    settings = told.read(RelaySettings)
    configure()
    try:
        migrate(settings.store)
        store = open_store(settings.store)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve(settings, store))
        finally:
            store.close()
    except (WatchbillError, OSError) as error:
        print(f"watchbill relay: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
