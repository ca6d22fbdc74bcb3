"""The first process in a cell: `python -I -S inside.py REPORT CHANNEL HOST PORT PROGRAM ARGV...`.

It opens the cell's one door and hands it out, starts the agent, and tells what became of it; its own end is
the end of all that is in the cell. REPORT is the descriptor that it writes to, CHANNEL the one over which
the door's socket goes out, -1 where the cell has none.
"""

from __future__ import annotations

import os
import select
import sys

# Last, so that nothing beside this package can stand in for a standard module.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from runtimes import linux
from runtimes.files import encode, read_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

CANNOT_RUN, NOT_FOUND = 126, 127


def main() -> None:
    report, channel, host, port, program, *argv = sys.argv[1:]
    # As it was given: Python may have added to its own for the sake of its locale.
    given = [entry for entry in (read_bytes("/proc/self/environ") or b"").split(b"\0") if entry]
    environment = dict(entry.split(b"=", 1) for entry in given)
    linux.reset_signals()
    linux.hide_memory()
    os.set_inheritable(int(report), False)
    if _is_abandoned(int(report)):
        return
    try:
        if channel != "-1":
            from runtimes.passage import hand_out

            hand_out(int(channel), (host, int(port)))
        status, fault = _status_of(program, argv, environment)
    except OSError as error:
        status, fault = CANNOT_RUN, f"the door of its cell could not be opened: {error}"
    os.write(int(report), encode({"exit_code": status, "fault": fault, "leftovers": _others()}))


def _is_abandoned(report: int) -> bool:
    """Whether nobody reads what is told: a supervisor that died while the cell was made could not yet take it along."""
    poll = select.poll()
    poll.register(report, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _status_of(program: str, argv: list[str], environment: dict[bytes, bytes]) -> tuple[int, str]:
    """Start the agent and collect every process that ends, until it is the agent: its end, negative for a signal."""
    fault, teller = os.pipe()
    agent = os.fork()
    if agent == 0:
        _become(program, argv, environment, teller)
    os.close(teller)
    told = os.read(fault, 1 << 10).decode(errors="replace")
    while True:
        pid, status = os.wait()
        if pid == agent:
            return os.waitstatus_to_exitcode(status), told


def _become(program: str, argv: list[str], environment: dict[bytes, bytes], teller: int) -> NoReturn:
    code = CANNOT_RUN
    try:
        if not os.path.exists(program):
            code = NOT_FOUND
        os.execve(program, argv, environment)
    except (OSError, ValueError) as error:
        os.write(teller, f"the command could not be run: {error}".encode(errors="replace"))
    finally:
        os._exit(code)


def _others() -> int:
    """How many processes are left in here that have not ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return 0
    return sum(name.isdigit() for name in os.listdir("/proc")) - 1


main()
os._exit(0)
