"""What a plan's runs may do: what the plan says of them, and what its owner refuses in every plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sqlalchemy import Connection

from domain.confinement import Confine, Network
from domain.document import parse
from domain.metering import Meter
from domain.plan import PlanSpec
from domain.rules import Policy, both
from runtimes.owner_policy import owner_policy
from store.plans import load_plan, load_revision


@dataclass(frozen=True)
class Terms:
    """How a plan's runs are to be confined, what those reach that have no door, and whether its agents are metered.

    `review_nano_usd` is what one review may cost at the most, None where that is all that its task has left.
    """

    confine: Confine
    network: Network
    metering: Meter
    review_nano_usd: int | None = None


def terms_in(connection: Connection, plan_id: str) -> Terms:
    """As the confirmed text says."""
    plan = _confirmed(connection, plan_id)
    return Terms(plan.confine, plan.network, plan.metering, plan.review_budget_nano_usd)


def plans_own_policy(connection: Connection, plan_id: str) -> Policy:
    """What the plan itself refuses, as the confirmed text says it; its owner may refuse more."""
    return _confirmed(connection, plan_id).policy


def policy_in(connection: Connection, plan_id: str, home: Path) -> Policy:
    """The plan's own as the confirmed text says it, with the owner's on top, as the file is now.

    Raises WatchbillError for an owner's file that cannot be read: then nothing is allowed.
    """
    return both(_confirmed(connection, plan_id).policy, owner_policy(home))


def _confirmed(connection: Connection, plan_id: str) -> PlanSpec:
    plan = load_plan(connection, plan_id)
    revision = load_revision(connection, plan.id, plan.revision)
    return _read(revision.text, f"{plan.slug}.md")


@lru_cache(maxsize=64)
def _read(text: str, file_name: str) -> PlanSpec:
    """Every run of a plan asks for the same text."""
    return parse(text, file_name=file_name)
