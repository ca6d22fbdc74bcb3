"""What a command's exit code means, and how anything that goes wrong comes by its code."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

from domain.errors import Fault, InvalidPlan, Misconfigured, NotFound, Unauthorized, Unavailable, WatchbillError


class Exit(IntEnum):
    DONE = 0
    FAULTS = 1
    USAGE = 2
    REFUSED = 3
    NOT_FOUND = 4
    UNREACHABLE = 5
    UNFINISHED = 6
    BUG = 70
    INTERRUPTED = 130


MEANINGS: Mapping[Exit, str] = {
    Exit.DONE: "done, or it was so already",
    Exit.FAULTS: "the document has faults, or `audit`, `receipts --verify` or `doctor` found something wrong",
    Exit.USAGE: "the command was not typed as it should be, or a setting cannot be read",
    Exit.REFUSED: "refused: the state of things does not allow it",
    Exit.NOT_FOUND: "the file, plan, task, repository or base is not there",
    Exit.UNREACHABLE: "Temporal, a worker, the store, the forge or the disk does not answer, or does not let us in",
    Exit.UNFINISHED: "`watch`, `status --wait`, `rehearse`: not everything was merged, or a person is needed; "
    "`watch --screen`: the run did not finish",
    Exit.BUG: "a fault of Watchbill's own; set WATCHBILL_DEBUG=1 to see where",
    Exit.INTERRUPTED: "ended by Ctrl-C",
}

BY_ERROR: Mapping[str, Exit] = {
    "InvalidPlan": Exit.FAULTS,
    "NotFound": Exit.NOT_FOUND,
    "Unauthorized": Exit.UNREACHABLE,
    "Unavailable": Exit.UNREACHABLE,
    "RateLimited": Exit.UNREACHABLE,
}
"""By the name of an error as it comes back from a workflow; any other one is a refusal."""


class CommandFailed(WatchbillError):
    """The command ends here, with this code. `details` go beside the message where JSON is asked for."""

    def __init__(self, exit: Exit, message: str, **details: Any) -> None:
        self.exit, self.details = exit, details
        super().__init__(message)


def faulty(path: Path, faults: tuple[Fault, ...]) -> CommandFailed:
    """A document that is no plan, told as editors and compilers do: `plan.md:12: what is wrong`."""
    message = "\n".join(f"{path}:{fault.line}: {fault.message}" for fault in faults)
    return CommandFailed(Exit.FAULTS, message, faults=[vars(fault) for fault in faults])


def exit_of(error: WatchbillError) -> Exit:
    """The code for an error that was raised on this side."""
    match error:
        case CommandFailed():
            return error.exit
        case InvalidPlan():
            return Exit.FAULTS
        case Misconfigured():
            return Exit.USAGE
        case NotFound():
            return Exit.NOT_FOUND
        case Unavailable() | Unauthorized():
            return Exit.UNREACHABLE
    return Exit.REFUSED
