"""A contextspace is one document, and what a person does to that document is what happens to its notes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.contextspace import Contextspace, changes, in_order, read, to_markdown
from domain.notes import MAX_TEXT, Note, NoteChange, NoteKind, fault_of, tidy, tidy_title

DECIDED = Note(1, 1, NoteKind.DECISION, "Keep the cache", "It is read at start.", run_id="p-1-author-1", epoch=1)
KNOWN = Note(2, 3, NoteKind.KNOWLEDGE, "Tests need Redis", "Start it with `make redis`.", by="ada@host")
SPACE = Contextspace("faster", (DECIDED, KNOWN), "Why we do this.", "acme/shop", (replace(KNOWN, number=7),))
STOOD = {(note.number, note.version): note for note in SPACE.notes}

# Whatever looks like structure, or like what we write ourselves, in the middle of somebody's text.
LINES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "## Decisions",
            "### n1.1 Mine",
            "\\### x",
            "\\\\## y",
            "<!-- by me -->",
            "<!-- shown: n9.9 -->",
            "# x",
            "",
            "```",
        ]
    ),
)
TEXTS = st.lists(LINES, max_size=8).map("\n".join).map(tidy)
TITLES = st.one_of(st.text(min_size=1, max_size=80), st.sampled_from(["n3.2 x", "n3.2", "### x", "## y"])).map(
    tidy_title
)


@st.composite
def spaces(draw: st.DrawFn) -> Contextspace:
    notes = [
        Note(
            number, draw(st.integers(1, 9)), draw(st.sampled_from(NoteKind)), draw(TITLES.filter(bool)), draw(TEXTS),
            by=tidy_title(draw(st.text(max_size=10))), run_id=draw(st.sampled_from(["", "p-1-author-1"])),
        )
        for number in range(1, draw(st.integers(0, 5)) + 1)
    ]  # fmt: skip
    return Contextspace("a-plan", tuple(notes), draw(TEXTS), "acme/shop", tuple(notes[:2]))


@given(spaces())
def test_a_document_that_nobody_edited_changes_nothing_whatever_is_in_the_notes(space: Contextspace) -> None:
    document = read(to_markdown(space))
    assert document.faults == ()
    found = {(note.number, note.version): (note.kind, note.title, note.text) for note in document.notes}
    assert found == {(note.number, note.version): note.said for note in space.notes}
    assert document.shown == {note.number: note.version for note in space.notes}
    assert changes({(note.number, note.version): note for note in space.notes}, document) == ((), ())


def edited(text: str) -> tuple[tuple[NoteChange, ...], tuple[str, ...]]:
    return changes(STOOD, read(text))


def test_what_is_changed_added_and_taken_out_of_the_document_is_all_that_changes() -> None:
    text = to_markdown(SPACE)
    mended = text.replace("`make redis`", "`make up`")
    assert edited(mended) == (
        (NoteChange(NoteKind.KNOWLEDGE, 2, 3, "Tests need Redis", "Start it with `make up`."),),
        (),
    )
    more = text.replace("## Operating knowledge\n", "## Operating knowledge\n\n### No network\n\nNowhere.\n", 1)
    assert edited(more) == ((NoteChange(NoteKind.KNOWLEDGE, title="No network", text="Nowhere."),), ())
    start, end = text.index("### n1.1"), text.index("## Operating knowledge")
    assert edited(text[:start] + text[end:]) == ((NoteChange(number=1, version=1, removed=True),), ())


def test_a_note_that_is_moved_to_another_section_changes_its_kind() -> None:
    text = to_markdown(replace(SPACE, around=()))
    start = text.index("### n2.3")
    moved = text[:start].replace("## Operating knowledge", "") + text[start:]
    (change,), faults = edited(moved)
    assert (change.number, change.kind, faults) == (2, NoteKind.DECISION, ())


def test_a_text_alone_adds_and_takes_nothing_away() -> None:
    wanted = (NoteChange(NoteKind.KNOWLEDGE, title="Use tabs", text="In the Makefile."),)
    assert edited("### Use tabs\nIn the Makefile.\n") == (wanted, ())
    assert edited("<!--\nhow to\n-->\n### Use tabs\r\n\r\nIn the Makefile.\r\n") == (wanted, ())


def test_what_a_repository_knows_is_shown_with_a_plan_and_not_edited_by_it() -> None:
    text = to_markdown(SPACE)
    assert "## Operating knowledge of acme/shop" in text
    assert edited(text.replace("n7.3 Tests need Redis", "n7.3 Another title")) == ((), ())
    assert edited(text.replace("Why we do this.", "Why we do that.")) == ((), ())


def test_everything_that_is_wrong_with_a_document_is_told_with_its_line() -> None:
    _, faults = edited(
        "a stray line\n## Decisions\nanother\n### n9.1 Unknown\n### n1.1 Keep\n### n1.1 Twice\n###  \n"
        f"### Long\n{'x' * (MAX_TEXT + 1)}\n"
    )
    assert [fault.split(":")[0] for fault in faults] == ["line 1", "line 3", "line 4", "line 6", "line 7", "line 8"]
    assert "begin one with a line `### Its title`" in faults[0]
    assert "there is no note n9.1" in faults[2]


def test_a_note_that_could_not_be_written_today_keeps_nobody_from_editing_another() -> None:
    old = replace(KNOWN, text="x" * (MAX_TEXT + 1))
    text = to_markdown(replace(SPACE, notes=(DECIDED, old))).replace("It is read at start.", "It is small.")
    wanted, faults = changes({(1, 1): DECIDED, (2, 3): old}, read(text))
    assert ([change.number for change in wanted], faults) == ([1], ())


def test_what_nobody_sees_is_made_visible_and_not_taken() -> None:
    assert tidy("a\u202eb\r\nc\x00 ") == "a\ufffdb\nc\ufffd"
    assert "nobody sees" in fault_of(NoteChange(title="t", text="a\u202eb"))
    assert "needs a title" in fault_of(NoteChange(text="x"))
    assert "no single line" in fault_of(NoteChange(title="a\nb"))


def test_people_come_before_agents_and_the_newest_first() -> None:
    notes = [replace(KNOWN, number=n, run_id="r" if n % 2 else "") for n in (1, 2, 3, 4)]
    assert [note.number for note in in_order(notes)] == [4, 2, 3, 1]
