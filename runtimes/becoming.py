"""How a supervisor's fresh child becomes the agent, or the cell that the agent is to live in."""

from __future__ import annotations

import os

from runtimes import linux
from runtimes.processes import MARKER, brand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from runtimes.cell import Cell

CANNOT_RUN, NOT_FOUND = 126, 127
"""What a shell exits with where there is no agent to exit."""


def become_agent(
    spec: dict[str, Any], cell: Cell | None, parent: int, outputs: tuple[int, int], gate: int, teller: int
) -> NoReturn:
    """Turn this fresh child into the agent: its own session, its own environment, nothing of ours.

    Its standard output and standard error are `outputs`, which are one where it has a terminal; it reads a
    file, or its terminal, or nothing. Waits at the gate first; when that closes unopened, or the parent is
    another, the supervisor died.
    What goes wrong is told through `teller`, which an exec that succeeds closes.
    """
    code = CANNOT_RUN
    try:
        linux.die_with_parent()
        if os.getppid() != parent or not os.read(gate, 1):
            os._exit(code)
        os.setsid()
        if spec["pty"]:
            os.login_tty(outputs[0])
        else:
            os.dup2(outputs[0], 1)
            os.dup2(outputs[1], 2)
        if spec["stdin"] or not spec["pty"]:
            os.dup2(os.open(spec["stdin"] or os.devnull, os.O_RDONLY), 0)
        brand(spec["env"][MARKER])
        linux.leave_keyring()
        os.umask(0o022)
        linux.reset_signals()
        os.chdir(spec["cwd"])
        program, argv = cell.command() if cell else (spec["program"], spec["argv"])
        if not os.path.exists(program):
            code = NOT_FOUND
        os.execve(program, argv, spec["env"])
    except (OSError, ValueError) as error:
        os.write(teller, f"the command could not be run: {error}".encode(errors="replace"))
    finally:
        os._exit(code)
