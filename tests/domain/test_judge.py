"""What each step's outcome means for the task, from what was observed and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain import judge, landing
from domain.duties import Actor
from domain.flow import Continue, Done, Pause, Wait
from domain.policy import PROVEN, UNPROVEN
from domain.pull import Merge, MergeKind, Opened, OpenKind, PullRequest, Push, PushKind
from domain.run import STATE_OF, Collected, EndKind, Outcome, Role, RunEnd, RunFacts, RunState
from domain.task import ENDED, QuestionKind, TaskEvent, TaskFacts, TaskState

OLD, HEAD, FOREIGN, BASE = "a" * 40, "c" * 40, "f" * 40, "b" * 40


def a_task(state: TaskState = TaskState.WORKING, **facts: Any) -> TaskFacts:
    task = TaskFacts(
        id="demo-12345678-1", plan_id="demo-12345678", owner="ann", ordinal=1, title="A box", body="",
        state=state, seq=7, round=2, epoch=1, repository="acme/shop", base="main", merge="when-proven",
        runtime="shell", timeout=60, checks=("make test",), head_sha=HEAD, tree_sha="tree",
        last_tree_sha="last", pushed_sha=HEAD, proven_sha=HEAD, pull_number=3, host="here", runs_begun=1,
    )  # fmt: skip
    return replace(task, **facts)


def a_run(number: int = 1, state: RunState = RunState.FINISHED, **facts: Any) -> RunFacts:
    run = RunFacts(
        id=f"demo-12345678-1-author-{number}", plan_id="demo-12345678", task_id="demo-12345678-1",
        role=Role.AUTHOR, number=number, round=2, epoch=number, runtime="shell", host="there", state=state,
    )  # fmt: skip
    return replace(run, **facts)


def a_check(number: int = 1, state: RunState = RunState.FINISHED, **facts: Any) -> RunFacts:
    return a_run(number, state, id=f"check-{number}", role=Role.CHECK, ordinal=1, command="make test", **facts)


def an_end(run: RunFacts, **facts: Any) -> RunEnd:
    return replace(RunEnd(run.id, run.state, EndKind.EXITED, run.exit_code, run.reason), **facts)


def work(run: RunFacts, **facts: Any) -> Collected:
    left = Collected(run.id, BASE, BASE, "d" * 40, "new tree", changed=1)
    return replace(left, **facts)


def a_pull(**facts: Any) -> PullRequest:
    pull = PullRequest(3, "http://forge/3", True, False, "watchbill/demo-12345678-1", HEAD, "main", mergeable=True)
    return replace(pull, **facts)


def after_work(task: TaskFacts, run: RunFacts, left: Collected, **end: Any) -> Any:
    return judge.after_work(task, run, an_end(run, **end), left)


# The author's runs.


def test_another_run_may_begin_while_the_bound_allows_it() -> None:
    assert judge.before_run(a_task(runs_begun=3, allowed_runs=4)) is None


def test_at_the_bound_a_person_is_asked_and_told_what_the_last_run_left_undone() -> None:
    answer = judge.before_run(a_task(runs_begun=4, allowed_runs=4, note="`make test` exited 2."))
    assert isinstance(answer, Pause)
    assert (answer.kind, answer.resume_at) == (QuestionKind.TOO_MANY_RUNS, TaskState.WORKING)
    assert "`make test` exited 2." in answer.text


def test_a_finished_run_goes_on_to_its_checks_with_the_commit_that_was_made_of_it() -> None:
    run = a_run()
    answer = after_work(a_task(), run, work(run))
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.WORKED
    kept = {"head_sha": "d" * 40, "tree_sha": "new tree", "base_sha": BASE, "host": "there"}
    assert kept.items() <= answer.facts.items()


def test_a_run_that_leaves_the_tree_as_the_base_has_it_ends_the_task_without_changes() -> None:
    run = a_run()
    answer = after_work(a_task(), run, work(run, changed=0))
    assert isinstance(answer, Done)
    assert answer.event == TaskEvent.NOTHING_CHANGED
    assert answer.facts["reason"]


def test_a_run_that_changes_nothing_since_the_last_round_asks_a_person() -> None:
    run = a_run()
    answer = after_work(a_task(), run, work(run, tree_sha="last"))
    assert isinstance(answer, Pause)
    assert (answer.kind, answer.resume_at) == (QuestionKind.NO_PROGRESS, TaskState.WORKING)


def test_work_outside_of_the_plans_paths_asks_a_person_and_keeps_the_commit_for_an_approval() -> None:
    run = a_run()
    answer = after_work(a_task(), run, work(run, changed=2, strays=("secrets.txt",), stray_count=1))
    assert isinstance(answer, Pause)
    assert answer.kind == QuestionKind.OUT_OF_SCOPE
    assert "secrets.txt." in answer.text
    assert "more" not in answer.text
    assert answer.facts["head_sha"] == "d" * 40
    assert answer.facts["host"] == "there"


def test_a_question_about_a_thousand_stray_files_names_some_and_counts_the_others() -> None:
    run = a_run()
    strays = tuple(f"elsewhere/{n}.py" for n in range(20))
    answer = after_work(a_task(), run, work(run, changed=1000, strays=strays, stray_count=1000))
    assert isinstance(answer, Pause)
    assert "elsewhere/19.py and 980 more." in answer.text


@pytest.mark.parametrize("changed", [0, 1])
def test_what_could_not_be_collected_asks_a_person_also_where_it_is_all_there_is(changed: int) -> None:
    run = a_run()
    answer = after_work(a_task(), run, work(run, changed=changed, faults=("lib is a git repository of its own",)))
    assert isinstance(answer, Pause)
    assert "lib is a git repository of its own" in answer.text


def test_a_crashed_run_is_followed_by_another_after_a_pause_that_grows() -> None:
    pauses = []
    for number in range(1, 9):
        earlier = tuple(a_run(n, RunState.CRASHED, head_sha=f"{n}", reason="exit 1") for n in range(1, number))
        run = a_run(number, RunState.CRASHED, reason="exit 1")
        answer = after_work(a_task(runs=(*earlier, run)), run, work(run))
        assert isinstance(answer, Wait)
        assert answer.seconds is not None
        pauses.append(answer.seconds)
    assert pauses == sorted(pauses)
    assert 0 < pauses[0] < pauses[-1] <= judge.MAX_BACKOFF


def test_two_crashes_alike_that_left_the_same_files_ask_a_person_with_the_last_words() -> None:
    first = a_run(1, RunState.CRASHED, head_sha="d" * 40, reason="exit 1")
    run = a_run(2, RunState.CRASHED, reason="exit 1")
    answer = after_work(a_task(runs=(first, run)), run, work(run), tail="\nboom: no such file\n\n")
    assert isinstance(answer, Pause)
    assert answer.kind == QuestionKind.NO_PROGRESS
    assert "boom: no such file" in answer.text


def test_a_crash_that_left_other_files_than_the_one_before_is_progress() -> None:
    first = a_run(1, RunState.CRASHED, head_sha="e" * 40, reason="exit 1")
    run = a_run(2, RunState.CRASHED, reason="exit 1")
    assert isinstance(after_work(a_task(runs=(first, run)), run, work(run)), Wait)


def test_a_run_that_the_graph_stopped_asks_nobody() -> None:
    run = a_run(1, RunState.STOPPED)
    assert isinstance(after_work(a_task(runs=(run,)), run, work(run)), Wait)


def test_a_run_that_was_refused_is_not_tried_again_at_once() -> None:
    """A provider that is out of credits gets one dispatch, and then time or a person."""
    run = a_run(1, RunState.REFUSED, reason="out of credits")
    answer = after_work(a_task(runs=(run,)), run, work(run))
    assert isinstance(answer, Pause) or (isinstance(answer, Wait) and answer.seconds != 0)


REFUSAL = "Bash was refused: 'touch x' is not allowed here (refused: touch *); go on without it."


def test_a_run_that_was_refused_something_and_changed_nothing_asks_a_person_and_is_no_success() -> None:
    """Success would start the tasks after it, on the word of an agent that could not do its own."""
    run = a_run()
    answer = after_work(a_task(), run, work(run, changed=0), refused=REFUSAL)
    assert isinstance(answer, Pause)
    assert (answer.kind, answer.resume_at) == (QuestionKind.CANNOT_GO_ON, TaskState.WORKING)
    assert "'touch x' is not allowed here (refused: touch *)" in answer.text


def test_a_run_that_found_another_way_after_a_refusal_goes_on_to_its_checks() -> None:
    run = a_run()
    assert isinstance(after_work(a_task(), run, work(run), refused=REFUSAL), Continue)


def test_a_run_that_was_refused_something_and_left_the_tree_of_the_last_round_names_it() -> None:
    run = a_run()
    answer = after_work(a_task(), run, work(run, tree_sha="last"), refused=REFUSAL)
    assert isinstance(answer, Pause)
    assert answer.kind == QuestionKind.NO_PROGRESS
    assert "touch x" in answer.text


def test_a_run_that_ended_over_a_refusal_names_it_once() -> None:
    run = a_run(1, RunState.REFUSED, reason="Write was refused")
    answer = after_work(a_task(runs=(run,)), run, work(run), outcome=Outcome.DENIED, refused=REFUSAL)
    assert isinstance(answer, Pause)
    assert "touch x" in answer.text
    told = replace(run, reason=REFUSAL)
    answer = after_work(a_task(runs=(told,)), told, work(told), outcome=Outcome.DENIED, refused=REFUSAL)
    assert isinstance(answer, Pause)
    assert answer.text.count("touch x") == 1


@pytest.mark.parametrize(
    ("outcome", "first", "again"),
    [
        (Outcome.DONE, TaskEvent.WORKED, TaskEvent.WORKED),
        (Outcome.ASKED, QuestionKind.AGENT_ASKS, QuestionKind.AGENT_ASKS),
        (Outcome.NO_RESULT, "another run", QuestionKind.NO_PROGRESS),
        (Outcome.SCHEMA_BROKEN, "another run", QuestionKind.NO_PROGRESS),
        (Outcome.DENIED, QuestionKind.CANNOT_GO_ON, QuestionKind.CANNOT_GO_ON),
        (Outcome.REFUSED, QuestionKind.OUT_OF_BUDGET, QuestionKind.OUT_OF_BUDGET),
        (Outcome.DROPPED, "another run", "another run"),
        (Outcome.CRASHED, "another run", QuestionKind.NO_PROGRESS),
        (Outcome.STOPPED, "another run", "another run"),
    ],
)
def test_each_outcome_leads_one_way_and_the_same_again_with_the_same_files_leads_on(
    outcome: Outcome, first: str, again: str
) -> None:
    """`first` is where a run's outcome leads, `again` where a second one like it does that left the same files."""
    state, ways = STATE_OF[outcome], []
    for number in (1, 2):
        run = a_run(number, state, outcome=outcome, reason="why", head_sha="d" * 40)
        runs = tuple(replace(run, number=n) for n in range(1, number + 1))
        ways.append(way(after_work(a_task(runs=runs), run, work(run), outcome=outcome, question="Which?")))
    assert ways == [first, again]


