"""The life of a task, through every branch of its flow."""

from __future__ import annotations

import asyncio

import pytest

from domain.errors import Unauthorized
from domain.pull import Merge, MergeKind
from domain.run import EndKind, EvidenceKind, Outcome, RunState
from domain.task import QuestionKind, TaskState
from domain.view import waits_for
from store.evidence import evidence_of
from tests.workflows.stage import Plan, Stage
from tests.workflows.world import CRASHES, FAILS, Ends, Held, Left, not_there, sha

pytestmark = pytest.mark.asyncio(loop_scope="session")

ONCE_THROUGH = ["confirm", "begin", "worked", "cleared", "published", "merged"]


async def question(plan: Plan, kind: QuestionKind) -> str:
    """The id of what the paused task asks, which is of this kind."""
    task = await plan.until(TaskState.PAUSED)
    assert task.question is not None
    assert task.question.kind is kind
    return task.question.id


async def test_a_confirmed_box_becomes_one_merged_pull_request(stage: Stage) -> None:
    plan = await stage.plan().begin()
    await plan.until_over()
    task = plan.facts()
    assert plan.events() == ONCE_THROUGH
    assert (task.state, task.proof) == (TaskState.MERGED, "proven")
    assert plan.started() == {"author-1": 1, "check-1": 1}
    assert (stage.forge.opened[task.id], stage.forge.merged[task.id], stage.host.pushed[task.id]) == (1, 1, 1)
    assert task.id in stage.host.cleared


