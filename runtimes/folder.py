"""The worker's side of a run: its folder, and what can be told and done from outside.

Everything here is small and synchronous, and safe to repeat from any number of workers at once:
whoever holds the folder's lock is in charge, and a worker holds it only to start a supervisor or
to bury a run whose supervisor is gone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from domain.errors import WatchbillError
from domain.identity import digest
from domain.run import EndKind
from runtimes.files import read_object, write_object
from runtimes.hooks import EVENTS_FILE
from runtimes.lock import lock_held, take_lock
from runtimes.port import COLUMNS, ROWS, Cell, Launch, RunResult
from runtimes.processes import MARKER, bearers, boot_id, end_all, with_survivors
from runtimes.segments import read_tail
from runtimes.story import read_events
from runtimes.stream import Stream
from runtimes.supervisor import now
from runtimes.text import plain

if TYPE_CHECKING:
    from runtimes.processes import Process

_SUPERVISE = Path(__file__).with_name("supervise.py")
_LOG_LIMIT = 1 << 16

_CONTEXT = 1024


@dataclass(frozen=True)
class Absent:
    """Nothing was ever asked of this folder: spawn."""


@dataclass(frozen=True)
class Live:
    """A supervisor is in charge, with or without its agent yet: attach."""


@dataclass(frozen=True)
class Ended:
    """The run has ended and nothing of it is left."""

    result: RunResult


@dataclass(frozen=True)
class Dead:
    """Nobody is in charge and nothing says how it ended: bury.

    `begun` tells whether there ever was an agent. Without one, the worker or the machine died while
    starting it, and spawning again is as good.
    """

    begun: bool


Status = Absent | Live | Ended | Dead


def live_in(folder: Path) -> list[RunFolder]:
    """The runs at work whose folders are in this one."""
    return [run for path in folder.glob("*/") if isinstance((run := RunFolder(path)).status(), Live)]


class RunFolder:
    """One run's folder. `path` need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def make(self) -> None:
        """Make the folder with its lock, before it is written down anywhere that a run begins in it."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.path / "lock").touch(mode=0o600)

    def spawn(self, launch: Launch, until: datetime) -> None:
        """Start the run's supervisor unless this folder has, or had, one with an agent.

        `until` is the first lease. The supervisor is born with the folder's lock, so from here on the
        run is Live until it has ended or its supervisor is dead. Takes as long as a fork.
        """
        require_linux()
        self.make()
        lock = take_lock(self.path / "lock")
        if lock is None:
            return
        try:
            if self._result() is None and not self._begun():
                write_object(self._file("spec.json"), self._spec(launch))
                self.renew(until)
                self._start_supervisor(lock)
        finally:
            os.close(lock)

    def status(self) -> Status:
        """What is the case now, by the result and the lock; no pid is asked."""
        if result := self._result():
            return Ended(result)
        if lock_held(self.path / "lock"):
            return Live()
        # It may have ended between the two looks.
        if result := self._result():
            return Ended(result)
        return Dead(self._begun()) if (self.path / "spec.json").exists() else Absent()

    def renew(self, until: datetime) -> None:
        """Let the run go on until then (aware); its supervisor ends it when nobody says more.

        The lease is kept on the clock of `supervisor.now`, with the boot that it belongs to.
        """
        left = until.timestamp() - time.time()
        write_object(self._file("lease"), {"until": now() + left, "boot_id": boot_id()})

    def stop(self, reason: str) -> None:
        """Have the run ended; a run that has not begun will not begin."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_object(self._file("stop"), {"reason": reason})

    def reap(self) -> int:
        """End every process of a run whose supervisor is gone; how many there were.

        Does nothing while somebody is in charge. Blocks, for some five seconds at worst.
        """
        with self._in_charge() as in_charge:
            return len(self._end_bearers()[0]) if in_charge else 0

    def bury(self) -> RunResult | None:
        """Reap, and record once how a run without a result ended; None while somebody is in charge.

        `supervisor_died`, or `never_started` where there was no agent. `output_bytes` is then what was
        kept. Blocks like `reap`.
        """
        with self._in_charge() as in_charge:
            if in_charge and self._result() is None:
                epitaph = self._epitaph(*self._end_bearers())
                # Of use to nobody any more, and it may be what has filled the disk that the result is to lie on.
                shutil.rmtree(self.path / "tmp", ignore_errors=True)
                write_object(self._file("result.json"), epitaph)
            return self._result()

    def lost(self) -> bool:
        """Whether a run that was written down to have begun has no folder any more: somebody deleted it."""
        return not (self.path / "lock").exists()

    def mourn(self, run_id: str) -> None:
        """End what is left of a run whose folder was deleted, and record that as its end. Blocks like `reap`.

        Its supervisor lives on without a place to write to, and ends with its agent.
        """
        self.make()
        with self._in_charge() as in_charge:
            if in_charge and self._result() is None:
                marker = self._marker(run_id)
                epitaph = self._epitaph(*end_all(lambda: bearers(marker), grace=0))
                reason = "its folder was deleted while it was under way"
                write_object(self._file("result.json"), {**epitaph, "kind": EndKind.SUPERVISOR_DIED, "reason": reason})

    def tail(self, limit: int = 1 << 16) -> bytes:
        """The last bytes of the output, at most `limit`, as they came."""
        return read_tail(str(self.path), limit)

    def text(self, limit: int = 1 << 16) -> str:
        """The last of the output as plain text of at most `limit` bytes in UTF-8."""
        # With some context in front, for the cut may fall into a character or an escape sequence.
        text = plain(self.tail(limit + _CONTEXT)).encode()
        return text[-limit:].decode(errors="ignore")

    def stream(self) -> Stream:
        """What the agent said in objects, where its launch asked for a stream; nothing where it did not.

        Of a long one the head and the tail: an object of type `watchbill.gap` stands for what is gone in
        between, one of type `watchbill.cut` for a line that was too long.
        """
        return Stream(self.path)

    def events(self, after: int = 0) -> list[dict[str, Any]]:
        """The events behind the first `after`; a line still being written is left for the next time.

        Each has its `seq`, counted from 1, what `event` it is, and when: `at`, in ISO 8601.
        """
        return read_events(self._file("events.jsonl"), after)

    def uses(self, after: int = 0) -> list[dict[str, Any]]:
        """What our hook saw of the agent's uses of tools, as `events` has it: an agent could have written it."""
        return read_events(self._file(EVENTS_FILE), after)

    def _file(self, name: str) -> str:
        return str(self.path / name)

    def _begun(self) -> bool:
        return (self.path / "state.json").exists()

    def _result(self) -> RunResult | None:
        found = read_object(self._file("result.json"))
        return parse_result(found) if found else None

    def _spec(self, launch: Launch) -> dict[str, Any]:
        if launch.pty and launch.stream:
            raise WatchbillError(f"Run {launch.run_id} cannot have both a terminal and a stream.")
        marker = self._marker(launch.run_id)
        env = {**({"TERM": "linux"} if launch.pty else {}), **launch.env}
        env |= {"WATCHBILL_RUN": launch.run_id, MARKER: marker}
        return {
            "program": shutil.which(launch.argv[0], path=env.get("PATH", "")) or launch.argv[0],
            "argv": launch.argv,
            "cwd": str(launch.cwd),
            "env": env,
            "timeout": launch.timeout,
            "idle": launch.idle,
            "stdin": str(launch.stdin) if launch.stdin else "",
            "output_limit": launch.output_limit,
            "stream": launch.stream,
            "line_limit": launch.line_limit,
            "pty": (ROWS, COLUMNS) if launch.pty else (),
            "grace": launch.grace,
            "cell": _cell(launch.cell) if launch.cell else None,
        }

    def _marker(self, run_id: str) -> str:
        """The run's id, and a number that tells it from a run of the same name in another home."""
        return f"{run_id}.{digest(f'{run_id} {self.path.resolve()}')[:14]}"

    def _start_supervisor(self, lock: int) -> None:
        log = self.path / "supervisor.log"
        full = log.exists() and log.stat().st_size > _LOG_LIMIT
        with log.open("wb" if full else "ab") as stderr:
            child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SUPERVISE), str(self.path), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd="/",
                env={},
                pass_fds=(lock,),
                start_new_session=True,
            )
        # A child that nobody waits for stays as a zombie for as long as this worker lives.
        Thread(target=child.wait, name=f"wait-{child.pid}", daemon=True).start()

    @contextmanager
    def _in_charge(self) -> Iterator[bool]:
        """Whether the lock could be taken, and hold it meanwhile."""
        lock = take_lock(self.path / "lock") if self.path.exists() else None
        try:
            yield lock is not None
        finally:
            if lock is not None:
                os.close(lock)

    def _end_bearers(self) -> tuple[set[Process], set[Process]]:
        spec = read_object(self._file("spec.json"))
        return end_all(lambda: bearers(spec["env"][MARKER]), grace=0) if spec else (set(), set())

    def _epitaph(self, ended: set[Process], left: set[Process]) -> dict[str, Any]:
        state = read_object(self._file("state.json")) or {}
        kind, reason = EndKind.SUPERVISOR_DIED, "the supervisor died, and the agent with it"
        if not self._begun():
            kind, reason = EndKind.NEVER_STARTED, "the supervisor died before there was an agent"
        elif state.get("boot_id") != boot_id():
            reason = "the machine was restarted while the run was under way"
        kept = [file.stat().st_size for file in (*self.path.glob("output.[01]"), *self.path.glob("stream.*"))]
        return {
            "kind": kind,
            "exit_code": None,
            "reason": with_survivors(reason, left),
            "started_at": state.get("at", time.time()),
            "ended_at": time.time(),
            "output_bytes": sum(kept),
            "truncated": (self.path / "output.1").exists(),
            "leftovers": len(ended),
        }


