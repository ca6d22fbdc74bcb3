"""The one writer of a relay's ledger: a thread that takes whatever has come together and enters it in one commit.

First in, first out. Whoever asks for money waits until it is held for certain; whoever tells what a call
cost does not wait, and is not forgotten: what cannot be written is tried again until it can be. Should it
never be, the reservation's lease runs out, and the whole of it counts as spent.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import structlog

from domain.errors import Unavailable
from store.database import Store
from store.ledger import Answer, Ask, Entry, Held, Release, Renewal, Short, Spent, Void, enter

log = structlog.get_logger("relay")

AT_ONCE = 200
"""Entries of one commit: writes are short."""

LINGER = 0.02
"""Seconds that what nobody waits for may lie, so that it is entered with the next ask: a commit waits for the disk.

A relay that is killed in that time has told the ledger nothing of the call: all that was held counts as spent.
"""

YIELD = 0.002
"""Seconds that SQLite is left to other processes between two commits: its lock keeps no turn for anyone."""

LONGEST_PAUSE = 2.0
"""Seconds between two tries to reach a store that does not answer, at the most."""

KEEP_TRYING = 600.0
"""Seconds after which releases and renewals that cannot be written are given up: the lease has run out by then.

What a call came to is never given up, since it corrects that however late it comes.
"""

FLUSH = 15.0
"""Seconds that closing may take to write down what is left."""


@dataclass(frozen=True)
class _Job:
    """An entry, since when it waits in monotonic seconds, and who waits for its answer, if anybody does."""

    entry: Entry
    since: float
    loop: AbstractEventLoop | None = None
    answer: asyncio.Future[Answer] | None = None


class Bookkeeper:
    """Enters what a relay holds and spends. `name` tells this process from others in the ledger."""

    def __init__(self, store: Store, name: str = "") -> None:
        self._store = store
        self._name = name or f"{socket.gethostname()}-{os.getpid()}"
        self._shared = store.url.startswith("sqlite")
        self._waiting: deque[_Job] = deque()
        self._turn = threading.Condition()
        self._closing = self._ended = False
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._serve, name="bookkeeper", daemon=True)

    @property
    def at_work(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Write down what is left, for `FLUSH` seconds at most, and end the thread. Nobody is admitted any more."""
        with self._turn:
            self._closing = True
            self._deadline = time.monotonic() + FLUSH
            self._turn.notify()
        if self._thread.is_alive():
            self._thread.join()

    async def admit(self, ask: Ask) -> Held | Short | Void:
        """Hold money for a call. Raises Unavailable when the store does not answer; then nothing stays held.

        Whoever stops waiting holds nothing: what is entered for them all the same is released again.
        """
        loop = asyncio.get_running_loop()
        job = _Job(ask, time.monotonic(), loop, loop.create_future())
        self._put(job)
        assert job.answer is not None
        try:
            return cast("Held | Short | Void", await job.answer)
        except asyncio.CancelledError:
            self.release(ask.id)
            raise

    def settle(self, spent: Spent) -> None:
        """Tell what a call came to. It is written soon, and does not have to be waited for."""
        self._put(_Job(spent, time.monotonic()))

    def release(self, id: str) -> None:
        """Tell that nothing of a call reached the provider."""
        self._put(_Job(Release(id, datetime.now(UTC)), time.monotonic()))

    def renew(self, id: str, until: datetime) -> None:
        """Answer for a call that goes on until then."""
        self._put(_Job(Renewal(id, until), time.monotonic()))

    def _put(self, job: _Job) -> None:
        with self._turn:
            if self._closing and isinstance(job.entry, Ask):
                raise Unavailable("this relay is closing; try again")
            if not self._ended:
                # Whoever lingers over other entries wakes for an ask, or by itself.
                if isinstance(job.entry, Ask) or not self._waiting:
                    self._turn.notify()
                self._waiting.append(job)
                return
        _lose(job, "the relay has ended")

    def _serve(self) -> None:
        pause = 0.0
        while (jobs := self._next()) is not None:
            try:
                self._write(jobs)
            except Unavailable:
                pause = min(LONGEST_PAUSE, max(0.05, pause * 2))
                self._rest(pause)
            else:
                pause = 0.0
                if self._shared and self._waiting:
                    time.sleep(YIELD)
        with self._turn:
            self._ended = True
        for job in self._waiting:
            _lose(job, "the relay has ended")

    def _write(self, jobs: Sequence[_Job]) -> None:
        """Enter them together. Raises Unavailable where the store is away; what is to be tried again waits then."""
        try:
            answers = self._enter(jobs)
        except Unavailable as error:
            self._later(jobs, error)
            raise
        except Exception:  # noqa: BLE001 - whatever one entry is wrong about holds up no other
            self._singly(jobs)
        else:
            _tell(jobs, answers)

    def _next(self) -> list[_Job] | None:
        """The next jobs in the order in which they came; None when there is nothing left to do, or no time for it."""
        with self._turn:
            while not self._closing and (pause := self._pause()) != 0:
                self._turn.wait(pause)
            if not self._waiting or time.monotonic() > self._deadline:
                return None
            return [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]

    def _pause(self) -> float | None:
        """Seconds until there is something to enter; None while nothing waits. The lock is held."""
        if not self._waiting:
            return None
        if any(isinstance(job.entry, Ask) for job in self._waiting):
            return 0
        return max(0.0, self._waiting[0].since + LINGER - time.monotonic())

    def _enter(self, jobs: Sequence[_Job]) -> list[Answer]:
        with self._store.write() as connection:
            return enter(connection, [job.entry for job in jobs], self._name)

    def _later(self, jobs: Sequence[_Job], error: Unavailable) -> None:
        """Try again what nobody waits for, before all that came after it. Asks are refused, and hold nothing.

        So are all that wait behind them: they would only be told the same later.
        """
        log.warning("the ledger cannot be written", entries=len(jobs), error=str(error))
        now = time.monotonic()
        again: list[_Job] = []
        for job in jobs:
            if isinstance(job.entry, Ask):
                # The commit may have arrived although its answer did not.
                again.append(_Job(Release(job.entry.id, datetime.now(UTC)), now))
                _fail(job, error)
            elif now - job.since > KEEP_TRYING and not isinstance(job.entry, Spent):
                _lose(job, str(error))
            else:
                again.append(job)
        with self._turn:
            asks = [job for job in self._waiting if isinstance(job.entry, Ask)]
            self._waiting = deque([*again, *(job for job in self._waiting if not isinstance(job.entry, Ask))])
        for job in asks:
            _fail(job, error)

    def _rest(self, seconds: float) -> None:
        """Let the store come to itself. Closing does not wait for that."""
        with self._turn:
            self._turn.wait_for(lambda: self._closing, seconds)
        if self._closing:
            time.sleep(min(seconds, 0.1))

    def _singly(self, jobs: Sequence[_Job]) -> None:
        """Enter each by itself, so that one which cannot be true keeps none of the others from it."""
        for n, job in enumerate(jobs):
            try:
                answers = self._enter([job])
            except Unavailable as away:
                self._later(jobs[n:], away)
                raise
            except Exception as wrong:  # noqa: BLE001 - see above
                _fail(job, wrong)
                _lose(job, repr(wrong))
            else:
                _tell([job], answers)