def test_the_table_of_outcomes_has_all_of_them() -> None:
    (table,) = [
        mark.args[1]
        for mark in test_each_outcome_leads_one_way_and_the_same_again_with_the_same_files_leads_on.pytestmark
        if mark.name == "parametrize"
    ]
    assert {row[0] for row in table} == set(Outcome)


def way(answer: Any) -> str:
    """Where an answer leads: the event of a move, the kind of a question, or that another run is begun."""
    match answer:
        case Pause():
            return str(answer.kind)
        case Continue():
            return str(answer.event)
        case Wait():
            return "another run"
    raise AssertionError(answer)


def test_what_an_agent_asks_is_put_to_a_person_in_its_own_words_whatever_it_left() -> None:
    run = a_run(outcome=Outcome.ASKED)
    for changed in (0, 1):
        answer = after_work(a_task(), run, work(run, changed=changed), outcome=Outcome.ASKED, question="Which of two?")
        assert isinstance(answer, Pause)
        assert (answer.kind, answer.text, answer.resume_at) == (
            QuestionKind.AGENT_ASKS, "Which of two?", TaskState.WORKING,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Outcome.DONE, ""),
        (Outcome.ASKED, ""),
        (Outcome.NO_RESULT, "without a result"),
        (Outcome.SCHEMA_BROKEN, "not of the form that is asked for: why"),
        (Outcome.DENIED, ""),
        (Outcome.REFUSED, ""),
        (Outcome.DROPPED, "broke off"),
        (Outcome.CRASHED, "cut off: why"),
        (Outcome.STOPPED, ""),
    ],
)
def test_the_next_run_is_told_how_the_turn_before_it_broke_off(outcome: Outcome, told: str) -> None:
    before = a_run(1, STATE_OF[outcome], outcome=outcome, reason="why")
    run = a_run(2, RunState.STARTING)
    task = a_task(note="Mind the cache.", runs=(before, run))
    word = judge.word_for(task, run)
    assert word.startswith("Mind the cache.")
    assert told in word
    assert (word == "Mind the cache.") == (not told)
    assert "has reached nobody" in judge.word_for(task, run, unheard=True)


