"""What a revision changes of a confirmed plan, and everything that it may not change.

The two texts are compared with each other; the tasks' facts say what may be touched: what has not begun, or
is paused. What judges work (`JUDGING`) is touched for every task at once, so none of them may be at work.
docs/how-to/change-a-plan.md is the reader's side of this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from domain.budget import format_usd
from domain.decision import PlanFacts
from domain.difference import BoxChange, BoxKind, Change, Difference, text_change
from domain.errors import Fault
from domain.places import misplaced, same_text
from domain.plan import PlanSpec, TaskSpec
from domain.task import SUCCEEDED, TaskFacts, TaskState

PROVING = ("checks", "reviewers", "confine", "network")
"""Keys of the front matter that say how a commit is proven."""

ALLOWING = ("paths", "refuse_tools", "refuse_commands", "refuse_paths", "metering")
"""Keys that say what work may be and may come by."""

JUDGING = (*PROVING, *ALLOWING, "merge")
"""Keys that change for tasks that have begun as well, and only while none of those is at work."""

_FOR_GOOD = ("slug", "repository")
_WHOLE = ("title", "concurrency", "attempts")
_ATTRIBUTES = ("after", "runtime", "model", "timeout", "budget_nano_usd")

EDITABLE = (TaskState.PENDING, TaskState.PAUSED)


@dataclass(frozen=True)
class Comparison:
    """A revision beside what is confirmed. Where there are `faults`, nothing of the difference may be carried out."""

    difference: Difference
    faults: tuple[Fault, ...] = ()


def compare(
    plan: PlanFacts,
    old: PlanSpec,
    new: PlanSpec,
    tasks: Iterable[TaskFacts],
    base: str = "",
    used: Mapping[str, int] = MappingProxyType({}),
) -> Comparison:
    """Compare a new text with the confirmed one, for a plan with these tasks.

    `base` is the branch that the new text's pull requests would go to; `used` what is held and spent already of
    the money of the plan and of its tasks, in nano-dollars by their ids.
    """
    revision = _Revision(plan, old, new, {task.ordinal: task for task in tasks}, used)
    revision.whole(base)
    revision.boxes()
    return revision.result()


@dataclass
class _Revision:
    """A comparison under way."""

    plan: PlanFacts
    old: PlanSpec
    new: PlanSpec
    tasks: Mapping[int, TaskFacts]
    used: Mapping[str, int]
    faults: set[Fault] = field(default_factory=set)
    changes: list[Change] = field(default_factory=list)
    changed: list[BoxChange] = field(default_factory=list)
    unchanged: int = 0
    kept: list[int] = field(default_factory=list)
    judging: tuple[str, ...] = ()

    def result(self) -> Comparison:
        boxes = tuple(sorted(self.changed, key=lambda box: box.ordinal))
        difference = Difference(tuple(self.changes), boxes, self.unchanged, tuple(self.kept))
        return Comparison(difference, tuple(sorted(self.faults)))

    # The whole plan.

    def whole(self, base: str) -> None:
        for key in _FOR_GOOD:
            was, now = getattr(self.old, key), getattr(self.new, key)
            if was.casefold() != now.casefold():
                self._fault_of(key, f"this plan's is {was} for good; another one is another plan")
        goes_to = base or self.new.base or self.plan.base
        if goes_to != self.plan.base:
            self._fault_of("base", f"this plan's pull requests go to {self.plan.base}, and not to {goes_to}")
        for key in (*_WHOLE, *JUDGING):
            was, now = value_of(self.old, key), value_of(self.new, key)
            if was != now:
                self.changes.append(Change(key, _shown(was), _shown(now)))
                self.judging += (key,) if key in JUDGING else ()
        self._budget()
        was, now = self.old.review_budget_nano_usd, self.new.review_budget_nano_usd
        if was != now:
            self.changes.append(Change("review_budget", _dollars(was), _dollars(now)))
        if not same_text(self.old.spec, self.new.spec):
            self.changes.append(text_change("spec", self.old.spec, self.new.spec))
        at_work = [task for task in self.tasks.values() if not task.ended and task.state not in EDITABLE]
        for key in self.judging if at_work else ():
            who = ", ".join(f"task {task.ordinal} ({task.state})" for task in at_work)
            pause = " and ".join(f"`watchbill pause {self.plan.slug}#{task.ordinal}`" for task in at_work[:3])
            self._fault_of(key, f"what judges work does not change under {who}; first {pause}, or wait for the end")

    def _budget(self) -> None:
        was, now = self.plan.budget_nano_usd, self.new.budget_nano_usd
        if now in (was, self.old.budget_nano_usd):
            return
        self.changes.append(Change("budget", _dollars(was), _dollars(now)))
        self._require_enough("budget: ", now, self.plan.id, self._line("budget"))

    # The boxes.

    def boxes(self) -> None:
        elsewhere = misplaced(self.old.tasks, self.new.tasks)
        for faults in elsewhere.values():
            self.faults.update(faults)
        for box in self.new.tasks:
            if box.ordinal > len(self.old.tasks):
                self._added(box)
            elif box.ordinal not in elsewhere:
                self._beside(self.old.tasks[box.ordinal - 1], box)

    def _added(self, box: TaskSpec) -> None:
        if box.starts_nothing:
            self.unchanged += 1
            return
        after = (Change("after", "", _shown(box.after)),) if box.after else ()
        told = (Change("by", "", " ".join(filter(None, (box.runtime, box.model)))), *after)
        self.changed.append(BoxChange(box.ordinal, box.title, BoxKind.ADDED, changes=told))

    def _beside(self, was: TaskSpec, box: TaskSpec) -> None:
        task = self.tasks.get(box.ordinal)
        if task is None or was.struck:
            if not box.starts_nothing:
                how = "struck out" if was.struck else "done"
                self._fault(box, f"is {how}, and its number starts nothing any more; write it anew, at the end")
            self.unchanged += 1
        elif box.struck:
            self._struck(was, box, task)
        else:
            if box.done and not was.done and task.state not in SUCCEEDED:
                self._fault(box, f"is {task.state}; strike it out where nothing is to be done about it any more")
            self._kept_or_changed(was, box, task)

    def _struck(self, was: TaskSpec, box: TaskSpec, task: TaskFacts) -> None:
        if task.state is TaskState.CANCELLED:
            self.unchanged += 1
        elif task.state in EDITABLE:
            self.changed.append(BoxChange(box.ordinal, was.title, BoxKind.REMOVED, task.state))
        else:
            self._untouchable(box, task, "is not struck out")

    def _kept_or_changed(self, was: TaskSpec, box: TaskSpec, task: TaskFacts) -> None:
        changes = tuple(_changes(was, box, task))
        names = {change.what for change in changes}
        if task.state not in EDITABLE:
            own = {"title", "body", "after", *was.own, *box.own}
            said = [change.called for change in changes if change.what in own]
            if said:
                self._untouchable(box, task, f"is not changed ({', '.join(said)})")
            elif changes and not task.ended:
                self.kept.append(box.ordinal)
            self.unchanged += 1
            return
        if has_begun(task) and {"title", "body"} <= names:
            self._fault(
                box,
                f"has begun as {was.title!r}; with another title and another text it would be another task: keep one "
                "of them, or strike it out and write the new one at the end",
            )
        if "budget_nano_usd" in names:
            self._require_enough(f"task {box.ordinal}: ", box.budget_nano_usd, task.id, box.line)
        by = tuple(key for key in self.judging if key != "merge") if has_begun(task) else ()
        if changes or by:
            self.changed.append(BoxChange(box.ordinal, box.title, BoxKind.CHANGED, task.state, changes, by))
        else:
            self.unchanged += 1

    # What is wrong.

    def _untouchable(self, box: TaskSpec, task: TaskFacts, what: str) -> None:
        if task.ended:
            self._fault(box, f"is {task.state}, and what has ended {what}; leave it as it was")
        else:
            pause = f"`watchbill pause {self.plan.slug}#{box.ordinal}`"
            self._fault(box, f"is {task.state}, and what is at work {what}; first {pause}, or leave it as it was")

    def _require_enough(self, what: str, budget: int | None, id: str, line: int) -> None:
        used = self.used.get(id, 0)
        if budget is not None and used > budget:
            message = f"{what}{format_usd(used)} is spent or held already, which is more than {format_usd(budget)}"
            self.faults.add(Fault(line, message))

    def _fault(self, box: TaskSpec, message: str) -> None:
        self.faults.add(Fault(box.line, f"task {box.ordinal} {message}"))

    def _fault_of(self, key: str, message: str) -> None:
        self.faults.add(Fault(self._line(key), f"{key}: {message}"))

    def _line(self, key: str) -> int:
        return self.new.lines.get(key, 1)


def has_begun(task: TaskFacts) -> bool:
    """Whether anything was done about the task that was made for its text as it was."""
    return bool(task.runs_begun or task.head_sha or task.pull_number)


def value_of(spec: PlanSpec, key: str) -> Any:
    """What a plan says under a key of its front matter."""
    rule = key.removeprefix("refuse_")
    return getattr(spec.policy, rule) if rule != key else getattr(spec, key)


def _changes(was: TaskSpec, box: TaskSpec, task: TaskFacts) -> Iterator[Change]:
    """What the box says otherwise than it said. A budget that a person has raised to what it says now is none of it."""
    if was.title != box.title:
        yield Change("title", repr(was.title), repr(box.title))
    if not same_text(was.body, box.body):
        yield text_change("body", was.body, box.body)
    for name in _ATTRIBUTES:
        before, after = getattr(was, name), getattr(box, name)
        if name == "budget_nano_usd":
            if after not in (before, task.budget_nano_usd):
                yield Change(name, _dollars(task.budget_nano_usd), _dollars(after))
        elif before != after:
            yield Change(name, _shown(before), _shown(after))


def _dollars(nano_usd: int | None) -> str:
    return "none" if nano_usd is None else format_usd(nano_usd)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "none"