def _cell(cell: Cell) -> dict[str, Any]:
    passage = cell.passage
    return {
        "argv": cell.argv,
        "inside": passage.inside if passage else None,
        "outside": passage.outside if passage else None,
    }


def parse_result(found: dict[str, Any]) -> RunResult | None:
    """A result as the supervisor or a burial wrote it; None for anything else."""
    try:
        return RunResult(
            kind=EndKind(found["kind"]),
            exit_code=found["exit_code"],
            reason=found["reason"],
            started_at=datetime.fromtimestamp(found["started_at"], UTC),
            ended_at=datetime.fromtimestamp(found["ended_at"], UTC),
            output_bytes=found["output_bytes"],
            truncated=found["truncated"],
            leftovers=found["leftovers"],
        )
    except (KeyError, ValueError, TypeError):
        return None


def reap_orphans(runs: Path) -> dict[str, int]:
    """At a worker's start: end what dead supervisors left under this directory of run folders.

    Answers how many processes were ended, by the folder's name. Recording the deaths is for `bury`,
    once whoever asks for the run comes by. Blocks like `RunFolder.reap` for each such folder.
    """
    folders = sorted(path for path in runs.iterdir() if path.is_dir()) if runs.exists() else []
    return {path.name: RunFolder(path).reap() for path in folders if isinstance(RunFolder(path).status(), Dead)}


def require_linux() -> None:
    """WatchbillError where processes cannot be owned the way runs need it."""
    try:
        os.close(os.pidfd_open(os.getpid()))
        usable = Path("/proc/self/environ").exists()
    except (AttributeError, OSError):
        usable = False
    if not usable:
        raise WatchbillError(
            "Runs need Linux 5.3 or later with /proc mounted (pidfds, prctl and process markers): "
            "run the worker on such a machine or in a container on one."
        )