# Checks.


def test_a_check_that_exits_0_lets_the_next_one_begin() -> None:
    check = a_check(exit_code=0)
    assert judge.after_check(a_task(TaskState.CHECKING), check, an_end(check)) is None


def test_a_check_that_fails_sends_the_author_back_in_a_new_round_with_what_it_said() -> None:
    check = a_check(exit_code=2)
    answer = judge.after_check(a_task(TaskState.CHECKING), check, an_end(check, tail="1 failed\n"))
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.CHECKS_FAILED
    assert answer.facts["round"] == 3
    assert answer.facts["note"] == "`make test` exited 2.\n1 failed"
    assert answer.facts["last_tree_sha"] == "tree"


@pytest.mark.parametrize("state", [RunState.STOPPED, RunState.LOST])
def test_a_check_that_was_stopped_or_lost_says_nothing_of_the_work(state: RunState) -> None:
    check = a_check(1, state)
    assert isinstance(judge.after_check(a_task(TaskState.CHECKING), check, an_end(check)), Wait)


def test_a_check_that_broke_once_is_run_again_before_the_author_is_blamed() -> None:
    """Its supervisor died, or its lease lapsed while the worker was down: that says nothing of the work."""
    check = a_check(1, RunState.CRASHED, reason="its lease lapsed")
    assert isinstance(judge.after_check(a_task(TaskState.CHECKING, runs=(check,)), check, an_end(check)), Wait)


