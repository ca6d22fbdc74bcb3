"""Two tasks of a plan live through whatever the world may do, and always come to an end."""

from __future__ import annotations

from contextlib import suppress
from random import Random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from domain.decision import Decision, DecisionKind
from domain.identity import digest
from domain.plan import PlanState
from domain.task import ENDED, SUCCEEDED, Question, QuestionKind, QuestionState, TaskEvent, TaskState
from tests.domain.world import PLAN_ID, SLOTS, TASKS, Chooser, CutOff, World

task_ids = st.sampled_from(TASKS)
ONE_TASK = [
    DecisionKind.RESUME,
    DecisionKind.APPROVE,
    DecisionKind.ANSWER,
    DecisionKind.PAUSE,
    DecisionKind.RETRY,
]
PLAN_GATES = [DecisionKind.RESUME, DecisionKind.RESUME, DecisionKind.PAUSE]
FORGE_ACTS = [
    "push",
    "push",
    "push to both",
    "push to both",
    "merge",
    "close",
    "reopen",
    "conflict",
    "conflict",
]


class TaskLives(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.merged: set[str] = set()
        self.foreign_pushes = dict.fromkeys(TASKS, 0)

    @rule(task=task_ids)
    def the_task_goes_on_undisturbed(self, task: str) -> None:
        self.world.beat()
        self.world.turn(task, Chooser(self.world.graph.seq), lambda: None)

    @rule(seed=st.integers(0, 2**32))
    def the_tasks_go_on_in_a_world_that_may_do_anything(self, seed: int) -> None:
        """A seed, rather than a drawn choice at every step: what is interesting lies many turns deep."""
        chance = Random(seed)
        kindness, unrest = chance.choice([0.95, 0.8, 0.6]), chance.choice([0.02, 0.1, 0.2])
        choose = Chooser(
            self.world.graph.seq,
            lambda _, choices: choices[0] if chance.random() < kindness else chance.choice(choices),
        )
        for _ in range(20):
            task = chance.choice(TASKS)

            def between(task: str = task) -> None:
                if chance.random() < unrest:
                    if chance.random() < 0.3:
                        raise CutOff
                    self.something_happens(task, chance)

            self.world.beat()
            between_turns = task if chance.random() < 0.7 else chance.choice(TASKS)
            if chance.random() < 0.3:
                self.a_person_decides(between_turns, DecisionKind.RESUME)
            with suppress(CutOff):
                between(between_turns)
                self.world.turn(task, choose, between)
            self.every_rule_holds()

    def something_happens(self, task: str, chance: Random) -> None:
        match chance.choices(["pause", "cancel", "decide", "hear of it", "act"], [4, 1, 4, 4, 10])[0]:
            case "pause":
                self.a_person_decides(task, DecisionKind.PAUSE)
            case "cancel":
                self.a_person_decides(task, DecisionKind.CANCEL)
            case "decide":
                self.a_person_decides(task, chance.choice(ONE_TASK))
            case "hear of it":
                self.world.follow(task)
            case "act":
                self.somebody_acts_on_the_forge(task, chance.choice(FORGE_ACTS))

    @rule()
    def the_plan_looks(self) -> None:
        self.world.complete()

    @rule(task=task_ids, kind=st.sampled_from(ONE_TASK))
    def a_person_decides(self, task: str, kind: DecisionKind) -> None:
        facts = self.world.graph.task(task)
        names = facts.question.id if facts.question else facts.head_sha
        decision = Decision(kind, PLAN_ID, facts.ordinal, names, "go on", "ann")
        self.world.decide(decision, task, facts.question)

    @rule(task=task_ids, kind=st.sampled_from(PLAN_GATES), data=st.data())
    def a_person_decides_on_the_plan_or_clicks_once_more_on_an_old_question(
        self, task: str, kind: DecisionKind, data: st.DataObject
    ) -> None:
        self.world.decide(Decision(kind, PLAN_ID), task, None)
        old = [q for q in self.world.graph.questions(task) if q.state is not QuestionState.OPEN]
        if old:
            question = data.draw(st.sampled_from(old))
            decision = Decision(DecisionKind.RESUME, PLAN_ID, int(task[-1]), question.id)
            assert not self.world.decide(decision, task, question), "an old click answered something"

    @rule(task=task_ids, act=st.sampled_from(FORGE_ACTS), told=st.booleans())
    def somebody_acts_on_the_forge_and_a_webhook_may_tell(self, task: str, act: str, told: bool) -> None:
        self.somebody_acts_on_the_forge(task, act)
        if told:
            self.world.follow(task)

    def somebody_acts_on_the_forge(self, task: str, act: str) -> None:
        remote = self.world.remotes[task]
        match act:
            case "push" | "push to both" if remote.branch and not remote.merged:
                self.world.foreign += 1
                sha = digest(f"foreign {self.world.foreign}")[:40]
                self.world.parents[sha] = remote.branch
                both = act == "push to both" and all(r.branch and not r.merged for r in self.world.remotes.values())
                for pushed_to in TASKS if both else [task]:
                    self.world.remotes[pushed_to].branch = sha
                    self.foreign_pushes[pushed_to] += 1
            case "merge" if remote.open:
                remote.open, remote.merged, remote.ended_at = False, True, remote.branch
            case "close" if remote.open:
                remote.open, remote.closed, remote.ended_at = False, remote.closed + 1, remote.branch
            case "reopen" if remote.number and not remote.merged:
                remote.open = True
            case "conflict":
                self.world.base = f"base-{int(self.world.base[5:]) + 1}"
                for each in self.world.remotes.values():
                    each.conflict = True

    @rule(task=task_ids)
    def a_slot_is_given_back_because_nobody_renewed_it(self, task: str) -> None:
        self.world.slots.discard(task)

    @invariant()
    def every_rule_holds(self) -> None:
        self.a_merged_task_never_moves_again()
        self.no_more_runs_begin_than_a_person_has_allowed()
        self.a_paused_task_asks_one_question_and_no_other_asks_any()
        self.no_more_slots_are_held_than_there_are()
        self.a_task_has_one_pull_request()
        self.a_push_by_somebody_costs_one_round_at_most()
        self.the_second_task_begins_only_after_the_first_or_a_persons_word()
        self.a_plan_that_is_completed_has_no_task_that_lives()

    def a_merged_task_never_moves_again(self) -> None:
        assert all(self.world.graph.task(task).state is TaskState.MERGED for task in self.merged)
        self.merged = {task for task in TASKS if self.world.graph.task(task).state is TaskState.MERGED}

    def no_more_runs_begin_than_a_person_has_allowed(self) -> None:
        for task in TASKS:
            assert self.world.graph.task(task).runs_begun <= self.world.granted[task]

    def a_paused_task_asks_one_question_and_no_other_asks_any(self) -> None:
        for task in TASKS:
            open_questions = [q for q in self.world.graph.questions(task) if q.state is QuestionState.OPEN]
            assert len(open_questions) == (self.world.graph.task(task).state is TaskState.PAUSED)

    def no_more_slots_are_held_than_there_are(self) -> None:
        assert len(self.world.slots) <= SLOTS

    def a_task_has_one_pull_request(self) -> None:
        for task, remote in self.world.remotes.items():
            assert remote.opened <= 1 + remote.closed, task

    def a_push_by_somebody_costs_one_round_at_most(self) -> None:
        for task in TASKS:
            ours = [move for move in self.world.graph.made.values() if move.subject == task]
            moved = [move for move in ours if move.event in (TaskEvent.BRANCH_MOVED, TaskEvent.HEAD_MOVED)]
            # One that was closed before our push was written down may pass for somebody's once.
            assert len(moved) <= self.foreign_pushes[task] + self.world.remotes[task].closed, task

    def the_second_task_begins_only_after_the_first_or_a_persons_word(self) -> None:
        second = self.world.graph.task(TASKS[1])
        if second.runs and TASKS[1] not in self.world.waived:
            assert self.world.graph.task(TASKS[0]).state in SUCCEEDED

    def a_plan_that_is_completed_has_no_task_that_lives(self) -> None:
        if self.world.graph.plan().state in (PlanState.COMPLETED, PlanState.ARCHIVED):
            assert all(self.world.graph.task(task).state in ENDED for task in TASKS)

    def teardown(self) -> None:
        """From wherever it stands: when the world means well and a person answers, everything comes to an end."""
        world, choose = self.world, Chooser(10_000)
        for _ in range(60):
            world.decide(Decision(DecisionKind.RESUME, PLAN_ID), TASKS[0], None)
            world.beat()
            for task in TASKS:
                question = world.graph.task(task).question
                if question is not None:
                    self._mend(task, question)
                world.turn(task, choose, lambda: None)
                world.follow(task)
            world.complete()
            if world.graph.plan().state in (PlanState.COMPLETED, PlanState.ARCHIVED):
                return
        raise AssertionError([world.graph.task(task) for task in TASKS])

    def _mend(self, task: str, question: Question) -> None:
        """A person does what the question asks for, and resumes."""
        if question.kind is QuestionKind.NOT_MERGEABLE:
            remote = self.world.remotes[task]
            remote.conflict = False
            self.somebody_acts_on_the_forge(task, "push")
        self.world.decide(Decision(DecisionKind.RESUME, PLAN_ID, int(task[-1]), question.id), task, question)


TestTaskLives = TaskLives.TestCase
TestTaskLives.settings = settings(
    max_examples=25,
    stateful_step_count=12,
    # A seed does not shrink; the steps that are printed make the same failure again.
    phases=[Phase.reuse, Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_a_plan_in_a_world_that_means_well_is_merged_with_one_run_for_each_task() -> None:
    world, choose = World(), Chooser()
    for _ in range(20):
        world.beat()
        for task in TASKS:
            world.turn(task, choose, lambda: None)
        world.complete()
    assert world.graph.plan().state is PlanState.COMPLETED
    for facts in map(world.graph.task, TASKS):
        assert (facts.state, facts.proof, facts.runs_begun, facts.round) == (TaskState.MERGED, "proven", 1, 1)


@settings(max_examples=12, phases=[Phase.reuse, Phase.generate])
@given(st.integers(0, 2**32))
def test_a_long_life_in_a_world_that_may_do_anything_comes_to_an_end(seed: int) -> None:
    lives, chance = TaskLives(), Random(seed)
    for _ in range(6):
        lives.the_tasks_go_on_in_a_world_that_may_do_anything(seed=chance.getrandbits(32))
        lives.a_slot_is_given_back_because_nobody_renewed_it(task=chance.choice(TASKS))
        lives.the_plan_looks()
    lives.teardown()
