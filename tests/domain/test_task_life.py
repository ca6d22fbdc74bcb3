"""Two tasks of a plan live through whatever the world may do, and always come to an end.

The world is small: a remote with branches and pull requests, an agent, a person, and a graph of rows
that only moves change. A turn does what the task's workflow does, and may be cut off or overtaken
between any two of its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from domain import judge
from domain.decision import Decision, DecisionKind, PlanFacts, ask, decide_plan, decide_task, reopen_plan
from domain.flow import Answer, Pause, Wait, moves_of, run_to_continue
from domain.identity import digest, run_id
from domain.lifecycle import Lifecycle, Move
from domain.plan import PLAN, PlanEvent, PlanState
from domain.pull import Merge, MergeKind, Opened, OpenKind, PullRequest, Push, PushKind
from domain.reconcile import Begin, Block, Grant, PlanStatus, Room, TaskStatus, reconcile
from domain.run import RUN, Collected, EndKind, Role, RunEnd, RunEvent, RunFacts, RunState
from domain.task import (
    ENDED,
    QUESTION,
    SLOTTED,
    SUCCEEDED,
    TASK,
    Question,
    QuestionKind,
    QuestionState,
    TaskEvent,
    TaskFacts,
    TaskState,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAN_ID, TASKS, ATTEMPTS, SLOTS = "demo-12345678", ("demo-12345678-1", "demo-12345678-2"), 3, 1
LIFECYCLES: dict[str, Lifecycle] = {"plan": PLAN, "task": TASK, "question": QUESTION, "run": RUN}
ENDING = {
    RunState.FINISHED: RunEvent.FINISH,
    RunState.CRASHED: RunEvent.CRASH,
    RunState.STOPPED: RunEvent.STOP,
    RunState.LOST: RunEvent.LOSE,
    RunState.REFUSED: RunEvent.REFUSE,
}


class CutOff(Exception):
    """The workflow is gone in the middle of a turn; another will begin from the facts."""


class Overtaken(Exception):
    """The table refuses a move, or its key has been spent on something else."""


class Graph:
    """Rows that only moves change: all moves of a group or none, and each key once."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.made: dict[str, Move] = {}
        self.seq = 0

    def make(self, *moves: Move) -> bool:
        """Whether the moves were new; Overtaken when they are refused, with nothing changed."""
        states = {move.subject: self.rows.get(move.subject, {}).get("state") for move in moves}
        for move in moves:
            earlier = self.made.get(move.key)
            if earlier is not None:
                if self._said(earlier) != self._said(move):
                    raise Overtaken(f"{move.key} was spent on {earlier}")
                continue
            if not LIFECYCLES[move.kind].allows(states[move.subject], move.event):
                raise Overtaken(f"{move.kind} that is {states[move.subject]} cannot {move.event}")
            states[move.subject] = LIFECYCLES[move.kind].after(states[move.subject], move.event)
        fresh = [move for move in moves if move.key not in self.made]
        for move in fresh:
            self.seq += 1
            state = LIFECYCLES[move.kind].after(self.rows.get(move.subject, {}).get("state"), move.event)
            self.made[move.key] = move
            row = self.rows.setdefault(move.subject, {})
            row.update(move.facts, state=state, seq=self.seq, kind=move.kind)
        return bool(fresh) and fresh[0] is moves[0]

    @staticmethod
    def _said(move: Move) -> tuple[str, str, str, dict[str, Any]]:
        return move.kind, move.subject, move.event, dict(move.facts)

    def plan(self) -> PlanFacts:
        row = self.rows[PLAN_ID]
        return PlanFacts(
            id=PLAN_ID, owner="ann", slug="demo", title="Demo", state=PlanState(row["state"]), seq=row["seq"],
            paused=row.get("paused", False), repository="acme/shop", base="main", merge="when-proven",
            concurrency=SLOTS, revision=1, digest="d" * 64, attempts=ATTEMPTS,
        )  # fmt: skip

    def task(self, task: str) -> TaskFacts:
        row, runs = self.rows[task], self.runs(task)
        facts = {name: row[name] for name in TaskFacts.__dataclass_fields__ if name in row}
        return TaskFacts(
            **{
                **facts,
                "state": TaskState(row["state"]),
                "question": next((q for q in self.questions(task) if q.state is QuestionState.OPEN), None),
                "runs": tuple(run for run in runs if run.live or run.round == row["round"]),
                "runs_begun": sum(run.role is Role.AUTHOR for run in runs),
                "epoch": len(runs),
            }
        )

    def runs(self, task: str) -> list[RunFacts]:
        rows = [row for row in self.rows.values() if row["kind"] == "run" and row["task_id"] == task]
        named = [{name: row[name] for name in RunFacts.__dataclass_fields__ if name in row} for row in rows]
        return [RunFacts(**{**facts, "state": RunState(facts["state"])}) for facts in named]

    def questions(self, task: str) -> list[Question]:
        rows = [(id, row) for id, row in self.rows.items() if row.get("task_id") == task]
        return [
            Question(id, task, row["kind_of"], row["text"], row["resume_at"], row["state"])
            for id, row in rows
            if row["kind"] == "question"
        ]