def test_a_check_that_breaks_off_twice_in_the_same_way_counts_against_the_work() -> None:
    broken = tuple(a_check(n, RunState.CRASHED, reason="it took longer than 60 s") for n in (1, 2))
    answer = judge.after_check(a_task(TaskState.CHECKING, runs=broken), broken[-1], an_end(broken[-1]))
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.CHECKS_FAILED


@pytest.mark.parametrize("state", [RunState.STOPPED, RunState.LOST, RunState.CRASHED])
def test_a_check_that_breaks_off_again_and_again_asks_a_person(state: RunState) -> None:
    broken = tuple(a_check(n, state, reason=f"the {n}th reason") for n in range(1, 5))
    answer = judge.after_check(a_task(TaskState.CHECKING, runs=broken), broken[-1], an_end(broken[-1]))
    assert isinstance(answer, Pause)
    assert answer.resume_at == TaskState.CHECKING


@pytest.mark.parametrize("state", [RunState.STOPPED, RunState.LOST, RunState.CRASHED])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_it_does_not_matter_whether_who_judges_a_check_saw_it_begin(state: RunState, number: int) -> None:
    """The facts loaded before the run began lack it; those loaded by who came later hold it."""
    earlier = tuple(a_check(n, state, reason=f"the {n}th reason") for n in range(1, number))
    check = a_check(number, state, reason=f"the {number}th reason")
    began, came_later = (a_task(TaskState.CHECKING, runs=runs) for runs in (earlier, (*earlier, check)))
    assert judge.after_check(began, check, an_end(check)) == judge.after_check(came_later, check, an_end(check))


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.CRASHED, RunState.STOPPED])
def test_a_run_of_an_earlier_round_is_not_judged_for_this_one(state: RunState) -> None:
    """A person's answer has begun a new round while it went on."""
    check, author = a_check(1, state, round=1, exit_code=1), a_run(1, state, round=1)
    assert isinstance(judge.after_check(a_task(TaskState.CHECKING), check, an_end(check)), Wait)
    assert isinstance(after_work(a_task(), author, work(author)), Wait)


