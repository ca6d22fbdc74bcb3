"""Words of agents and forges as they may leave this machine: in a file that is committed, in a page that is sent."""

from __future__ import annotations

from dataclasses import replace

from domain.view import TaskView


def without_secrets(task: TaskView) -> TaskView:
    """A task whose question and reason have nothing in them that looks like a secret."""
    if not task.question and not task.reason:
        return task
    from activities.redaction import publishable

    return replace(task, question=publishable(task.question), reason=publishable(task.reason))
