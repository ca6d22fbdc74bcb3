"""What lives in the work graph: for each kind its lifecycle, its table, and the chain that it is on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Column, Connection, Select, Table, Update, bindparam, select, update

from domain.lifecycle import Lifecycle, Move
from domain.notes import NOTE
from domain.owner import OWNER
from domain.plan import PLAN, REVISION
from domain.review import REVIEW
from domain.run import EVIDENCE, RUN
from domain.task import QUESTION, TASK
from store import tables
from store.closing import why_no_approval, why_unproven

_KEPT_BY_MOVES = ("id", "state", "receipt_seq", "receipt_hash")


@dataclass(frozen=True)
class Subject:
    """A kind of thing. Its rows with `home == home_of(chain)` are those whose receipts are on that chain.

    `chain_prefix` None is for what belongs on plans' chains and on owners' alike: `home` holds the chain's name.
    `guard` says why the graph does not bear a move out that the table allows, or nothing.
    """

    lifecycle: Lifecycle
    table: Table
    home: Column[Any]
    chain_prefix: str | None = ""
    guard: Callable[[Connection, Move], str] = lambda _, __: ""

    def has_place_on(self, chain: str) -> bool:
        """Whether receipts of this kind may be on that chain: an owner's on its own, others on a plan's."""
        if self.chain_prefix is None:
            return True
        return chain.startswith(self.chain_prefix) if self.chain_prefix else ":" not in chain

    def home_of(self, chain: str) -> str:
        """What `home` holds for the subjects of this chain; ValueError when this kind has no place on it."""
        if not self.has_place_on(chain):
            raise ValueError(f"a {self.lifecycle.name} has no place on the chain {chain!r}")
        return chain.removeprefix(self.chain_prefix or "")

    def chain_of(self, home: str) -> str:
        """The chain of the subjects whose `home` this is."""
        return (self.chain_prefix or "") + home

    @cached_property
    def states(self) -> Select[Any]:
        """Selects id and state of the subjects `ids` whose home is `home`."""
        chosen = self.table.c.id.in_(bindparam("ids", expanding=True))
        return select(self.table.c.id, self.table.c.state).where(chosen, self.home == bindparam("home"))

    @cached_property
    def compare_and_set(self) -> Update:
        """Sets the columns that it is executed with, provided that `subject` is still in state `was`."""
        return update(self.table).where(self.table.c.id == bindparam("subject"), self.table.c.state == bindparam("was"))

    @cached_property
    def columns(self) -> Mapping[str, Column[Any]]:
        """The columns that a move's facts may name."""
        return {column.name: column for column in self.table.c if column.name not in _KEPT_BY_MOVES}

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """What the columns hold that the first move's facts leave out."""
        optional = [column for column in self.columns.values() if column.nullable or column.default]
        return {column.name: _default(column) for column in optional}

    def first_row(self, subject: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The row that a first move makes, without what the move itself keeps.

        ValueError when the facts leave a column without a value, or name one that is not there.
        """
        self.require_columns(facts)
        missing = self.columns.keys() - self.defaults.keys() - facts.keys()
        if missing:
            raise ValueError(f"the facts of a new {self.lifecycle.name} lack its {', '.join(sorted(missing))}")
        return {"id": subject, **self.defaults, **facts}

    def require_columns(self, facts: Mapping[str, Any]) -> None:
        """ValueError when the facts name what is no column, or one that only the move itself may set."""
        unknown = facts.keys() - self.columns.keys()
        if unknown:
            raise ValueError(f"a {self.lifecycle.name} has no fact called {', '.join(sorted(unknown))}")


def _default(column: Column[Any]) -> Any:
    value = getattr(column.default, "arg", None)
    return list(value) if isinstance(value, tuple) else value


SUBJECTS: Mapping[str, Subject] = {
    subject.lifecycle.name: subject
    for subject in (
        Subject(PLAN, tables.plans, tables.plans.c.id),
        Subject(REVISION, tables.revisions, tables.revisions.c.plan_id),
        Subject(TASK, tables.tasks, tables.tasks.c.plan_id, guard=why_unproven),
        Subject(RUN, tables.runs, tables.runs.c.plan_id),
        Subject(QUESTION, tables.questions, tables.questions.c.plan_id),
        Subject(EVIDENCE, tables.evidence, tables.evidence.c.plan_id),
        Subject(REVIEW, tables.reviews, tables.reviews.c.plan_id, guard=why_no_approval),
        Subject(NOTE, tables.notes, tables.notes.c.chain, chain_prefix=None),
        Subject(OWNER, tables.owners, tables.owners.c.id, chain_prefix="owner:"),
    )
}
"""Every kind of thing that can move, by the name of its lifecycle."""