@pytest.mark.parametrize("state", [TaskState.CHECKING, TaskState.PUBLISHING])
def test_work_that_was_lost_with_its_host_is_done_again_and_is_no_lack_of_progress(state: TaskState) -> None:
    answer = judge.after_work_lost(a_task(state))
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.WORK_LOST
    assert {"round": 3, "head_sha": "", "host": "", "last_tree_sha": ""}.items() <= answer.facts.items()


def test_passed_checks_prove_exactly_the_commit_that_they_ran_on() -> None:
    answer = judge.after_checks(a_task(TaskState.CHECKING, proven_sha=""))
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.CLEARED
    assert answer.facts["proven_sha"] == HEAD


def test_without_checks_nothing_is_proven() -> None:
    answer = judge.after_checks(a_task(TaskState.CHECKING, checks=()))
    assert isinstance(answer, Continue)
    assert answer.facts["proven_sha"] == ""


# Publishing.


def test_a_branch_at_our_commit_is_what_a_pull_request_needs() -> None:
    assert landing.after_push(a_task(TaskState.PUBLISHING), Push(PushKind.PUSHED, HEAD)) is None


def test_somebody_elses_push_is_built_upon_in_a_new_round() -> None:
    answer = landing.after_push(a_task(TaskState.PUBLISHING), Push(PushKind.MOVED, FOREIGN))
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.BRANCH_MOVED
    assert answer.facts["round"] == 3
    assert answer.facts["foreign_commits"] is True


def test_what_somebody_pushed_is_where_the_next_push_expects_the_branch() -> None:
    """Else the next push leases on what is no longer there, and finds the branch moved again, for ever."""
    answer = landing.after_push(a_task(TaskState.PUBLISHING), Push(PushKind.MOVED, FOREIGN))
    assert isinstance(answer, Continue)
    assert answer.facts["pushed_sha"] == FOREIGN


def test_a_deleted_branch_is_not_taken_for_somebodys_commits() -> None:
    answer = landing.after_push(a_task(TaskState.PUBLISHING), Push(PushKind.MOVED, ""))
    assert isinstance(answer, Continue)
    assert not answer.facts.get("foreign_commits")
    assert answer.facts["pushed_sha"] == ""


@pytest.mark.parametrize("there", ["", FOREIGN])
def test_work_that_is_done_again_because_its_branch_moved_may_come_out_the_same(there: str) -> None:
    answer = landing.after_push(a_task(TaskState.PUBLISHING), Push(PushKind.MOVED, there))
    assert isinstance(answer, Continue)
    run = a_run(2, round=3)
    again = after_work(a_task(**answer.facts), run, work(run, tree_sha="tree"))
    assert isinstance(again, Continue)


def test_an_opened_pull_request_is_followed_from_now_on() -> None:
    task = a_task(TaskState.PUBLISHING, pull_number=None, pushed_sha="")
    answer = landing.after_open(task, Opened(OpenKind.OPENED, a_pull()))
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.PUBLISHED
    followed = {"pull_number": 3, "pull_url": "http://forge/3", "pushed_sha": HEAD}
    assert followed.items() <= answer.facts.items()


