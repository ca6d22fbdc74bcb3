"""The one place where an error becomes Temporal's, with what it says about trying again."""

from __future__ import annotations

import asyncio
import errno
from datetime import timedelta
from typing import Any

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, TemporalError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import Unavailable, WatchbillError, said

PATIENCE_WITH_DEFECTS = 5
"""Attempts at an activity that raises what nobody expected, before its caller is told that it is a defect."""

_OF_THE_MACHINE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
)
"""What the operating system says when the machine has no room or no strength left: no defect, and it can pass."""

log = structlog.get_logger("activity")


class SaysWhetherToTryAgain(Interceptor):
    """Turns Watchbill's own errors into application errors; an unknown error is retried as Temporal does."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Translating(next)


class _Translating(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        try:
            return await super().execute_activity(input)
        except WatchbillError as error:
            raise _translated(error) from error
        except (asyncio.CancelledError, TemporalError):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
                raise _translated(Unavailable(f"this machine cannot go on: {said(error)}")) from error
            log.exception("a defect", activity=activity.info().activity_type, workflow=activity.info().workflow_id)
            if activity.info().attempt < PATIENCE_WITH_DEFECTS:
                raise
            message = f"a defect in Watchbill: {type(error).__name__} in {activity.info().activity_type}"
            raise ApplicationError(message, type="Defect", non_retryable=True) from error


def _translated(error: WatchbillError) -> ApplicationError:
    info = activity.info()
    log.warning(
        "activity failed",
        activity=info.activity_type,
        workflow=info.workflow_id,
        attempt=info.attempt,
        error=type(error).__name__,
        message=str(error),
    )
    return ApplicationError(
        str(error),
        type=type(error).__name__,
        non_retryable=not error.retryable,
        next_retry_delay=None if error.retry_after is None else timedelta(seconds=error.retry_after),
    )
