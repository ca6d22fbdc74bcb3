"""A plan as a Markdown file, made from facts alone: the text as it was confirmed, and what became of each box.

The same facts make the same bytes: nothing here knows what time it is. What agents and forges said stands in it as
words, which mean nothing to whoever renders them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from domain import metering
from domain.budget import format_usd
from domain.confinement import sentence
from domain.front_matter import INVISIBLE
from domain.imprint import imprinted
from domain.outline import find_tasks, read_outline
from domain.review import ReviewFacts
from domain.task import TaskState
from domain.view import PlanView, TaskView, counts, unmarked, waits_for
from domain.wording import OWN_WORDS, counted

_ROOM = 8_000
"""Letters of a reason: more than any has."""

_ADDRESS = re.compile(r"https?://[^\s<>()\\]+")


@dataclass(frozen=True)
class Check:
    """A check that we ran: what, on which commit, and its exit code (None when it never came to one)."""

    command: str
    commit_sha: str
    exit_code: int | None

    @property
    def result(self) -> str:
        return "no exit code" if self.exit_code is None else f"exit {self.exit_code}"


@dataclass(frozen=True)
class Review:
    """What a reviewer said of a commit. `verdict` is a ReviewState; `why` says why it is void, and counts for nothing.

    `reviewer` is written as in the plan, `codex:gpt-5.5`. `summary` and `findings` are its own words.
    """

    reviewer: str
    commit_sha: str
    verdict: str
    summary: str = ""
    findings: str = ""
    why: str = ""

    @classmethod
    def of(cls, given: ReviewFacts) -> Review:
        return cls(given.reviewer, given.commit_sha, given.state, given.summary, given.findings, given.why)

    @property
    def result(self) -> str:
        return self.verdict.replace("_", " ")

    @property
    def words(self) -> str:
        """All that it says, or why it says nothing that counts."""
        return "\n\n".join(part for each in (self.summary, self.findings, self.why) if (part := each.strip()))


@dataclass(frozen=True)
class Box:
    """A checkbox and what became of it. Money is in nano-dollars; `budget` is None where nobody said one.

    `checks` are those of the commit that counts, `reviews` those of the commit that the task stands at. What
    `unmetered_runs` of it cost is in no amount, and `told` is what their CLIs say of it, a sentence each.
    """

    view: TaskView
    body: str = ""
    runtime: str = ""
    model: str = ""
    budget: int | None = None
    held: int = 0
    spent: int = 0
    merged_sha: str = ""
    checks: tuple[Check, ...] = ()
    reviews: tuple[Review, ...] = ()
    unmetered_runs: int = 0
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class Projection:
    """What a projection is made of. `text` is the plan as it was published, `words` what persons said about it.

    `boxes` are in the order of their ordinals; `seal` is the receipt that was sealed last and its token, `(0, "")`
    where none was.
    """

    view: PlanView
    text: str
    boxes: tuple[Box, ...]
    words: tuple[str, ...] = ()
    held: int = 0
    spent: int = 0
    budget: int | None = None
    unmetered_runs: int = 0
    seal: tuple[int, str] = (0, "")


def render(plan: Projection) -> str:
    """The whole file, with its imprint."""
    front, document = _split(plan.text)
    view = plan.view
    below = [*_standing(plan), "", *_document(view, document, {box.view.ordinal: box for box in plan.boxes})]
    if plan.seal[1]:
        below = _joined(below, ["", f"Receipt {plan.seal[0]} is sealed: `{plan.seal[1]}`"])
    return imprinted(view.plan_id, view.seq, view.head, front, "\n".join(below).rstrip("\n") + "\n")


def _split(text: str) -> tuple[Sequence[str], str]:
    """The lines of the front matter, and the document below it."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    ends = (number for number, line in enumerate(lines) if number and line.rstrip() == "---")
    end = next(ends, 0) if lines[0].rstrip() == "---" else 0
    front, document = (lines[1:end], lines[end + 1 :]) if end else ((), lines)
    return front, "\n".join(document).strip("\n")


def _standing(plan: Projection) -> Iterator[str]:
    """Where the plan stands, as a quotation above its own text."""
    view = plan.view
    gate = ", paused" if view.paused else ""
    summary = ", ".join(f"{count} {state}" for state, count in counts(view).items()) or "no boxes"
    yield f"> **{view.state}{gate}**: {summary}. Revision {view.revision}, text `{view.digest[:12]}`."
    for word in plan.words:
        yield f">\n> {_line(word)}"
    how = f"{sentence(view.confinement)} {metering.sentence(view.metering)}".rstrip()
    yield f">\n> {_money(plan.spent, plan.held, plan.budget, plan.unmetered_runs)}. {how}"
    yield f">\n> {counted(view.seq, 'receipt')}; the chain's head is `{view.head}`."


