"""The audit: replays every receipt and compares what follows from them with the rows as they are.

It trusts nothing but the tables of lifecycles and duties, and holds the ledger's sums beside its reservations.
A chain that somebody rewrote from end to end, rows and head included, agrees with itself: that is found by
the heads that are published elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, RowMapping, Text, select, type_coerce
from sqlalchemy.types import NullType

from domain.duties import why_not
from domain.errors import IllegalMove, NotFound, WatchbillError
from domain.identity import digest
from domain.lifecycle import GENESIS, Receipt, canonical, receipt_hash
from store import contents, proof
from store.columns import Json
from store.moves import SAID
from store.receipts import head_of
from store.subjects import SUBJECTS, Subject
from store.tables import briefs, chains, evidence, receipts, runs

_PAGE = 500


@dataclass(frozen=True)
class Finding:
    """One thing that does not add up, in one sentence; `seq`, `subject` and `column` say where, if known."""

    chain: str
    message: str
    seq: int | None = None
    subject: str = ""
    column: str = ""


def audit(connection: Connection, chain: str | None = None, reckon: proof.Reckon | None = None) -> tuple[Finding, ...]:
    """Everything that is wrong with one chain, or with all of them; empty when all is as it should be.

    With `reckon` what calls cost is reckoned again from their tokens.

    Memory holds one chain's subjects at a time, never its receipts. Run it in a `Store.read()`,
    which sees one moment of the graph while moves go on.
    """
    named = [chain] if chain is not None else _every_chain(connection)
    return tuple(finding for name in named for finding in _audit_chain(connection, name, reckon))


def _every_chain(connection: Connection) -> list[str]:
    """Chains that have a head, receipts, or rows that ought to be on them."""
    names = set(connection.scalars(select(chains.c.chain)))
    names.update(connection.scalars(select(receipts.c.chain).distinct()))
    names.update(proof.homes(connection))
    for subject in SUBJECTS.values():
        homes = connection.scalars(select(subject.home).distinct())
        names.update(map(subject.chain_of, homes))
    return sorted(names)


def _audit_chain(connection: Connection, chain: str, reckon: proof.Reckon | None) -> Iterator[Finding]:
    replay = _Replay(chain)
    yield from _as_far_as_readable(chain, "its receipts", _replayed(connection, replay))
    yield from _as_far_as_readable(chain, "its head", _compare_head(connection, replay))
    for kind, subject in SUBJECTS.items():
        if subject.has_place_on(chain):
            rows = _compare_rows(connection, replay, kind, subject)
            yield from _as_far_as_readable(chain, f"a {kind} of it", rows)
    yield from _as_far_as_readable(chain, "its evidence", _compare_artifacts(connection, chain))
    yield from _as_far_as_readable(chain, "its briefs", _compare_briefs(connection, chain))
    yield from _as_far_as_readable(chain, "its ledger", _prove_ledger(connection, chain, reckon))


def _as_far_as_readable(chain: str, what: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """What a hand has put into a row may be of any kind: that is a finding too, and hides no other."""
    try:
        yield from findings
    except Exception as error:  # noqa: BLE001 - whatever a hand put there
        yield Finding(chain, f"{what} cannot be read as it stands in the store: {type(error).__name__}: {error}")


def _replayed(connection: Connection, replay: _Replay) -> Iterator[Finding]:
    for row in _raw_receipts(connection, replay.chain):
        yield from replay.take(row)


def _raw_receipts(connection: Connection, chain: str) -> Iterator[RowMapping]:
    """The receipts' columns as they are kept, in order, a page at a time."""
    columns = [type_coerce(column, Text).label(column.name) if column.name == "at" else column for column in SAID]
    query = select(*columns).where(receipts.c.chain == chain).order_by(receipts.c.seq).limit(_PAGE)
    after = 0
    while page := connection.execute(query.where(receipts.c.seq > after)).mappings().all():
        yield from page
        after = page[-1]["seq"]


