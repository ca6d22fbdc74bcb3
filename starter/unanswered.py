"""What it means for a person when Temporal or a worker did not do what was asked of it."""

from __future__ import annotations

from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from domain.errors import NotFound, Unavailable
from starter.exits import BY_ERROR, CommandFailed, Exit

NOBODY_ANSWERED = (
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.CANCELLED,
    # Nobody has polled the queue for minutes, so the server does not even wait.
    RPCStatusCode.FAILED_PRECONDITION,
)
"""How the server says that a question reached no worker."""


class NoWorker(Unavailable):
    """Temporal is there, but nobody who knows Watchbill's workflows answers."""


def no_worker(address: str) -> NoWorker:
    return NoWorker(
        f"Temporal answers at {address}, but no worker does; start one with `watchbill up` or `watchbill worker`"
    )


def no_answer(seconds: float) -> NoWorker:
    return NoWorker(
        f"no worker has answered within {seconds:.0f} s; it may still do what you said. "
        "Look with `watchbill status`, or say it again: that is safe"
    )


def refusal_of(error: RPCError, address: str, namespace: str) -> NotFound | Unavailable:
    """What Temporal itself did not do, and what to do about it."""
    if _no_namespace(error):
        return Unavailable(f"Temporal at {address} has no namespace {namespace}; correct WATCHBILL_TEMPORAL_NAMESPACE")
    if error.status is RPCStatusCode.NOT_FOUND:
        return NotFound(f"Temporal at {address} does not know it: {error.message}")
    return Unavailable(f"Temporal at {address} did not answer: {error.message}")


def failure_of(error: BaseException) -> CommandFailed:
    """What a worker said was wrong, in its own words, with the code that its kind of error has."""
    cause: BaseException | None = error
    said: ApplicationError | None = None
    while cause is not None:
        if isinstance(cause, ApplicationError):
            said = cause
        cause = getattr(cause, "cause", None)
    if said is None:
        return CommandFailed(Exit.UNREACHABLE, f"the worker could not do it: {getattr(error, 'cause', error)}")
    return CommandFailed(BY_ERROR.get(said.type or "", Exit.REFUSED), said.message)


def ended_meanwhile(error: WorkflowUpdateFailedError | RPCError) -> bool:
    """Whether the workflow ended between the call's arrival and its handling; a repeat starts a new one."""
    if isinstance(error, RPCError):
        return error.status is RPCStatusCode.NOT_FOUND and not _no_namespace(error)
    return isinstance(error.cause, ApplicationError) and error.cause.type == "AcceptedUpdateCompletedWorkflow"


def _no_namespace(error: RPCError) -> bool:
    status = error.grpc_status
    return any(detail.Is(NamespaceNotFoundFailure.DESCRIPTOR) for detail in status.details)