def test_a_base_that_contains_the_work_ends_the_task_without_changes() -> None:
    answer = landing.after_open(a_task(TaskState.PUBLISHING), Opened(OpenKind.EMPTY))
    assert isinstance(answer, Done)
    assert answer.event == TaskEvent.NOTHING_CHANGED


def test_a_pull_request_that_still_shows_an_older_commit_is_waited_for() -> None:
    """The forge lags behind a push; taken at its word, our own earlier commit would pass for somebody's."""
    answer = landing.after_open(a_task(TaskState.PUBLISHING), Opened(OpenKind.FOUND, a_pull(head_sha=OLD)))
    assert isinstance(answer, Wait)


# Following the pull request.


def test_a_proven_pull_request_is_merged_when_the_plan_says_so() -> None:
    assert landing.after_look(a_task(TaskState.IN_REVIEW), a_pull()) is None


@pytest.mark.parametrize(
    "facts",
    [
        {"merge": "by-hand"},
        {"proven_sha": ""},
        {"proven_sha": OLD},
        {"merge": "by-hand", "approved_sha": OLD},
    ],
    ids=["by hand", "not proven", "another commit proven", "another commit approved"],
)
def test_an_open_pull_request_that_may_not_be_merged_yet_waits_for_a_change(facts: dict[str, Any]) -> None:
    assert landing.after_look(a_task(TaskState.IN_REVIEW, **facts), a_pull()) == Wait()


def test_a_persons_approval_of_exactly_this_commit_merges_it() -> None:
    task = a_task(TaskState.IN_REVIEW, merge="by-hand", approved_sha=HEAD)
    assert landing.after_look(task, a_pull()) is None


def test_a_commit_that_somebody_pushed_is_kept_and_proven_anew() -> None:
    answer = landing.after_look(a_task(TaskState.IN_REVIEW), a_pull(head_sha=FOREIGN))
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.HEAD_MOVED
    taken = {"head_sha": FOREIGN, "pushed_sha": FOREIGN, "foreign_commits": True, "round": 3}
    assert taken.items() <= answer.facts.items()


def test_mergeability_that_the_forge_has_not_worked_out_is_looked_at_again() -> None:
    answer = landing.after_look(a_task(TaskState.IN_REVIEW), a_pull(mergeable=None))
    assert isinstance(answer, Wait)
    assert answer.seconds


def test_mergeability_is_not_asked_for_while_only_a_person_may_merge() -> None:
    task = a_task(TaskState.IN_REVIEW, merge="by-hand")
    assert landing.after_look(task, a_pull(mergeable=None)) == Wait()


def test_a_conflict_is_worked_on_again_from_the_base() -> None:
    answer = landing.after_look(a_task(TaskState.IN_REVIEW), a_pull(mergeable=False))
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.CONFLICTED
    assert answer.facts["fresh_start"] is True
    assert answer.facts["round"] == 3


def test_a_conflict_with_somebodys_commits_on_the_branch_asks_a_person_and_throws_nothing_away() -> None:
    answer = landing.after_look(a_task(TaskState.IN_REVIEW, foreign_commits=True), a_pull(mergeable=False))
    assert isinstance(answer, Pause)
    assert (answer.kind, answer.resume_at) == (QuestionKind.NOT_MERGEABLE, TaskState.IN_REVIEW)
    assert "fresh_start" not in answer.facts


def test_a_merge_of_ours_ends_the_task_as_proven() -> None:
    answer = landing.after_merge(a_task(TaskState.IN_REVIEW), a_pull(), Merge(MergeKind.MERGED, "e" * 40))
    assert isinstance(answer, Done)
    assert answer.event == TaskEvent.MERGED
    assert answer.facts["merged_sha"] == "e" * 40
    assert answer.facts["proof"] == PROVEN


def test_a_merge_that_a_newer_commit_prevented_is_looked_at_again() -> None:
    answer = landing.after_merge(a_task(TaskState.IN_REVIEW), a_pull(), Merge(MergeKind.HEAD_MOVED))
    assert isinstance(answer, Wait)
    assert answer.seconds


