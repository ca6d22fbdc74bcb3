"""Texts of a bounded length, in tokens as we estimate them; a cut is always to be seen."""

from __future__ import annotations

from collections.abc import Sequence

_BACK = 300
"""Bytes that a cut goes back at most to end with a line or a word."""


def size(text: str) -> int:
    """Bytes of the text."""
    return len(text.encode("utf-8", "replace"))


def tokens_in(text: str) -> int:
    """How many tokens the text takes at most, as an estimate: one in three and a half bytes.

    English prose and code have four bytes a token and more with every model in use; what is written otherwise has
    more bytes a letter. Counting would need each maker's own tables, and a bound does not have to be exact.
    """
    return -(-2 * size(text) // 7)


def bytes_in(tokens: int) -> int:
    """The longest text that takes so many tokens, in bytes."""
    return tokens * 7 // 2


def cut(body: str, parts: Sequence[str], room: int, topic: str) -> str:
    """The first of the parts in so many bytes, with a mark behind them; the mark alone where there is no more room.

    `body` is what stands now, and stays where it is no longer than that: a mark never makes a text longer.
    """
    if not parts or size(body) <= room:
        return body
    total = size("\n\n".join(parts))
    mark = _mark(len(parts), len(parts), total, total, topic)
    left = room - size(mark) - 2
    kept: list[str] = []
    for part in parts:
        if size("\n\n".join([*kept, part])) > left:
            break
        kept.append(part)
    shown = "\n\n".join(kept) if kept else _start_of(parts[0], left)
    mark = _mark(len(parts) - len(kept), len(parts), total - size(shown), total, topic)
    made = f"{shown}\n\n{mark}" if shown else mark
    return made if size(made) < size(body) else body


def _mark(parts: int, of: int, left_out: int, total: int, topic: str) -> str:
    what = f"{parts} of {of} parts, " if of > 1 else ""
    return f"[Cut for want of room: {what}{left_out} of {total} bytes. `read_brief` with topic `{topic}` has all.]"


def _start_of(text: str, room: int) -> str:
    """The text up to the last end of a line, or of a word, that leaves it no longer than this many bytes."""
    if room <= 0:
        return ""
    raw = text.encode("utf-8", "replace")[:room]
    for end in (b"\n", b" "):
        at = raw.rfind(end)
        if at > 0 and len(raw) - at <= _BACK:
            raw = raw[:at]
            break
    return raw.decode("utf-8", "ignore").strip()