@dataclass
class _Replay:
    """What a chain's receipts say, folded as far as they have been taken."""

    chain: str
    seq: int = 0
    hash: str = GENESIS
    rows: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def take(self, row: RowMapping) -> Iterator[Finding]:
        seq = row["seq"]
        if seq != self.seq + 1:
            missing = (
                f"receipt {self.seq + 1} is" if seq == self.seq + 2 else f"receipts {self.seq + 1} to {seq - 1} are"
            )
            yield Finding(self.chain, f"{missing} missing", self.seq + 1)
        elif row["previous"] != self.hash:
            yield Finding(self.chain, f"receipt {seq} does not follow from receipt {seq - 1}: its link is broken", seq)
        self.seq, self.hash = seq, row["hash"]
        try:
            receipt = Receipt(
                **{**row, "at": datetime.fromisoformat(row["at"]), "facts": dict(json.loads(row["facts"]))}
            )
        except (ValueError, TypeError):
            yield self._finding(
                row, f"receipt {seq} cannot be read: its time or its facts are no longer what they were"
            )
            return
        said = {name: value for name, value in vars(receipt).items() if name != "hash"}
        if receipt_hash(**said) != receipt.hash:
            yield self._finding(row, f"receipt {seq} was changed: its hash is not that of what it says")
        yield from self._fold(row, receipt)

    def _fold(self, row: RowMapping, receipt: Receipt) -> Iterator[Finding]:
        subject = SUBJECTS.get(receipt.kind)
        if subject is None:
            yield self._finding(row, f"receipt {receipt.seq} is about a {receipt.kind}, which nothing here is")
            return
        known = self.rows.get((receipt.kind, receipt.subject))
        state = known["state"] if known else None
        if receipt.before != state:
            yield self._finding(
                row,
                f"receipt {receipt.seq} finds its {receipt.kind} {receipt.before or 'not there'}, "
                f"but the receipts before it leave it {state or 'not there'}",
            )
        # A refusal is not replayed: a lifecycle that has grown since may allow today what it refused.
        if receipt.refused:
            return
        # What names nobody is from before receipts did.
        if receipt.actor and (why := why_not(receipt.actor, receipt.kind, receipt.event)):
            said = f"receipt {receipt.seq}, {receipt.event} of a {receipt.kind}, was not its actor's to cause: {why}"
            yield self._finding(row, said)
        try:
            after = subject.lifecycle.after(receipt.before, receipt.event, receipt.facts)
        except IllegalMove as illegal:
            yield self._finding(row, f"receipt {receipt.seq} cannot have been made: {illegal}")
        else:
            if after != receipt.after:
                yield self._finding(row, f"receipt {receipt.seq} leads to {receipt.after}, the lifecycle to {after}")
        kept = {"state": receipt.after, "receipt_seq": receipt.seq, "receipt_hash": receipt.hash}
        before = known or {"id": receipt.subject, **subject.defaults}
        self.rows[receipt.kind, receipt.subject] = {**before, **receipt.facts, **kept}

    def _finding(self, row: RowMapping, message: str) -> Finding:
        return Finding(self.chain, message, row["seq"], row["subject"])


def _compare_head(connection: Connection, replay: _Replay) -> Iterator[Finding]:
    seq, hash_ = head_of(connection, replay.chain)
    if (seq, hash_) != (replay.seq, replay.hash):
        yield Finding(
            replay.chain,
            f"the chain's head names receipt {seq} ({hash_[:12]}), but its last receipt is {replay.seq} "
            f"({replay.hash[:12]})",
            max(seq, replay.seq),
        )


def _compare_rows(connection: Connection, replay: _Replay, kind: str, subject: Subject) -> Iterator[Finding]:
    chain = replay.chain
    due = {id: row for (of, id), row in replay.rows.items() if of == kind}
    raw = [type_coerce(column, NullType()).label(column.name) for column in subject.table.c]
    query = select(*raw).where(subject.home == subject.home_of(chain)).order_by(subject.table.c.id)
    for row in connection.execute(query).mappings():
        expected = due.pop(row["id"], None)
        if expected is None:
            yield Finding(chain, f"{kind} {row['id']} has no receipt that made it", None, row["id"])
            continue
        for column in subject.table.c:
            said = _as_kept(column, expected.get(column.name))
            if row[column.name] != said:
                yield Finding(
                    chain,
                    f"{column.name} of {kind} {row['id']} is {_shown(row[column.name])}, "
                    f"but its receipts say {_shown(said)}",
                    expected["receipt_seq"],
                    row["id"],
                    column.name,
                )
    for id, expected in due.items():
        yield Finding(chain, f"{kind} {id} has receipts but no row", expected["receipt_seq"], id)


def _compare_artifacts(connection: Connection, chain: str) -> Iterator[Finding]:
    query = select(evidence.c.id, evidence.c.digest).where(evidence.c.plan_id == chain).order_by(evidence.c.id)
    for row in connection.execute(query).all():
        try:
            contents.read(connection, row.digest)
        except NotFound:
            yield Finding(chain, f"the content of evidence {row.id} is gone", None, row.id, "digest")
        except WatchbillError as error:
            yield Finding(chain, f"the content of evidence {row.id} does not hold: {error}", None, row.id, "digest")


def _compare_briefs(connection: Connection, chain: str) -> Iterator[Finding]:
    query = (
        select(runs.c.id, runs.c.brief, briefs.c.text, briefs.c.schema)
        .select_from(runs.outerjoin(briefs, briefs.c.run_id == runs.c.id))
        .where(runs.c.plan_id == chain, runs.c.brief != "")
        .order_by(runs.c.id)
        .execution_options(yield_per=16)
    )
    for row in connection.execute(query):
        if row.text is None:
            yield Finding(chain, f"the brief of run {row.id} is gone", None, row.id, "brief")
        elif digest(canonical([row.text, row.schema])) != row.brief:
            yield Finding(chain, f"the brief of run {row.id} is not what it was told", None, row.id, "brief")


def _prove_ledger(connection: Connection, chain: str, reckon: proof.Reckon | None) -> Iterator[Finding]:
    for flaw in proof.flaws(connection, chain, reckon):
        yield Finding(chain, flaw.message, None, flaw.subject, flaw.column)


def _as_kept(column: Column[Any], value: Any) -> Any:
    return canonical(value) if isinstance(column.type, Json) else value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
