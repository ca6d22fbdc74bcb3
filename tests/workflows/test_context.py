"""People's words on what is known arrive at the plan's workflow, and at their own heartbeat."""

from __future__ import annotations

import pytest

from domain.decision import Outcome
from domain.notes import EditContext, NoteChange
from store import notes
from tests.workflows.stage import Stage
from tests.workflows.world import Held

pytestmark = pytest.mark.asyncio(loop_scope="session")

REDIS = NoteChange(title="Tests need Redis", text="`make redis`")


async def test_what_a_person_knows_of_a_plan_is_written_down_before_and_while_and_after_it_runs(stage: Stage) -> None:
    plan, held = stage.plan(), Held()
    unknown = await stage.temporal.edit_context(EditContext(plan.owner, plan.id, changes=(REDIS,)))
    assert (unknown.outcome, unknown.state) == (Outcome.REFUSED, "")

    plan.tell("author", held)
    await plan.begin()
    await plan.until_started()
    order = EditContext(plan.owner, plan.id, changes=(REDIS,), by="ada@host")
    assert (await stage.temporal.edit_context(order)).message == "1 note added"
    assert (await stage.temporal.edit_context(order)).outcome is Outcome.ALREADY
    held.release()
    await plan.until_over()
    late = EditContext(plan.owner, plan.id, changes=(NoteChange(number=1, version=1, removed=True),))
    assert (await stage.temporal.edit_context(late)).message == "1 note removed"
    await stage.until_quiet(plan)


async def test_what_a_person_knows_of_a_repository_needs_no_plan(stage: Stage) -> None:
    owner = stage.plan().owner
    order = EditContext(owner, repository="acme/shop", changes=(REDIS,), by="ada@host")
    assert (await stage.temporal.edit_context(order)).outcome is Outcome.DONE
    with stage.store.read() as connection:
        assert [note.title for note in notes.current(connection, f"owner:{owner}", "acme/shop")] == ["Tests need Redis"]
