"""Notes in the graph: written as moves, so that each version has its receipt, and never overwritten.

What is known of a plan is on the plan's chain, what is known of a repository on its owner's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, select

from domain.contextspace import Contextspace
from domain.decision import Outcome, Reply
from domain.duties import Actor, why_not
from domain.errors import NotFound, Superseded
from domain.front_matter import is_repository
from domain.lifecycle import Move
from domain.notes import (
    MAX_NOTES,
    MAX_OF_RUN,
    MAX_TEXT,
    EditContext,
    Note,
    NoteChange,
    NoteEvent,
    NoteKind,
    NoteState,
    fault_of,
    repository_key,
    tidy,
    tidy_title,
)
from domain.run import Role
from domain.wording import counted
from store.moves import lock_chain, move, record_refusal
from store.plans import PlanRow, load_plan
from store.receipts import head_of, seq_of_key
from store.tables import notes, receipts
from store.words import Speaker, Word, WordKind, say


def of_plan(connection: Connection, plan: PlanRow) -> Contextspace:
    """Everything that is known of a plan as it stands, and of its repository."""
    around = current(connection, f"owner:{plan.owner}", plan.repository)
    return Contextspace(plan.slug, current(connection, plan.id), plan.spec, plan.repository, around)


def of_repository(connection: Connection, owner: str, repository: str) -> Contextspace:
    """Everything that an owner's notes say of a repository."""
    return Contextspace(repository, current(connection, f"owner:{owner}", repository))


def current(connection: Connection, chain: str, repository: str = "") -> tuple[Note, ...]:
    """The notes that stand, in the order of their numbers."""
    query = _notes(chain, repository).where(notes.c.state == NoteState.CURRENT).order_by(notes.c.number)
    return tuple(map(_note, connection.execute(query).mappings()))


def versions(connection: Connection, chain: str, repository: str = "") -> dict[tuple[int, int], Note]:
    """Every version that there ever was, by number and version."""
    rows = connection.execute(_notes(chain, repository)).mappings()
    return {(note.number, note.version): note for note in map(_note, rows)}


def mark(connection: Connection, plan: str, owner: str) -> tuple[tuple[str, int], ...]:
    """What differs once a note of the plan, or of the owner's repositories, was written, replaced or removed."""
    wanted = notes.c.chain.in_([plan, f"owner:{owner}"])
    query = select(notes.c.chain, func.max(notes.c.receipt_seq)).where(wanted).group_by(notes.c.chain)
    return tuple(sorted((row[0], row[1]) for row in connection.execute(query)))


def edit(connection: Connection, order: EditContext, at: datetime, incarnation: int) -> Reply:
    """Make a person's changes, all or none. What has been changed since they saw it is refused; a repeat is nothing."""
    try:
        chain = _chain_of(connection, order)
    except NotFound as unknown:
        return Reply(Outcome.REFUSED, str(unknown), plan_id=order.plan_id)
    lock_chain(connection, chain)
    repository = repository_key(order.repository)
    space = _Space(chain, repository, versions(connection, chain, repository), _last_number(connection, chain))
    cause = f"edited by {order.by or 'a person'}"
    moves: list[Move] = []
    for change in order.changes:
        refused = space.why_not(change)
        if refused:
            wish = space.wish(change, order.by, cause, at)[0]
            receipt = record_refusal(connection, wish, refused).receipt
            return Reply(Outcome.REFUSED, refused, "current", order.plan_id, receipt.seq)
        moves += space.make(change, order.by, cause, at)
    if space.standing > MAX_NOTES:
        message = f"there would be {space.standing} notes, and at most {MAX_NOTES} stand at a time; remove some"
        return Reply(Outcome.REFUSED, message, "current", order.plan_id)
    seq, _ = head_of(connection, chain)
    if not moves:
        return Reply(Outcome.ALREADY, "nothing is changed by this", "current", order.plan_id, seq)
    last = move(connection, *moves, incarnation=incarnation)[-1]
    if last.refused:
        return Reply(Outcome.REFUSED, last.refused, "current", order.plan_id, last.receipt.seq)
    return Reply(Outcome.DONE, space.told, "current", order.plan_id, last.receipt.seq)


def record_decision(connection: Connection, speaker: Speaker, title: str, text: str, at: datetime) -> Word:
    """Keep what an agent decided, as its word and as a note of its plan; said twice, it is there once.

    It is caused by the run, as what its capability says that it is: where that has no such duty, the word is
    `refused`. Raises as `say` does, and Superseded when the run, or the plan, has too many.
    """
    # Before the run's own lock, in the order in which every move takes them.
    lock_chain(connection, speaker.plan)
    by = Role(speaker.role).actor
    not_its_duty = why_not(by, "note", NoteEvent.WRITE)
    word = say(connection, speaker, WordKind.DECISION, {"title": title, "text": text}, at, refused=not_its_duty)
    key = f"decision:{speaker.run}:{word.id}"
    if seq_of_key(connection, speaker.plan, key):
        return word
    mine = select(func.count()).select_from(notes).where(notes.c.run_id == speaker.run, notes.c.version == 1)
    _require_room(connection.scalar(mine) or 0, MAX_OF_RUN, "this run has recorded")
    standing = select(func.count()).select_from(notes)
    standing = standing.where(notes.c.chain == speaker.plan, notes.c.state == NoteState.CURRENT)
    _require_room(connection.scalar(standing) or 0, MAX_NOTES, "this plan has")
    change = NoteChange(NoteKind.DECISION, title=tidy_title(title) or "Untitled", text=tidy(text)[:MAX_TEXT].rstrip())
    wish = _writing(speaker.plan, "", _last_number(connection, speaker.plan) + 1, 1, change, "decided by an agent", at)
    facts = {**wish.facts, "run_id": speaker.run, "epoch": speaker.epoch}
    (moved,) = move(connection, replace(wish, key=key, facts=facts, by=by))
    return replace(word, refused=moved.refused)


