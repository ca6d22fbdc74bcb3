"""Where `watchbill` starts and where it leaves."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def main() -> NoReturn:
    leave(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command to its exit code."""
    match [each for each in arguments if each != "--json"]:
        case ["--version"]:
            from importlib.metadata import version

            print(f"watchbill {version('watchbill')}")
            return 0
        case ["check", file] if not file.startswith("-"):
            # Editors and commit hooks run this at every save, and the command line's parser alone
            # takes longer than the check.
            return _check(file, json="--json" in arguments)
    from starter.app import run_command

    return run_command(arguments)


def _check(file: str, *, json: bool) -> int:
    from pathlib import Path

    from starter.failing import guarded

    def check() -> int:
        from starter.checking import check

        return check(Path(file), json=json)

    return guarded(check, json=json)


def leave(code: int) -> NoReturn:
    """End the process with this code, whatever is still going on in it.

    A short process that used Temporal's client may abort in a late destructor (temporalio/sdk-python#300),
    so nothing is destroyed: what was said is flushed, and the kernel does the rest.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        os._exit(code)
    if "temporalio" in sys.modules:
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
