"""Notes: what a plan or a repository is known by, beside its code: decisions, and how to work on it.

A note is never overwritten. An edit is a new version, which names the one that it replaces; and who edits
what is no longer the newest version has not seen what stands there now, and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from domain.front_matter import INVISIBLE, MAX_TITLE
from domain.leaks import leaks
from domain.lifecycle import Lifecycle, table

MAX_TEXT = 20_000
"""Characters of a note's text."""

MAX_NOTES = 300
"""Notes of one plan, or of one repository, that stand at the same time."""

MAX_OF_RUN = 40
"""Decisions that one run may record. An agent in a loop must not bury what the others know."""


class NoteKind(StrEnum):
    DECISION = "decision"
    """What was decided, and why. Agents and people record these."""
    KNOWLEDGE = "knowledge"
    """How to work here, and what to mind. People write it."""


class NoteState(StrEnum):
    CURRENT = "current"
    REPLACED = "replaced"
    REMOVED = "removed"


class NoteEvent(StrEnum):
    WRITE = "write"
    REPLACE = "replace"
    REMOVE = "remove"


NOTE = Lifecycle(
    "note",
    table(
        (None, NoteEvent.WRITE, NoteState.CURRENT),
        (NoteState.CURRENT, NoteEvent.REPLACE, NoteState.REPLACED),
        (NoteState.CURRENT, NoteEvent.REMOVE, NoteState.REMOVED),
    ),
    ended=frozenset({NoteState.REPLACED, NoteState.REMOVED}),
)
"""The life of one version of a note."""


@dataclass(frozen=True)
class Note:
    """One version of a note. `number` is the note's, the same in all of its versions, which count from 1.

    `by` is who wrote it; `run_id` and `epoch` tell whose decision it is, empty and 0 for a person's.
    `at` is when it was written, or went out of use, in ISO 8601.
    """

    number: int
    version: int
    kind: NoteKind
    title: str
    text: str
    by: str = ""
    run_id: str = ""
    epoch: int = 0
    state: NoteState = NoteState.CURRENT
    at: str = ""

    @property
    def name(self) -> str:
        """`n3.2`: the second version of note 3."""
        return f"n{self.number}.{self.version}"

    @property
    def said(self) -> tuple[NoteKind, str, str]:
        """What two notes have in common that say the same."""
        return self.kind, self.title, self.text


@dataclass(frozen=True)
class NoteChange:
    """One change to a contextspace.

    `number` is 0 for a new note; else it is the note's, and `version` the one that whoever changes it has
    seen. `removed` takes the note out of use, and needs neither title nor text.
    """

    kind: NoteKind = NoteKind.KNOWLEDGE
    number: int = 0
    version: int = 0
    title: str = ""
    text: str = ""
    removed: bool = False

    @property
    def said(self) -> tuple[NoteKind, str, str]:
        return self.kind, self.title, self.text


@dataclass(frozen=True)
class EditContext:
    """A person's changes to what is known of a plan or, where `repository` is given, of a repository of the owner's.

    They are made all together or not at all.
    """

    owner: str
    plan_id: str = ""
    repository: str = ""
    changes: tuple[NoteChange, ...] = ()
    by: str = ""


def tidy(text: str) -> str:
    """Text as notes keep it: lines end alike, none is blank at either end, and what nobody sees is made visible."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return INVISIBLE.sub("\ufffd", lines).strip()


def tidy_title(text: str) -> str:
    """A title on one line, of at most `MAX_TITLE` characters."""
    line = " ".join(tidy(text).split())
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1] + "…"


def fault_of(change: NoteChange) -> str:
    """Why this change cannot be made whatever stands there, in one sentence; empty when it can."""
    if change.removed:
        return ""
    if not change.title:
        return "a note needs a title"
    if tidy_title(change.title) != change.title:
        return f"the title {change.title[:40]!r} is no single line of at most {MAX_TITLE} visible characters"
    if tidy(change.text) != change.text:
        return (
            f"the text of {change.title[:40]!r} holds characters that nobody sees, or begins or ends with blank lines"
        )
    if len(change.text) > MAX_TEXT:
        return f"the text of {change.title[:40]!r} is longer than {MAX_TEXT} characters; make several notes of it"
    leak = next(leaks(f"{change.title}\n{change.text}".encode()), None)
    if leak is not None:
        # Receipts keep every version for good.
        return f"a note holds what looks like {leak.kind}; what is written stays, so take it out"
    return ""


def repository_key(name: str) -> str:
    """The name by which notes of a repository are kept: forges tell no upper from lower case."""
    return name.lower()
