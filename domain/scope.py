"""What a task may change: globs over paths, counted from the repository's root.

`*` and `?` stay within one segment, `[ab]`, `[a-z]` and `[!a]` stand for one character, `**` as a
whole segment stands for any number of them, and a pattern that ends in `/` means everything below.
A pattern matches the whole path: `*.md` is a file at the root, `**/*.md` one at any depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_TOKEN = re.compile(r"\\(.)|\[([!^]?)(\]?[^\]]*)\]|(\*+)|(.)", re.DOTALL)
_ONE = "[^/]"
MAX_GLOB = 500


def outside(paths: tuple[str, ...], changed: Iterable[str]) -> tuple[str, ...]:
    """The changed paths that no pattern allows, in their order. Without patterns everything is allowed.

    A path that is absolute or has `.` or `..` in it leaves the repository and is always outside.
    """
    patterns = [_compiled(path) for path in paths]
    return tuple(
        path
        for path in changed
        if _escapes(path) or (patterns and not any(pattern.fullmatch(path) for pattern in patterns))
    )


def glob_problem(glob: str) -> str:
    """Why this is no pattern for paths in a repository, or nothing."""
    try:
        _compiled(glob)
    except ValueError as error:
        return str(error)
    return ""


@lru_cache(maxsize=1024)
def _compiled(glob: str) -> re.Pattern[str]:
    """The glob as a regular expression for whole paths; ValueError when it is none."""
    if len(glob) > MAX_GLOB:
        raise ValueError(f"a pattern has at most {MAX_GLOB} characters")
    segments = (glob + "**" if glob.endswith("/") else glob).split("/")
    if _escapes("/".join(segments)):
        raise ValueError(f"{glob!r} is not a path below the repository's root, such as src/** or docs/")
    runs: list[list[str]] = [[]]
    for segment in segments:
        if segment == "**":
            runs.append([])
        else:
            runs[-1].append(_segment(segment, glob))
    return re.compile(_join(["/".join(run) for run in runs]), re.DOTALL)


def _escapes(path: str) -> bool:
    return any(segment in ("", ".", "..") for segment in path.split("/"))


def _join(runs: list[str]) -> str:
    """Put `**` between runs of segments.

    A run is committed to at its first match, which is all that is ever needed, and keeps
    a hostile path from sending the match through every combination.
    """
    first, *others = runs
    if not others:
        return first
    *middle, last = others
    start = f"{first}/" if first else ""
    steps = "".join(f"(?>(?:{_ONE}+/)*?{run}/)" for run in middle if run)
    return start + steps + (f"(?:{_ONE}+/)*{last}" if last else ".+")


def _segment(segment: str, glob: str) -> str:
    """One segment as a regular expression; between stars the same commitment to the first match."""
    pieces = [""]
    for escaped, negated, members, stars, plain in _TOKEN.findall(segment):
        if stars:
            pieces.append("")
        elif members:
            pieces[-1] += f"(?!/)[{'^' if negated else ''}{_members(members, glob)}]"
        elif plain == "?":
            pieces[-1] += _ONE
        elif plain in ("[", "\\"):
            raise ValueError(f"{glob!r} has a {plain} without its end; write \\{plain} for the character itself")
        else:
            pieces[-1] += re.escape(escaped or plain)
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>{_ONE}*?{piece})" for piece in middle if piece) + f"{_ONE}*{last}"


def _members(members: str, glob: str) -> str:
    """The inside of a bracket: characters and ranges, each escaped."""
    ranges = re.findall(r"(.)-(.)|(.)", members, re.DOTALL)
    if any(low > high for low, high, _ in ranges if low):
        raise ValueError(f"{glob!r} has a range that runs backwards")
    return "".join(f"{re.escape(low)}-{re.escape(high)}" if low else re.escape(one) for low, high, one in ranges)