async def test_every_receipt_of_a_plan_names_who_caused_it(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("author", Ends(outcome=Outcome.ASKED, question="Which colour shall it be?"))
    await plan.begin()
    asked = await question(plan, QuestionKind.AGENT_ASKS)
    await plan.decide("answer", 1, asked, "Blue, as the sea.")
    await plan.until_over()
    caused: dict[str, set[str]] = {}
    for one in plan.receipts():
        caused.setdefault(one.actor, set()).add(f"{one.kind} {one.event}")
    assert caused == {
        "person": {
            "plan publish", "revision propose", "plan confirm", "revision confirm", "task confirm",
            "task resume_working", "question answer",
        },
        "heartbeat": {"plan begin", "task begin"},
        "worker": {
            "run start", "run spawn", "run finish", "run collect", "evidence record", "task pause", "question ask",
            "task worked", "task cleared", "task published", "task merged", "plan complete",
        },
    }  # fmt: skip


async def test_what_was_done_at_the_forge_is_caused_by_the_forge(stage: Stage) -> None:
    plan = await stage.plan(merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    await plan.decide("pause", 1)
    stage.forge.merge(plan.task())
    await plan.hint()
    await plan.until_over()
    assert [one.actor for one in plan.receipts("task", "merged")] == ["forge"]
    assert [one.actor for one in plan.receipts("question")] == ["person", "forge"]


async def test_work_that_changes_nothing_ends_without_a_pull_request(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("collect", Left(changed=0))
    await plan.begin()
    await plan.until_over()
    assert plan.facts().state is TaskState.NO_CHANGES
    assert plan.facts().reason == "the work changes nothing against the base"
    assert stage.host.pushed[plan.task()] == stage.forge.opened[plan.task()] == 0


async def test_work_that_changes_nothing_after_a_refusal_asks_a_person_and_starts_nothing(stage: Stage) -> None:
    plan = stage.plan("First", "Second {after=1}")
    plan.tell("author", Ends(refused="'touch x' is not allowed here (refused: touch *)"))
    plan.tell("collect", Left(changed=0))
    await plan.begin()
    asked = await question(plan, QuestionKind.CANNOT_GO_ON)
    assert "Bash was refused: 'touch x' is not allowed here (refused: touch *)" in plan.facts().question.text
    assert plan.started(2) == {}
    await plan.decide("resume", 1, asked)
    await plan.until_over()
    assert plan.started() == {"author-1": 1, "author-2": 1, "check-1": 1}


async def test_what_an_agent_asks_pauses_its_task_and_is_seen_in_temporal(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("author", Ends(outcome=Outcome.ASKED, question="Which colour shall it be?"))
    await plan.begin()
    asked = await question(plan, QuestionKind.AGENT_ASKS)

    async def details() -> str:
        return str(await plan.task_handle().query("__temporal_workflow_metadata"))

    while asked not in (seen := await details()):
        await asyncio.sleep(0.05)
    assert "Which colour shall it be?" in seen
    assert "Runs are unconfined." in seen
    await plan.decide("answer", 1, asked, "Blue, as the sea.")
    await plan.until_over()
    assert plan.facts().state is TaskState.MERGED
    assert plan.started() == {"author-1": 1, "author-2": 1, "check-1": 1}


async def test_work_that_the_base_contains_already_ends_as_no_changes(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("open", "empty")
    await plan.begin()
    await plan.until_over()
    assert plan.facts().state is TaskState.NO_CHANGES


async def test_a_crashed_run_leaves_evidence_and_is_followed_by_another(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("author", CRASHES)
    await plan.begin()
    await plan.until_over()
    assert plan.events() == ONCE_THROUGH
    assert plan.started() == {"author-1": 1, "author-2": 1, "check-1": 1}
    with stage.store.read() as connection:
        seen = {one.run_id: one.kind for one in evidence_of(connection, task_id=plan.task())}
    assert seen == {
        plan.run(): EvidenceKind.AGENT_CRASH,
        plan.run(role="check"): EvidenceKind.CHECK,
    }


async def test_two_runs_that_fail_alike_and_leave_the_same_ask_a_person(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("author", CRASHES, CRASHES)
    plan.tell("collect", Left(head="the same"), Left(head="the same"))
    await plan.begin()
    asked = await question(plan, QuestionKind.NO_PROGRESS)
    assert "killed by signal 9" in plan.facts().question.text
    await plan.decide("resume", 1, asked)
    await plan.until_over()
    assert plan.started() == {"author-1": 1, "author-2": 1, "author-3": 1, "check-1": 1}


async def test_a_run_that_leaves_the_tree_of_the_round_before_asks_a_person(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("check", FAILS)
    plan.tell("collect", Left(tree="the same"), Left(tree="the same"))
    await plan.begin()
    asked = await question(plan, QuestionKind.NO_PROGRESS)
    await plan.decide("answer", 1, asked, "Mind the cache.")
    await plan.until(TaskState.MERGED)
    assert plan.events() == [
        "confirm", "begin", "worked", "checks_failed", "pause", "resume_working", "worked", "cleared",
        "published", "merged",
    ]  # fmt: skip


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.DROPPED, Outcome.NO_RESULT, Outcome.SCHEMA_BROKEN])
async def test_every_kind_of_retry_draws_on_one_bound(stage: Stage, outcome: Outcome) -> None:
    plan = stage.plan(attempts=2)
    plan.tell("author", Ends(RunState.CRASHED, None, reason="so it ended", outcome=outcome))
    plan.tell("check", FAILS)
    await plan.begin()
    asked = await question(plan, QuestionKind.TOO_MANY_RUNS)
    assert plan.facts().runs_begun == 2
    await plan.decide("resume", 1, asked)
    await plan.until(TaskState.MERGED)
    assert plan.facts().allowed_runs == 4


async def test_failed_checks_send_the_task_back_with_what_they_said(stage: Stage) -> None:
    plan = stage.plan()
    again = Held()
    plan.tell("check", FAILS)
    plan.tell("author", Ends(), again)
    await plan.begin()
    await plan.until_started(2)
    assert plan.facts().round == 2
    assert plan.facts().note == "`true` exited 1.\n1 failed, 3 passed"
    again.release()
    await plan.until_over()
    assert plan.facts().proven_sha == sha(f"commit {plan.run(2)}")


async def test_a_check_that_breaks_off_is_run_again_before_it_counts(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("check", CRASHES)
    await plan.begin()
    await plan.until_over()
    assert plan.events() == ONCE_THROUGH
    assert plan.started() == {"author-1": 1, "check-1": 1, "check-2": 1}


async def test_somebody_elses_commit_on_the_branch_is_built_upon_and_never_overwritten(stage: Stage) -> None:
    plan = stage.plan()
    first, second = Held(), Held()
    plan.tell("author", first, second)
    await plan.begin()
    await plan.until_started(1)
    theirs = stage.forge.push(plan.task(), "somebody's commit")
    first.release()
    await plan.until_started(2)
    assert stage.host.pushed[plan.task()] == 0
    assert plan.facts().pushed_sha == theirs
    assert plan.facts().foreign_commits
    second.release()
    await plan.until_over()
    assert "branch_moved" in plan.events()


async def test_a_commit_that_somebody_pushes_to_the_pull_request_is_kept_and_proven_anew(stage: Stage) -> None:
    plan = await stage.plan(merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    theirs = stage.forge.push(plan.task(), "somebody's commit")
    await plan.hint()
    await stage.until(lambda: plan.events()[-3:] == ["head_moved", "cleared", "published"])
    assert plan.facts().proven_sha == theirs
    assert plan.started()["author-1"] == 1
    assert "author-2" not in plan.started()


async def test_a_conflict_has_the_work_done_again_on_top_of_the_base(stage: Stage) -> None:
    plan = stage.plan(merge="by-hand")
    again = Held()
    plan.tell("author", Ends(), again)
    await plan.begin()
    await plan.until(TaskState.IN_REVIEW)
    stage.forge.change(plan.task(), mergeable=False)
    await plan.hint()
    await plan.until_started(2)
    assert plan.facts().fresh_start
    stage.forge.change(plan.task(), mergeable=True)
    again.release()
    await stage.until(lambda: plan.events()[-4:] == ["conflicted", "worked", "cleared", "published"])
    assert stage.forge.opened[plan.task()] == 1


async def test_a_conflict_on_a_branch_with_somebody_elses_commits_asks_a_person(stage: Stage) -> None:
    plan = await stage.plan(merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    stage.forge.push(plan.task(), "somebody's commit")
    stage.forge.change(plan.task(), mergeable=False)
    await plan.hint()
    asked = await question(plan, QuestionKind.NOT_MERGEABLE)
    stage.forge.change(plan.task(), mergeable=True)
    await plan.decide("resume", 1, asked)
    await plan.until(TaskState.IN_REVIEW)


async def test_a_merge_that_the_forge_does_not_allow_says_why_and_happens_once_it_does(stage: Stage) -> None:
    plan = stage.plan()
    why = Merge(MergeKind.BLOCKED, reason="1 approving review is required")
    plan.tell("merge", why, why)
    await plan.begin()
    await stage.until(lambda: plan.events()[-1] == "blocked" and not stage.script.waits(plan.task(), "merge"))
    view = plan.view()
    assert view.needs_person
    assert "1 approving review is required" in waits_for(view, view.tasks[0])
    await plan.hint(event="pull_request_review")
    await plan.until_over()
    assert plan.events().count("blocked") == 1
    assert plan.facts().reason == ""


async def test_a_head_that_moves_under_the_merge_is_not_merged_unproven(stage: Stage) -> None:
    plan = stage.plan()

    def pushed_meanwhile() -> None:
        stage.forge.push(plan.task(), "somebody's commit")

    plan.tell("merge", pushed_meanwhile)
    await plan.begin()
    await plan.until_over()
    assert "head_moved" in plan.events()
    assert plan.facts().proof == "proven"
    assert plan.facts().proven_sha == sha("somebody's commit")


async def test_a_merge_by_hand_of_an_unproven_commit_is_merged_and_marked(stage: Stage) -> None:
    plan = await stage.plan(merge="by-hand", checks="").begin()
    await plan.until(TaskState.IN_REVIEW)
    stage.forge.merge(plan.task())
    await plan.hint()
    await plan.until_over()
    assert plan.facts().proof == "unproven"
    assert plan.receipts("task", "merged")[0].cause == "merged by ada"


async def test_a_merge_by_hand_settles_what_a_paused_task_asked(stage: Stage) -> None:
    plan = await stage.plan(merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    await plan.decide("pause", 1)
    stage.forge.merge(plan.task())
    await plan.hint()
    await plan.until_over()
    assert [one.event for one in plan.receipts("question")] == ["ask", "withdraw"]


async def test_approving_the_head_merges_exactly_that_commit(stage: Stage) -> None:
    plan = await stage.plan(merge="by-hand").begin()
    head = (await plan.until(TaskState.IN_REVIEW)).head_sha
    refused = await plan.decide("approve", 1, sha("another commit"))
    assert refused.outcome == "refused"
    await plan.decide("approve", 1, head)
    await plan.until_over()
    assert plan.events()[-2:] == ["approved", "merged"]


async def test_a_closed_pull_request_ends_its_task_and_reopened_goes_on(stage: Stage) -> None:
    plan = await stage.plan(merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    stage.forge.close(plan.task())
    await plan.hint()
    await plan.until_over()
    assert plan.facts().state is TaskState.CLOSED
    stage.forge.change(plan.task(), open=True, closed_at="")
    await plan.hint()
    await plan.until(TaskState.IN_REVIEW)
    assert plan.state() == "in_progress"
    stage.forge.merge(plan.task())
    await plan.hint()
    await plan.until_over()
    assert plan.events()[-3:] == ["closed", "reopened", "merged"]
    assert stage.forge.opened[plan.task()] == 1


async def test_a_merge_after_a_task_was_cancelled_still_counts(stage: Stage) -> None:
    plan = await stage.plan(merge="by-hand").begin()
    await plan.until(TaskState.IN_REVIEW)
    await plan.decide("cancel", 1)
    await plan.until_over()
    assert not stage.forge.pull_of(plan.task()).open
    stage.forge.merge(plan.task())
    await plan.hint()
    await plan.until(TaskState.MERGED)
    assert plan.state() == "completed"


async def test_work_outside_the_plans_paths_waits_until_a_person_takes_it(stage: Stage) -> None:
    plan = stage.plan(paths='["src/**"]')
    plan.tell("collect", Left(strays=("deploy/secrets.yml",)))
    await plan.begin()
    asked = await question(plan, QuestionKind.OUT_OF_SCOPE)
    assert "deploy/secrets.yml" in plan.facts().question.text
    assert stage.host.pushed[plan.task()] == 0
    await plan.decide("approve", 1, asked)
    await plan.until_over()
    assert plan.started() == {"author-1": 1, "check-1": 1}


async def test_cancelling_a_task_stops_its_agent(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("author", Held())
    await plan.begin()
    await plan.until_started()
    await plan.decide("cancel", 1)
    await plan.until_over()
    ends = [one.after for one in plan.receipts("run") if one.event == "stop"]
    assert ends == [RunState.STOPPED]
    assert plan.facts().state is TaskState.CANCELLED
    assert plan.run() not in stage.host.living


async def test_pausing_a_task_stops_its_agent_and_resuming_begins_another_run(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("author", Held())
    await plan.begin()
    await plan.until_started()
    await plan.decide("pause", 1)
    asked = await question(plan, QuestionKind.PAUSED_BY_PERSON)
    await stage.until(lambda: plan.run() not in stage.host.living)
    await plan.decide("resume", 1, asked)
    await plan.until_over()
    assert plan.started() == {"author-1": 1, "author-2": 1, "check-1": 1}


async def test_what_a_person_can_mend_pauses_the_task_with_the_errors_own_words(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("prepare", not_there("acme/shop"))
    await plan.begin()
    asked = await question(plan, QuestionKind.CANNOT_GO_ON)
    said = "acme/shop is not there for us; install the App on it. Mend it, then resume."
    assert plan.facts().question.text == said
    await plan.decide("resume", 1, asked)
    await plan.until_over()
    assert plan.facts().state is TaskState.MERGED


async def test_an_agent_that_the_forge_does_not_let_be_sent_out_pauses_the_task_with_what_to_do(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("author", Unauthorized("the App's installation on acme/shop is suspended; its owner can lift that"))
    await plan.begin()
    await question(plan, QuestionKind.CANNOT_GO_ON)
    said = "the App's installation on acme/shop is suspended; its owner can lift that. Mend it, then resume."
    assert plan.facts().question.text == said
    assert plan.started() == {}


async def test_a_run_that_was_refused_asks_a_person(stage: Stage) -> None:
    plan = stage.plan()
    plan.tell("author", Ends(RunState.REFUSED, None, EndKind.NEVER_STARTED, "the task has no sh block"))
    await plan.begin()
    await question(plan, QuestionKind.CANNOT_GO_ON)
    assert "the task has no sh block" in plan.facts().question.text


async def test_a_task_begins_once_its_predecessor_has_merged(stage: Stage) -> None:
    plan = await stage.plan("First", "Second {after=1}").begin()
    await plan.until_over()
    order = [(one.subject, one.event) for one in plan.receipts("task")]
    assert order.index((plan.task(1), "merged")) < order.index((plan.task(2), "begin"))


async def test_a_predecessor_that_did_not_succeed_asks_a_person(stage: Stage) -> None:
    plan = stage.plan("First", "Second {after=1}")
    plan.tell("author", Held())
    await plan.begin()
    await plan.until_started()
    await plan.decide("cancel", 1)
    second = await plan.until(TaskState.PAUSED, 2)
    assert second.question.kind is QuestionKind.PREDECESSOR
    await plan.decide("resume", 2, second.question.id)
    await plan.until_over()
    assert plan.facts(2).state is TaskState.MERGED


async def test_a_plan_holds_no_more_slots_than_its_concurrency(stage: Stage) -> None:
    plan = stage.plan("First", "Second", "Third", concurrency=1)
    holds = [Held(), Held(), Held()]
    for ordinal, hold in enumerate(holds, 1):
        plan.tell("author", hold, ordinal=ordinal)
    await plan.begin()
    for ordinal, hold in enumerate(holds, 1):
        await plan.until_started(ordinal=ordinal)
        states = [plan.facts(later).state for later in range(ordinal + 1, 4)]
        assert states == [TaskState.PENDING] * (3 - ordinal)
        hold.release()
    await plan.until_over()


REVIEWER = "codex:gpt-5.5"
WANTS = {"verdict": "request_changes", "summary": "Nearly.", "findings": [{"path": "a", "line": 3, "text": "Mend it."}]}


async def test_a_reviewer_of_another_maker_approves_before_anything_is_published(stage: Stage) -> None:
    plan = await stage.plan(reviewers="[codex]").begin()
    await plan.until_over()
    task = plan.facts()
    assert plan.events() == ["confirm", "begin", "worked", "checked", "cleared", "published", "merged"]
    assert (task.state, task.proof) == (TaskState.MERGED, "proven")
    assert plan.started() == {"author-1": 1, "check-1": 1, "reviewer-1": 1}
    [review] = task.reviews
    assert (review.state, review.commit_sha, review.reviewer) == ("approved", task.head_sha, REVIEWER)


async def test_requested_changes_make_a_new_round_that_is_judged_again(stage: Stage) -> None:
    plan = stage.plan(reviewers="[codex]")
    plan.tell("reviewer", Ends(answer=WANTS))
    await plan.begin()
    await plan.until_over()
    task = plan.facts()
    assert "changes_requested" in plan.events()
    assert plan.started() == {
        "author-1": 1,
        "author-2": 1,
        "check-1": 1,
        "check-2": 1,
        "reviewer-1": 1,
        "reviewer-2": 1,
    }
    assert [review.state for review in task.reviews] == ["changes_requested", "approved"]
    assert task.proof == "proven"


async def test_rounds_of_requested_changes_are_bounded_by_the_authors_runs(stage: Stage) -> None:
    plan = stage.plan(reviewers="[codex]", attempts=2)
    plan.tell("reviewer", *(Ends(answer=WANTS) for _ in range(2)))
    await plan.begin()
    await question(plan, QuestionKind.TOO_MANY_RUNS)
    assert "- `a:3`: Mend it." in plan.facts().note


async def test_a_rejected_commit_is_published_by_a_persons_word_alone_and_as_unproven(stage: Stage) -> None:
    plan = stage.plan(reviewers="[codex]", merge="by-hand")
    plan.tell("reviewer", Ends(answer={"verdict": "reject", "summary": "Not like this.", "findings": []}))
    await plan.begin()
    asked = await question(plan, QuestionKind.REJECTED)
    assert "Not like this." in plan.facts().question.text
    assert stage.forge.opened[plan.task()] == 0
    await plan.decide("approve", 1, asked)
    task = await plan.until(TaskState.IN_REVIEW)
    assert task.proven_sha == ""
    stage.forge.merge(task.id)
    await plan.task_handle().signal("look_again")
    await plan.until_over()
    assert plan.facts().proof == "unproven"


async def test_a_reviewer_that_changed_anything_is_void_and_another_review_is_given(stage: Stage) -> None:
    plan = stage.plan(reviewers="[codex]")
    plan.tell("tampers", "a.txt")
    await plan.begin()
    await plan.until_over()
    assert [review.state for review in plan.facts().reviews] == ["void", "approved"]
    assert plan.facts().reviews[0].why == "it changed what it was to judge: a.txt"
    assert plan.started()["reviewer-2"] == 1


async def test_every_reviewer_of_a_plan_has_to_approve_and_one_that_has_is_not_asked_again(stage: Stage) -> None:
    plan = stage.plan(reviewers="[codex, 'opencode:gemini-2.5-pro']")
    plan.tell("reviewer", Ends(), Ends(answer=None), Ends())
    await plan.begin()
    await plan.until_over()
    given = [(review.reviewer, str(review.state)) for review in plan.facts().reviews]
    second = "opencode:gemini-2.5-pro"
    assert given == [(REVIEWER, "approved"), (second, "void"), (second, "approved")]
    assert plan.facts().proof == "proven"


async def test_what_a_reviewer_asks_is_put_to_a_person_and_the_review_goes_on(stage: Stage) -> None:
    plan = stage.plan(reviewers="[codex]")
    plan.tell("reviewer", Ends(outcome=Outcome.ASKED, question="Is this on purpose?", answer=None))
    await plan.begin()
    asked = await question(plan, QuestionKind.AGENT_ASKS)
    await plan.decide("answer", 1, asked, "It is.")
    await plan.until_over()
    assert plan.started()["author-1"] == 1
    assert "author-2" not in plan.started()
    assert plan.facts().proof == "proven"
