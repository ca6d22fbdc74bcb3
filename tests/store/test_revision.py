"""A revision is proposed beside what holds, and is carried out whole, once, and on what has not begun meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from domain.decision import Decision, DecisionKind, Outcome, Reply
from domain.document import parse
from domain.duties import Actor
from domain.errors import Superseded
from domain.heartbeat import HeartbeatPolicy
from domain.identity import digest, plan_id, task_id
from domain.lifecycle import Move
from domain.plan import RevisionState
from domain.publication import Beat, BeginRun, Publish, PublishTo
from domain.pull import Repository
from domain.run import Role, RunEvent, RunFacts
from domain.task import QuestionKind, TaskEvent, TaskFacts, TaskState
from store import runs, tables, words
from store.audit import audit
from store.database import Store
from store.decisions import decide
from store.dispatch import beat
from store.moves import move
from store.plans import load_plan
from store.publication import publish
from store.receipts import head_of, receipts_of
from store.revision import touched_by
from store.tasks import load_run, load_task
from store.views import plan_view, plans_in_list
from store.words import Brief, Speaker, WordKind
from tests.rightful import rightful
from tests.store.passing import passed

AT = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
LATER = AT + timedelta(minutes=5)
PLAN = plan_id("ada", "changing")
KEEPER = runs.Keeper("w1", "host-a", "boot", timedelta(minutes=1))


def text(*boxes: str, **front: str) -> str:
    """A plan whose boxes are `title`, or `title | script`, or such with ~~ around them."""
    values = {"slug": "changing", "repository": "acme/shop", "concurrency": "4", **front}
    lines = ["---", *(f"{key}: {value}" for key, value in values.items()), "---", "## Tasks", ""]
    for box in boxes:
        title, _, script = box.partition(" | ")
        lines += [f"- [ ] {title}", "", "  ```sh", f"  {script or f'make {title}'}", "  ```", ""]
    return "\n".join(lines)


OLD = text("One", "Two", "Three {after=2}")
NEW = text("One", "Two | make it", "Three {after=2}", "Four")


def say(store: Store, document: str, at: datetime = AT, *, revise: bool = False, by: str = "ada@here") -> Reply:
    order = PublishTo(
        Publish("ada", document, "acme/shop", by=by, revise=revise), Repository("acme/shop", "main", ""), "main", at
    )
    with store.write() as connection:
        return publish(connection, order, parse(document), 1)


def decided(store: Store, kind: DecisionKind, at: datetime = AT, ordinal: int | None = None, **said: Any) -> Reply:
    with store.write() as connection:
        return decide(connection, Decision(kind, PLAN, ordinal, by="ada", **said), at, 1)


def confirmed(store: Store, document: str, at: datetime = AT, revision: int = 0) -> Reply:
    return decided(store, DecisionKind.CONFIRM, at, names=digest(document), revision=revision)


def facts(store: Store, ordinal: int) -> TaskFacts:
    with store.read() as connection:
        return load_task(connection, task_id(PLAN, ordinal), AT)


def go(store: Store, ordinal: int, *events: str, **columns: Any) -> None:
    """Move a task along, as its workflow would; the last of the moves has these facts."""
    with store.write() as connection:
        for event in events:
            seq = load_task(connection, task_id(PLAN, ordinal), AT).seq
            said = columns if event == events[-1] else {}
            key, by = f"{event}:{ordinal}:{seq}", rightful("task", event)
            wish = Move("task", task_id(PLAN, ordinal), event, key, PLAN, "a test", AT, said, by=by)
            assert not move(connection, wish)[0].refused


def begin_run(store: Store, ordinal: int, role: Role = Role.AUTHOR, number: int = 0, command: str = "") -> RunFacts:
    with store.write() as connection:
        return runs.begin(connection, BeginRun(task_id(PLAN, ordinal), role, AT, number, command), KEEPER, 1)


def end_run(store: Store, run: RunFacts, **columns: Any) -> None:
    with store.write() as connection:
        for event, said in ((RunEvent.FINISH, columns), (RunEvent.COLLECT, {"head_sha": "c" * 40})):
            wish = Move("run", run.id, event, f"{event}:{run.id}", PLAN, "a test", AT, said, by=Actor.WORKER)
            assert not move(connection, wish)[0].refused


def states(store: Store) -> dict[int, str]:
    with store.read() as connection:
        query = select(tables.revisions.c.number, tables.revisions.c.state).where(tables.revisions.c.plan_id == PLAN)
        return {row.number: row.state for row in connection.execute(query)}


def everything(store: Store) -> list[Any]:
    with store.read() as connection:
        return [head_of(connection, PLAN), *receipts_of(connection, PLAN)]


def assert_sound(store: Store) -> None:
    with store.read() as connection:
        assert audit(connection) == ()


@pytest.fixture
def plan(store: Store) -> Store:
    """`store` holds the plan, confirmed; nothing of it has begun."""
    say(store, OLD)
    confirmed(store, OLD)
    return store


# Proposing.


def test_another_text_is_no_revision_unless_it_is_published_as_one(plan: Store) -> None:
    refused = say(plan, NEW)
    assert (refused.outcome, "watchbill revise" in refused.message) == (Outcome.REFUSED, True)
    assert states(plan) == {1: RevisionState.CONFIRMED}


def test_a_revision_waits_beside_the_text_that_holds(plan: Store) -> None:
    reply = say(plan, NEW, revise=True)
    assert (reply.outcome, reply.state) == (Outcome.DONE, "confirmed")
    assert reply.revised is not None
    assert (reply.revised.number, reply.revised.digest) == (2, digest(NEW))
    assert reply.message == "published revision 2: 1 box added, 1 box changed"
    with plan.read() as connection:
        row = load_plan(connection, PLAN)
        view = plan_view(connection, PLAN)
        (listed,) = plans_in_list(connection, "ada")
    assert (row.revision, row.digest, row.proposed) == (1, digest(OLD), 2)
    assert view is not None
    assert view.proposed is not None
    assert (view.proposed.number, view.needs_person, listed.needs_person) == (2, True, True)
    assert "+ 4. Four: new; by shell" in view.proposed.lines
    assert [task.state for task in view.tasks] == ["pending"] * 3
    assert any("revision 2: proposed (published by ada@here)" in line.text for line in view.story)
    assert_sound(plan)


def test_a_plan_with_a_revision_that_waits_goes_on_by_the_text_that_holds(plan: Store) -> None:
    say(plan, NEW, revise=True)
    beat(plan, Beat("ada", AT), HeartbeatPolicy(slots=1), 1)
    assert (facts(plan, 1).state, facts(plan, 2).title) == (TaskState.WORKING, "Two")


def test_the_same_text_again_is_nothing(plan: Store) -> None:
    assert say(plan, OLD, revise=True).outcome is Outcome.ALREADY
    say(plan, NEW, revise=True)
    before = everything(plan)
    again = say(plan, NEW, LATER, revise=True)
    assert (again.outcome, again.revised and again.revised.number) == (Outcome.ALREADY, 2)
    holds = say(plan, OLD, LATER, revise=True)
    assert (holds.outcome, "revision 2 still waits" in holds.message) == (Outcome.ALREADY, True)
    assert everything(plan) == before


def test_a_later_revision_takes_the_place_of_one_that_waits(plan: Store) -> None:
    say(plan, NEW, revise=True)
    other = text("One", "Two", "Three {after=2}", "Five")
    reply = say(plan, other, LATER, revise=True)
    assert reply.message.startswith("published revision 3, replacing revision 2")
    assert states(plan) == {1: "confirmed", 2: "withdrawn", 3: "proposed"}
    assert confirmed(plan, NEW).outcome is Outcome.REFUSED
    assert_sound(plan)


def test_a_revision_that_touches_what_it_may_not_is_refused_with_every_fault_and_nothing_is_written(
    plan: Store,
) -> None:
    go(plan, 2, TaskEvent.BEGIN)
    before = everything(plan)
    reply = say(plan, text("One", "~~Two~~", "Three"), revise=True)
    assert reply.outcome is Outcome.REFUSED
    assert reply.revised is not None
    assert [fault.line for fault in reply.revised.faults] == [14]
    assert everything(plan) == before


def test_what_was_never_published_or_never_confirmed_is_not_revised(store: Store) -> None:
    never = say(store, OLD, revise=True)
    assert (never.outcome, never.state) == (Outcome.REFUSED, "")
    say(store, OLD)
    assert "watchbill submit" in say(store, NEW, revise=True).message
    assert states(store) == {1: "proposed"}


def test_a_number_is_never_used_again(plan: Store) -> None:
    say(plan, NEW, revise=True)
    decided(plan, DecisionKind.WITHDRAW)
    say(plan, NEW, LATER, revise=True)
    assert states(plan) == {1: "confirmed", 2: "withdrawn", 3: "proposed"}


# Withdrawing.


def test_a_revision_that_waits_is_withdrawn_once(plan: Store) -> None:
    say(plan, NEW, revise=True)
    done = decided(plan, DecisionKind.WITHDRAW, names=digest(NEW), revision=2)
    again = decided(plan, DecisionKind.WITHDRAW, LATER, names=digest(NEW), revision=2)
    nameless = decided(plan, DecisionKind.WITHDRAW, LATER)
    assert [each.outcome for each in (done, again, nameless)] == [Outcome.DONE, Outcome.ALREADY, Outcome.ALREADY]
    assert {again.seq, nameless.seq} == {done.seq}
    assert states(plan) == {1: "confirmed", 2: "withdrawn"}
    assert confirmed(plan, NEW).outcome is Outcome.REFUSED
    assert confirmed(plan, NEW, revision=2).message == "revision 2 was withdrawn"
    assert_sound(plan)


@pytest.mark.parametrize("said", [{}, {"names": "0" * 64}, {"revision": 7}])
def test_a_withdrawal_of_what_does_not_wait_is_refused_and_recorded(plan: Store, said: dict[str, Any]) -> None:
    if said:
        say(plan, NEW, revise=True)
    refused = decided(plan, DecisionKind.WITHDRAW, **said)
    with plan.read() as connection:
        (record,) = [one for one in receipts_of(connection, PLAN) if one.refused]
    assert (refused.outcome, refused.seq) == (Outcome.REFUSED, record.seq)
    assert states(plan).get(2) in (None, "proposed")


def test_a_plan_that_is_put_away_takes_what_waits_with_it(plan: Store) -> None:
    say(plan, NEW, revise=True)
    decided(plan, DecisionKind.CANCEL)
    with plan.write() as connection:
        move(connection, Move("plan", PLAN, "complete", "complete", PLAN, "a test", AT, by=Actor.WORKER))
    assert decided(plan, DecisionKind.ARCHIVE).outcome is Outcome.DONE
    assert states(plan)[2] == "withdrawn"
    assert say(plan, NEW, revise=True).outcome is Outcome.REFUSED
    assert_sound(plan)


# Confirming.


def test_a_confirmed_revision_adds_changes_and_removes_in_one_go(plan: Store) -> None:
    new = text("One | make one better", "~~Two~~", "Three", "Four", concurrency="2", checks="make test")
    say(plan, new, revise=True)
    reply = confirmed(plan, new)
    assert (reply.outcome, reply.state) == (Outcome.DONE, "confirmed")
    assert reply.message.startswith("revision 2 confirmed: 2 changes of the whole plan, 1 box added")
    assert states(plan) == {1: "confirmed", 2: "confirmed"}
    assert [facts(plan, n).state for n in (1, 2, 3, 4)] == ["pending", "cancelled", "pending", "pending"]
    assert "make one better" in facts(plan, 1).body
    assert (facts(plan, 1).checks, facts(plan, 4).checks) == (("make test",), ("make test",))
    with plan.read() as connection:
        row = load_plan(connection, PLAN)
        view = plan_view(connection, PLAN)
    assert (row.revision, row.digest, row.proposed, row.concurrency) == (2, digest(new), 0, 2)
    assert view is not None
    assert view.proposed is None
    assert [(task.ordinal, task.state, task.struck) for task in view.tasks] == [
        (1, "pending", False), (2, "cancelled", True), (3, "pending", False), (4, "pending", False),
    ]  # fmt: skip
    assert_sound(plan)


def test_a_confirmation_said_again_is_the_one_confirmation(plan: Store) -> None:
    say(plan, NEW, revise=True)
    first = confirmed(plan, NEW, revision=2)
    before = everything(plan)
    same, again, by_number = (
        confirmed(plan, NEW),
        confirmed(plan, NEW, LATER),
        confirmed(plan, NEW, LATER, revision=2),
    )
    assert [each.outcome for each in (same, again, by_number)] == [Outcome.DONE, Outcome.ALREADY, Outcome.ALREADY]
    assert {each.seq for each in (same, again, by_number)} == {first.seq}
    assert everything(plan) == before
    assert say(plan, NEW, LATER, revise=True).outcome is Outcome.ALREADY


def test_a_late_confirmation_of_a_text_confirms_it_as_no_other_revision(plan: Store) -> None:
    """The first text is proposed once more: whoever confirmed it as what it was then has not confirmed that."""
    new = OLD.replace("concurrency: 4", "concurrency: 2")
    say(plan, new, revise=True)
    confirmed(plan, new)
    say(plan, OLD, LATER, revise=True)
    late = confirmed(plan, OLD, LATER, revision=1)
    assert (late.outcome, late.message) == (Outcome.REFUSED, "revision 1 was confirmed before; revision 2 holds now")
    mistaken = [confirmed(plan, OLD, LATER, revision=2), confirmed(plan, new, LATER, revision=3)]
    assert [each.outcome for each in mistaken] == [Outcome.REFUSED] * 2
    assert mistaken[0].message == f"revision 2 is {digest(new)[:12]}, and not {digest(OLD)[:12]}; read it first"
    assert confirmed(plan, OLD, LATER, revision=9).outcome is Outcome.REFUSED
    assert states(plan)[3] == "proposed"
    assert confirmed(plan, OLD, LATER, revision=3).outcome is Outcome.DONE
    with plan.read() as connection:
        assert load_plan(connection, PLAN).concurrency == 4


def test_what_began_meanwhile_refuses_the_whole_revision_and_leaves_a_record(plan: Store) -> None:
    say(plan, NEW, revise=True)
    go(plan, 2, TaskEvent.BEGIN)
    with plan.read() as connection:
        view = plan_view(connection, PLAN)
    assert view is not None
    assert view.proposed is not None
    assert any(line.startswith("! line 14: task 2 is working") for line in view.proposed.lines)
    refused = confirmed(plan, NEW, LATER)
    assert refused.outcome is Outcome.REFUSED
    assert refused.message.startswith("line 14: task 2 is working")
    with plan.read() as connection:
        (record,) = [one for one in receipts_of(connection, PLAN) if one.refused]
        assert record.seq == refused.seq
        assert load_plan(connection, PLAN).revision == 1
        assert connection.scalar(select(tables.tasks.c.id).where(tables.tasks.c.ordinal == 4)) is None
    assert states(plan)[2] == "proposed"
    # Once it is paused, the very same confirmation holds.
    decided(plan, DecisionKind.PAUSE, ordinal=2)
    assert confirmed(plan, NEW, LATER).outcome is Outcome.DONE
    assert_sound(plan)


def test_of_many_who_confirm_at_once_one_carries_it_out(plan: Store) -> None:
    say(plan, NEW, revise=True)
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda n: confirmed(plan, NEW, AT + timedelta(seconds=n)), range(6)))
    assert sorted(reply.outcome for reply in replies) == [Outcome.ALREADY] * 5 + [Outcome.DONE]
    with plan.read() as connection:
        assert sum(one.event == "revise" and one.kind == "plan" for one in receipts_of(connection, PLAN)) == 1
    assert_sound(plan)


def test_a_task_begins_or_is_changed_and_never_both_at_once(plan: Store) -> None:
    """The heartbeat and a person at the same moment: whoever is second finds what the first has done."""
    say(plan, NEW, revise=True)
    with ThreadPoolExecutor(2) as pool:
        began = pool.submit(beat, plan, Beat("ada", AT), HeartbeatPolicy(slots=4), 1)
        revised = pool.submit(confirmed, plan, NEW, LATER)
        began.result()
        reply = revised.result()
    two = facts(plan, 2)
    changed = "make it" in two.body
    assert changed == (reply.outcome is Outcome.DONE)
    assert two.state is TaskState.WORKING
    assert two.revision == (2 if changed else 0)
    assert_sound(plan)


def test_a_completed_plan_is_opened_again_by_a_revision_that_adds_to_it(plan: Store) -> None:
    decided(plan, DecisionKind.CANCEL)
    with plan.write() as connection:
        move(connection, Move("plan", PLAN, "complete", "complete", PLAN, "a test", AT, by=Actor.WORKER))
    new = text("One", "Two", "Three {after=2}", "Four")
    say(plan, new, revise=True)
    assert confirmed(plan, new).state == "in_progress"
    assert facts(plan, 4).state is TaskState.PENDING


def test_a_plans_budget_and_its_tasks_follow_a_revision_and_the_ceilings_follow_them(store: Store) -> None:
    old, new = (text("One", "Two", budget=f'"{usd} USD"') for usd in (5, 9))
    say(store, old)
    confirmed(store, old)
    go(store, 1, TaskEvent.BEGIN)
    for kind, subject in (("task", task_id(PLAN, 2)), ("plan", PLAN)):
        row = {"id": f"{kind}:{subject}", "kind": kind, "subject": subject, "owner": "ada", "cap": 5 * 10**9}
        with store.write() as connection:
            connection.execute(tables.ceilings.insert(), {**row, "held": 0, "settled": 0})
    say(store, new, revise=True)
    assert confirmed(store, new).outcome is Outcome.DONE
    assert [facts(store, n).budget_nano_usd for n in (1, 2)] == [5 * 10**9, 9 * 10**9]
    with store.read() as connection:
        assert set(connection.scalars(select(tables.ceilings.c.cap))) == {9 * 10**9}
    assert_sound(store)


def test_no_budget_comes_to_less_than_is_spent(store: Store) -> None:
    old, new = (text("One", budget=f'"{usd} USD"') for usd in (5, 2))
    say(store, old)
    confirmed(store, old)
    say(store, new, revise=True)
    row = {"id": f"plan:{PLAN}", "kind": "plan", "subject": PLAN, "owner": "ada", "cap": 5 * 10**9}
    with store.write() as connection:
        connection.execute(tables.ceilings.insert(), {**row, "held": 10**9, "settled": 2 * 10**9})
    refused = confirmed(store, new)
    assert (refused.outcome, "3.00 USD is spent or held already" in refused.message) == (Outcome.REFUSED, True)


# What runs say, and what they left.


def at_work(store: Store) -> tuple[RunFacts, Speaker]:
    """The second task, with a run at work that has its brief."""
    go(store, 2, TaskEvent.BEGIN)
    run = begin_run(store, 2)
    with store.write() as connection:
        words.put_brief(connection, Brief(run.id, "Make two.", None, 1))
    return run, Speaker("ada", PLAN, run.task_id, run.id, run.epoch, "author")


def submitted(store: Store, speaker: Speaker) -> words.Word:
    with store.write() as connection:
        said = {"result": {"summary": "done"}, "revision": 1, "brief": "b"}
        return words.say(connection, speaker, WordKind.RESULT, said, AT)


def test_a_result_for_an_older_text_of_the_task_is_kept_and_refused(plan: Store) -> None:
    run, speaker = at_work(plan)
    decided(plan, DecisionKind.PAUSE, ordinal=2)
    say(plan, NEW, revise=True)
    confirmed(plan, NEW)
    word = submitted(plan, speaker)
    assert word.refused.startswith(f"revision 2 of the plan has changed task {run.task_id} since run {run.id} began")
    with plan.read() as connection:
        assert words.result_of(connection, run.id) is None
    with plan.write() as connection, pytest.raises(Superseded, match="revision 2"):
        words.say(connection, speaker, WordKind.QUESTION, {"question": "?"}, AT)
    assert submitted(plan, speaker) == word


def test_a_result_for_a_task_that_the_revision_left_alone_stands(plan: Store) -> None:
    _, speaker = at_work(plan)
    new = text("One | make it", "Two", "Three {after=2}", "Four")
    before = facts(plan, 2)
    say(plan, new, revise=True)
    assert confirmed(plan, new).outcome is Outcome.DONE
    assert facts(plan, 2) == before
    assert submitted(plan, speaker).refused == ""


def test_the_next_run_of_a_revised_task_is_made_for_the_new_text_and_remembers_nothing(plan: Store) -> None:
    run, _ = at_work(plan)
    end_run(plan, run, session="s1", outcome="done")
    assert facts(plan, 2).session == "s1"
    decided(plan, DecisionKind.PAUSE, ordinal=2)
    say(plan, NEW, revise=True)
    reply = confirmed(plan, NEW)
    assert reply.revised is not None
    assert reply.revised.touched == (2,)
    two = facts(plan, 2)
    assert (two.session, two.revised, two.revision, two.fresh_start) == ("", True, 2, True)
    assert two.question is not None
    assert (two.question.kind, two.question.resume_at) == (QuestionKind.REVISED, TaskState.WORKING)
    decided(plan, DecisionKind.RESUME, ordinal=2, names=two.question.id)
    again = begin_run(plan, 2)
    assert (again.number, again.revision, again.round) == (2, 2, 2)
    assert (facts(plan, 2).revised, facts(plan, 2).note.startswith("The plan was revised")) == (False, True)
    with plan.read() as connection:
        assert load_run(connection, run.id).revision == 0
        assert touched_by(connection, PLAN, 2) == (2,)
    assert_sound(plan)


@pytest.mark.parametrize(
    ("table", "column"), [("plans", "judged"), ("tasks", "revision"), ("tasks", "proven_by"), ("runs", "revision")]
)
def test_what_says_by_which_text_something_is_cannot_be_changed_by_hand(plan: Store, table: str, column: str) -> None:
    at_work(plan)
    with plan.write() as connection:
        connection.execute(tables.metadata.tables[table].update().values({column: 7}))
    with plan.read() as connection:
        found = audit(connection)
    assert {finding.column for finding in found} == {column}


def test_an_older_question_is_answered_no_more(plan: Store) -> None:
    at_work(plan)
    decided(plan, DecisionKind.PAUSE, ordinal=2)
    asked = facts(plan, 2).question
    assert asked is not None
    say(plan, NEW, revise=True)
    confirmed(plan, NEW)
    stale = decided(plan, DecisionKind.RESUME, ordinal=2, names=asked.id)
    assert (stale.outcome, "withdrawn" in stale.message) == (Outcome.REFUSED, True)
    assert facts(plan, 2).state is TaskState.PAUSED


def test_a_check_that_the_plan_has_no_more_is_not_begun(store: Store) -> None:
    old, new = text("One", checks='["make test", "make lint"]'), text("One", checks='["make test", "make types"]')
    say(store, old)
    confirmed(store, old)
    go(store, 1, TaskEvent.BEGIN, TaskEvent.WORKED, head_sha="c" * 40, host="host-a")
    with pytest.raises(Superseded, match="`make types` is no check of this plan"):
        begin_run(store, 1, Role.CHECK, 2, "make types")
    decided(store, DecisionKind.PAUSE, ordinal=1)
    say(store, new, revise=True)
    assert confirmed(store, new).outcome is Outcome.DONE
    question = facts(store, 1).question
    assert question is not None
    decided(store, DecisionKind.RESUME, ordinal=1, names=question.id)
    assert facts(store, 1).state is TaskState.CHECKING
    with pytest.raises(Superseded):
        begin_run(store, 1, Role.CHECK, 2, "make lint")
    assert begin_run(store, 1, Role.CHECK, 2, "make types").command == "make types"


def test_a_proof_by_rules_that_the_plan_has_no_more_proves_nothing(store: Store) -> None:
    """A closed task is not touched, but comes back when its pull request is opened again."""
    old, new = (text("One", "Two", checks=check, merge="when-proven") for check in ("make test", "make more"))
    say(store, old)
    confirmed(store, old)
    go(store, 1, TaskEvent.BEGIN, TaskEvent.WORKED, head_sha="c" * 40)
    with store.write() as connection:
        passed(connection, PLAN, task_id(PLAN, 1), "make test", "c" * 40, AT)
    go(store, 1, TaskEvent.CLEARED, proven_sha="c" * 40)
    go(store, 1, TaskEvent.PUBLISHED, TaskEvent.CLOSED)
    before = facts(store, 1)
    say(store, new, revise=True)
    assert confirmed(store, new).outcome is Outcome.DONE
    after = facts(store, 1)
    assert (after.seq, after.proven_sha) == (before.seq, before.proven_sha)
    assert (before.proven_by, before.judged, after.proven_by, after.judged) == (0, 0, 0, 2)