@pytest.mark.parametrize(("kind", "by"), [(MergeKind.BLOCKED, Actor.FORGE), (MergeKind.UNPROVEN, Actor.WORKER)])
def test_a_merge_that_is_not_allowed_says_why_and_by_whom_and_then_waits(kind: MergeKind, by: Actor) -> None:
    blocked = Merge(kind, reason="2 reviews are required")
    answer = landing.after_merge(a_task(TaskState.IN_REVIEW), a_pull(), blocked)
    assert isinstance(answer, Continue)
    assert (answer.event, answer.facts["reason"], answer.by) == (TaskEvent.BLOCKED, "2 reviews are required", by)
    again = landing.after_merge(a_task(TaskState.IN_REVIEW, **answer.facts), a_pull(), blocked)
    assert isinstance(again, Wait)
    assert again.seconds


# The forge's fact.


@pytest.mark.parametrize("state", [state for state in TaskState if state is not TaskState.MERGED])
def test_a_merge_moves_the_task_wherever_it_stands(state: TaskState) -> None:
    answer = landing.forge_fact(a_task(state), a_pull(open=False, merged=True, merged_sha="e" * 40))
    assert isinstance(answer, Done)
    assert answer.event == TaskEvent.MERGED


def test_a_merge_is_told_once() -> None:
    assert landing.forge_fact(a_task(TaskState.MERGED), a_pull(open=False, merged=True, merged_sha="e" * 40)) is None


def test_a_merge_by_hand_of_a_commit_that_was_not_proven_is_marked_unproven() -> None:
    merged = a_pull(open=False, merged=True, merged_sha="e" * 40, head_sha=FOREIGN)
    answer = landing.forge_fact(a_task(TaskState.IN_REVIEW), merged)
    assert answer is not None
    assert isinstance(answer, Done)
    assert answer.facts["proof"] == UNPROVEN


def test_our_merge_and_the_webhook_that_tells_of_it_are_one_fact_under_one_key() -> None:
    task = a_task(TaskState.IN_REVIEW)
    ours = landing.after_merge(task, a_pull(), Merge(MergeKind.MERGED, "e" * 40))
    told = landing.forge_fact(task, a_pull(open=False, merged=True, merged_sha="e" * 40, merged_by="watchbill"))
    assert isinstance(ours, Done)
    assert isinstance(told, Done)
    assert (ours.key, ours.event, ours.facts) == (told.key, told.event, told.facts)


@pytest.mark.parametrize("state", [state for state in TaskState if state not in ENDED])
def test_a_pull_request_closed_by_somebody_ends_a_task_that_lives(state: TaskState) -> None:
    answer = landing.forge_fact(a_task(state), a_pull(open=False, closed_at="2026-03-01T12:00:00Z"))
    assert isinstance(answer, Done)
    assert answer.event == TaskEvent.CLOSED


@pytest.mark.parametrize("state", ENDED)
def test_a_closed_pull_request_says_nothing_new_of_a_task_that_ended(state: TaskState) -> None:
    assert landing.forge_fact(a_task(state), a_pull(open=False, closed_at="2026-03-01T12:00:00Z")) is None


def test_a_pull_request_that_is_closed_twice_is_two_facts() -> None:
    first, second = (
        landing.forge_fact(a_task(TaskState.IN_REVIEW), a_pull(open=False, closed_at=f"2026-03-0{day}T12:00:00Z"))
        for day in (1, 2)
    )
    assert isinstance(first, Done)
    assert isinstance(second, Done)
    assert first.key != second.key


def test_a_reopened_pull_request_brings_a_closed_task_back_to_review() -> None:
    answer = landing.forge_fact(a_task(TaskState.CLOSED), a_pull())
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.REOPENED


def test_a_pull_request_reopened_at_our_own_commit_is_not_taken_for_somebodys() -> None:
    """It was closed after we had pushed, and before that was written down."""
    closed = a_task(TaskState.CLOSED, pushed_sha="")
    reopened = landing.forge_fact(closed, a_pull())
    assert isinstance(reopened, Continue)
    in_review = replace(closed, state=TaskState.IN_REVIEW, **reopened.facts)
    assert landing.after_look(in_review, a_pull()) is None


