"""What an agent is sent out with and what it came back with, over a real store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from activities.commissions import MARGIN, Commissions
from activities.reminders import Reminder
from domain.bounds import tokens_in
from domain.brief import REMINDER_TOKENS
from domain.errors import Unauthorized
from domain.metering import Metering
from domain.notes import EditContext, NoteChange
from domain.run import Outcome, Role, RunFacts
from runtimes.folder import RunFolder
from runtimes.hooks import BRIEF_FILE
from runtimes.logins import Logins
from runtimes.port import Job, Login, Verdict
from signing.capabilities import KIND, LONGEST, USE, checked
from signing.checking import verified
from signing.keys import Signer
from store import notes, tables, words
from store.keys import keep_key, retire
from tests.activities.conftest import OWNER, Graph
from tests.workflows.world import ScriptedForge

NOW = datetime.now(UTC)
DONE = Verdict(Outcome.DONE, 0, "")


@pytest.fixture
def commissions(graph: Graph, forge: ScriptedForge, home: Path, signer: Signer) -> Commissions:
    return Commissions(graph.store, forge, home, "http://127.0.0.1:1", signer, Logins(home / "logins"))


@pytest.fixture
def run(graph: Graph) -> RunFacts:
    graph.confirm(runtime="claude")
    return graph.begin()


def job(run: RunFacts, home: Path, timeout: int = 60) -> Job:
    return Job(run.id, run.task_id, "", "", home / "workspace", home / "run", timeout)


def said(graph: Graph, run: RunFacts, kind: words.WordKind, body: dict[str, object]) -> None:
    speaker = words.Speaker(OWNER, run.plan_id, run.task_id, run.id, run.epoch, run.role)
    with graph.store.write() as connection:
        words.say(connection, speaker, kind, body, NOW)


def test_an_agent_gets_a_brief_a_memory_and_a_capability_for_this_run_alone(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts, signer: Signer
) -> None:
    given = commissions.job(job(run, home), run, graph.facts(), NOW)
    assert "# Task 1: Make it" in given.brief
    assert given.model == "claude-sonnet-4-6"
    assert given.door is not None
    grant = checked(given.door.token, {signer.kid: signer.public}, NOW)
    assert (grant.run, grant.epoch, grant.task, grant.model_id) == (run.id, run.epoch, run.task_id, given.model)
    assert given.door.token not in repr(given)
    assert USE == "capability"


def test_an_unmetered_agent_gets_a_login_a_memory_apart_and_a_capability_that_is_good_for_no_model(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts, signer: Signer
) -> None:
    metered = commissions.job(job(run, home), run, graph.facts(), NOW)
    given = commissions.job(job(run, home), run, graph.facts(), NOW, Metering.UNMETERED)
    assert (metered.login, given.login) == (None, Login(home / "logins" / "claude"))
    assert given.memory != metered.memory
    assert given.door is not None
    grant = checked(given.door.token, {signer.kid: signer.public}, NOW)
    assert (grant.run, grant.model_id, grant.max_budget_nano_usd) == (run.id, "", 0)
    assert given.model == metered.model


def test_the_brief_of_a_run_is_the_same_at_every_call(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts
) -> None:
    first = commissions.job(job(run, home), run, graph.facts(), NOW)
    graph.move("pause")
    again = commissions.job(job(run, home), run, graph.facts(), NOW)
    assert (first.brief, first.schema) == (again.brief, again.schema)
    with graph.store.read() as connection:
        kept = words.brief_of(connection, run.id)
    assert kept is not None
    assert kept.text == first.brief


@pytest.mark.parametrize(("asked", "timeout"), [(60, 60), (3600, 3600), (24 * 3600, 115 * 60)])
def test_a_run_ends_before_its_capability_does(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts, signer: Signer, asked: int, timeout: int
) -> None:
    given = commissions.job(job(run, home, timeout=asked), run, graph.facts(), NOW)
    assert given.timeout == timeout
    assert given.door is not None
    claims = verified(given.door.token, KIND, {signer.kid: signer.public})
    assert claims["exp"] == int((NOW + timedelta(seconds=timeout) + MARGIN).timestamp())
    assert claims["exp"] - claims["iat"] <= LONGEST.total_seconds()


def test_without_a_door_no_agent_is_sent_out(graph: Graph, home: Path, commissions: Commissions, run: RunFacts) -> None:
    with pytest.raises(Unauthorized, match="watchbill relay"):
        replace(commissions, relay="").job(job(run, home), run, graph.facts(), NOW)


def test_nothing_is_minted_with_a_key_that_was_retired_and_it_is_said_what_to_do(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts, signer: Signer
) -> None:
    with graph.store.write() as connection:
        keep_key(connection, signer.kid, signer.public, USE, NOW)
        retire(connection, signer.kid, NOW)
    with pytest.raises(Unauthorized, match=r"the capability key .* was retired at .*; move its file away"):
        commissions.job(job(run, home), run, graph.facts(), NOW)


RESULT = {"result": {"summary": "done"}, "revision": 1, "brief": "b"}


def test_what_came_by_our_tools_decides_what_a_run_amounts_to(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts
) -> None:
    brief = commissions.job(job(run, home), run, graph.facts(), NOW)
    assert brief.schema is not None
    verdict, asked = commissions.outcome(run, OWNER, DONE, NOW)
    assert (verdict.outcome, asked) == (Outcome.NO_RESULT, "")
    said(graph, run, words.WordKind.RESULT, RESULT)
    assert commissions.outcome(run, OWNER, DONE, NOW) == (DONE, "")
    said(graph, run, words.WordKind.QUESTION, {"question": "Which of the two?"})
    verdict, asked = commissions.outcome(run, OWNER, DONE, NOW)
    assert (verdict.outcome, asked) == (Outcome.ASKED, "Which of the two?")


@pytest.mark.parametrize("order", [("question", "result"), ("result", "question")], ids="-".join)
def test_a_question_is_put_to_a_person_whatever_result_stands_beside_it(
    graph: Graph, commissions: Commissions, run: RunFacts, order: tuple[str, ...]
) -> None:
    bodies: dict[str, dict[str, object]] = {"question": {"question": "Which of the two?"}, "result": RESULT}
    for kind in order:
        said(graph, run, words.WordKind(kind), bodies[kind])
    verdict, asked = commissions.outcome(run, OWNER, DONE, NOW)
    assert (verdict.outcome, asked) == (Outcome.ASKED, "Which of the two?")


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({"summary": "It is made."}, Outcome.DONE),
        ({"summary": ""}, Outcome.SCHEMA_BROKEN),
        ("x", Outcome.SCHEMA_BROKEN),
    ],
)
def test_a_result_by_the_clis_own_means_is_checked_and_kept(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts, result: object, outcome: Outcome
) -> None:
    commissions.job(job(run, home), run, graph.facts(), NOW)
    told = Verdict(Outcome.DONE, 0, "", result=result)
    assert commissions.outcome(run, OWNER, told, NOW)[0].outcome is outcome
    with graph.store.read() as connection:
        kept = words.result_of(connection, run.id)
    assert (kept is not None) == (outcome is Outcome.DONE)


@pytest.mark.parametrize(
    "outcome", [Outcome.REFUSED, Outcome.DROPPED, Outcome.CRASHED, Outcome.STOPPED, Outcome.DENIED]
)
def test_what_broke_off_is_not_done_although_a_result_was_given(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts, outcome: Outcome
) -> None:
    commissions.job(job(run, home), run, graph.facts(), NOW)
    said(graph, run, words.WordKind.RESULT, RESULT)
    verdict = Verdict(outcome, None, "so it ended")
    assert commissions.outcome(run, OWNER, verdict, NOW) == (verdict, "")


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.DROPPED, Outcome.NO_RESULT])
def test_a_question_is_put_to_a_person_although_its_run_broke_off(
    graph: Graph, commissions: Commissions, run: RunFacts, outcome: Outcome
) -> None:
    said(graph, run, words.WordKind.QUESTION, {"question": "Which of the two?"})
    verdict, asked = commissions.outcome(run, OWNER, Verdict(outcome, None, "it was killed", "a-session"), NOW)
    assert (verdict.outcome, verdict.reason) == (Outcome.ASKED, "it asks a person; it was killed")
    assert (verdict.session, asked) == ("a-session", "Which of the two?")


@pytest.mark.parametrize("event", ["refuse", "stop", "lose"])
def test_whoever_asked_and_was_not_heard_is_told_so_in_the_next_turn(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts, event: str
) -> None:
    said(graph, run, words.WordKind.QUESTION, {"question": "Which of the two?"})
    for outcome in (Outcome.REFUSED, Outcome.STOPPED, Outcome.DENIED):
        verdict = Verdict(outcome, None, "so it ended")
        assert commissions.outcome(run, OWNER, verdict, NOW) == (verdict, "")
    graph.move(event, "run", run.id)
    if event != "lose":
        graph.move("collect", "run", run.id, head_sha="a" * 40)
    again = graph.begin()
    assert "has reached nobody" in commissions.job(job(again, home), again, graph.facts(), NOW).note


@pytest.mark.parametrize(("budget", "ceiling"), [("2.50 USD", 2_500_000_000), (None, 0)])
def test_a_capability_is_good_for_what_the_task_has_left(
    graph: Graph, home: Path, commissions: Commissions, signer: Signer, budget: str | None, ceiling: int
) -> None:
    graph.confirm(runtime="claude", **({"budget": budget} if budget else {}))
    run = graph.begin()
    given = commissions.job(job(run, home), run, graph.facts(), NOW)
    assert given.door is not None
    assert checked(given.door.token, {signer.kid: signer.public}, NOW).max_budget_nano_usd == ceiling
    assert given.door.cap_nano_usd == ceiling
    # What was written down of it once holds, whatever is left by now.
    again = commissions.job(job(run, home), replace(run, cap_nano_usd=7), graph.facts(), NOW)
    assert again.door is not None
    assert checked(again.door.token, {signer.kid: signer.public}, NOW).max_budget_nano_usd == 7


def broken_off(graph: Graph, run: RunFacts, outcome: Outcome = Outcome.CRASHED, session: str = "") -> RunFacts:
    """End and collect the run; the one after it."""
    graph.move("crash", "run", run.id, outcome=outcome, session=session)
    graph.move("collect", "run", run.id, head_sha="1" * 40)
    return graph.begin()


def test_a_memory_in_which_no_turn_began_is_given_up_and_the_last_such_is_kept_for_a_person(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts
) -> None:
    memories, each = [], run
    for _ in range(3):
        given = commissions.job(job(each, home), each, graph.facts(), NOW)
        # As often as it is asked.
        assert given == replace(commissions.job(job(each, home), each, graph.facts(), NOW), door=given.door)
        assert given.memory is not None
        assert given.memory not in memories
        (given.memory / "sessions").mkdir(parents=True)
        memories.append(given.memory)
        each = broken_off(graph, each)
    assert [memory.exists() for memory in memories] == [False, True, True]
    commissions.job(job(each, home), each, graph.facts(), NOW)
    assert [memory.exists() for memory in memories] == [False, False, True]


def test_a_person_who_resumes_a_task_whose_memory_is_damaged_gets_a_run_with_another(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts
) -> None:
    damaged = commissions.memory(run, Metering.METERED)
    graph.move("crash", "run", run.id, outcome=Outcome.CRASHED)
    graph.pause()
    again = graph.resume_and_begin()
    assert graph.facts().round > run.round
    assert commissions.memory(again, Metering.METERED) != damaged
    # Whoever asks late for the one before is told of its own.
    assert commissions.memory(graph.run(run.id), Metering.METERED) == damaged


@pytest.mark.parametrize(
    ("outcome", "session"), [(Outcome.CRASHED, "s1"), (Outcome.DROPPED, ""), (Outcome.NO_RESULT, "s1")]
)
def test_a_memory_in_which_a_turn_began_or_whose_model_was_away_is_gone_on_with(
    graph: Graph, commissions: Commissions, run: RunFacts, outcome: Outcome, session: str
) -> None:
    again = broken_off(graph, run, outcome, session)
    assert commissions.memory(again, Metering.METERED) == commissions.memory(run, Metering.METERED)


@pytest.mark.parametrize(
    ("front", "ceiling"),
    [
        ({"budget": "2 USD", "review_budget": "0.50 USD"}, 500_000_000),
        ({"review_budget": "0.50 USD"}, 500_000_000),
        ({"budget": "2 USD"}, 2_000_000_000),
    ],
)
def test_a_review_has_what_the_plan_gives_it_and_its_author_has_the_rest(
    graph: Graph, home: Path, commissions: Commissions, front: dict[str, str], ceiling: int
) -> None:
    graph.confirm(runtime="claude", reviewers="[codex]", **front)
    author = graph.begin()
    given = commissions.job(job(author, home), author, graph.facts(), NOW)
    assert given.door is not None
    assert given.door.cap_nano_usd == (2_000_000_000 if "budget" in front else 0)
    graph.move("lose", "run", author.id)
    graph.move("worked", head_sha="a" * 40)
    graph.move("checked")
    review = graph.begin(Role.REVIEWER, 1)
    given = commissions.job(job(review, home), review, graph.facts(), NOW)
    assert given.door is not None
    assert given.door.cap_nano_usd == ceiling


def note_by_a_person(graph: Graph, *changes: NoteChange, **where: str) -> None:
    order = EditContext(OWNER, **(where or {"plan_id": graph.plan}), changes=changes, by="ada@host")
    with graph.store.write() as connection:
        assert notes.edit(connection, order, datetime.now(UTC), 1).outcome == "done"


def test_a_brief_tells_what_is_known_of_the_plan_and_its_repository_and_what_is_refused(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts
) -> None:
    note_by_a_person(graph, NoteChange(title="Tests need Redis", text="`make redis`"))
    note_by_a_person(graph, NoteChange(title="No ORM"), repository="Acme/shop")
    home.mkdir()
    (home / "policy.toml").write_text('refuse_commands = ["git push*"]')
    said_decision(graph, run, "Keep the cache")
    given = commissions.job(job(run, home), run, graph.facts(), NOW)
    for told in ("`make redis`", "No ORM", "Keep the cache", "- the command `git push*`", "- `test -e made`"):
        assert told in given.brief
        assert told in given.reminder


def said_decision(graph: Graph, run: RunFacts, title: str) -> None:
    speaker = words.Speaker(OWNER, run.plan_id, run.task_id, run.id, run.epoch, run.role)
    with graph.store.write() as connection:
        notes.record_decision(connection, speaker, title, "Because.", NOW)


def test_a_run_is_told_how_the_one_before_it_ended_and_what_it_said(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts
) -> None:
    said(graph, run, words.WordKind.RESULT, {"result": {"summary": "I made half of it."}, "revision": 1, "brief": "b"})
    graph.move("crash", "run", run.id, outcome="crashed", reason="it was killed", exit_code=-9)
    graph.move("collect", "run", run.id, head_sha="a" * 40)
    brief = commissions.job(job(run, home), again := graph.begin(), graph.facts(), NOW).brief
    assert again.number == 2
    assert "Run 1 of this task ended as crashed: it was killed" in brief
    assert "> I made half of it." in brief


def test_a_reminder_is_what_the_graph_knows_now_and_the_brief_what_the_run_began_with(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts
) -> None:
    began = commissions.job(job(run, home), run, graph.facts(), NOW)
    note_by_a_person(graph, NoteChange(title="Never touch prices.csv"))
    now = commissions.job(job(run, home), run, graph.facts(), NOW)
    assert now.brief == began.brief
    assert "prices.csv" not in began.reminder
    assert "Never touch prices.csv" in now.reminder
    assert tokens_in(now.reminder) <= REMINDER_TOKENS


async def test_while_a_run_is_watched_its_reminder_follows_what_is_known(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts
) -> None:
    folder = RunFolder(home / "runs" / run.id)
    file = folder.path / BRIEF_FILE
    reminder = Reminder(graph.store, commissions, folder, run, graph.facts())
    reminder.take()
    assert "# Task 1: Make it" in file.read_text()
    written = file.stat().st_ino
    reminder.take()
    assert file.stat().st_ino == written
    said_decision(graph, run, "Keep the cache")
    reminder.take()
    assert "Keep the cache" in file.read_text()
    note_by_a_person(graph, NoteChange(title="No network"), repository="acme/shop")
    reminder.take()
    assert "No network" in file.read_text()


async def test_a_reminder_that_cannot_be_written_now_is_written_by_the_next_look(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts
) -> None:
    folder = RunFolder(home / "runs" / run.id)
    home.mkdir()
    (home / "policy.toml").write_text("refuse_commands = 3")
    reminder = Reminder(graph.store, commissions, folder, run, graph.facts())
    await graph.call(asyncio.to_thread, reminder.take)
    assert not (folder.path / BRIEF_FILE).exists()
    (home / "policy.toml").unlink()
    reminder.take()
    assert (folder.path / BRIEF_FILE).exists()


def test_the_next_run_of_a_revised_task_gets_the_new_text_in_a_session_of_its_own(
    graph: Graph, home: Path, commissions: Commissions, run: RunFacts
) -> None:
    commissions.job(job(run, home), run, graph.facts(), NOW)
    graph.move("finish", "run", run.id, session="s1", outcome="done")
    graph.pause()
    graph.revise("echo another", runtime="claude")
    # What the run says now is said about the text before.
    verdict, asked = commissions.outcome(run, OWNER, replace(DONE, result={"summary": "It is made."}), NOW)
    assert (verdict.outcome, asked) == (Outcome.DONE, "")
    with graph.store.read() as connection:
        assert words.result_of(connection, run.id) is None
        (kept,) = connection.execute(select(tables.words.c.refused).where(tables.words.c.run_id == run.id)).scalars()
    assert kept.startswith(f"run {run.id} is finished")

    again = graph.resume_and_begin()
    given = commissions.job(job(again, home), again, graph.facts(), NOW)

    assert given.session == ""
    assert "echo another" in given.brief
    assert "The plan was revised (revision 2), and this task with it: text." in given.brief
    with graph.store.read() as connection:
        assert [words.brief_of(connection, each.id).revision for each in (run, again)] == [1, 2]
