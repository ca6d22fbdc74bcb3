"""Publishing another text of a plan that is confirmed, and asking whether it shall hold."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from domain.decision import Decision, DecisionKind, Outcome, Reply
from domain.identity import plan_id
from domain.plan import PlanSpec
from domain.publication import Publish
from starter import settings as settings_
from starter.client import Temporal
from starter.exits import CommandFailed, Exit, faulty
from starter.hints import confirming
from starter.output import say
from starter.replies import tell, who
from starter.settings import Settings
from starter.tables import show_difference


def revise(file: Path, text: str, spec: PlanSpec, *, yes: bool, json: bool) -> Exit:
    """Publish a text that has been read as a revision; confirm it where `yes` or whoever is asked says so.

    Raises CommandFailed with every fault of a revision that touches what it may not.
    """
    settings = settings_.load()
    published = asyncio.run(_publish(settings, file, text, spec))
    if published.revised is None or published.outcome is Outcome.REFUSED:
        return tell(spec.slug, published, json)
    if not json:
        show_difference(published.revised)
    if yes or (not json and _is_wanted(published.revised.number)):
        if not json:
            tell(spec.slug, published, json)
        return tell(spec.slug, asyncio.run(_confirm(settings, published)), json)
    code = tell(spec.slug, published, json)
    if not json:
        confirm, withdraw = confirming(spec.slug, spec.digest)
        say(f"To let it hold: {confirm}")
        say(f"To take it back: {withdraw}")
    return code


async def _publish(settings: Settings, file: Path, text: str, spec: PlanSpec) -> Reply:
    temporal = await Temporal.connect(settings)
    order = Publish(settings.owner, text, spec.repository, spec.base, file.name, who(), revise=True)
    reply = await temporal.publish(plan_id(settings.owner, spec.slug), order)
    if reply.revised is not None and reply.revised.faults:
        raise faulty(file, reply.revised.faults)
    return reply


async def _confirm(settings: Settings, published: Reply) -> Reply:
    assert published.revised is not None
    revised = published.revised
    temporal = await Temporal.connect(settings)
    decision = Decision(
        DecisionKind.CONFIRM, published.plan_id, names=revised.digest, by=who(), revision=revised.number
    )
    reply = await temporal.decide(decision, settings.owner)
    if reply.outcome is Outcome.REFUSED and reply.revised is not None and reply.revised.faults:
        raise CommandFailed(Exit.REFUSED, f"what may be touched has changed meanwhile: {reply.message}")
    return reply


def _is_wanted(number: int) -> bool:
    """Ask whoever sits at the terminal; nobody there is no."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        return input(f"Let revision {number} hold? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
