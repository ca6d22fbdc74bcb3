"""A plan document: front matter, prose, and a list of boxes, read into a `PlanSpec` or refused.

A document is refused with everything that is wrong with it at once, each fault at its line in the
file as written, so that one look is enough to mend it. docs/reference/plan-documents.md is the
reader's side of this module.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter

from domain.agents import AGENTS, RUNTIMES, model_of
from domain.attributes import Attributes, split_attributes
from domain.budget import format_usd
from domain.confinement import Confine, Network
from domain.errors import Fault, InvalidPlan
from domain.front_matter import INVISIBLE, MAX_TITLE, FrontMatter, read_front_matter
from domain.identity import digest, slugify
from domain.imprint import imprint_of
from domain.metering import Meter
from domain.outline import MAX_NESTING, Item, Outline, Section, find_tasks, read_outline
from domain.plan import MergePolicy, PlanSpec, TaskSpec
from domain.review import why_not_independent
from domain.rules import Policy
from domain.script import shell_block
from domain.wording import counted

MAX_BYTES = 256 * 1024
MAX_TASKS = 500
MAX_FAULTS = 100
"""Nobody mends more than this from one report, and an exception has to fit through a wire."""

_STRUCK = re.compile(r"~~(?!~)((?:(?!~~).)+)~~")


def parse(text: str | bytes, *, file_name: str = "") -> PlanSpec:
    """The plan that a document says; `file_name` lends its stem as the slug where none is given.

    Raises InvalidPlan with every fault. Bytes are UTF-8; a byte order mark and CRLF are accepted and
    make no difference to the digest.
    """
    plan, _, faults = _read(text, file_name)
    if plan is None:
        raise InvalidPlan(faults)
    return plan


def inspect(text: str | bytes, file_name: str = "") -> tuple[tuple[TaskSpec, ...], tuple[Fault, ...]]:
    """The tasks as far as they can be read, and everything wrong with the document. Never raises."""
    _, tasks, faults = _read(text, file_name)
    return tasks, faults


def _read(text: str | bytes, file_name: str) -> tuple[PlanSpec | None, tuple[TaskSpec, ...], tuple[Fault, ...]]:
    try:
        source = _decoded(text)
    except InvalidPlan as refusal:
        return None, (), refusal.faults
    faults = _Faults()
    _refuse_projection(source, faults)
    shown = _without_invisible(source, faults)
    front, markdown = _split_front_matter(shown, faults)
    outline = read_outline(markdown)
    section = _tasks_section(outline, faults)
    items = _boxes(section, faults) if section else []
    tasks = tuple(_task(ordinal, item, front, faults) for ordinal, item in enumerate(items, 1))
    _check_order(tasks, faults)
    _check_front_matter(front, faults)
    _check_independence(front, tasks, faults)
    _check_review_budget(front, faults)
    if front.metering is Meter.OFF:
        _check_unmetered(front, tasks, faults)
    slug = front.slug or _slug_of_file(file_name, front, faults)
    if faults.found:
        return None, tasks, faults.sorted()
    plan = PlanSpec(
        slug=slug,
        title=front.title or _first_heading(outline, section) or slug,
        repository=front.repository,
        digest=digest(source),
        tasks=tasks,
        base=front.base,
        spec=_prose(outline, section),
        reviewers=tuple(map(str, front.reviewers)),
        budget_nano_usd=front.budget,
        review_budget_nano_usd=front.review_budget,
        concurrency=front.concurrency,
        attempts=front.attempts,
        checks=front.checks,
        paths=front.paths,
        merge=front.merge,
        policy=Policy(front.refuse_tools, front.refuse_commands, front.refuse_paths),
        confine=front.confine,
        network=front.network,
        metering=front.metering,
        lines=front.lines,
    )
    return plan, tasks, ()


class _Faults:
    """Everything wrong with the document so far."""

    def __init__(self) -> None:
        self.found: set[Fault] = set()

    def add(self, line: int, message: str) -> None:
        self.found.add(Fault(line, message if len(message) <= 300 else message[:299] + "…"))

    def sorted(self) -> tuple[Fault, ...]:
        faults = sorted(self.found)
        if len(faults) > MAX_FAULTS:
            more = Fault(faults[MAX_FAULTS].line, f"and {counted(len(faults) - MAX_FAULTS, 'more fault')} from here on")
            faults[MAX_FAULTS:] = [more]
        return tuple(faults)


def _decoded(text: str | bytes) -> str:
    """The text without byte order mark and with LF only; InvalidPlan when there is no text to go on with."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(raw) > MAX_BYTES:
        raise InvalidPlan((Fault(1, f"the document has {len(raw)} bytes; a plan has at most {MAX_BYTES}"),))
    if isinstance(text, bytes):
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            line = 1 + raw.count(b"\n", 0, error.start)
            raise InvalidPlan((Fault(line, "the document is not UTF-8; save it as UTF-8"),)) from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _refuse_projection(source: str, faults: _Faults) -> None:
    """What was made from the graph says what became of a plan; read back, it would be taken for what was wanted."""
    if imprint := imprint_of(source):
        made = f"this is what `watchbill show` made of plan {imprint.plan}, and it is never read back"
        faults.add(imprint.line, f"{made}; change and submit the document that it was made from")


