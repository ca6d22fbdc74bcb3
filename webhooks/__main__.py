"""`python -m webhooks`: serve the webhooks' door until told to stop."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.contrib.pydantic import pydantic_data_converter

from domain.identity import TASK_QUEUE, heartbeat_workflow_id
from domain.publication import OwnerRef
from doors import serving, told
from doors.temporal import connection
from store.database import open_store
from webhooks.app import Door
from webhooks.settings import WebhookSettings


class Nudger:
    """Wakes heartbeats. Temporal may be away when the door opens: it is looked for at each nudge until found.

    `options` are arguments of `Client.connect`.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
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
                self._client = await Client.connect(**self._options, data_converter=pydantic_data_converter)
            return self._client


async def serve(settings: WebhookSettings) -> None:
    store = open_store(settings.store)
    secret = told.secret(settings, "webhook_secret_file").encode()
    nudger = Nudger(connection(os.environ, settings.temporal_address, settings.temporal_namespace))
    door = Door(store, secret, settings.webhooks_limit, nudger)
    await serving.listen(door.app(), settings.webhooks_host, settings.webhooks_port)


if __name__ == "__main__":
    serving.leave(serving.serve_as("webhooks", WebhookSettings, serve))
