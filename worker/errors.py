"""The one place where an error becomes Temporal's, with what it says about trying again."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, TemporalError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import WatchbillError

PATIENCE_WITH_DEFECTS = 5
"""Attempts at an activity that raises what nobody expected, before its caller is told that it is a defect."""

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
            info = activity.info()
            log.warning(
                "activity failed",
                activity=info.activity_type,
                workflow=info.workflow_id,
                attempt=info.attempt,
                error=type(error).__name__,
                message=str(error),
            )
            raise ApplicationError(
                str(error),
                type=type(error).__name__,
                non_retryable=not error.retryable,
                next_retry_delay=None if error.retry_after is None else timedelta(seconds=error.retry_after),
            ) from error
        except (asyncio.CancelledError, TemporalError):
            raise
        except Exception as error:
            log.exception("a defect", activity=activity.info().activity_type, workflow=activity.info().workflow_id)
            if activity.info().attempt < PATIENCE_WITH_DEFECTS:
                raise
            message = f"a defect in Watchbill: {type(error).__name__} in {activity.info().activity_type}"
            raise ApplicationError(message, type="Defect", non_retryable=True) from error