def _require_room(there: int, limit: int, who: str) -> None:
    if there >= limit:
        raise Superseded(f"{who} {counted(there, 'decision')} already, and no more are kept; go on without")


def _chain_of(connection: Connection, order: EditContext) -> str:
    """Raises NotFound for a plan that nobody published, and for what is no repository."""
    if order.plan_id:
        return load_plan(connection, order.plan_id).id
    if not is_repository(order.repository):
        raise NotFound(f"{order.repository!r} is no repository such as acme/shop")
    return f"owner:{order.owner}"


class _Space:
    """The notes of one plan or repository, while changes to them are worked out. `told` says what they came to."""

    def __init__(self, chain: str, repository: str, there: Mapping[tuple[int, int], Note], last: int) -> None:
        self._chain, self._repository, self._last = chain, repository, last
        self._newest: dict[int, Note] = {}
        for note in there.values():
            if note.number not in self._newest or note.version > self._newest[note.number].version:
                self._newest[note.number] = note
        self._there = there
        self._counts = {"added": 0, "changed": 0, "removed": 0}

    @property
    def standing(self) -> int:
        return sum(note.state is NoteState.CURRENT for note in self._newest.values())

    @property
    def told(self) -> str:
        return ", ".join(f"{counted(count, 'note')} {what}" for what, count in self._counts.items() if count)

    def why_not(self, change: NoteChange) -> str:
        """Why the change cannot be made as things stand; empty when it can, or was made already."""
        problem = fault_of(change)
        if problem or not change.number or self._is_made(change):
            return problem
        newest = self._newest.get(change.number)
        if newest is None or (change.number, change.version) not in self._there:
            return f"there is no note n{change.number}.{change.version}"
        if newest.state is NoteState.REMOVED:
            return f"n{change.number} was removed since it was read; read again, then edit"
        if newest.version != change.version:
            return f"n{change.number}.{change.version} was edited since it was read, to {newest.name}; read again"
        return ""

    def make(self, change: NoteChange, by: str, cause: str, at: datetime) -> tuple[Move, ...]:
        """The moves of a change that nothing speaks against; none for one that was made before."""
        if self._is_made(change):
            return ()
        moves = self.wish(change, by, cause, at)
        if change.removed:
            self._newest[change.number] = replace(self._newest[change.number], state=NoteState.REMOVED)
        else:
            self._last += not change.number
            number, version = change.number or self._last, change.version + 1 if change.number else 1
            self._newest[number] = Note(number, version, change.kind, change.title, change.text, by)
        self._counts["removed" if change.removed else "changed" if change.number else "added"] += 1
        return moves

    def wish(self, change: NoteChange, by: str, cause: str, at: datetime) -> tuple[Move, ...]:
        base = _id(self._chain, change.number, change.version)
        if change.removed:
            return (_ending(self._chain, base, NoteEvent.REMOVE, cause, at),)
        if not change.number:
            return (_writing(self._chain, self._repository, self._last + 1, 1, change, cause, at, by),)
        written = _writing(self._chain, self._repository, change.number, change.version + 1, change, cause, at, by)
        written = replace(written, facts={**written.facts, "replaces": base})
        return written, _ending(self._chain, base, NoteEvent.REPLACE, cause, at)

    def _is_made(self, change: NoteChange) -> bool:
        """Whether what the change asks for stands already, by it or by somebody who asked for the same."""
        if not change.number:
            return any(note.state is NoteState.CURRENT and note.said == change.said for note in self._newest.values())
        newest = self._newest.get(change.number)
        if newest is None:
            return False
        if change.removed:
            return newest.state is NoteState.REMOVED and newest.version == change.version
        stands = newest.state is NoteState.CURRENT and newest.said == change.said
        return stands and newest.version == change.version + 1


def _writing(
    chain: str, repository: str, number: int, version: int, change: NoteChange, cause: str, at: datetime, by: str = ""
) -> Move:
    identity = _id(chain, number, version)
    facts: dict[str, Any] = {
        "chain": chain, "repository": repository, "number": number, "version": version, "kind": change.kind,
        "title": change.title, "text": change.text, "by": tidy_title(by),
    }  # fmt: skip
    return Move("note", identity, NoteEvent.WRITE, f"note:{number}:{version}", chain, cause, at, facts, by=Actor.PERSON)


def _ending(chain: str, identity: str, event: NoteEvent, cause: str, at: datetime) -> Move:
    return Move("note", identity, event, f"{identity}:{event}", chain, cause, at, by=Actor.PERSON)


def _id(chain: str, number: int, version: int) -> str:
    return f"{chain}-n{number}-v{version}"


def _last_number(connection: Connection, chain: str) -> int:
    return connection.scalar(select(func.max(notes.c.number)).where(notes.c.chain == chain)) or 0


def _notes(chain: str, repository: str) -> Select[Any]:
    # The last move of a version that stands is the one that wrote it.
    moved = (receipts.c.chain == notes.c.chain) & (receipts.c.seq == notes.c.receipt_seq)
    return (
        select(notes, receipts.c.at)
        .select_from(notes.outerjoin(receipts, moved))
        .where(notes.c.chain == chain, notes.c.repository == repository_key(repository))
    )


def _note(row: RowMapping) -> Note:
    at = row["at"].isoformat(timespec="seconds") if row["at"] else ""
    values: dict[str, Any] = {
        **row, "kind": NoteKind(row["kind"]), "state": NoteState(row["state"]), "run_id": row["run_id"] or "", "at": at,
    }  # fmt: skip
    return Note(**{name: values[name] for name in Note.__dataclass_fields__})
