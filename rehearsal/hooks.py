"""Sending webhooks: signed, once, within ten seconds, and recorded. GitHub never tries again by itself."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
import json
import random
import ssl
import time
from collections import defaultdict

import httpx
from starlette.concurrency import run_in_threadpool

from rehearsal import faults
from rehearsal.faults import Fault, FaultKind
from rehearsal.state import Row, State, now

TIME_LIMIT_SECONDS = 10.0
_AT_ONCE = 10
_KEPT_RESPONSE = 65_536


class Sender:
    """Takes waiting deliveries out of the state and sends them in the background.

    A delivery that waited when the process died is sent after the next start.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._loop = asyncio.get_running_loop()
        self._something_waits = asyncio.Event()
        self._something_waits.set()
        self._taken: set[int] = set()
        self._held: defaultdict[int, list[Row]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        # Each delivery on a connection of its own: one that is kept may be closed by the other side just then,
        # and a delivery that is lost is never sent again.
        self._client = httpx.AsyncClient(
            timeout=TIME_LIMIT_SECONDS,
            trust_env=False,
            verify=_trusted(),
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def nudge(self) -> None:
        """Something may be waiting. Safe from any thread."""
        self._loop.call_soon_threadsafe(self._something_waits.set)

    async def run(self) -> None:
        """Send whatever waits, until cancelled."""
        try:
            while True:
                await self._something_waits.wait()
                self._something_waits.clear()
                for delivery in await run_in_threadpool(self._waiting):
                    await self._dispatch(delivery)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._client.aclose()

    def _waiting(self) -> list[Row]:
        rows = self._state.all("SELECT * FROM delivery WHERE delivered_at IS NULL ORDER BY id")
        fresh = [row for row in rows if row["id"] not in self._taken]
        self._taken.update(row["id"] for row in fresh)
        return fresh

    async def _dispatch(self, delivery: Row) -> None:
        kinds = (FaultKind.WEBHOOK_DROPPED, FaultKind.WEBHOOK_DUPLICATED, FaultKind.WEBHOOK_PERMUTED)
        names = (delivery["event"], f"{delivery['event']}.{delivery['action']}")
        fault = await run_in_threadpool(faults.strike, self._state, kinds, "POST", *names)
        if fault is None:
            self._spawn([delivery])
        elif fault.kind is FaultKind.WEBHOOK_DUPLICATED:
            self._spawn([delivery, delivery])
        elif fault.kind is FaultKind.WEBHOOK_PERMUTED:
            self._hold(fault, delivery)
        else:
            await run_in_threadpool(self._drop, delivery, fault)

    def _hold(self, fault: Fault, delivery: Row) -> None:
        held = self._held[fault.id]
        held.append(delivery)
        if len(held) == 1:
            self._loop.call_later(float(fault.options.get("seconds", 2)), self._release, fault)
        if not fault.left:
            self._release(fault)

    def _release(self, fault: Fault) -> None:
        held = self._held.pop(fault.id, [])
        if "seed" in fault.options:
            order = random.Random(fault.options["seed"])  # noqa: S311 - to be repeated, not to be secret
            order.shuffle(held)
        else:
            held.reverse()
        if held:
            self._spawn(held)

    def _drop(self, delivery: Row, fault: Fault) -> None:
        if fault.options.get("recorded", True):
            _record(self._state, delivery["id"], 0.0, "failed to connect to host", 502, {}, {}, "")
        else:
            self._state.run("DELETE FROM delivery WHERE id = ?", delivery["id"])

    def _spawn(self, deliveries: list[Row]) -> None:
        task = asyncio.create_task(self._send_in_order(deliveries))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_in_order(self, deliveries: list[Row]) -> None:
        for delivery in deliveries:
            async with self._at_once:
                await self._send(delivery)
            self._taken.discard(delivery["id"])

    async def _send(self, delivery: Row) -> None:
        hook = await run_in_threadpool(self._state.one, "SELECT * FROM hook WHERE id = ?", delivery["hook"])
        if hook is None:
            return
        body = delivery["payload"].encode()
        headers = _headers(delivery, hook, body)
        begun = time.monotonic()
        answered: dict[str, str] = {}
        text = ""
        try:
            async with asyncio.timeout(TIME_LIMIT_SECONDS):
                response = await self._client.post(hook["url"], content=body, headers=headers)
            status, code = response.reason_phrase or "OK", response.status_code
            answered, text = dict(response.headers), response.text[:_KEPT_RESPONSE]
        except (TimeoutError, httpx.TimeoutException):
            status, code = "timed out", 504
        except (httpx.HTTPError, httpx.InvalidURL):
            status, code = "failed to connect to host", 502
        took = round(time.monotonic() - begun, 2)
        await run_in_threadpool(_record, self._state, delivery["id"], took, status, code, headers, answered, text)


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Made once a process: reading all the certificates takes longer than everything else at the start."""
    return ssl.create_default_context()


def _headers(delivery: Row, hook: Row, body: bytes) -> dict[str, str]:
    secret = hook["secret"].encode()
    return {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/rehearsal",
        "X-GitHub-Delivery": delivery["guid"],
        "X-GitHub-Event": delivery["event"],
        "X-GitHub-Hook-ID": str(hook["id"]),
        "X-GitHub-Hook-Installation-Target-Type": "integration" if hook["app"] else "repository",
        "X-GitHub-Hook-Installation-Target-ID": str(hook["app"] or delivery["repository"] or 0),
        "X-Hub-Signature": "sha1=" + hmac.new(secret, body, hashlib.sha1).hexdigest(),
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest(),
    }


def _record(
    state: State,
    delivery: int,
    duration: float,
    status: str,
    code: int,
    sent: dict[str, str],
    answered: dict[str, str],
    text: str,
) -> None:
    state.run(
        "UPDATE delivery SET delivered_at = ?, duration = ?, status = ?, status_code = ?,"
        " request_headers = ?, response_headers = ?, response_body = ? WHERE id = ?",
        now(), duration, status, code, json.dumps(sent), json.dumps(answered), text, delivery,
    )  # fmt: skip


def redeliver(state: State, delivery: Row) -> None:
    """Queue the same payload again under the same GUID, as its own attempt."""
    state.run(
        "INSERT INTO delivery (guid, hook, event, action, installation, repository, redelivery, payload,"
        " created_at) SELECT guid, hook, event, action, installation, repository, 1, payload, ?"
        " FROM delivery WHERE id = ?",
        now(), delivery["id"],
    )  # fmt: skip
