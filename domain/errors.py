"""What can be wrong, said once, with whether trying again helps.

An error states what happened in one clear sentence, and what to do about it where there is
something to do. Business outcomes (a refused move, an empty diff) are values, not errors.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Fault:
    """One thing wrong with a plan document. `line` counts from 1 in the file as written."""

    line: int
    message: str


class WatchbillError(Exception):
    """Base of everything Watchbill raises on purpose.

    `retryable` says whether the same call may succeed later without anybody changing anything;
    `retry_after` (seconds) is set where the peer said how long to wait.
    """

    retryable = False

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class InvalidPlan(WatchbillError):
    """A document that is no plan. `faults` lists everything wrong with it, in line order."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        super().__init__("; ".join(f"line {fault.line}: {fault.message}" for fault in faults))


class IllegalMove(WatchbillError):
    """The lifecycle table has no entry for this event in this state, or `why` says which condition fails."""

    def __init__(self, lifecycle: str, state: str | None, event: str, why: str = "") -> None:
        self.lifecycle, self.state, self.event = lifecycle, state, event
        refused = f"a {lifecycle} that is {state or 'not there'} cannot {event}"
        super().__init__(f"{refused}: {why}" if why else refused)


class KeyReused(WatchbillError):
    """An idempotency key came back with another payload: a bug or an attack, never a repeat."""


class NotFound(WatchbillError):
    """The named plan, task, run, repository, base or pull request is not there."""


class Damaged(WatchbillError):
    """What is kept is not what was kept: a hash does not hold. It counts for nothing."""


class Unauthorized(WatchbillError):
    """The peer does not accept our credentials, or they do not reach this far."""


class Misconfigured(WatchbillError):
    """A setting that cannot be used as it is. The message names it, and says what it should look like."""


class Unavailable(WatchbillError):
    """A peer did not answer, or asked for time. Trying again helps."""

    retryable = True


class RateLimited(Unavailable):
    """The forge asks us to slow down; `retry_after` says for how long."""


class Superseded(WatchbillError):
    """A newer epoch, incarnation or lease holder has taken over; this caller must stop."""


def said(error: BaseException) -> str:
    """An error in one line. One of the operating system names its file first: `/x/y: permission denied`."""
    if isinstance(error, OSError) and error.strerror:
        file = f"{error.filename}: " if error.filename else ""
        return f"{file}{error.strerror[:1].lower()}{error.strerror[1:]}"
    return " ".join(str(error).split()) or type(error).__name__
