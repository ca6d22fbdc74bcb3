"""How a workflow reaches the work graph and the hosts, and what a failure says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio import exceptions, workflow
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, TimeoutType, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.facts import Facts
    from domain.identity import host_queue
    from domain.publication import AskAboutHost, HostVerdict
    from domain.run import RunFacts
    from domain.task import TaskFacts
    from workflows import options


class HostGone(Exception):
    """The host that this work lies on is silent, and the graph has given it up."""


class MovedOn(Exception):
    """The task is no longer at the step that this was for."""


async def facts(activity: Callable[..., Any], argument: Any) -> Any:
    """A read or move in the graph, or a mere hint: a local activity first, then the same without a bound.

    A repeat answers what the first call wrote, so it does not matter which of the two got through.
    Calls follow one another: local activities side by side in one workflow do not replay in order
    (temporalio/sdk-python#1578). Raises ActivityError for what cannot succeed.
    """
    try:
        return await workflow.execute_local_activity_method(activity, argument, **options.LOCAL)
    except FailureError as error:
        # Not told apart any further: a local activity's failure comes bare, and its timeout comes in an
        # ActivityError at first and bare in a replay (seen with temporalio 1.35).
        if is_cancelled_exception(error):
            raise
    return await workflow.execute_activity_method(activity, argument, **options.STORE)


async def on_host(
    task: TaskFacts,
    host: str,
    activity: Callable[..., Any],
    argument: Any,
    how: dict[str, Any],
    run: RunFacts | None = None,
) -> Any:
    """Work on what lies on one host's disk, however long that host takes to come back.

    A queue that nobody polls is no proof of death: the graph says when the host is given up
    (HostGone), or that the task does not wait for it any more (MovedOn).
    """
    silent_since = workflow.now()
    while True:
        try:
            return await workflow.execute_activity_method(activity, argument, task_queue=host_queue(host), **how)
        except ActivityError as error:
            if not _nobody_polled(error):
                raise
        over = workflow.now() - silent_since >= options.HOST_PATIENCE
        question = AskAboutHost(task.id, task.state, task.round, run.id if run else "", over)
        match await facts(Facts.ask_about_host, question):
            case HostVerdict.GONE:
                raise HostGone(host)
            case HostVerdict.MOVED_ON:
                raise MovedOn(task.id)


def _nobody_polled(error: ActivityError) -> bool:
    return isinstance(error.cause, exceptions.TimeoutError) and error.cause.type is TimeoutType.SCHEDULE_TO_START


def failure_of(error: ActivityError) -> str:
    """What an activity that cannot succeed says, in its own words."""
    return str(error.cause.message if isinstance(error.cause, ApplicationError) else error.cause or error)


def kind_of(error: ActivityError) -> str:
    """The name of the error that an activity raised; empty when it is not one of ours."""
    return (error.cause.type or "") if isinstance(error.cause, ApplicationError) else ""


async def best_effort(
    activity: Callable[..., Any], argument: Any, how: dict[str, Any], queue: str | None = None
) -> None:
    """Do it if it can be done. Who calls this has something behind it that makes up for a failure."""
    try:
        await workflow.execute_activity_method(activity, argument, task_queue=queue, **how)
    except ActivityError as error:
        workflow.logger.info("left for the sweep", extra={"reason": failure_of(error)})
