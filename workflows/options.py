"""Every timeout and retry policy that a workflow uses, by name.

`test_options` holds the rule behind them: whatever may take long has a heartbeat timeout, because
a cancel reaches an activity only through its heartbeat.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio.common import RetryPolicy

LOCAL: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=2),
    "retry_policy": RetryPolicy(maximum_attempts=2),
}
"""A move in the store as a local activity: short, tried twice, then handed to `STORE`."""

STORE: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=30),
    "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=30)),
}
"""The same move as a regular activity, tried until the store answers."""

TEMPORAL: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=60),
    "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30)),
}
"""Calls to Temporal itself: starting and waking workflows."""

BEAT: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=30),
    "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=3),
}
"""What a beat asks of Temporal and the forge: given up soon, because the next beat follows anyway."""

FORGE: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=60),
    "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=5)),
}
"""One exchange with the forge. What it says about waiting comes as the error's own delay."""

FORGE_NOW: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=20),
    "schedule_to_close_timeout": timedelta(seconds=45),
    "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1)),
}
"""The same while a person waits for the answer."""

GIT: dict[str, Any] = {
    "start_to_close_timeout": timedelta(minutes=30),
    "heartbeat_timeout": timedelta(seconds=60),
    "schedule_to_start_timeout": timedelta(seconds=30),
    "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=5)),
}
"""Git work on one host's disk; a queue that nobody polls is noticed after `schedule_to_start_timeout`."""

GIT_NOW: dict[str, Any] = GIT | {"schedule_to_close_timeout": timedelta(minutes=5)}
"""The same where a person is to be asked something that does not depend on it."""

CLEAN_UP: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=60),
    "schedule_to_close_timeout": timedelta(minutes=5),
    "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1)),
}
"""What is tidied after a task has ended; given up when it cannot be done."""

RUN: dict[str, Any] = {
    "start_to_close_timeout": timedelta(days=2),
    "heartbeat_timeout": timedelta(seconds=20),
    "schedule_to_start_timeout": timedelta(seconds=30),
    "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=10)),
}
"""Watching a run. The run's own wall clock is its supervisor's business; this only has to be longer."""

HOST_PATIENCE = timedelta(minutes=10)
"""How long a host may be silent before work that no lease protects any more is done again elsewhere."""

LONGEST_SHORT_WAIT = 60.0
"""Seconds that a short wait grows to when it comes to nothing again and again."""

LOOK_AFRESH = 1.0
"""Seconds before a task whose move came to nothing loads its facts again."""

UNPUBLISHED_GRACE = timedelta(seconds=10)
"""A plan's workflow in which nothing was published ends after this."""

TASK_LOOK = timedelta(hours=1)
"""A task looks at its facts this often even if nobody woke it, so that no lost wake-up can matter."""

PLAN_LOOK = timedelta(minutes=10)
"""A plan looks at its tasks' facts this often even if nobody woke it."""
