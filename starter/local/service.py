"""One supervised process: started, waited for until it is ready, restarted when it dies, stopped."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.errors import WatchbillError
from starter.local.log import Log

# Seconds. A process that lived this long was well, and its death is the first of a new row.
_WELL = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 15.0
_POLL = 0.05

_LONGEST_ANNOUNCEMENT = 64 * 1024


def leashed(command: Sequence[str]) -> tuple[str, ...]:
    """The same command, such that it dies with this process: see leash.py."""
    leash = Path(__file__).with_name("leash.py")
    return (sys.executable, "-I", "-S", str(leash), str(os.getpid()), *command)


def module(name: str) -> tuple[str, ...]:
    """The command that runs a module of ours. -P: whatever has its name in the current folder is not meant."""
    return (sys.executable, "-P", "-m", name)


@dataclass(frozen=True)
class Service:
    """What to run. `ready` answers, from a thread, whether it serves by now; without it nobody waits.

    One that `announces` is ready once it has printed a line that is a JSON object. `start_within` and
    `stop_within` are seconds; it is killed when it takes longer to stop.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    ready: Callable[[], bool] | None = None
    announces: bool = False
    start_within: float = 60.0
    stop_within: float = 10.0


class DidNotStart(WatchbillError):
    """A process of the installation ended, or took too long, before it was ready."""


class Supervised:
    """The life of one service. `tell` hears of deaths, in sentences. `announcement` is what it announced.

    `start` belongs on the main thread: see leash.py.
    """

    def __init__(self, service: Service, logs: Path, tell: Callable[[str], None]) -> None:
        self.service = service
        self.announcement: dict[str, Any] = {}
        self._said = b""
        self._log = Log(logs / f"{service.name}.log", self._listen)
        self._tell = tell
        self._process: Process | None = None
        self._keeping: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id while it lives."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> None:
        """Return when it is ready; from then on it is restarted when it dies.

        Raises DidNotStart with its last words when it ends first or takes too long.
        """
        process = await self._spawn()
        try:
            async with asyncio.timeout(self.service.start_within):
                while not await self._ready():
                    if process.returncode is not None:
                        raise DidNotStart(self._obituary(process.returncode, "before it was ready"))
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            raise DidNotStart(
                f"{self.service.name} was not ready within {self.service.start_within:g} s; its output is in "
                f"{self._log.path}"
            ) from None
        self._keeping = asyncio.create_task(self._keep(process))

    def kill(self) -> None:
        """Kill it for good, so that `stop` has nothing to wait for."""
        if self._keeping is not None:
            self._keeping.cancel()
        if self._process is not None:
            _send(self._process, signal.SIGKILL)

    async def stop(self) -> None:
        """Ask it to end, and kill it when that takes too long. Also ends what never got ready; repeatable."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        if self._process is not None:
            await self._end(self._process)
        self._log.close()

    async def _keep(self, process: Process) -> None:
        loop = asyncio.get_running_loop()
        pause = _FIRST_PAUSE
        while True:
            began = loop.time()
            code = await process.wait()
            if loop.time() - began > _WELL:
                pause = _FIRST_PAUSE
            self._tell(self._obituary(code, f"and starts again in {pause:g} s"))
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            try:
                process = await self._spawn()
            except OSError as error:
                self._tell(f"{self.service.name} cannot be started: {error}")

    async def _spawn(self) -> Process:
        output = self._log.open_pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *leashed(self.service.command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(self.service.environment),
                # Ctrl-C in a terminal reaches every process there; these are to end in order.
                start_new_session=True,
            )
        finally:
            os.close(output)
        return self._process

    async def _end(self, process: Process) -> None:
        _send(process, signal.SIGTERM)
        try:
            async with asyncio.timeout(self.service.stop_within):
                await process.wait()
        except TimeoutError:
            self._tell(f"{self.service.name} did not end within {self.service.stop_within:g} s and is killed")
            _send(process, signal.SIGKILL)
            await process.wait()

    async def _ready(self) -> bool:
        if self.service.announces:
            return bool(self.announcement)
        return self.service.ready is None or await asyncio.to_thread(self.service.ready)

    def _listen(self, output: bytes) -> None:
        if self.announcement or not self.service.announces:
            return
        *lines, self._said = (self._said + output)[-_LONGEST_ANNOUNCEMENT:].split(b"\n")
        for line in lines:
            with suppress(ValueError):
                if isinstance(said := json.loads(line), dict):
                    self.announcement = said

    def _obituary(self, code: int, what_next: str) -> str:
        self._log.finish_pipe()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        last = self._log.last_line()
        return f"{self.service.name} {how} {what_next}; " + (
            f"its last words: {last} (all of them: {self._log.path})" if last else "it said nothing"
        )


def _send(process: Process, number: signal.Signals) -> None:
    """Signal a process that may have ended meanwhile.

    asyncio's own way asks the process first whether it has, which takes its exit code from whoever waits for it.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
