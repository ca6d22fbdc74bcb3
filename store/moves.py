"""The one way by which a fact changes: a move writes the row, the receipt and the chain's head, or none."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cache
from typing import Any

from sqlalchemy import Connection, Executable, Row, bindparam, delete, func, insert, select, update

from domain.duties import Actor, why_not
from domain.errors import IllegalMove, KeyReused, Superseded, Unavailable
from domain.lifecycle import GENESIS, Move, Moved, Receipt, canonical, receipt_hash
from domain.task import SLOTTED
from store.caps import follow
from store.database import insert_into, insert_of
from store.plain import plain, plain_text
from store.subjects import SUBJECTS
from store.tables import chains, incarnations, receipts, slots, tasks, watermarks

SAID = [column for column in receipts.c if column.name != "mark"]
"""The columns of a receipt; `mark` is where it stands in its owner's order, and no part of it."""

# Nothing is joined to the head: PostgreSQL reads a locked row anew after a wait, but not what is
# joined to it. Keys and states are read by statements of their own, once the lock is held.
_HEAD = (
    select(
        chains.c.seq,
        chains.c.hash,
        chains.c.owner,
        select(func.max(incarnations.c.number)).scalar_subquery().label("incarnation"),
    )
    .where(chains.c.chain == bindparam("chain"))
    .with_for_update(of=chains)
)
_MADE = select(*SAID).where(
    receipts.c.chain == bindparam("chain"),
    receipts.c.key.in_(bindparam("keys", expanding=True)),
    receipts.c.refused == "",
)
_REFUSED = (
    select(*SAID)
    .where(
        receipts.c.chain == bindparam("chain"),
        receipts.c.key == bindparam("key"),
        receipts.c.refused != "",
        receipts.c.kind == bindparam("kind"),
        receipts.c.subject == bindparam("subject"),
        receipts.c.event == bindparam("event"),
        receipts.c.before.is_not_distinct_from(bindparam("before")),
        receipts.c.actor == bindparam("actor"),
    )
    .order_by(receipts.c.seq.desc())
    .limit(1)
)
_ADVANCE = (
    update(chains)
    .where(chains.c.chain == bindparam("on"))
    .values(seq=bindparam("to"), hash=bindparam("head"), owner=bindparam("of"))
)
_WRITE = insert(receipts)
_RELEASE = delete(slots).where(slots.c.task_id == bindparam("task"))

States = dict[tuple[str, str], str | None]


def move(connection: Connection, *moves: Move, incarnation: int | None = None) -> tuple[Moved, ...]:
    """Make all of the moves, in their order and on their one chain, or none of them.

    Answers one `Moved` for each move, or, when one of them is none of its actor's duties or the
    lifecycle refuses it, a single `Moved` that holds the refusal: `moved[-1].refused` tells the two
    apart. A move whose key was made before changes nothing and answers its first receipt with
    `fresh=False`; `state` is always the state that holds now. A refusal is recorded once for each
    key, state and actor, and spends no key.

    The chain's head stays locked until the transaction ends, so a transaction moves one chain.
    `incarnation` is the caller's Temporal; None is for doors that have none.

    Raises KeyReused when a key comes back with another payload, Superseded when a newer incarnation
    has taken over, Unavailable when a row changed without its chain's lock, and ValueError or
    TypeError for what the tables cannot hold. The caller's transaction is then void.
    """
    if not moves:
        return ()
    chain = _chain_of(moves)
    wishes = [_plain(wish) for wish in moves]
    head = _lock(connection, chain, incarnation)
    made = _made(connection, chain, wishes)
    standing = _states(connection, chain, wishes)
    states = dict(standing)
    fresh: dict[str, Receipt] = {}
    tip = head
    for wish in wishes:
        before = states[wish.kind, wish.subject]
        try:
            # Also of what was made before: its receipt answers those alone who could have made it.
            if why := why_not(wish.by, wish.kind, wish.event):
                raise IllegalMove(wish.kind, before, wish.event, why)
            if wish.key in made:
                _require_same(wish, made[wish.key])
                continue
            after = SUBJECTS[wish.kind].lifecycle.after(before, wish.event, wish.facts)
            if why := SUBJECTS[wish.kind].guard(connection, wish):
                raise IllegalMove(wish.kind, before, wish.event, why)
        except IllegalMove as refusal:
            # The group is not made, so what its earlier moves would have led to is not where things stand.
            return (_refuse(connection, head, wish, standing[wish.kind, wish.subject], str(refusal)),)
        fresh[wish.key] = receipt = _make_out(tip, wish, before, str(after))
        tip = tip.behind(receipt)
        states[wish.kind, wish.subject] = receipt.after
    if fresh:
        _write_rows(connection, chain, fresh.values())
        _write_receipts(connection, tip, fresh.values())
    return tuple(
        Moved(fresh.get(wish.key) or made[wish.key], wish.key in fresh, states[wish.kind, wish.subject])
        for wish in wishes
    )


