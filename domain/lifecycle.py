"""A lifecycle is a table; a move is one step through it; a receipt is the record that it was taken.

Nothing else in Watchbill changes a fact. The store applies moves, the audit replays receipts
through the same tables, and the reference pages are generated from them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

from domain.duties import Actor
from domain.errors import IllegalMove
from domain.identity import digest

GENESIS = "0" * 64
"""What the first receipt of a chain names as its predecessor."""


Condition = Callable[[Mapping[str, Any]], str]
"""Why a move with these facts is refused, in a sentence; empty where it is not."""


@dataclass(frozen=True)
class Lifecycle:
    """The states of one kind of thing and every move that is allowed between them.

    `moves` maps (state, event) to the next state; the state None is "not there yet". A pair that
    is absent is a refusal. An event that leaves the state as it is may still change facts.

    `conditions` says of an event why it is refused with these facts, or nothing; most have none.
    """

    name: str
    moves: Mapping[tuple[str | None, str], str]
    ended: frozenset[str]
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    def after(self, state: str | None, event: str, facts: Mapping[str, Any] | None = None) -> str:
        """The state that follows; IllegalMove when the table has no such entry, or the event's condition fails."""
        try:
            after = self.moves[state, event]
        except KeyError:
            raise IllegalMove(self.name, state, event) from None
        condition = self.conditions.get(event)
        if why := condition(facts or {}) if condition else "":
            raise IllegalMove(self.name, state, event, why)
        return after

    def allows(self, state: str | None, event: str) -> bool:
        return (state, event) in self.moves

    @property
    def states(self) -> tuple[str, ...]:
        """Every state, in the order in which the table first names it."""
        return tuple(dict.fromkeys(str(target) for target in self.moves.values()))


def table(
    *rows: tuple[Iterable[str] | str | None, str, str],
) -> Mapping[tuple[str | None, str], str]:
    """Build a move table from (state or states, event, next state) rows; a pair may stand once."""
    moves: dict[tuple[str | None, str], str] = {}
    for before, event, after in rows:
        for state in [before] if before is None or isinstance(before, str) else before:
            if (state, event) in moves:
                raise ValueError(f"({state}, {event}) stands twice in the table")
            moves[state, event] = after
    return MappingProxyType(moves)


@dataclass(frozen=True)
class Move:
    """A wish to change one thing, as a caller hands it to the store.

    `kind` names the lifecycle, `subject` the thing's id, `chain` the receipt chain (a plan's id,
    or `owner:<owner>`, or `system`). `key` names the observed fact (never the messenger, attempt
    or workflow run): the same key again answers the first receipt; with another payload it is
    refused. `facts` are the columns that change with the state. `by` is who causes it, and must have
    the duty to (domain.duties); `cause` says in words who or what moved it; `at` is aware UTC.
    """

    kind: str
    subject: str
    event: str
    key: str
    chain: str
    cause: str
    at: datetime
    facts: Mapping[str, Any] = field(default_factory=dict)
    by: Actor = field(kw_only=True)


@dataclass(frozen=True)
class Receipt:
    """The record of one move, or of one refusal (`refused` says why; then `before == after`).

    `actor` is who caused it, a `domain.duties.Actor`; empty in what was recorded before that was kept.
    """

    chain: str
    seq: int
    kind: str
    subject: str
    before: str | None
    after: str | None
    event: str
    key: str
    cause: str
    at: datetime
    facts: Mapping[str, Any]
    previous: str
    hash: str
    refused: str = ""
    actor: str = ""


@dataclass(frozen=True)
class Moved:
    """What the store answers: the receipt, whether this call wrote it, and the state that holds now.

    `state` is the current state, which may be further on than the receipt: the caller goes on from it.
    """

    receipt: Receipt
    fresh: bool
    state: str | None

    @property
    def refused(self) -> str:
        return self.receipt.refused


def canonical(value: Any) -> str:
    """JSON with one spelling: sorted keys, no spaces, UTF-8, no NaN. What is hashed is this."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def receipt_hash(
    *,
    previous: str,
    chain: str,
    seq: int,
    kind: str,
    subject: str,
    before: str | None,
    after: str | None,
    event: str,
    key: str,
    cause: str,
    at: datetime,
    facts: Mapping[str, Any],
    refused: str,
    actor: str = "",
) -> str:
    """The hash of a receipt covers everything it says and the hash of the one before it.

    An actor that is not known adds nothing, so the hashes of before there were any hold.
    """
    return digest(
        canonical(
            [
                previous,
                chain,
                seq,
                kind,
                subject,
                before,
                after,
                event,
                key,
                cause,
                at.isoformat(timespec="microseconds"),
                dict(facts),
                refused,
                *([actor] if actor else []),
            ]
        )
    )
