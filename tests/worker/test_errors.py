"""Every error says whether trying again helps, and the interceptor alone turns that into Temporal's words."""

from __future__ import annotations

import asyncio
import errno
import importlib
import os
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor

import forge
import runtimes
import store
from domain.errors import (
    Fault,
    IllegalMove,
    InvalidPlan,
    KeyReused,
    NotFound,
    RateLimited,
    Superseded,
    Unauthorized,
    Unavailable,
    WatchbillError,
)
from worker.errors import PATIENCE_WITH_DEFECTS, SaysWhetherToTryAgain


class Raises(ActivityInboundInterceptor):
    """An activity that raises this."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def execute_activity(self, input: Any) -> Any:
        raise self._error


async def told(error: BaseException, attempt: int = 1) -> BaseException:
    """What Temporal is told when an activity raises this at that attempt."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt)
    intercepted = SaysWhetherToTryAgain().intercept_activity(Raises(error))
    with pytest.raises(BaseException) as raised:  # a cancel is none of Exception's
        await environment.run(intercepted.execute_activity, None)
    return raised.value


ERRORS: list[tuple[WatchbillError, bool, float | None]] = [
    (Unavailable("the store did not answer"), True, None),
    (Unavailable("GitHub asks for time", retry_after=12.5), True, 12.5),
    (RateLimited("slow down", retry_after=60), True, 60),
    (NotFound("there is no task x"), False, None),
    (Unauthorized("the App is not installed"), False, None),
    (Superseded("a newer epoch has taken over"), False, None),
    (KeyReused("the key was spent"), False, None),
    (IllegalMove("task", "merged", "begin"), False, None),
    (InvalidPlan((Fault(3, "no repository"), Fault(9, "no boxes"))), False, None),
    (WatchbillError("something else"), False, None),
]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.EROFS, errno.EIO])
async def test_a_machine_that_has_no_room_is_no_defect_however_long_that_lasts(number: int) -> None:
    error = OSError(number, os.strerror(number), "/x/lease")
    raised = await told(error, attempt=10 * PATIENCE_WITH_DEFECTS)
    assert isinstance(raised, ApplicationError)
    assert (raised.type, raised.non_retryable) == ("Unavailable", False)
    assert raised.message.startswith("this machine cannot go on: /x/lease: ")


@pytest.mark.parametrize(("error", "again", "after"), ERRORS, ids=lambda value: type(value).__name__)
async def test_an_error_of_ours_says_what_kind_it_is_and_whether_to_try_again(
    error: WatchbillError, again: bool, after: float | None
) -> None:
    raised = await told(error)
    assert isinstance(raised, ApplicationError)
    assert (raised.type, raised.message) == (type(error).__name__, str(error))
    assert raised.non_retryable is not again
    assert raised.next_retry_delay == (None if after is None else timedelta(seconds=after))
    assert raised.__cause__ is error


def every_kind(base: type[WatchbillError] = WatchbillError) -> Iterator[type[WatchbillError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from every_kind(kind)


def test_every_kind_of_error_has_its_own_name() -> None:
    for package in (forge, runtimes, store):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.name.endswith((".supervise", ".hook", ".inside", ".migrations")):
                importlib.import_module(module.name)
    kinds = [kind for kind in every_kind() if kind.__module__.split(".")[0] in ("domain", "forge", "runtimes", "store")]
    names = [kind.__name__ for kind in kinds]
    assert len(names) == len(set(names)) > 7
    assert "Defect" not in names


async def test_an_unknown_error_is_tried_again_until_it_is_called_a_defect() -> None:
    error = ZeroDivisionError("division by zero")
    assert await told(error) is error
    assert await told(error, PATIENCE_WITH_DEFECTS - 1) is error
    raised = await told(error, PATIENCE_WITH_DEFECTS)
    assert isinstance(raised, ApplicationError)
    assert (raised.type, raised.non_retryable) == ("Defect", True)
    assert raised.message.startswith("a defect in Watchbill: ZeroDivisionError in ")
    assert "division by zero" not in raised.message


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), CancelledError("cancelled"), ApplicationError("as it is", type="Own")]
)
async def test_what_is_temporals_own_passes_unchanged(error: BaseException) -> None:
    assert await told(error, PATIENCE_WITH_DEFECTS) is error
