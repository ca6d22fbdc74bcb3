"""The ledger: money is held before a model is asked, and what the call cost is written down exactly once.

Whatever is written here is written under the locks of all the ceilings that it concerns, so the sums of
the ceilings are those of their reservations at every moment that anybody can see. A whole batch of
entries is one pass: a few statements, whatever its length. Amounts are whole nano-dollars.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, select

from domain.ledger import CeilingKind, ReservationEvent
from domain.ledger import ReservationState as State
from store import reservations
from store.ceilings import Ceiling, keep, locked
from store.entries import (
    TOKENS,
    Answer,
    Ask,
    Entry,
    Expiry,
    Held,
    Release,
    Renewal,
    Short,
    Spent,
    Void,
    require_sound,
)
from store.reservations import Reservation
from store.standing import Standing, standings
from store.tables import reservations as reservation_rows

__all__ = [
    "Answer",
    "Ask",
    "Entry",
    "Held",
    "Release",
    "Renewal",
    "Short",
    "Spent",
    "Void",
    "admit",
    "enter",
    "expire",
    "release",
    "renew",
    "settle",
]

AT_ONCE = 200
"""Reservations that expire in one transaction: writes are short."""


def admit(connection: Connection, asks: Sequence[Ask]) -> list[Held | Short | Void]:
    """Hold money for each ask in the order given, in the caller's one transaction.

    An ask that was held before is answered as it was then, and holds nothing more.
    """
    return cast("list[Held | Short | Void]", enter(connection, asks))


def settle(connection: Connection, spent: Sequence[Spent]) -> list[bool]:
    """Write down what calls cost, each exactly once. A repeat, or one that was held for nobody, answers False.

    What has expired meanwhile is corrected, in the day in which it was held.
    """
    return cast("list[bool]", enter(connection, spent))


def release(connection: Connection, ids: Iterable[str], at: datetime) -> list[bool]:
    """Give back what was held for calls of which nothing reached the provider; False for what is held no more."""
    return cast("list[bool]", enter(connection, [Release(id, at) for id in ids]))


def renew(connection: Connection, ids: Iterable[str], until: datetime) -> list[bool]:
    """Answer for live streams until then; False for what is held no more. No lease is ever shortened."""
    return cast("list[bool]", enter(connection, [Renewal(id, until) for id in ids]))


def expire(connection: Connection, now: datetime) -> int:
    """Let what is held past its lease count as spent, since nobody answers for it; how many, `AT_ONCE` at most."""
    lapsed = (reservation_rows.c.state == State.HELD, reservation_rows.c.lease_until <= now)
    query = select(reservation_rows.c.id).where(*lapsed).order_by(reservation_rows.c.lease_until).limit(AT_ONCE)
    expiries = [Expiry(id, now) for id in connection.scalars(query)]
    return sum(answer is True for answer in _pass(connection, expiries, ""))


def enter(connection: Connection, entries: Sequence[Entry], relay: str = "") -> list[Answer]:
    """Enter a batch of any kinds in the order given, as `admit`, `settle`, `release` and `renew` do.

    `relay` names the process that answers for what is held. ValueError for an entry that cannot be true.
    """
    return _pass(connection, entries, relay)


def _pass(connection: Connection, entries: Sequence[Entry | Expiry], relay: str) -> list[Answer]:
    if not entries:
        return []
    for entry in entries:
        require_sound(entry)
    asks = [entry for entry in entries if isinstance(entry, Ask)]
    runs = standings(connection, {ask.run for ask in asks})
    wanted = {ask.id: run.needs(ask.at, ask.run_cap_nano_usd) for ask in asks if (run := _able(runs, ask))}
    ids = [entry.id for entry in entries]
    there = reservations.load(connection, ids)
    needs = (need for each in dict.fromkeys(wanted.values()) for need in each)
    ceilings = locked(connection, needs, {id for each in there.values() for id in each.ceilings})
    if there and connection.dialect.name == "postgresql":
        # Only under the locks is it certain what has become of them.
        there = reservations.load(connection, ids)
    chains = {id: tuple(ceilings[need.id] for need in needs) for id, needs in wanted.items()}
    book = _Book(runs, ceilings, chains, there, relay)
    answers = [book.enter(entry) for entry in entries]
    book.write(connection)
    return answers


def _able(runs: Mapping[str, Standing], ask: Ask) -> Standing | None:
    run = runs.get(ask.run)
    return None if run is None or run.why_void(ask) else run


class _Book:
    """The ledger's open page: everything that a batch concerns, locked, in memory, until it is written."""

    def __init__(
        self,
        runs: Mapping[str, Standing],
        ceilings: Mapping[str, Ceiling],
        chains: Mapping[str, tuple[Ceiling, ...]],
        there: Mapping[str, Reservation],
        relay: str,
    ) -> None:
        self._runs, self._ceilings, self._relay = runs, ceilings, relay
        self._chains = chains
        self._reservations = dict(there)
        self._fresh: list[Reservation] = []
        self._changed: dict[str, Reservation] = {}
        self._usage: list[dict[str, object]] = []

    def enter(self, entry: Entry | Expiry) -> Answer:
        if isinstance(entry, Ask):
            return self._admit(entry)
        held = self._reservations.get(entry.id)
        if held is None:
            return False
        match entry:
            case Spent():
                return self._settle(held, entry)
            case Release():
                return self._end(held, ReservationEvent.RELEASE, 0, entry.at)
            case Renewal():
                return self._renew(held, entry.until)
            case Expiry():
                over = held.lease_until <= entry.now
                return over and self._end(held, ReservationEvent.EXPIRE, held.held, entry.now)

    def write(self, connection: Connection) -> None:
        keep(connection, (each for each in self._ceilings.values() if each.changed))
        reservations.insert(connection, self._fresh)
        reservations.update(connection, self._changed.values())
        reservations.insert_usage(connection, self._usage)

    def _admit(self, ask: Ask) -> Held | Short | Void:
        there = self._reservations.get(ask.id)
        if there is not None:
            same = there.state == State.HELD and there.run_id == ask.run
            return Held(there.id, there.held) if same else Void(f"request {ask.id} was made before, and is over")
        chain = self._chains.get(ask.id)
        if chain is None:
            run = self._runs.get(ask.run)
            return Void(run.why_void(ask) if run else f"there is no run {ask.run}")
        amount = ask.most
        for ceiling in chain:
            cap, left = _room(ceiling, ask)
            if left is None:
                continue
            if left < ask.least:
                passing = all(_unspent(each, ask) >= ask.least for each in chain)
                return Short(ceiling.kind, ceiling.subject, cap or 0, max(0, left), passing)
            amount = min(amount, left)
        self._hold(ask, amount, chain)
        return Held(ask.id, amount)

    def _hold(self, ask: Ask, amount: int, chain: tuple[Ceiling, ...]) -> None:
        for ceiling in chain:
            ceiling.add(amount, 0)
        fresh = reservations.first(
            ask.id,
            ask.run,
            tuple(ceiling.id for ceiling in chain),
            held=amount,
            model=ask.model,
            endpoint=ask.endpoint,
            price=ask.price,
            asked_at=ask.at,
            lease_until=ask.lease_until,
            relay=self._relay,
        )
        self._reservations[ask.id] = fresh
        self._fresh.append(fresh)

    def _settle(self, held: Reservation, spent: Spent) -> bool:
        amount = held.held if spent.nano_usd is None else spent.nano_usd
        if not self._end(held, ReservationEvent.SETTLE, amount, spent.at):
            return False
        self._usage.append(
            {
                "id": held.id,
                "run_id": held.run_id,
                "model": held.model,
                "endpoint": held.endpoint,
                **dict.fromkeys(TOKENS, 0),
                **spent.tokens,
                "price": spent.price,
                "nano_usd": amount,
                "measured": spent.nano_usd is not None,
                "outcome": spent.outcome,
                "status": spent.status,
                "request_id": spent.request,
                "asked_at": held.asked_at,
                "answered_at": spent.at,
            }
        )
        return True

    def _end(self, held: Reservation, event: ReservationEvent, settled: int, at: datetime) -> bool:
        before = (held.open, held.settled)
        if not held.end(event, settled, at):
            return False
        for id in held.ceilings:
            self._ceilings[id].add(held.open - before[0], held.settled - before[1])
        self._changed[held.id] = held
        return True

    def _renew(self, held: Reservation, until: datetime) -> bool:
        if held.state != State.HELD:
            return False
        if until > held.lease_until:
            held.lease_until = until
            self._changed[held.id] = held
        return True


def _unspent(ceiling: Ceiling, ask: Ask) -> int:
    """What would be left of it if nothing were held; as much as is asked for where it has no cap."""
    _, left = _room(ceiling, ask)
    return ask.most if left is None else left + ceiling.held


def _room(ceiling: Ceiling, ask: Ask) -> tuple[int | None, int | None]:
    """Cap and what is left of it; a later capability of the same run may say less than its first did, never more."""
    if ceiling.kind is not CeilingKind.RUN or not ask.run_cap_nano_usd:
        return ceiling.cap, ceiling.left
    cap = min(ask.run_cap_nano_usd, ask.run_cap_nano_usd if ceiling.cap is None else ceiling.cap)
    return cap, cap - ceiling.held - ceiling.settled
