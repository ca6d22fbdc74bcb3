"""The supervisor: one small process that owns one run's agent, outlives the worker, and writes what happened.

Its folder is all that it shares with a worker. It reads `spec.json` (what to run), `lease` (until
when somebody wants it) and `stop` (that somebody no longer does); it writes `state.json` and
`events.jsonl`, the output's two segments, the stream's parts where there is a stream, and, last of
all and once, `result.json`. It holds the folder's lock from before its first instruction, handed
over by whoever started it, until its death.

A folder sees one agent at most: `state.json` stands before the agent's first instruction, and where
it stands no supervisor starts another. However the agent ends, everything of the run is ended with it.
"""

from __future__ import annotations

import os
import select
import time

from runtimes import linux
from runtimes.becoming import become_agent
from runtimes.files import append_object, read_object, write_object
from runtimes.processes import MARKER, bearers, boot_id, end_all, identify, members, with_survivors
from runtimes.segments import Segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runtimes.cell import Cell
    from runtimes.lines import Lines
    from runtimes.processes import Process

TICK_SECONDS = 0.2
"""How often the folder is looked at while nothing happens."""

_CHUNK = 1 << 16
_CHUNKS_LEFT = 32
_TOLD_TO_END = (linux.SIGHUP, linux.SIGINT, linux.SIGTERM)
_CELL_SECONDS = 1.0
"""How long those that keep a cell have to tell of its end."""


def supervise(folder: str, lock: int) -> None:
    """Take the run in this folder from its specification to its result; `lock` is held by descriptor."""
    # The lock lives as long as any copy of its descriptor: an agent must not get one.
    os.set_inheritable(lock, False)
    if not any(os.path.exists(f"{folder}/{name}") for name in ("result.json", "state.json")):
        spec = read_object(f"{folder}/spec.json")
        if spec is None:
            raise SystemExit(f"{folder} holds no specification of a run")
        Supervisor(folder, spec).run()


