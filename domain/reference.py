"""The lifecycles' reference page, made from the tables: `python -m domain.reference > docs/reference/lifecycles.md`."""

from __future__ import annotations

from domain.duties import DUTIES, Actor
from domain.ledger import RESERVATION
from domain.lifecycle import Lifecycle
from domain.notes import NOTE
from domain.owner import OWNER
from domain.plan import PLAN, REVISION
from domain.review import REVIEW
from domain.run import EVIDENCE, RUN
from domain.task import QUESTION, TASK

LIFECYCLES = (PLAN, REVISION, TASK, QUESTION, RUN, EVIDENCE, REVIEW, NOTE, OWNER, RESERVATION)


def page() -> str:
    """The whole page as Markdown."""
    intro = (
        "# Lifecycles\n\n"
        "Made from the tables in `domain/` by `python -m domain.reference`; a test holds the two together. "
        "A pair of state and event that is not here is a refusal, and a refusal leaves a receipt. "
        "An event that leads from a state to itself changes facts and leaves a receipt like any other. "
        "Who may cause which event [stands behind them](#duties)."
    )
    return "\n\n".join([intro, *map(section, LIFECYCLES), duties()]) + "\n"


def section(lifecycle: Lifecycle) -> str:
    """One lifecycle: a diagram of the moves that change the state, and the table of all of them."""
    edges: dict[tuple[str, str], list[str]] = {}
    for (before, event), after in lifecycle.moves.items():
        if before != after:
            edges.setdefault((_name(before), str(after)), []).append(str(event))
    diagram = [f"    {before} --> {after}: {', '.join(events)}" for (before, after), events in edges.items()]
    ends = [f"    {state} --> [*]" for state in lifecycle.states if state in lifecycle.ended]
    rows = [
        f"| {'(none)' if before is None else before} | {event} | {after} |"
        for (before, event), after in lifecycle.moves.items()
    ]
    return "\n".join(
        [
            f"## {lifecycle.name.capitalize()}",
            "",
            "```mermaid",
            "stateDiagram-v2",
            *diagram,
            *ends,
            "```",
            "",
            "| state | event | next |",
            "| --- | --- | --- |",
            *rows,
        ]
    )


def duties() -> str:
    """Who may cause which event: a row for each actor and kind of thing."""
    names = [lifecycle.name for lifecycle in LIFECYCLES]
    rows = [
        f"| {actor} | {kind} | {', '.join(DUTIES[actor][kind])} |"
        for actor in Actor
        for kind in sorted(DUTIES[actor], key=names.index)
    ]
    none = ", ".join(actor for actor in Actor if not DUTIES[actor])
    intro = (
        "Who may cause which event. The transition asks before the lifecycle does: what is none of an actor's "
        "duties is refused, and the refusal leaves a receipt that says who may. Every receipt names its actor, and "
        f"the audit holds it against this table. No duty at all: {none}. Reservations leave no receipts."
    )
    return "\n".join(
        [
            "## Duties",
            "",
            intro,
            "",
            "| actor | of | events |",
            "| --- | --- | --- |",
            *rows,
        ]
    )


def _name(state: str | None) -> str:
    return "[*]" if state is None else str(state)


if __name__ == "__main__":
    print(page(), end="")