@dataclass
class Remote:
    """A branch and its one pull request on the forge. `parents` is everybody's history."""

    parents: dict[str, str]
    branch: str = ""
    number: int | None = None
    open: bool = False
    merged: bool = False
    conflict: bool = False
    closed: int = 0
    opened: int = 0
    ended_at: str = ""

    def contains(self, sha: str, other: str) -> bool:
        while sha and sha != other:
            sha = self.parents.get(sha, "")
        return sha == other

    def pull(self) -> PullRequest:
        assert self.number is not None
        return PullRequest(
            self.number, f"http://forge/{self.number}", self.open, self.merged, "branch", self.branch, "main",
            merged_sha="m" * 40 if self.merged else "", mergeable=not self.conflict,
            closed_at="" if self.open else f"2026-03-01T12:00:{self.closed:02}Z",
        )  # fmt: skip


@dataclass
class Chooser:
    """What the world does where it has a choice. This one means well: left alone, it lets every task succeed."""

    fresh: int = 0
    pick: Callable[[str, list[Any]], Any] = field(default=lambda _, choices: choices[0])

    def __call__(self, what: str, *choices: Any) -> Any:
        return self.pick(what, list(choices))

    def tree(self, last: str) -> str:
        self.fresh += 1
        return str(self("tree", f"tree {self.fresh}", last or "base", "base"))


