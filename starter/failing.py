"""What happens when a command fails: one clear sentence, and the exit code that goes with it."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from domain.errors import WatchbillError, said
from starter.exits import CommandFailed, Exit, exit_of
from starter.output import note, note_json
from starter.settings import debugging


def guarded(command: Callable[[], int | None], *, json: bool) -> int:
    """The command's exit code, or that of what went wrong, which is then said on stderr."""
    try:
        return int(command() or Exit.DONE)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does.
        return Exit.DONE
    except WatchbillError as error:
        return fail(error, json=json)
    except OSError as error:
        # A disk that is full, a folder that may not be written: nothing that a traceback would explain.
        return fail(CommandFailed(Exit.UNREACHABLE, said(error)), json=json, cause=error)
    except Exception as error:  # noqa: BLE001 - nobody should have to read a traceback
        told = f"watchbill failed: {type(error).__name__}: {said(error)}; WATCHBILL_DEBUG=1 shows where"
        return fail(CommandFailed(Exit.BUG, told), json=json, cause=error)


def fail(error: WatchbillError, *, json: bool, cause: Exception | None = None) -> Exit:
    """Say what went wrong, as a sentence or as JSON."""
    if debugging():
        traceback.print_exception(cause or error)
    code = exit_of(error)
    if json:
        details = error.details if isinstance(error, CommandFailed) else {}
        note_json({"error": code.name.lower(), "message": str(error), **details})
    else:
        note(str(error))
    return code
