"""A small world for the rules to live in: a graph of rows, remotes with pull requests, an agent, a heartbeat.

Nothing here decides anything: it does what workflows, activities and the store do with what the rules
say. A turn of a task may be cut off or overtaken between any two of its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from domain import judge, landing
from domain.decision import Decision, DecisionKind, PlanFacts, ask, decide_plan, decide_task, reopen_plan
from domain.duties import Actor, why_not
from domain.flow import Answer, Pause, moves_of, run_to_continue
from domain.identity import digest, run_id
from domain.lifecycle import Lifecycle, Move
from domain.plan import PLAN, PlanEvent, PlanState
from domain.pull import Merge, MergeKind, Opened, OpenKind, PullRequest, Push, PushKind
from domain.reconcile import Begin, Block, Grant, PlanStatus, Room, TaskStatus, reconcile
from domain.run import RUN, Collected, EndKind, Role, RunEnd, RunEvent, RunFacts, RunState
from domain.task import (
    QUESTION,
    SLOTTED,
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
        self.of_task: dict[str, list[str]] = {}
        self.seq = 0

    def make(self, *moves: Move) -> bool:
        """Whether the moves were new; Overtaken when they are refused, with nothing changed."""
        states = {move.subject: self.rows.get(move.subject, {}).get("state") for move in moves}
        for move in moves:
            assert why_not(move.by, move.kind, move.event) == ""
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
            if move.subject not in self.rows and "task_id" in move.facts:
                self.of_task.setdefault(move.facts["task_id"], []).append(move.subject)
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
        rows = [row for row in map(self.rows.__getitem__, self.of_task.get(task, [])) if row["kind"] == "run"]
        named = [{name: row[name] for name in RunFacts.__dataclass_fields__ if name in row} for row in rows]
        return [RunFacts(**{**facts, "state": RunState(facts["state"])}) for facts in named]

    def questions(self, task: str) -> list[Question]:
        rows = [(id, self.rows[id]) for id in self.of_task.get(task, [])]
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
        plan = Move("plan", PLAN_ID, PlanEvent.PUBLISH, "publish:1", PLAN_ID, "published", NOW, by=Actor.PERSON)
        self.graph.make(plan, replace(plan, event=PlanEvent.CONFIRM, key="confirm:1"))
        for ordinal, task in enumerate(TASKS, start=1):
            facts = {
                "id": task, "plan_id": PLAN_ID, "owner": "ann", "ordinal": ordinal, "title": "A box", "body": "",
                "repository": "acme/shop", "base": "main", "merge": "when-proven", "runtime": "shell",
                "timeout": 60, "checks": ("make test",), "attempts": ATTEMPTS, "allowed_runs": ATTEMPTS,
                "round": 1, "after_waived": False, "pull_number": None,
            }  # fmt: skip
            key, by = f"task:{ordinal}", Actor.PERSON
            self.graph.make(Move("task", task, TaskEvent.CONFIRM, key, PLAN_ID, "confirmed", NOW, facts, by=by))

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
                    self.make(*ask(task, kind, "Begin all the same?", TaskState.PENDING, why, NOW, by=Actor.HEARTBEAT))
                case Grant():
                    self.slots.add(task.id)
                case Begin():
                    self.slots.add(task.id)
                    key = f"begin:{task.id}:{task.round}"
                    moves = [Move("task", task.id, TaskEvent.BEGIN, key, PLAN_ID, "granted", NOW, by=Actor.HEARTBEAT)]
                    if self.graph.plan().state is PlanState.CONFIRMED:
                        by = Actor.HEARTBEAT
                        moves.append(Move("plan", PLAN_ID, PlanEvent.BEGIN, "begin", PLAN_ID, "begun", NOW, by=by))
                    self.make(*moves)

    def complete(self) -> None:
        """End the plan when every task has ended, as the plan's workflow does at each look."""
        plan = self.graph.plan()
        over = all(self.graph.task(task).ended for task in TASKS)
        if over and plan.state in (PlanState.CONFIRMED, PlanState.IN_PROGRESS):
            key, by = f"complete:{plan.seq}", Actor.WORKER
            self.make(Move("plan", PLAN_ID, PlanEvent.COMPLETE, key, PLAN_ID, "over", NOW, by=by))

    def follow(self, task: str) -> None:
        """Let the forge's fact move a task that nobody watches."""
        facts, remote = self.graph.task(task), self.remotes[task]
        answer = landing.forge_fact(facts, remote.pull()) if remote.number else None
        if answer is not None:
            lives = answer.event is TaskEvent.REOPENED
            plan = reopen_plan(self.graph.plan(), answer.cause, NOW, by=answer.by) if lives else ()
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
            run = self._begin(facts, role, ordinal)
            between()
        if run.live:
            self._end(run, choose)
            between()
            run = self._find(run.id)
        return run, RunEnd(run.id, run.state, EndKind.EXITED, run.exit_code, run.reason, "last words")

    def _begin(self, facts: TaskFacts, role: Role, ordinal: int) -> RunFacts:
        begun = self.graph.runs(facts.id)
        assert not any(other.live for other in begun), "two runs of a task would live at once"
        number = sum(other.role is role for other in begun) + 1
        identity = run_id(facts.id, role, number)
        first = {
            "id": identity, "plan_id": PLAN_ID, "task_id": facts.id, "role": role, "number": number,
            "round": facts.round, "epoch": len(begun) + 1, "runtime": "shell", "host": "here",
            "ordinal": ordinal, "command": "make test" if ordinal else "",
        }  # fmt: skip
        key, by = f"start:{identity}", Actor.WORKER
        self.make(Move("run", identity, RunEvent.START, key, PLAN_ID, "begins", NOW, first, by=by))
        return self._find(identity)

    def _find(self, identity: str) -> RunFacts:
        return next(run for run in self.graph.runs(self.graph.rows[identity]["task_id"]) if run.id == identity)

    def _end(self, run: RunFacts, choose: Chooser) -> None:
        """The run's process ends, in one way or another; it is stopped when its task has gone elsewhere."""
        task = self.graph.task(run.task_id)
        step = TaskState.WORKING if run.role is Role.AUTHOR else TaskState.CHECKING
        wanted = (task.state, task.round) == (step, run.round)
        state: RunState = choose("end", *ENDING) if wanted else RunState.STOPPED
        code = choose("exit", 0, 1) if run.role is Role.CHECK and state is RunState.FINISHED else 0
        result = {"exit_code": code, "reason": "" if state is RunState.FINISHED else f"it {state}"}
        key, by = f"end:{run.id}", Actor.WORKER
        self.make(Move("run", run.id, ENDING[state], key, PLAN_ID, "ends", NOW, result, by=by))

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
        key, by = f"collect:{run.id}", Actor.WORKER
        self.make(Move("run", run.id, RunEvent.COLLECT, key, PLAN_ID, "kept", NOW, found, by=by))
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
        if remote.number is not None and (facts.pull_number is not None or facts.pushed_sha):
            ended = landing.forge_fact(facts, remote.pull())
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
        moved = landing.after_push(facts, push)
        if moved is not None:
            return moved
        # The port: found also when it was merged or closed with the branch as it is now.
        there = remote.open or (remote.number is not None and remote.ended_at == remote.branch)
        kind = OpenKind.FOUND if there else choose("open", OpenKind.OPENED, OpenKind.EMPTY)
        if kind is OpenKind.EMPTY:
            return landing.after_open(facts, Opened(kind))
        if kind is OpenKind.OPENED:
            remote.number, remote.open, remote.opened = facts.ordinal, True, remote.opened + 1
        remote.conflict = remote.conflict and not remote.contains(remote.branch, self.base)
        between()
        return landing.after_open(facts, Opened(kind, remote.pull()))

    def _land(self, facts: TaskFacts, choose: Chooser, between: Callable[[], None]) -> Answer:
        remote = self.remotes[facts.id]
        pull = remote.pull()
        answer = landing.after_look(facts, pull)
        if answer is not None:
            return answer
        assert pull.head_sha in (facts.proven_sha, facts.approved_sha), "what nobody proved or approved is merged"
        between()
        kind = MergeKind.HEAD_MOVED if remote.branch != pull.head_sha else choose("merge", *MergeKind)
        if kind is MergeKind.MERGED and remote.open:
            remote.open, remote.merged = False, True
        between()
        return landing.after_merge(facts, pull, Merge(kind, "m" * 40, "2 reviews are required"))


def _question_kind_apart(move: Move) -> Move:
    """A question's kind under another name, because a row's `kind` is what kind of thing it is."""
    if move.kind != "question" or "kind" not in move.facts:
        return move
    return replace(move, facts={**{k: v for k, v in move.facts.items() if k != "kind"}, "kind_of": move.facts["kind"]})