class World:
    """Everything outside of the rules: the graph, the remotes, and one turn of a task's workflow."""

    def __init__(self) -> None:
        self.graph, self.slots = Graph(), set[str]()
        self.base, self.foreign, self.pushes = "base-0", 0, 0
        self.parents: dict[str, str] = {}
        self.remotes = {task: Remote(self.parents) for task in TASKS}
        self.left: dict[str, Collected] = {}
        self.granted = dict.fromkeys(TASKS, ATTEMPTS)
        self.waived: set[str] = set()
        plan = Move("plan", PLAN_ID, PlanEvent.PUBLISH, "publish:1", PLAN_ID, "published", NOW)
        self.graph.make(plan, replace(plan, event=PlanEvent.CONFIRM, key="confirm:1"))
        for ordinal, task in enumerate(TASKS, start=1):
            facts = {
                "id": task, "plan_id": PLAN_ID, "owner": "ann", "ordinal": ordinal, "title": "A box", "body": "",
                "repository": "acme/shop", "base": "main", "merge": "when-proven", "runtime": "shell",
                "timeout": 60, "checks": ("make test",), "attempts": ATTEMPTS, "allowed_runs": ATTEMPTS,
                "round": 1, "after_waived": False, "pull_number": None,
            }  # fmt: skip
            self.graph.make(Move("task", task, TaskEvent.CONFIRM, f"task:{ordinal}", PLAN_ID, "confirmed", NOW, facts))

    # The graph.

    def make(self, *moves: Move) -> bool:
        fresh = self.graph.make(*(_question_kind_apart(move) for move in moves))
        self.slots = {task for task in self.slots if self.graph.task(task).state in (*SLOTTED, TaskState.PENDING)}
        return fresh

    def decide(self, decision: Decision, task: str, question: Question | None) -> bool:
        """Carry a decision out; whether anything moved."""
        facts = self.graph.task(task)
        ruling = (
            decide_plan(decision, self.graph.plan(), tuple(map(self.graph.task, TASKS)), NOW)
            if decision.ordinal is None
            else decide_task(decision, self.graph.plan(), facts, question or facts.question, NOW)
        )
        if not isinstance(ruling, tuple):
            return False
        try:
            self.make(*ruling)
        except Overtaken:
            return False
        answered = any(move.event == "answer" for move in ruling)
        if answered or decision.kind is DecisionKind.RETRY:
            self.granted[task] = facts.runs_begun + ATTEMPTS
        if answered and question is not None and question.kind is QuestionKind.PREDECESSOR:
            self.waived.add(task)
        return True

    def beat(self) -> None:
        """Reconcile, grant and begin, as the owner's heartbeat does."""
        plan = self.graph.plan()
        if plan.state not in (PlanState.CONFIRMED, PlanState.IN_PROGRESS):
            return
        statuses = tuple(
            TaskStatus(
                task, n, self.graph.task(task).state, task in self.slots, (1,) if n == 2 else (),
                self.graph.rows[task]["after_waived"],
            )
            for n, task in enumerate(TASKS, start=1)
        )  # fmt: skip
        room = Room(SLOTS - len(self.slots))
        for action in reconcile([PlanStatus(PLAN_ID, SLOTS, plan.paused, statuses)], room):
            task = self.graph.task(action.task_id)
            match action:
                case Block():
                    kind, why = QuestionKind.PREDECESSOR, "its predecessor ended"
                    self.make(*ask(task, kind, "Begin all the same?", TaskState.PENDING, why, NOW))
                case Grant():
                    self.slots.add(task.id)
                case Begin():
                    self.slots.add(task.id)
                    key = f"begin:{task.id}:{task.round}"
                    moves = [Move("task", task.id, TaskEvent.BEGIN, key, PLAN_ID, "granted", NOW)]
                    if self.graph.plan().state is PlanState.CONFIRMED:
                        moves.append(Move("plan", PLAN_ID, PlanEvent.BEGIN, "begin", PLAN_ID, "begun", NOW))
                    self.make(*moves)

    def complete(self) -> None:
        """End the plan when every task has ended, as the plan's workflow does at each look."""
        plan = self.graph.plan()
        over = all(self.graph.task(task).ended for task in TASKS)
        if over and plan.state in (PlanState.CONFIRMED, PlanState.IN_PROGRESS):
            self.make(Move("plan", PLAN_ID, PlanEvent.COMPLETE, f"complete:{plan.seq}", PLAN_ID, "over", NOW))

    def follow(self, task: str) -> None:
        """Let the forge's fact move a task that nobody watches."""
        facts, remote = self.graph.task(task), self.remotes[task]
        answer = judge.forge_fact(facts, remote.pull()) if remote.number else None
        if answer is not None:
            lives = answer.event is TaskEvent.REOPENED
            plan = reopen_plan(self.graph.plan(), answer.cause, NOW) if lives else ()
            assert self.make(*moves_of(facts, answer, NOW), *plan), "the forge's fact came to nothing"

    # One turn of a task's workflow. `between` may cut it off, or let somebody act, between its steps.

    def turn(self, task: str, choose: Chooser, between: Callable[[], None]) -> None:
        facts = self.graph.task(task)
        if facts.ended or facts.state is TaskState.PENDING or (facts.state in SLOTTED and task not in self.slots):
            return
        step = {
            TaskState.WORKING: self._work,
            TaskState.CHECKING: self._check,
            TaskState.PUBLISHING: self._publish,
            TaskState.IN_REVIEW: self._land,
        }.get(facts.state)
        if step is None:
            return
        answer = step(facts, choose, between)
        if choose("activity", "works", "fails") == "fails":
            answer = Pause(QuestionKind.CANNOT_GO_ON, "the repository is gone", facts.state)
        between()
        moves = moves_of(facts, answer, NOW)
        assert moves == moves_of(facts, answer, NOW), "the same answer makes the same moves"
        if not moves:
            return
        if self.graph.rows[task]["seq"] == facts.seq:
            # Else somebody was first, and what was judged is not how things stand: it is looked at again.
            assert self.make(*moves), f"{answer} moves nothing, so the task would never go on"

    def _run(
        self, facts: TaskFacts, role: Role, ordinal: int, choose: Chooser, between: Callable[[], None]
    ) -> tuple[RunFacts, RunEnd] | Answer:
        run = run_to_continue(facts, role, ordinal)
        if run is None:
            exhausted = judge.before_run(facts) if role is Role.AUTHOR else None
            if exhausted is not None:
                return exhausted
            begun = self.graph.runs(facts.id)
            number = sum(other.role is role for other in begun) + 1
            identity = run_id(facts.id, role, number)
            row = {
                "id": identity, "plan_id": PLAN_ID, "task_id": facts.id, "role": role, "number": number,
                "round": facts.round, "epoch": len(begun) + 1, "runtime": "shell", "host": "here",
                "ordinal": ordinal, "command": "make test" if ordinal else "",
            }  # fmt: skip
            assert not any(other.live for other in begun), "two runs of a task would live at once"
            self.make(Move("run", identity, RunEvent.START, f"start:{identity}", PLAN_ID, "begins", NOW, row))
            between()
        else:
            identity = run.id
        row = self.graph.rows[identity]
        if RunState(row["state"]) in (RunState.STARTING, RunState.RUNNING):
            self._end(identity, role, facts, choose)
            between()
        run = next(other for other in self.graph.runs(facts.id) if other.id == identity)
        return run, RunEnd(run.id, run.state, EndKind.EXITED, run.exit_code, run.reason, "last words")

    def _end(self, identity: str, role: Role, facts: TaskFacts, choose: Chooser) -> None:
        """The run's process ends, in one way or another; it is stopped when its task has gone elsewhere."""
        now = self.graph.task(facts.id)
        step = TaskState.WORKING if role is Role.AUTHOR else TaskState.CHECKING
        wanted = now.state is step and now.round == self.graph.rows[identity]["round"]
        state = choose("end", *ENDING) if wanted else RunState.STOPPED
        code = choose("exit", 0, 1) if role is Role.CHECK and state is RunState.FINISHED else 0
        reason = "" if state is RunState.FINISHED else f"it {state}"
        result = {"exit_code": code, "reason": reason}
        self.make(Move("run", identity, ENDING[state], f"end:{identity}", PLAN_ID, "ends", NOW, result))

    def _work(self, facts: TaskFacts, choose: Chooser, between: Callable[[], None]) -> Answer:
        began = self._run(facts, Role.AUTHOR, 0, choose, between)
        if not isinstance(began, tuple):
            return began
        run, end = began
        if run.state is RunState.LOST:
            return judge.after_work_lost(facts)
        work = self.left.get(run.id)
        if work is None:
            work = self.left[run.id] = self._leave(run, facts, choose)
        found = {"head_sha": work.head_sha}
        self.make(Move("run", run.id, RunEvent.COLLECT, f"collect:{run.id}", PLAN_ID, "kept", NOW, found))
        between()
        return judge.after_work(facts, run, end, work)

    def _leave(self, run: RunFacts, facts: TaskFacts, choose: Chooser) -> Collected:
        """What an agent leaves: a commit on top of where it began, or nothing new."""
        remote = self.remotes[facts.id]
        start = self.base if facts.fresh_start else facts.head_sha or self.base
        ours = remote.branch == facts.pushed_sha and not facts.foreign_commits
        if remote.branch and not facts.fresh_start and not ours and not remote.contains(start, remote.branch):
            start = remote.branch
        tree = choose.tree(facts.tree_sha)
        head = digest(f"{start} {tree} {run.id}")[:40]
        self.parents[head] = start
        strays = choose("strays", (), ("secrets.txt",)) if run.state is RunState.FINISHED else ()
        return Collected(run.id, self.base, start, head, tree, int(tree != "base"), strays, len(strays))

    def _check(self, facts: TaskFacts, choose: Chooser, between: Callable[[], None]) -> Answer:
        began = self._run(facts, Role.CHECK, 1, choose, between)
        if not isinstance(began, tuple):
            return began
        run, end = began
        if run.state is RunState.LOST and choose("commit", "is elsewhere too", "is lost") == "is lost":
            return judge.after_work_lost(facts)
        return judge.after_check(facts, run, end) or judge.after_checks(facts)

    def _publish(self, facts: TaskFacts, choose: Chooser, between: Callable[[], None]) -> Answer:
        remote = self.remotes[facts.id]
        if facts.pull_number is not None:
            ended = judge.forge_fact(facts, remote.pull())
            if ended is not None:
                return ended
        assert facts.head_sha, "there is no commit to publish"
        if remote.branch in (facts.pushed_sha, facts.head_sha):
            lost = remote.branch and facts.foreign_commits and not remote.contains(facts.head_sha, remote.branch)
            assert not lost, "somebody's commits are overwritten"
            remote.branch, push = facts.head_sha, Push(PushKind.PUSHED, facts.head_sha)
        else:
            push = Push(PushKind.MOVED, remote.branch)
        between()
        moved = judge.after_push(facts, push)
        if moved is not None:
            return moved
        # The port: found also when it was merged or closed with the branch as it is now.
        there = remote.open or (remote.number is not None and remote.ended_at == remote.branch)
        kind = OpenKind.FOUND if there else choose("open", OpenKind.OPENED, OpenKind.EMPTY)
        if kind is OpenKind.EMPTY:
            return judge.after_open(facts, Opened(kind))
        if kind is OpenKind.OPENED:
            remote.number, remote.open, remote.opened = facts.ordinal, True, remote.opened + 1
        remote.conflict = remote.conflict and not remote.contains(remote.branch, self.base)
        between()
        return judge.after_open(facts, Opened(kind, remote.pull()))

    def _land(self, facts: TaskFacts, choose: Chooser, between: Callable[[], None]) -> Answer:
        remote = self.remotes[facts.id]
        pull = remote.pull()
        answer = judge.after_look(facts, pull)
        if answer is not None:
            return answer
        assert pull.head_sha in (facts.proven_sha, facts.approved_sha), "what nobody proved or approved is merged"
        between()
        kind = MergeKind.HEAD_MOVED if remote.branch != pull.head_sha else choose("merge", *MergeKind)
        if kind is MergeKind.MERGED and remote.open:
            remote.open, remote.merged = False, True
        between()
        return judge.after_merge(facts, pull, Merge(kind, "m" * 40, "2 reviews are required"))


