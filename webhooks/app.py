"""`POST /webhooks/github`: a verified delivery becomes a row in the inbox, is answered, and then wakes somebody.

The row comes before the answer and the answer before the nudge, so a crash at any point loses
nothing: what was not answered is sent again by whoever watches deliveries, and what was not nudged
is found by the next beat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from domain.errors import WatchbillError
from domain.identity import task_of_branch
from store import inbox
from store.database import Store
from store.inbox import Delivery
from webhooks.payload import Payload
from webhooks.signature import is_signed

log = structlog.get_logger("webhooks")

Nudge = Callable[[str], Awaitable[None]]
"""Wakes an owner's heartbeat."""

MAX_DELIVERY_ID = 100


@dataclass(frozen=True)
class Door:
    """`secret` is what GitHub signs with, `limit` the bytes of the largest body that is read."""

    store: Store
    secret: bytes
    limit: int
    nudge: Nudge

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/webhooks/github", self.receive, methods=["POST"]),
                Route("/healthz", self.health, methods=["GET"]),
            ]
        )

    async def receive(self, request: Request) -> Response:
        """Keep a delivery. 202 when it is kept, also when it was kept before; 4xx when it never will be."""
        try:
            body = await self._body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return _refuse(413, f"the body is larger than {self.limit} bytes")
        if not is_signed(self.secret, body, _header(request, b"x-hub-signature-256")):
            return _refuse(401, "the signature does not match; check the webhook's secret on both sides")
        delivery_id = request.headers.get("x-github-delivery", "")
        if not delivery_id or len(delivery_id) > MAX_DELIVERY_ID:
            return _refuse(400, "X-GitHub-Delivery is missing or too long")
        try:
            delivery = _delivery(delivery_id, request.headers.get("x-github-event", ""), body)
        except ValidationError:
            return _refuse(400, "the body is not JSON of the expected form; set the content type to application/json")
        try:
            owner = await asyncio.to_thread(self._keep, delivery)
        except WatchbillError as error:
            log.warning("a delivery could not be kept", delivery=delivery_id, error=str(error))
            return _refuse(503, "the delivery could not be kept; send it again")
        return JSONResponse({"delivery": delivery_id}, 202, background=BackgroundTask(self._wake, owner))

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _body(self, request: Request) -> bytes | None:
        """The raw body; None as soon as it is known to be too large."""
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self.limit:
            return None
        parts: list[bytes] = []
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > self.limit:
                return None
            parts.append(part)
        return b"".join(parts)

    def _keep(self, delivery: Delivery) -> str | None:
        """Write the delivery down, and answer whom to wake about it.

        Nobody for a mere push: what it means for a pull request comes as a delivery of its own.
        """
        with self.store.write() as connection:
            inbox.receive(connection, delivery)
            return None if delivery.event == "push" else inbox.owner_of(connection, delivery)

    async def _wake(self, owner: str | None) -> None:
        if owner is None:
            return
        try:
            await self.nudge(owner)
        except Exception as error:  # noqa: BLE001 - whatever it is, the delivery has been kept
            # The row is kept; the next beat or sweep finds it.
            log.warning("nobody could be woken", owner=owner, error=str(error))


def _delivery(delivery_id: str, event: str, body: bytes) -> Delivery:
    payload = Payload.model_validate_json(body)
    pull = payload.pull_request
    return Delivery(
        delivery=delivery_id,
        source="github",
        event=event[:50],
        action=payload.action[:50],
        payload=body.decode(errors="replace"),
        received_at=datetime.now(UTC),
        repository=payload.repository_name,
        branch=payload.branch,
        pull_number=pull.number if pull else None,
        task_id=task_of_branch(payload.branch),
    )


def _header(request: Request, name: bytes) -> bytes:
    """The raw bytes of a header: a comparison must not fail on what is not ASCII."""
    return next((value for key, value in request.headers.raw if key == name), b"")


def _refuse(status: int, message: str) -> Response:
    return JSONResponse({"message": message}, status)
