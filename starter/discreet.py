"""Words of agents and forges as they may leave this machine: in a file that is committed, in a page that is sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from domain.projection import Review
from domain.view import TaskView


def without_secrets(task: TaskView) -> TaskView:
    """A task whose question and reason have nothing in them that looks like a secret."""
    if not task.question and not task.reason:
        return task
    from activities.redaction import publishable

    return replace(task, question=publishable(task.question), reason=publishable(task.reason))


def reviews_without_secrets(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """Reviews whose words have nothing in them that looks like a secret."""
    return tuple(map(_review_without_secrets, reviews))


def _review_without_secrets(review: Review) -> Review:
    from activities.redaction import publishable

    said = (review.summary, review.findings, review.why)
    summary, findings, why = (publishable(each) if each else "" for each in said)
    return replace(review, summary=summary, findings=findings, why=why)
