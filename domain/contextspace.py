"""A contextspace as one Markdown document, and what somebody who edited that document wants changed.

Structure is told by lines alone: `## ` begins a section, `### ` a note, whatever the text around it. A line of
somebody's text that looks like one is written with a backslash before it, which Markdown shows as the text
itself; so no text of a note can pass for another note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from domain.notes import Note, NoteChange, NoteKind, fault_of, tidy, tidy_title

SECTIONS: Mapping[NoteKind, str] = {
    NoteKind.DECISION: "Decisions",
    NoteKind.KNOWLEDGE: "Operating knowledge",
}
SPEC = "What the plan is about"

_KINDS = {heading: kind for kind, heading in SECTIONS.items()}
_SHOWN = re.compile(r"<!-- shown:((?: n\d{1,6}\.\d{1,6})*) -->")
_NAME = re.compile(r"n(\d{1,6})\.(\d{1,6})")
_NOTE = re.compile(r"### +(?:n(\d{1,6})\.(\d{1,6})(?: +|$))?(.*)")
_SECTION = re.compile(r"## +(.*)")
_BY = re.compile(r"<!-- by .* -->")
_LOOKS_LIKE_STRUCTURE = re.compile(r"\\*#{2,3} ")


@dataclass(frozen=True)
class Contextspace:
    """What is known of a plan or of a repository. `name` is what a person calls it by.

    `spec` is a plan's prose, which is confirmed with it and changed by publishing alone. `repository` and
    `around` are a plan's repository and what is known of that.
    """

    name: str
    notes: tuple[Note, ...] = ()
    spec: str = ""
    repository: str = ""
    around: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Edited:
    """One note as an edited document has it; `number` and `version` are 0 for a new one. `line` counts from 1."""

    line: int
    kind: NoteKind
    number: int
    version: int
    title: str
    text: str


@dataclass(frozen=True)
class Document:
    """An edited document. `shown` names the notes that stood in it when it was made, by number and version."""

    notes: tuple[Edited, ...]
    shown: Mapping[int, int] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def to_markdown(space: Contextspace) -> str:
    """The whole of it. What `read` makes of it are the notes of the space itself, as they stand."""
    parts = [f"# Context of {space.name}", f"<!-- shown:{''.join(f' {note.name}' for note in space.notes)} -->"]
    if space.spec.strip():
        parts += [f"## {SPEC}", _guarded(tidy(space.spec))]
    for kind, heading in SECTIONS.items():
        parts += [f"## {heading}", *_notes(space.notes, kind)]
    for kind, heading in SECTIONS.items():
        if around := _notes(space.around, kind):
            parts += [f"## {heading} of {space.repository}", *around]
    return "\n\n".join(parts) + "\n"


def read(text: str) -> Document:
    """The notes in an edited document. Sections that are no notes of the space itself are passed over.

    A document that names no section holds operating knowledge.
    """
    reader = _Reader()
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        reader.take(number, line)
    return reader.end()


def changes(stood: Mapping[tuple[int, int], Note], edited: Document) -> tuple[tuple[NoteChange, ...], tuple[str, ...]]:
    """What has to change for the notes to be as the document has them, and everything that is wrong with it.

    `stood` are versions of notes by number and version, of which only those that the document names are looked
    at. A note that was shown and is not in the document any more is removed; one that was not shown stays.
    """
    wanted: list[NoteChange] = []
    faults = list(edited.faults)
    seen: set[int] = set()
    for note in edited.notes:
        change = NoteChange(note.kind, note.number, note.version, note.title, note.text)
        if note.number and note.number in seen:
            faults.append(f"line {note.line}: n{note.number} stands here a second time")
        elif note.number and (note.number, note.version) not in stood:
            faults.append(f"line {note.line}: there is no note n{note.number}.{note.version}")
        elif note.number and stood[note.number, note.version].said == change.said:
            pass
        elif problem := fault_of(change):
            faults.append(f"line {note.line}: {problem}")
        else:
            wanted.append(change)
        seen.add(note.number)
    gone = {number: version for number, version in edited.shown.items() if number not in seen}
    wanted += [NoteChange(number=number, version=version, removed=True) for number, version in gone.items()]
    return tuple(wanted), tuple(faults)


def in_order(notes: Iterable[Note]) -> Sequence[Note]:
    """Notes as a reader needs them: what people wrote before what agents did, and of each the newest first."""
    return sorted(notes, key=lambda note: (bool(note.run_id), -note.number))


def whose(note: Note) -> str:
    """Who wrote a note, in words."""
    return f"run {note.run_id}, epoch {note.epoch}" if note.run_id else (note.by or "a person")


def _notes(notes: Iterable[Note], kind: NoteKind) -> list[str]:
    """A section's notes in the order of their numbers, each in two parts: its heading, and its text if it has one."""
    parts: list[str] = []
    for note in sorted((note for note in notes if note.kind is kind), key=lambda note: note.number):
        by = f"{whose(note)}, {note.at}" if note.at else whose(note)
        parts.append(f"### {note.name} {note.title}\n<!-- by {by.replace('--', '- -')} -->")
        parts += [_guarded(note.text)] if note.text else []
    return parts


def _guarded(text: str) -> str:
    return "\n".join(f"\\{line}" if _LOOKS_LIKE_STRUCTURE.match(line) else line for line in text.split("\n"))


class _Reader:
    """Takes a document line by line."""

    def __init__(self) -> None:
        self._kind: NoteKind | None = NoteKind.KNOWLEDGE
        self._begun = self._in_comment = False
        self._open: Edited | None = None
        self._lines: list[str] = []
        self._notes: list[Edited] = []
        self._shown: dict[int, int] = {}
        self._faults: list[str] = []

    def take(self, number: int, line: str) -> None:
        if section := _SECTION.fullmatch(line):
            self._close()
            self._kind, self._begun = _KINDS.get(section[1].strip()), True
        elif self._kind is None:
            return
        elif note := _NOTE.fullmatch(line):
            self._close()
            title = tidy_title(note[3])
            self._open = Edited(number, self._kind, int(note[1] or 0), int(note[2] or 0), title, "")
        elif self._open is not None:
            self._lines.append(line)
        elif not self._begun and (shown := _SHOWN.fullmatch(line.strip())):
            self._shown.update({int(found[1]): int(found[2]) for found in _NAME.finditer(shown[1])})
        elif not self._begun and (self._in_comment or line.startswith("<!--")):
            self._in_comment = "-->" not in line
        elif line.strip() and (self._begun or not line.startswith("# ")):
            self._faults.append(f"line {number}: this belongs to no note; begin one with a line `### Its title`")

    def end(self) -> Document:
        self._close()
        return Document(tuple(self._notes), self._shown, tuple(self._faults))

    def _close(self) -> None:
        if self._open is not None:
            about = vars(self._open) | {"text": tidy("\n".join(self._body()))}
            self._notes.append(Edited(**about))
        self._open, self._lines = None, []

    def _body(self) -> Iterator[str]:
        """The lines of the note's text, without the one that says whose it is."""
        lines = self._lines
        if self._open is not None and self._open.number and lines and _BY.fullmatch(lines[0].strip()):
            lines = lines[1:]
        for line in lines:
            yield line[1:] if line.startswith("\\") and _LOOKS_LIKE_STRUCTURE.match(line) else line
