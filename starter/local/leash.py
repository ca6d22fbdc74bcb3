"""Run a command that dies with its parent: `python -I -S leash.py PARENT COMMAND [ARGUMENT…]`.

The kernel keeps this promise (prctl(2), PR_SET_PDEATHSIG; it holds across execve), so it also holds
for a kill -9 of the parent. It is Linux's alone: elsewhere the command is run without it. It is tied
to the parent's thread, which must therefore be the main one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the promise was made
        sys.exit("the parent is gone")
    os.execvp(command[0], command)  # noqa: S606 - to become the command is the point


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