def _without_invisible(source: str, faults: _Faults) -> str:
    if not INVISIBLE.search(source):
        return source
    for number, line in enumerate(source.split("\n"), 1):
        for character in sorted(set(INVISIBLE.findall(line))):
            faults.add(number, f"remove the character U+{ord(character):04X}; nobody who confirms can see it")
    return INVISIBLE.sub("\ufffd", source)


def _split_front_matter(source: str, faults: _Faults) -> tuple[FrontMatter, str]:
    """The front matter, and the text with blank lines in its place, so that every line keeps its number."""
    lines = source.split("\n")
    if lines[0].rstrip() != "---":
        faults.add(1, "there is no front matter; start with a line --- and name the `repository`")
        return FrontMatter(complete=False), source
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() == "---"), 0)
    if not end:
        faults.add(1, "the front matter that opens here is not closed; end it with a line ---")
        return FrontMatter(complete=False), "\n".join(["", *lines[1:]])
    front, problems = read_front_matter("\n".join(lines[1:end]), 2)
    for problem in problems:
        faults.add(problem.line, problem.message)
    return front, "\n".join([""] * (end + 1) + lines[end + 1 :])


def _tasks_section(outline: Outline, faults: _Faults) -> Section | None:
    if outline.too_deep:
        faults.add(outline.too_deep, f"lists and quotes are nested {MAX_NESTING} levels deep; flatten them")
    section, problems = find_tasks(outline)
    for problem in problems:
        faults.add(problem.line, problem.message)
    if section is None and not problems:
        faults.add(1, 'there is no task; write boxes such as "- [ ] Do this" under a heading "Tasks"')
    return section


def _boxes(section: Section, faults: _Faults) -> list[Item]:
    items = [item for found in section.lists for item in found.items]
    for item in items:
        if item.done is None:
            faults.add(item.line, "this item is no task; give it a checkbox, [ ] and a space, or move it out")
    boxes = [item for item in items if item.done is not None]
    if not boxes:
        faults.add(section.start, 'there is no task in this section; write boxes such as "- [ ] Do this"')
    if len(boxes) > MAX_TASKS:
        faults.add(boxes[MAX_TASKS].line, f"there are {len(boxes)} tasks; a plan has at most {MAX_TASKS}")
    return boxes[:MAX_TASKS]