def lock_chain(connection: Connection, chain: str) -> None:
    """Hold back every other move on the chain until the transaction ends.

    For whoever decides a move from what it reads first: on PostgreSQL others may move in between.
    """
    _lock(connection, chain, None)


def record_refusal(connection: Connection, wish: Move, why: str) -> Moved:
    """Record that a wish was refused before it came to a move: what was asked, by whom, and why not.

    A repeat in the same state answers the first record.
    """
    wish = _plain(wish)
    head = _lock(connection, wish.chain, None)
    state = _states(connection, wish.chain, [wish])[wish.kind, wish.subject]
    return _refuse(connection, head, wish, state, plain_text(why))


def receipt_of(row: Row[Any]) -> Receipt:
    """The receipt that a row of the receipts table holds; `mark` is not part of it."""
    said = row._asdict()
    said.pop("mark", None)
    return Receipt(**{**said, "facts": json.loads(said["facts"])})


@dataclass(frozen=True)
class _Head:
    """The end of a locked chain. `owner` is whose watermark its moves raise."""

    chain: str
    seq: int
    hash: str
    owner: str

    def behind(self, receipt: Receipt) -> _Head:
        """The head once this receipt is written. A plan's chain learns its owner from its first move."""
        owner = self.owner or str(receipt.facts.get("owner", ""))
        return _Head(self.chain, receipt.seq, receipt.hash, owner)


def _chain_of(moves: Sequence[Move]) -> str:
    chains_named = {wish.chain for wish in moves}
    if len(chains_named) != 1 or len({wish.key for wish in moves}) != len(moves):
        raise ValueError("moves of one group are on one chain, each with a key of its own")
    return chains_named.pop()


def _plain(wish: Move) -> Move:
    """The move as both engines give it back, so that both hash the same bytes."""
    if wish.at.tzinfo is None:
        raise ValueError(f"the time {wish.at} of {wish.event} has no zone")
    return replace(
        wish,
        kind=str(wish.kind),
        event=str(wish.event),
        cause=plain_text(wish.cause),
        at=wish.at.astimezone(UTC),
        facts=plain(wish.facts),
        by=Actor(wish.by),
    )


def _lock(connection: Connection, chain: str, incarnation: int | None) -> _Head:
    row = connection.execute(_HEAD, {"chain": chain}).one_or_none()
    if row is None:
        owner = chain.removeprefix("owner:") if chain.startswith("owner:") else ""
        first = {"chain": chain, "owner": owner, "seq": 0, "hash": GENESIS}
        connection.execute(insert_into(connection, chains).on_conflict_do_nothing(), first)
        row = connection.execute(_HEAD, {"chain": chain}).one()
    if incarnation is not None and incarnation < (row.incarnation or 0):
        raise Superseded(
            f"Temporal's incarnation {row.incarnation} has taken over from {incarnation}; stop this worker"
        )
    return _Head(chain, row.seq, row.hash, row.owner)


def _made(connection: Connection, chain: str, wishes: Sequence[Move]) -> Mapping[str, Receipt]:
    """The receipts of those moves that were made before, by key."""
    rows = connection.execute(_MADE, {"chain": chain, "keys": [wish.key for wish in wishes]})
    return {receipt.key: receipt for receipt in map(receipt_of, rows)}