def test_a_pull_request_reopened_below_work_that_was_never_pushed_is_proven_at_its_own_commit() -> None:
    """Else nothing is proven of what the forge has, nothing is pushed, and the task waits for ever."""
    task = a_task(TaskState.IN_REVIEW, head_sha="d" * 40, proven_sha="d" * 40, pushed_sha=HEAD)
    answer = landing.after_look(task, a_pull())
    assert isinstance(answer, Continue)
    assert answer.event == TaskEvent.HEAD_MOVED
    assert answer.facts["head_sha"] == HEAD
    assert answer.facts["foreign_commits"] is False


@pytest.mark.parametrize("state", [state for state in TaskState if state is not TaskState.CLOSED])
def test_an_open_pull_request_moves_no_task_that_was_not_closed(state: TaskState) -> None:
    assert landing.forge_fact(a_task(state), a_pull()) is None


@pytest.mark.parametrize(
    ("state", "pull"),
    [
        (TaskState.PUBLISHING, a_pull(open=False, merged=True, merged_sha="e" * 40)),
        (TaskState.PUBLISHING, a_pull(open=False, closed_at="2026-03-01T12:00:00Z")),
        (TaskState.CLOSED, a_pull()),
    ],
    ids=["merged", "closed", "reopened"],
)
def test_a_fact_about_a_pull_request_says_which_one(state: TaskState, pull: PullRequest) -> None:
    """It may have been found by its branch, before the task ever knew its number."""
    answer = landing.forge_fact(a_task(state, pull_number=None), pull)
    assert isinstance(answer, Continue)
    assert answer.facts["pull_number"] == 3
    assert answer.facts["pull_url"] == "http://forge/3"


@pytest.mark.parametrize(
    "answer",
    [
        judge.after_check(a_task(TaskState.CHECKING), a_check(exit_code=1), an_end(a_check(exit_code=1))),
        landing.after_push(a_task(TaskState.PUBLISHING), Push(PushKind.MOVED, FOREIGN)),
        landing.after_look(a_task(TaskState.IN_REVIEW), a_pull(mergeable=False)),
        landing.after_look(a_task(TaskState.IN_REVIEW), a_pull(head_sha=FOREIGN)),
        judge.after_work_lost(a_task(TaskState.CHECKING)),
    ],
    ids=["checks failed", "branch moved", "conflicted", "head moved", "work lost"],
)
def test_every_way_back_begins_a_new_round_so_that_its_keys_are_new(answer: Any) -> None:
    assert answer.facts["round"] == 3
    assert ":2:" in answer.key


def test_what_was_proven_by_rules_that_the_plan_has_no_more_goes_back_to_work() -> None:
    task = a_task(TaskState.IN_REVIEW, judged=3, proven_by=2)
    answer = landing.after_look(task, a_pull())
    assert isinstance(answer, Continue)
    assert (answer.event, answer.facts["proven_sha"]) == (TaskEvent.OUTDATED, "")
    assert "its rules are now" in answer.facts["note"]
    assert landing.after_merge(task, a_pull(), Merge(MergeKind.MERGED, "m" * 40)).facts["proof"] == UNPROVEN
    # By hand, and by a person's own word on this very commit, it is merged all the same.
    assert landing.after_look(replace(task, merge="by-hand"), a_pull()) == Wait()
    assert landing.after_look(replace(task, approved_sha=HEAD), a_pull()) is None


def test_a_proof_names_the_rules_that_it_is_by() -> None:
    proven = judge.after_checks(a_task(TaskState.CHECKING, judged=3))
    assert isinstance(proven, Continue)
    assert proven.facts == {"proven_sha": HEAD, "proven_by": 3}
    assert landing.after_look(a_task(TaskState.IN_REVIEW, judged=3, proven_by=3), a_pull()) is None
