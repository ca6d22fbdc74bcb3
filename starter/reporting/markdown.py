"""A report as Markdown, for a terminal and for paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from domain import confinement, metering
from domain.budget import format_usd
from domain.policy import UNPROVEN
from domain.projection import Review, fenced
from domain.spending import Spending
from domain.task import TaskState
from domain.wording import OWN_WORDS, counted
from forge.text import verbatim
from starter.reporting.facts import Costs, MorningReport, Part, Report, TaskReport, WaitReport

LANDED = "Landed, with proof"
WITHOUT_PROOF = "Merged without proof"
NO_CHANGES = "Nothing was to be changed"
LOST = "Ended without a merge"
OPEN = "Under way"
BEFORE = "Done before"

COLUMNS = ("calls", "input", "from cache", "into cache", "output", "spent", "held")
"""What a table of costs says of each part."""


def sorts_of(tasks: Iterable[TaskReport]) -> dict[str, list[TaskReport]]:
    """The tasks by what became of them, under the heading that says it; without what there is none of."""
    found: dict[str, list[TaskReport]] = {name: [] for name in (LANDED, WITHOUT_PROOF, NO_CHANGES, LOST, OPEN, BEFORE)}
    for task in tasks:
        found[_sort(task)].append(task)
    return {name: those for name, those in found.items() if those}


def _sort(task: TaskReport) -> str:
    match task.state:
        case TaskState.MERGED:
            return WITHOUT_PROOF if task.proof == UNPROVEN else LANDED
        case TaskState.NO_CHANGES:
            return NO_CHANGES
        case TaskState.FAILED | TaskState.CLOSED | TaskState.CANCELLED:
            return LOST
        case "done":
            return BEFORE
    return OPEN


def to_markdown(report: Report) -> str:
    """The report of one plan, as a reader gets it."""
    return "\n".join([*_plan(report, "#"), ""])


def morning_to_markdown(report: MorningReport) -> str:
    """The report of all plans that moved, what waits first."""
    lines = [f"# Since {report.since}", "", f"{summary(report)}.", ""]
    if report.waiting:
        lines += ["## What waits for a person", "", *_waits(report.waiting, of_all=True), ""]
    if not report.costs.whole.nothing:
        lines += ["## What it cost", "", *_costs(report.costs, "plan"), ""]
    for plan in report.plans:
        lines += [*_plan(plan, "##"), ""]
    return "\n".join(lines)


def summary(report: MorningReport) -> str:
    """How much became of what, in one line."""
    tasks = [task for plan in report.plans for task in plan.tasks if task.moved]
    sorts = {name: len(those) for name, those in sorts_of(tasks).items() if name != OPEN}
    moved = ", ".join(f"{name.lower()}: {number}" for name, number in sorts.items()) or "nothing ended"
    waits = f"; {counted(len(report.waiting), 'thing waits', 'things wait')} for a person" if report.waiting else ""
    return f"{counted(len(report.plans), 'plan')}. {moved[0].upper()}{moved[1:]}{waits}; {money(report.costs.whole)}"


def money(spent: Spending) -> str:
    """What was spent and what is held, in words, and what is in neither."""
    return _with_unknown(spent, *_amounts(spent))


def came_to(spent: Spending) -> str:
    """The same with the calls that it was spent for, as a sentence without its full stop."""
    unmeasured = f", {spent.unmeasured} of them without usage" if spent.unmeasured else ""
    calls = f"{counted(spent.calls, 'call')} of models{unmeasured}"
    told = _with_unknown(spent, *_amounts(spent), "" if spent.unmetered_runs and not spent.calls else calls)
    return f"{told[0].upper()}{told[1:]}"


def _amounts(spent: Spending) -> Iterator[str]:
    if spent.spent_nano_usd is not None:
        yield f"{format_usd(spent.spent_nano_usd)} spent"
    if spent.held_nano_usd:
        yield f"{format_usd(spent.held_nano_usd)} held"


def _with_unknown(spent: Spending, *known: str) -> str:
    return "; ".join(filter(None, (", ".join(filter(None, known)), metering.not_counted(spent.unmetered_runs))))


UNKNOWN = "not known"


def amount(nano_usd: int | None) -> str:
    return UNKNOWN if nano_usd is None else format_usd(nano_usd)


def row_of(spent: Spending) -> tuple[str, ...]:
    """What a table has of it in each of its `COLUMNS`; nothing where nothing was counted and somebody was at work."""
    if spent.unmetered_runs and not spent.calls:
        return (*("",) * 5, amount(spent.spent_nano_usd), format_usd(spent.held_nano_usd))
    more = f", and what is {UNKNOWN}" if spent.unmetered_runs else ""
    counts = map(str, (spent.calls, *tokens(spent)))
    return (*counts, f"{amount(spent.spent_nano_usd)}{more}", format_usd(spent.held_nano_usd))


def _plan(report: Report, level: str) -> Iterator[str]:
    gate = ", paused" if report.paused else ""
    yield f"{level} {_flat(report.title)}"
    yield ""
    yield f"**{report.state}{gate}**: {_counts(report.counts) or 'no boxes'}"
    how = f"{confinement.sentence(report.confinement)} {metering.sentence(report.metering)}".rstrip()
    yield f"in `{report.repository}` on `{report.base}`, merge {report.merge}. {how}"
    yield from ("", f"{level}# What was asked", "")
    yield from (f"- {word.at} {_flat(word.text)}" for word in report.words)
    yield ""
    if report.asked.strip() and not report.since:
        yield from (report.asked.strip(), "")
    yield from (f"{level}# What became of it", "")
    for name, tasks in sorts_of(report.tasks).items():
        yield from (f"{level}## {name}", "")
        for task in tasks:
            yield from _task(task)
        yield ""
    if report.still:
        yield from (f"Of the other boxes nothing moved since {report.since}: {_counts(report.still)}.", "")
    if report.waiting:
        yield from (f"{level}# What waits for a person", "", *_waits(report.waiting), "")
    if not report.costs.whole.nothing:
        yield from (f"{level}# What it cost", "", *_costs(report.costs, "task"), "")
    text = f"Text `{report.digest[:12]}`."
    yield f"{counted(report.seq, 'receipt')}; the chain's head is `{report.head}`. {text}"
    if report.seal:
        yield from ("", f"Receipt {report.sealed_seq} is sealed: `{report.seal}`")


def _task(task: TaskReport) -> Iterator[str]:
    proof = f", **{task.proof}**" if task.proof == UNPROVEN else f", {task.proof}" if task.proof else ""
    spent = f" in {task.seconds:.1f} s" if task.seconds is not None else ""
    yield f"- {task.ordinal}. {_flat(task.title)}: **{task.state}**{proof}{spent}"
    if task.pull_url:
        merged = f", merged as `{task.merged_sha[:12]}`" if task.merged_sha else ""
        yield f"    - {task.pull_url}{merged}"
    if task.runs:
        crashes = f", {task.crashes} crashed" if task.crashes else ""
        crashes += f", and {counted(task.worker_crashes, 'worker')} died beside them" if task.worker_crashes else ""
        around = f" ({task.metering})" if metering.has_unmetered(task.metering) else ""
        given = f", {counted(task.review_runs, 'review')}" if task.review_runs else ""
        yield f"    - {counted(task.runs, 'run')}{around}, {counted(task.check_runs, 'check')}{given}{crashes}"
    for run in task.attempts:
        if run.told:
            yield f"    - {run.role} {run.number} is {_flat(run.told.sentence)}"
    for check in task.checks:
        yield f"    - `{_flat(check.command)}` on `{check.commit_sha[:12]}`: {check.result}"
    for review in task.reviews:
        yield from _review("review", review)
    for review in task.earlier_reviews:
        yield from _review("before that, review", review)
    if task.reason:
        yield f"    - {_flat(task.reason)}"
    if task.said:
        yield from (f"    - What the agent says of its work. {OWN_WORDS}", "", *_beneath(verbatim(task.said)), "")


def _review(what: str, review: Review) -> Iterator[str]:
    told = f"    - {what} by `{_flat(review.reviewer)}` on `{review.commit_sha[:12]}`: {review.result}"
    if review.words:
        yield from (f"{told}. {OWN_WORDS}", "", *_beneath(verbatim(review.words)), "")
    else:
        yield told


def _waits(waits: Iterable[WaitReport], *, of_all: bool = False) -> Iterator[str]:
    """`of_all`: they are of several plans, so each says of which."""
    for each in waits:
        whom = f"{each.task}. {_flat(each.title)}" if each.task is not None else "The plan"
        if of_all:
            whom = f"{each.plan}#{whom}" if each.task is not None else each.plan
        if "\n" in each.text.strip():
            yield from (f"- {whom}:", "", *_beneath(fenced(each.text), 2), "")
        else:
            yield f"- {whom}: {_flat(each.text)}"
        yield from (f"    - `{command}`" for command in each.commands)


def _costs(costs: Costs, what: str) -> Iterator[str]:
    of = "" if costs.budget_nano_usd is None else f"; the plan's budget is {format_usd(costs.budget_nano_usd)}"
    yield f"{came_to(costs.whole)}{of}."
    for name, parts in ((what, costs.tasks), ("role", costs.roles), ("model", costs.models)):
        yield ""
        yield from _table(name, parts)


def _table(name: str, parts: Sequence[Part]) -> Iterator[str]:
    yield f"| {name} | {' | '.join(COLUMNS)} |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for part in parts:
        title = _flat(f"{part.name}. {part.title}" if part.title else part.name).replace("|", "\\|")
        yield f"| {title} | {' | '.join(row_of(part.spending))} |"


def tokens(spent: Spending) -> tuple[int, int, int, int]:
    """Tokens that went through no cache, came from one, went into one, and came out."""
    told = spent.tokens.get
    into = told("cache_write_5m", 0) + told("cache_write_1h", 0)
    return told("input", 0), told("cache_read", 0), into, told("output", 0)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {state}" for state, number in counts.items())


def _beneath(block: str, columns: int = 6) -> list[str]:
    """Lines that belong to an item of a list, by default of one within another."""
    return [f"{' ' * columns}{line}".rstrip() for line in block.splitlines()]


def _flat(text: str) -> str:
    """Somebody's words on one line of the report."""
    return " ".join(text.split())
