"""`python -m webhooks`: serve the webhooks' door until told to stop."""

from __future__ import annotations

import asyncio
import os
import sys

import structlog
import uvicorn
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.contrib.pydantic import pydantic_data_converter

from domain.errors import WatchbillError
from domain.identity import TASK_QUEUE, heartbeat_workflow_id
from domain.publication import OwnerRef
from store.database import migrate, open_store
from telemetry import told
from telemetry.logs import configure
from webhooks.app import Door
from webhooks.settings import WebhookSettings

log = structlog.get_logger("webhooks")


class Nudger:
    """Wakes heartbeats. Temporal may be away when the door opens: it is looked for at each nudge until found."""

    def __init__(self, address: str, namespace: str) -> None:
        self._address, self._namespace = address, namespace
        self._client: Client | None = None
        self._connecting = asyncio.Lock()

    async def __call__(self, owner: str) -> None:
        client = await self._connected()
        await client.start_workflow(
            "HeartbeatWorkflow",
            OwnerRef(owner),
            id=heartbeat_workflow_id(owner),
            task_queue=TASK_QUEUE,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal="look_again",
        )

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None:
                self._client = await Client.connect(
                    self._address, namespace=self._namespace, data_converter=pydantic_data_converter
                )
            return self._client


async def serve(settings: WebhookSettings) -> None:
    store = open_store(settings.store)
    secret = settings.webhook_secret_file.read_bytes().strip()
    if not secret:
        raise WatchbillError(f"{settings.webhook_secret_file} is empty; put the webhook's secret into it")
    nudger = Nudger(settings.temporal_address, settings.temporal_namespace)
    door = Door(store, secret, settings.webhooks_limit, nudger)
    config = uvicorn.Config(
        door.app(),
        settings.webhooks_host,
        settings.webhooks_port,
        log_config=None,
        log_level="warning",
        server_header=False,
    )
    await uvicorn.Server(config).serve()


def main() -> int:
    settings = told.read(WebhookSettings)
    configure()
    try:
        migrate(settings.store)
        asyncio.run(serve(settings))
    except (WatchbillError, OSError) as error:
        print(f"watchbill webhooks: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Temporal's client can abort in a late destructor; there is nothing left to do by then.
    os._exit(code)