def _question_kind_apart(move: Move) -> Move:
    """A question's kind under another name, because a row's `kind` is what kind of thing it is."""
    if move.kind != "question" or "kind" not in move.facts:
        return move
    return replace(move, facts={**{k: v for k, v in move.facts.items() if k != "kind"}, "kind_of": move.facts["kind"]})


task_ids = st.sampled_from(TASKS)
ONE_TASK = [DecisionKind.RESUME, DecisionKind.APPROVE, DecisionKind.ANSWER, DecisionKind.PAUSE, DecisionKind.RETRY]
PLAN_GATES = [DecisionKind.RESUME, DecisionKind.RESUME, DecisionKind.PAUSE]
FORGE_ACTS = ["push", "push to both", "merge", "close", "reopen", "conflict"]


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
        choose = Chooser(
            self.world.graph.seq, lambda _, choices: choices[0] if chance.random() < 0.8 else chance.choice(choices)
        )
        for _ in range(20):
            task = chance.choice(TASKS)

            def between(task: str = task) -> None:
                match chance.choices(["nothing", "cut off", "pause", "cancel", "follow", "act"], [80, 6, 3, 1, 4, 6])[0]:
                    case "cut off":
                        raise CutOff
                    case "pause":
                        self.a_person_decides(task, DecisionKind.PAUSE)
                    case "cancel":
                        self.a_person_decides(task, DecisionKind.CANCEL)
                    case "follow":
                        self.world.follow(task)
                    case "act":
                        self.somebody_acts_on_the_forge(task, chance.choice(FORGE_ACTS))

            self.world.beat()
            if chance.random() < 0.3:
                self.a_person_decides(task, DecisionKind.RESUME)
            with suppress(CutOff):
                self.world.turn(task, choose, between)
            self.every_rule_holds()

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
            assert len(moved) <= self.foreign_pushes[task], task

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
    max_examples=60,
    stateful_step_count=15,
    deadline=None,
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
    for task in map(world.graph.task, TASKS):
        assert (task.state, task.proof, task.runs_begun, task.round) == (TaskState.MERGED, "proven", 1, 1)