def _states(connection: Connection, chain: str, wishes: Sequence[Move]) -> States:
    """The state of everything that is to be moved; None for what is not there yet."""
    states: States = {(wish.kind, wish.subject): None for wish in wishes}
    for kind in dict.fromkeys(wish.kind for wish in wishes):
        subject = SUBJECTS[kind]
        wanted = {"ids": [id for of, id in states if of == kind], "home": subject.home_of(chain)}
        rows = connection.execute(subject.states, wanted)
        states.update({(kind, row.id): row.state for row in rows})
    return states


def _require_same(wish: Move, made: Receipt) -> None:
    asked, answered = ((said.kind, said.subject, said.event, canonical(said.facts)) for said in (wish, made))
    if asked != answered:
        raise KeyReused(
            f"the key {wish.key!r} of {wish.chain} was spent on {made.event} of {made.kind} {made.subject} "
            f"and comes back for {wish.event} of {wish.kind} {wish.subject}, or with other facts"
        )


def _make_out(head: _Head, wish: Move, before: str | None, after: str | None, refused: str = "") -> Receipt:
    """The receipt that follows this head. A refusal has changed nothing, so it holds no facts."""
    said: dict[str, Any] = {
        "chain": head.chain,
        "seq": head.seq + 1,
        "kind": wish.kind,
        "subject": wish.subject,
        "before": before,
        "after": after,
        "event": wish.event,
        "key": wish.key,
        "cause": wish.cause,
        "at": wish.at,
        "facts": {} if refused else wish.facts,
        "refused": refused,
        "actor": str(wish.by),
        "previous": head.hash,
    }
    return Receipt(**said, hash=receipt_hash(**said))


def _refuse(connection: Connection, head: _Head, wish: Move, state: str | None, why: str) -> Moved:
    receipt = _make_out(head, wish, state, state, why)
    same = {name: getattr(receipt, name) for name in ("chain", "key", "kind", "subject", "event", "before", "actor")}
    earlier = connection.execute(_REFUSED, same).one_or_none()
    if earlier is not None:
        return Moved(receipt_of(earlier), False, state)
    _write_receipts(connection, head.behind(receipt), [receipt])
    return Moved(receipt, True, state)


def _write_rows(connection: Connection, chain: str, made: Collection[Receipt]) -> None:
    for receipt in made:
        subject = SUBJECTS[receipt.kind]
        kept = {"state": receipt.after, "receipt_seq": receipt.seq, "receipt_hash": receipt.hash}
        if receipt.before is None:
            row = subject.first_row(receipt.subject, receipt.facts)
            if row[subject.home.name] != subject.home_of(chain):
                raise ValueError(f"{receipt.kind} {receipt.subject} does not belong on the chain {chain}")
            connection.execute(insert(subject.table), {**row, **kept})
            continue
        subject.require_columns(receipt.facts)
        chosen = {"subject": receipt.subject, "was": receipt.before}
        changed = connection.execute(subject.compare_and_set, {**chosen, **receipt.facts, **kept})
        if changed.rowcount != 1:
            raise Unavailable(f"{receipt.kind} {receipt.subject} changed under this move; try again")
        if subject.table is tasks and receipt.after not in SLOTTED:
            connection.execute(_RELEASE, {"task": receipt.subject})
    for receipt in made:
        follow(connection, receipt)


def _write_receipts(connection: Connection, tip: _Head, made: Collection[Receipt]) -> None:
    """Write receipts and the new head, and raise the owner's watermark by one for each.

    The watermark is the one row that an owner's plans share, so it is locked last and shortly.
    """
    raised = connection.execute(_raising(connection.dialect.name), {"owner": tip.owner, "mark": len(made)})
    first = raised.scalar_one() - len(made) + 1
    rows = [{**vars(receipt), "facts": canonical(receipt.facts), "mark": first + n} for n, receipt in enumerate(made)]
    connection.execute(_ADVANCE, {"on": tip.chain, "to": tip.seq, "head": tip.hash, "of": tip.owner})
    connection.execute(_WRITE, rows)


@cache
def _raising(dialect: str) -> Executable:
    raised = insert_of(dialect, watermarks)
    return raised.on_conflict_do_update(
        index_elements=["owner"], set_={"mark": watermarks.c.mark + raised.excluded.mark}
    ).returning(watermarks.c.mark)
