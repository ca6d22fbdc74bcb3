"""Publishing a document, and confirming what was published."""

from __future__ import annotations

import asyncio
from pathlib import Path

from domain.decision import Decision, DecisionKind, Outcome
from domain.identity import plan_id
from domain.plan import PlanSpec, PlanState
from domain.publication import Publish
from starter import settings as settings_
from starter.client import Temporal
from starter.exits import CommandFailed, Exit
from starter.looking import Lookout
from starter.names import is_document, plan_named, read_document
from starter.output import say
from starter.replies import tell, who
from starter.tables import show_boxes, show_metering, show_plan


def submit(file: Path, text: str, spec: PlanSpec, *, confirm_too: bool, json: bool) -> Exit:
    """Publish a document that has been read, and confirm it at once where that is asked for."""
    return asyncio.run(_submit(file, text, spec, confirm_too, json))


async def _submit(file: Path, text: str, spec: PlanSpec, confirm_too: bool, json: bool) -> Exit:
    settings = settings_.load()
    plan = plan_id(settings.owner, spec.slug)
    temporal = await Temporal.connect(settings)
    order = Publish(settings.owner, text, spec.repository, spec.base, file.name, who())
    reply = await temporal.publish(plan, order)
    published = reply.outcome is not Outcome.REFUSED
    if published and not json:
        show_boxes(spec)
    if published and confirm_too:
        if not json:
            tell(spec.slug, reply, json)
        decision = Decision(DecisionKind.CONFIRM, plan, names=spec.digest, by=who())
        reply = await temporal.decide(decision, settings.owner)
    code = tell(spec.slug, reply, json)
    if published and reply.state == PlanState.AWAITING_CONFIRMATION and not json:
        say(f"To begin: watchbill confirm {spec.slug} --digest {spec.digest[:12]}")
    return code


def confirm(name: str, digest: str, *, json: bool) -> Exit:
    """Confirm the text in a file, or the text that is published; `digest` says which one is meant."""
    return asyncio.run(_confirm(name, digest, json))


async def _confirm(name: str, digest: str, json: bool) -> Exit:
    settings = settings_.load()
    plan = plan_named(name, settings.owner)
    spec = read_document(Path(name))[1] if is_document(name) else None
    found = spec.digest if spec else ""
    temporal, number = await Temporal.connect(settings), 0
    if spec is not None and not json:
        show_metering(spec.expected_metering)
    if not found and len(digest) < 64:
        view = await Lookout(settings, plan, temporal).look()
        found = view.digest
        # What waits is meant, unless it is said that the text which holds is.
        if view.proposed and (not digest or not found.startswith(digest)):
            found, number = view.proposed.digest, view.proposed.number
        if not json:
            show_plan(view)
    if digest and not (found or digest).startswith(digest):
        raise CommandFailed(Exit.REFUSED, f"the text of {name} is {found[:12]}, not {digest[:12]}; read it first")
    decision = Decision(DecisionKind.CONFIRM, plan, names=found or digest, by=who(), revision=number)
    return tell(name, await temporal.decide(decision, settings.owner), json)