def _task(ordinal: int, item: Item, front: FrontMatter, faults: _Faults) -> TaskSpec:
    line, attributes, problems = split_attributes(item.first)
    title, struck = _unstruck(line)
    for problem in problems:
        faults.add(item.line, problem)
    if not title:
        faults.add(item.line, "this box has no title; write it on the line of the box")
    elif len(title) > MAX_TITLE:
        faults.add(item.line, f"this title is longer than {MAX_TITLE} characters; move details to the body")
    runtime = attributes.runtime or front.runtime
    if attributes.runtime:
        _check_runtime(item.line, runtime, faults)
    idle = bool(item.done) or struck
    if runtime == "shell" and not idle and shell_block(item.body) is None:
        faults.add(item.line, "this task has no script; indent a fenced sh block to where the box begins")
    return TaskSpec(
        ordinal=ordinal,
        title=title,
        body=item.body,
        line=item.line,
        done=bool(item.done),
        struck=struck,
        after=attributes.after,
        runtime=runtime,
        model=_model(item, runtime, attributes, front, faults, idle=idle),
        budget_nano_usd=_task_budget(item.line, attributes, front, faults),
        timeout=front.timeout if attributes.timeout is None else attributes.timeout,
        own=attributes.named,
    )


def _unstruck(title: str) -> tuple[str, bool]:
    """The title without the strokes, and whether there were any: over all of it, `~~like this~~`.

    https://github.github.com/gfm/#strikethrough-extension-
    """
    struck = _STRUCK.fullmatch(title)
    return (struck[1].strip(), True) if struck else (title, False)


def _model(item: Item, runtime: str, attributes: Attributes, front: FrontMatter, faults: _Faults, *, idle: bool) -> str:
    """A model belongs to the runtime it was named for."""
    named = attributes.model or (front.model if runtime == front.runtime else "")
    model = model_of(runtime, named)
    if runtime in AGENTS and not model and not idle:
        faults.add(item.line, f"model: {runtime} has none of its own; name one, in the front matter or at this box")
    if runtime == "shell" and attributes.model:
        faults.add(item.line, "model: a shell script uses none; name a runtime that does")
    return model


def _task_budget(line: int, attributes: Attributes, front: FrontMatter, faults: _Faults) -> int | None:
    if attributes.budget is None:
        return front.budget
    if front.metering is Meter.OFF:
        faults.add(line, f"budget: {_HOLDS_NOTHING}")
    if front.budget is not None and attributes.budget > front.budget:
        faults.add(line, f"budget: more than the plan's {format_usd(front.budget)}; a task may only say less")
    return attributes.budget


def _check_order(tasks: tuple[TaskSpec, ...], faults: _Faults) -> None:
    """Every `after` names another task, and no task waits for itself by way of others."""
    graph: dict[int, set[int]] = {}
    for task in tasks:
        for ordinal in task.after:
            if ordinal == task.ordinal:
                faults.add(task.line, f"after: task {ordinal} cannot wait for itself")
            elif ordinal > len(tasks):
                faults.add(task.line, f"after: there is no task {ordinal}; the last is {len(tasks)}")
            elif tasks[ordinal - 1].struck and not task.starts_nothing:
                faults.add(task.line, f"after: task {ordinal} is struck out, so nothing can wait for it")
        graph[task.ordinal] = {ordinal for ordinal in task.after if ordinal != task.ordinal}
    while cycle := _cycle(graph):
        first = min(cycle)
        turn = cycle.index(first)
        chain = " waits for ".join(f"task {ordinal}" for ordinal in (*cycle[turn:], *cycle[:turn], first))
        faults.add(tasks[first - 1].line, f"after: {chain}; none of them could ever begin")
        graph = {ordinal: graph[ordinal] - set(cycle) for ordinal in graph.keys() - set(cycle)}