def _document(view: PlanView, document: str, boxes: Mapping[int, Box]) -> list[str]:
    """The document line by line, with each list of boxes told anew in its place."""
    outline = read_outline(document)
    section, _ = find_tasks(outline)
    lines: list[str] = []
    told = at = 0
    for each in section.lists if section else ():
        lines = _joined(lines, outline.lines[at : each.start - 1])
        for item in each.items:
            if item.done is not None:
                told += 1
                box = boxes.get(told)
                # What is no task, or not yet one, has its text here alone.
                lines = _joined(lines, _box(view, replace(box, body=box.body or item.body)) if box else ())
        at = each.end - 1
    end = section.end - 1 if section else len(outline.lines)
    lines = _joined(lines, outline.lines[at:end])
    others = [box for ordinal, box in sorted(boxes.items()) if ordinal > told]
    if others:
        lines = _joined(lines, ["", "### Tasks that the text no longer has" if told else "## Tasks", ""])
    for box in others:
        lines = _joined(lines, _box(view, box))
    return _joined(lines, outline.lines[end:])


def _joined(above: Sequence[str], below: Sequence[str]) -> list[str]:
    """Both, with one blank line between them where each brings one."""
    spare = bool(above and below) and not above[-1].strip() and not below[0].strip()
    return [*above, *(below[1:] if spare else below)]


def _box(view: PlanView, box: Box) -> list[str]:
    task = box.view
    mark = "x" if task.state in ("done", TaskState.MERGED, TaskState.NO_CHANGES) else " "
    facts = "\n".join(_facts(view, box))
    parts = [f"- [{mark}] {task.ordinal}. {task.title}", _indented(_quoted(facts))]
    parts += [_indented(box.body)] if box.body.strip() else []
    return ["\n\n".join(parts), ""]


def _facts(view: PlanView, box: Box) -> Iterator[str]:
    task = box.view
    proof = f", {task.proof}" if task.proof else ""
    merged = f", merged as `{box.merged_sha[:12]}`" if box.merged_sha else ""
    runs = f" · {counted(task.runs, 'run')}" if task.runs else ""
    told = _money(box.spent, box.held, box.budget, box.unmetered_runs)
    money = f" · {told}" if box.spent or box.held or box.unmetered_runs else ""
    pull = f" · {_address(task.pull_url)}" if task.pull_url else ""
    yield f"**{task.state}**{proof}{pull}{merged}{runs}{money}"
    terms = [f"by {box.runtime}"] if box.runtime else []
    terms += [f"model {box.model}"] if box.model else []
    terms += [f"after {', '.join(map(str, task.after))}"] if task.after else []
    if terms:
        yield f"\n{', '.join(terms)}"
    checks = [f"- `{_code(check.command)}` on `{check.commit_sha[:12]}`: {check.result}" for check in box.checks]
    if checks:
        yield "\n" + "\n".join(checks)
    if box.told:
        yield "\n" + "\n".join(f"- {_line(each)}" for each in box.told)
    for review in box.reviews:
        yield f"\n- {_review(review)}"
    if task.reason:
        yield f"\n{_line(task.reason)}"
    if waits := waits_for(view, task):
        named = f" (`{task.question_id}`)" if task.question_id else ""
        yield f"\nWaits for a person{named}:\n\n{fenced(waits)}"


def _review(review: Review) -> str:
    """A review as an item of a list, its words beneath it."""
    told = f"review by `{_code(review.reviewer)}` on `{review.commit_sha[:12]}`: {review.result}"
    return f"{told}. {OWN_WORDS}\n\n{_indented(fenced(review.words))}" if review.words else told


def fenced(words: str) -> str:
    """Somebody's words to the last one, as nothing but words: in a fence that they cannot close."""
    shown = INVISIBLE.sub("\ufffd", words.strip())
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", shown)), 0)
    return f"{fence}text\n{shown}\n{fence}"


def _line(words: str) -> str:
    """Somebody's words on one line, without markup and without what is not seen."""
    return unmarked(INVISIBLE.sub("\ufffd", " ".join(words.split())), _ROOM)


def _money(spent: int, held: int, budget: int | None, unmetered_runs: int) -> str:
    known = metering.known(spent, unmetered=unmetered_runs > 0)
    under_way = f"{format_usd(held)} held" if held else ""
    counts = ", ".join(filter(None, ("" if known is None else f"{format_usd(known)} spent", under_way)))
    of = "" if budget is None else f"of {format_usd(budget)}" if counts else f"the budget is {format_usd(budget)}"
    unknown = metering.not_counted(unmetered_runs)
    return "; ".join(filter(None, (f"{counts} {of}".rstrip(), unknown) if counts else (unknown, of)))


def _address(url: str) -> str:
    return f"<{url}>" if _ADDRESS.fullmatch(url) else f"`{_code(url)}`"


def _code(text: str) -> str:
    """Text on one line that goes between backticks."""
    return INVISIBLE.sub("\ufffd", " ".join(text.split())).replace("`", "'")


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line.strip() else "" for line in text.split("\n"))