def _tell(jobs: Sequence[_Job], answers: Sequence[Answer]) -> None:
    """Give the answers to whoever waits for them; one call a loop, however many they are."""
    waiting: dict[AbstractEventLoop, list[tuple[asyncio.Future[Answer], Answer]]] = {}
    for job, answer in zip(jobs, answers, strict=True):
        if job.answer is not None and job.loop is not None:
            waiting.setdefault(job.loop, []).append((job.answer, answer))
        elif answer is False and isinstance(job.entry, Spent):
            log.error("a call was settled that nothing is held for", **_shown(job.entry))
    for loop, pairs in waiting.items():
        _call(loop, _give, pairs)


def _give(pairs: Iterable[tuple[asyncio.Future[Answer], Answer]]) -> None:
    for future, answer in pairs:
        if not future.done():
            future.set_result(answer)


def _fail(job: _Job, error: Exception) -> None:
    def fail(future: asyncio.Future[Answer]) -> None:
        if not future.done():
            future.set_exception(error)

    if job.answer is not None and job.loop is not None:
        _call(job.loop, fail, job.answer)


def _call(loop: AbstractEventLoop, call: Any, *arguments: Any) -> None:
    try:
        loop.call_soon_threadsafe(call, *arguments)
    except RuntimeError:
        log.warning("nobody waits for the ledger's answer any more")


def _lose(job: _Job, why: str) -> None:
    """Say of an entry that it was not written. What was held for it counts as spent once its lease has run out."""
    if not isinstance(job.entry, Ask):
        log.error("an entry of the ledger is lost", why=why, kind=type(job.entry).__name__, **_shown(job.entry))


def _shown(entry: Entry) -> dict[str, Any]:
    return {name: str(value) for name, value in vars(entry).items()}