def _cycle(graph: dict[int, set[int]]) -> list[int]:
    """One cycle, each task before the one that it waits for; empty when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        # The sorter's order is the other way round and names the first task again at the end.
        return list(reversed(error.args[1][1:]))
    return []


def _check_front_matter(front: FrontMatter, faults: _Faults) -> None:
    """What the values mean together, and what this version can do."""
    lines = front.lines
    if front.complete and "repository" not in lines:
        faults.add(1, "the front matter names no `repository`; add a line such as repository: acme/shop")
    if "runtime" in lines:
        _check_runtime(lines["runtime"], front.runtime, faults)
    if front.merge is MergePolicy.WHEN_PROVEN and front.complete and not lines.keys() & {"checks", "reviewers"}:
        faults.add(lines["merge"], "merge: when-proven needs `checks` or `reviewers`; nothing else proves anything")
    if front.confine is Confine.REQUIRED and front.network is Network.OPEN:
        faults.add(lines["network"], "network: open is no confinement, and `confine` requires it; remove one of them")


def _check_independence(front: FrontMatter, tasks: tuple[TaskSpec, ...], faults: _Faults) -> None:
    """Every reviewer can judge every task: nobody reviews what a model of the same maker made."""
    for reviewer in front.reviewers:
        for why in dict.fromkeys(
            why_not_independent(reviewer, task.runtime, task.model)
            for task in tasks
            # Of an agent without a model it is told that it needs one.
            if not task.done and (task.model or task.runtime not in AGENTS)
        ):
            if why:
                faults.add(front.lines["reviewers"], f"reviewers: {why}")


def _check_review_budget(front: FrontMatter, faults: _Faults) -> None:
    """It is part of what a task may cost, and there is somebody to spend it."""
    if front.review_budget is None:
        return
    line = front.lines["review_budget"]
    if front.complete and not front.reviewers and "reviewers" not in front.lines:
        faults.add(line, "review_budget: the plan names no `reviewers`, so nobody would spend it; remove the line")
    if front.budget is not None and front.review_budget > front.budget:
        faults.add(line, f"review_budget: more than the plan's {format_usd(front.budget)}; a review may only cost less")


_HOLDS_NOTHING = "with `metering: off` nobody counts what agents cost, so it would hold nothing; remove one of them"


def _check_unmetered(front: FrontMatter, tasks: tuple[TaskSpec, ...], faults: _Faults) -> None:
    """What cannot be said together with `metering: off`, and what has to be."""
    lines = front.lines
    for key in ("budget", "review_budget"):
        if key in lines:
            faults.add(lines[key], f"{key}: {_HOLDS_NOTHING}")
    if front.confine is Confine.REQUIRED:
        why = "the only address of a confined agent is the relay, and `metering: off` sends it around that"
        faults.add(lines["confine"], f"confine: required: {why}; remove one of them")
    elif front.complete and front.network is not Network.OPEN:
        why = "an agent that goes around the relay needs the host's network"
        faults.add(lines["metering"], f"metering: off needs `network: open`: {why}; add that line, or remove this one")
    if front.complete and tasks and not front.reviewers and all(task.runtime == "shell" for task in tasks):
        why = f"no task is done by an agent ({', '.join(AGENTS)})"
        faults.add(lines["metering"], f"metering: {why}, so nothing here is metered; remove the line")


def _check_runtime(line: int, runtime: str, faults: _Faults) -> None:
    if runtime not in RUNTIMES:
        faults.add(line, f"runtime: this version cannot run {runtime!r}; it runs {', '.join(RUNTIMES)}")


def _slug_of_file(file_name: str, front: FrontMatter, faults: _Faults) -> str:
    name = re.split(r"[/\\]", file_name)[-1]
    slug = slugify(name.rpartition(".")[0] or name)
    if not slug and front.complete and "slug" not in front.lines:
        faults.add(1, "there is no `slug` and the file's name makes none; add a line such as slug: faster")
    return slug


def _first_heading(outline: Outline, section: Section | None) -> str:
    """The text of the first heading that is not the one over the tasks."""
    own = section.heading if section else None
    texts = (heading.text for heading in outline.headings if heading.text and heading != own)
    return next(texts, "")[:MAX_TITLE]


def _prose(outline: Outline, section: Section | None) -> str:
    """The document without its tasks: what a reader of any task should know."""
    if section is None:
        return ""
    before, after = outline.lines[: section.start - 1], outline.lines[section.end - 1 :]
    parts = ("\n".join(before).strip("\n"), "\n".join(after).strip("\n"))
    return "\n\n".join(part for part in parts if part.strip())