class Supervisor:
    def __init__(self, folder: str, spec: dict[str, Any]) -> None:
        self.folder, self.spec = folder, spec
        self.marker: str = spec["env"][MARKER]
        self.output = Segments(folder, spec["output_limit"])
        self.stream = open_stream(folder, spec) if spec["stream"] else None
        self.cell = open_cell(spec) if spec["cell"] else None
        self.pipes: dict[int, Segments | Lines] = {}
        self.poll = select.poll()
        self.signals = -1
        self.agent = 0
        self.exit_code: int | None = None
        self.fault = ""
        self.told_to_end = 0
        self.lease = self.next_look = 0.0
        self.started_at = time.time()
        self.begun = self.last_output = now()

    def run(self) -> None:
        try:
            linux.adopt_orphans()
            self.signals = linux.signals_as_file((linux.SIGCHLD, *_TOLD_TO_END))
            self.poll.register(self.signals, select.POLLIN)
            earlier, _ = end_all(lambda: bearers(self.marker), grace=0)
        except OSError as error:
            self.finish("never_started", f"this machine cannot own the processes of a run: {error}")
            return
        kind, reason = self.cause() or self.start() or self.watch()
        inmates = self.empty_cell() if self.cell else 0
        ended, left = end_all(self.members, grace=self.spec["grace"], wait=self.pass_time)
        self.drain()
        leftovers = [pid for pid, _ in earlier | ended if pid != self.agent]
        self.finish(kind, with_survivors(reason, left), leftovers=inmates or len(leftovers))

    def empty_cell(self) -> int:
        """End what is in the cell while those that keep it still live, who would take all with them at once.

        Answers how many of the agent's processes outlived it or were ended beside it.
        """
        ended: set[Process] = set()
        until = now() + self.spec["grace"] + _CELL_SECONDS
        while self.agent and self.exit_code is None and now() < until:
            ended |= end_all(self.inmates, grace=self.spec["grace"], wait=self.pass_time)[0]
            self.turn(TICK_SECONDS)
        told = self.cell.leftovers if self.cell else 0
        return max(told, len(ended) - 1)

    def start(self) -> tuple[str, str] | None:
        """Start the agent; what kept it from starting, if anything did."""
        agents_errors = self.open_terminal() if self.spec["pty"] else self.open_pipe(self.output)
        agents_output = self.open_pipe(self.stream) if self.stream else agents_errors
        gate, opener = os.pipe()
        fault, teller = os.pipe()
        parent = os.getpid()
        self.agent = os.fork()
        if self.agent == 0:
            os.close(opener)
            become_agent(self.spec, self.cell, parent, (agents_output, agents_errors), gate, teller)
        if self.cell:
            self.cell.begin()
        for descriptor in {agents_output, agents_errors}:
            os.close(descriptor)
        os.close(teller)
        self.record_start()
        # Only now may the agent begin: from here on the folder says that there is one.
        os.write(opener, b"!")
        os.close(opener)
        os.close(gate)
        self.begun = self.last_output = now()
        message = os.read(fault, _CHUNK).decode(errors="replace")
        os.close(fault)
        if not message:
            return None
        while self.exit_code is None:
            self.turn(TICK_SECONDS)
        return "exited", message

    def open_pipe(self, sink: Segments | Lines) -> int:
        """The end for the agent of a pipe into this."""
        ours, agents = os.pipe()
        self.read_from(ours, sink)
        return agents

    def open_terminal(self) -> int:
        """The agent's side of a terminal, whose other side is read as a pipe is."""
        # Loaded by runs on a terminal only: a start-up is paid for by every check.
        from termios import tcsetwinsize

        ours, agents = os.openpty()
        tcsetwinsize(agents, tuple(self.spec["pty"]))
        self.read_from(ours, self.output)
        return agents

    def read_from(self, ours: int, sink: Segments | Lines) -> None:
        os.set_blocking(ours, False)
        self.pipes[ours] = sink
        self.poll.register(ours, select.POLLIN)

    def watch(self) -> tuple[str, str]:
        """Pass the time until the agent ends or must be ended: how, and why."""
        while self.exit_code is None:
            if cause := self.cause():
                return cause
            self.turn(TICK_SECONDS)
        if self.exit_code < 0:
            return "killed", f"ended by {linux.signal_name(-self.exit_code)}, which was not ours"
        return "exited", self.fault

    def cause(self) -> tuple[str, str] | None:
        """Why the agent may not go on, if so."""
        moment = now()
        if self.told_to_end:
            return "killed", f"the supervisor was told to end by {linux.signal_name(self.told_to_end)}"
        if moment >= self.next_look:
            self.next_look = moment + TICK_SECONDS
            if stop := read_object(f"{self.folder}/stop"):
                return "stopped", str(stop.get("reason") or "somebody asked")
        if moment > self.lease:
            self.lease = read_lease(self.folder)
            if moment > self.lease:
                return "lease_lapsed", "no worker renewed the run's lease"
        if moment > self.begun + self.spec["timeout"]:
            return "timed_out", f"it ran for longer than {self.spec['timeout']:g} s"
        if self.spec["idle"] and moment > self.last_output + self.spec["idle"]:
            return "timed_out", f"it wrote nothing for {self.spec['idle']:g} s"
        return None

    def members(self) -> set[Process]:
        """All that is left of the run."""
        self.reap()
        return members(self.marker)

    def inmates(self) -> set[Process]:
        """All of the run but those that keep its cell."""
        self.reap()
        return set() if self.exit_code is not None else members(self.marker, but=self.agent)

    def pass_time(self, seconds: float) -> None:
        """Wait, but no longer than until a process ends, and go on reading output meanwhile."""
        until = now() + seconds
        while (left := until - now()) > 0 and not self.turn(left):
            pass

    def turn(self, seconds: float) -> bool:
        """Wait for something to happen and deal with it; whether a process has ended.

        Output is written before more is read: an agent that outruns the disk waits for it.
        """
        ended = False
        for descriptor, _ in self.poll.poll(seconds * 1000):
            if descriptor in self.pipes:
                self.pump(descriptor)
                continue
            for number in linux.read_signals(self.signals):
                if number == linux.SIGCHLD:
                    ended = self.reap() or ended
                else:
                    self.told_to_end = number
        return ended

    def reap(self) -> bool:
        """Collect every child that has ended, the adopted ones too; whether there was one."""
        any_ended = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return any_ended
            if pid == 0:
                return any_ended
            any_ended = True
            if pid == self.agent:
                self.exit_code = os.waitstatus_to_exitcode(status)
                if self.cell:
                    self.exit_code, self.fault = self.cell.end(self.exit_code)

    def pump(self, pipe: int) -> bool:
        """Move one chunk of output to the disk; whether there may be more at once."""
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            # So says a terminal that nobody has open any more, where a pipe would say that it is at its end.
            data = b""
        if not data:
            self.poll.unregister(pipe)
            os.close(pipe)
            del self.pipes[pipe]
            return False
        self.pipes[pipe].write(data)
        self.last_output = now()
        return True

    def drain(self) -> None:
        """Read what the pipes still hold; bounded, for a process that would not end may go on writing."""
        for pipe in list(self.pipes):
            for _ in range(_CHUNKS_LEFT):
                if not self.pump(pipe):
                    break
        if self.stream:
            self.stream.close()

    def record_start(self) -> None:
        state = {
            "at": self.started_at,
            "pid": self.agent,
            "process": identify(self.agent),
            "supervisor": identify(os.getpid()),
            "boot_id": boot_id(),
        }
        write_object(f"{self.folder}/state.json", state)
        started = {"event": "started", "at": self.started_at, "pid": self.agent}
        self.tell(started)

    def tell(self, event: dict[str, Any]) -> None:
        """Add to the run's story, which on a full disk is not worth its end."""
        try:
            append_object(f"{self.folder}/events.jsonl", event)
        except OSError:
            return

    def finish(self, kind: str, reason: str, *, leftovers: int = 0) -> None:
        sinks = [sink for sink in (self.output, self.stream) if sink]
        result = {
            "kind": kind,
            "exit_code": self.exit_code,
            "reason": reason,
            "started_at": self.started_at,
            "ended_at": time.time(),
            "output_bytes": sum(sink.total for sink in sinks),
            "truncated": any(sink.truncated for sink in sinks),
            "leftovers": leftovers,
        }
        self.tell({"event": "ended", "at": result["ended_at"], **result})
        # Last: whoever sees a result finds everything else in place.
        write_object(f"{self.folder}/result.json", result)


def open_stream(folder: str, spec: dict[str, Any]) -> Lines:
    """Its module is loaded by runs that have a stream only: a start-up is paid for by every check."""
    from runtimes.lines import Lines

    return Lines(folder, spec["output_limit"], spec["line_limit"])


def open_cell(spec: dict[str, Any]) -> Cell:
    from runtimes.cell import Cell

    return Cell(spec)


def read_lease(folder: str) -> float:
    """Until when the run is wanted, on the clock of `now`; 0 when nobody of this boot has said so."""
    lease = read_object(f"{folder}/lease") or {}
    return float(lease["until"]) if lease.get("boot_id") == boot_id() else 0.0


def now() -> float:
    """Seconds since the machine started, sleep included.

    Both sides measure leases and limits on this clock. The wall clock can be set while a run is
    under way, which would end it early or keep it past its lease; a clock that stands still while
    a laptop sleeps would keep an agent whose lease, and work, others have since taken over.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)
