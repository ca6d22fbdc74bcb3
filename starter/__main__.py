"""Where `watchbill` starts and where it leaves."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import NoReturn


def main() -> NoReturn:
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    leave(run(sys.argv[1:]))


def _open_what_is_closed() -> None:
    """Whoever closed our output does not want to hear of it; Python has None in its place, which nobody expects."""
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - open to the end
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def run(arguments: Sequence[str]) -> int:
    """Run one command to its exit code."""
    json = "--json" in arguments
    if any("\ud800" <= letter <= "\udfff" for argument in arguments for letter in argument):
        return _quickly(lambda: _refuse(arguments), json)
    match [each for each in arguments if each != "--json"]:
        case ["--version"]:
            from importlib.metadata import version

            print(f"watchbill {version('watchbill')}")
            return 0
        # Editors and hooks run these at every save and every prompt, and the command line's parser
        # would take longer than they do. Whatever has another form is for the parser.
        case ["check", file] if not file.startswith("-"):
            return _quickly(lambda: _check(file, json), json)
        case ["status", *plan] if len(plan) < 2 and not "".join(plan).startswith("-"):
            return _quickly(lambda: _status("".join(plan), json), json)
        case ["report", *plan] if len(plan) < 2 and not "".join(plan).startswith("-"):
            return _quickly(lambda: _report("".join(plan), json), json)
    from starter.app import run_command

    return run_command(arguments)


def _quickly(command: Callable[[], int], json: bool) -> int:
    import gc

    from starter.failing import guarded

    # It leaves before there is garbage worth a search, and each search looks through everything that was loaded.
    gc.disable()
    return guarded(command, json=json)


def _refuse(arguments: Sequence[str]) -> NoReturn:
    """What is no UTF-8 comes in surrogates, which neither Temporal nor the store would take."""
    from doors.typed import is_utf8
    from starter.exits import CommandFailed, Exit

    odd = next(repr(os.fsencode(argument))[1:] for argument in arguments if not is_utf8(argument))
    raise CommandFailed(Exit.USAGE, f"the argument {odd} is no UTF-8; write it in UTF-8, or rename the file")


def _check(file: str, json: bool) -> int:
    from pathlib import Path

    from starter.checking import check

    return check(Path(file), json=json)


def _status(plan: str, json: bool) -> int:
    from starter import watching

    return watching.status(plan, wait=False, json=json) if plan else watching.list_plans(json=json)


def _report(plan: str, json: bool) -> int:
    from starter.reporting import giving

    return giving.report(plan, "", None, markdown=False, json=json)


def leave(code: int) -> NoReturn:
    """End the process with this code, whatever is still going on in it.

    A short process that used Temporal's client may abort in a late destructor (temporalio/sdk-python#300),
    so nothing is destroyed: what was said is flushed, and the kernel does the rest.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        # A pipe that nobody reads any more, or a full disk: there is nobody to say it to.
        os._exit(code)
    if "temporalio" in sys.modules:
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
