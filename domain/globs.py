"""The language of patterns, over paths and over plain texts, and how they are matched.

`*` and `?` stand for any characters and for one, `[ab]`, `[a-z]` and `[!a]` for one of some, and a
backslash takes a character's meaning away. In a path they stay within one segment, `**` as a whole
segment stands for any number of them, and a pattern that ends in `/` means everything below.

There is no `re` here: the policy hook starts for every tool use, and importing `re` would cost it more
than everything else that it does.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Piece = str | tuple[bool, tuple[tuple[str, str], ...]] | None
    Segment = tuple[Piece, ...]
    Path = tuple[Segment | None, ...]

MAX_GLOB = 500

_ANY_ONE: Piece = (True, ())
_NOT_EMPTY: Segment = (_ANY_ONE, None)


def text_pattern(pattern: str) -> Segment:
    """A pattern over a text, in which `/` is a character like others; ValueError when it is none."""
    _check_length(pattern)
    return _segment(pattern, pattern)


def matches_text(pattern: Segment, text: str) -> bool:
    """Whether the pattern matches the whole text."""
    return _match(pattern, text, _is_character)


def path_pattern(glob: str) -> Path:
    """A pattern over the paths below a root; ValueError when it is none."""
    _check_length(glob)
    segments = (glob + "**" if glob.endswith("/") else glob).split("/")
    if leaves_root("/".join(segments)):
        raise ValueError(f"{glob!r} is not a path below the repository's root, such as src/** or docs/")
    parsed = [None if segment == "**" else _segment(segment, glob) for segment in segments]
    # At the end it stands for everything below a folder, and not for the folder itself.
    return (*parsed, _NOT_EMPTY) if parsed[-1] is None else tuple(parsed)


def matches_path(pattern: Path, path: str) -> bool:
    """Whether the pattern matches the whole path; one that leaves the root matches nothing."""
    return not leaves_root(path) and _match(pattern, path.split("/"), _is_segment)


def leaves_root(path: str) -> bool:
    """Whether a path is absolute or empty, or has an empty segment, `.` or `..` in it."""
    return any(segment in ("", ".", "..") for segment in path.split("/"))


def _check_length(pattern: str) -> None:
    if len(pattern) > MAX_GLOB:
        raise ValueError(f"a pattern has at most {MAX_GLOB} characters")


def _match(pattern: Sequence[Any], items: Sequence[Any], fits: Callable[[Any, Any], bool]) -> bool:
    """Whether pieces match items one by one, where None matches any number of them.

    A None is committed to once the next one is reached, which is all that is ever needed, and keeps a
    hostile text from sending the match through every combination.
    """
    piece = item = resume = 0
    star = -1
    while item < len(items):
        if piece < len(pattern) and pattern[piece] is None:
            star, resume = piece, item
            piece += 1
        elif piece < len(pattern) and fits(pattern[piece], items[item]):
            piece += 1
            item += 1
        elif star >= 0:
            resume += 1
            piece, item = star + 1, resume
        else:
            return False
    return all(left is None for left in pattern[piece:])


def _is_character(piece: Any, character: str) -> bool:
    if isinstance(piece, str):
        return piece == character
    negated, ranges = piece
    return any(low <= character <= high for low, high in ranges) is not negated


def _is_segment(segment: Segment, name: str) -> bool:
    return _match(segment, name, _is_character)


def _segment(text: str, glob: str) -> Segment:
    pieces: list[Piece] = []
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "*":
            pieces.append(None)
        elif character == "?":
            pieces.append(_ANY_ONE)
        elif character == "\\" and at < len(text):
            pieces.append(text[at])
            at += 1
        elif character == "[" and (end := _end_of_members(text, at)) > 0:
            pieces.append(_members(text[at:end], glob))
            at = end + 1
        elif character in "[\\":
            raise ValueError(
                f"{glob!r} has a {character} without its end; write \\{character} for the character itself"
            )
        else:
            pieces.append(character)
    return tuple(pieces)


def _end_of_members(text: str, start: int) -> int:
    """Where the `]` stands; one that comes first of all is a member."""
    first = start + (text[start : start + 1] in ("!", "^"))
    return text.find("]", first + 1)


def _members(members: str, glob: str) -> Piece:
    negated = members[0] in "!^"
    left = members[negated:]
    ranges = []
    while left:
        low, high = (left[0], left[2]) if left[1:2] == "-" and len(left) > 2 else (left[0], left[0])
        if low > high:
            raise ValueError(f"{glob!r} has a range that runs backwards")
        ranges.append((low, high))
        left = left[3:] if left[1:2] == "-" and len(left) > 2 else left[1:]
    return (negated, tuple(ranges))
