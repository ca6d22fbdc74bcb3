"""Output as plain text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtimes.text import PlainText, plain

SAMPLE = (
    "grün \x1b[1;31mröd\x1b[0m \x1b]0;title — ☃\x07日本\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\r\n"
    "10 %\r20 %\r\x1b[K30 %\r\n\x1b(Bplain\x1bPq#0\x1b\\ \U0001f600\b\x1b[38;2;1;2;3mx\x1b\x1b[mlast\r"
).encode() + b"\xff\xe2\x82"


def in_pieces(data: bytes, *cuts: int) -> str:
    reader = PlainText()
    edges = [0, *sorted(cuts), len(data)]
    return "".join(reader.feed(data[a:b]) for a, b in pairwise(edges)) + reader.feed(b"", last=True)


def test_escape_sequences_and_controls_vanish_and_words_stay():
    assert plain(SAMPLE) == "grün röd 日本link\n10 %\n20 %\n30 %\nplain 😀xlast\n��"


def test_the_text_is_the_same_wherever_the_bytes_are_cut():
    whole = plain(SAMPLE)
    for first in range(len(SAMPLE) + 1):
        for second in range(first, len(SAMPLE) + 1):
            assert in_pieces(SAMPLE, first, second) == whole


@given(
    st.lists(
        st.sampled_from(
            [
                b"\x1b",
                b"[",
                b"]",
                b"P",
                b"\\",
                b"\x07",
                b"\r",
                b"\n",
                b"\t",
                b"m",
                b"0;1",
                b"\x18",
                b"(",
                b"\xc3",
                b"\xbc",
                b"\xf0\x9f",
                b"\x98\x80",
                b"\xff",
                b"\xc2\x9b",
                b"\x7f",
                b"a",
            ]
        )
    ),
    st.data(),
)
def test_the_text_of_any_stream_is_the_same_wherever_it_is_cut(pieces, data):
    stream = b"".join(pieces)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6))
    assert in_pieces(stream, *cuts) == plain(stream)


@given(st.binary(max_size=200))
def test_no_control_character_but_tab_and_line_end_comes_through(data):
    assert not [char for char in plain(data) if char not in "\t\n" and (char < " " or "\x7f" <= char <= "\x9f")]


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_text_without_controls_is_left_as_it_is(text):
    assert plain(text.encode()) == text


@pytest.mark.parametrize("start", ["\x1b[", "\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x1b(", "\x1b"])
def test_a_sequence_that_never_ends_swallows_no_more_than_its_line(start):
    assert plain(f"{start}\nnext line\n".encode()) == "\nnext line\n"
