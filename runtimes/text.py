r"""Output of a terminal program as plain text, the same however its bytes were cut.

Escape sequences are those of ECMA-48 as xterm reads them: `ESC [ … final` (colours, cursor), the
strings `ESC ] …`, `ESC P …`, `ESC X …`, `ESC ^ …`, `ESC _ …` up to BEL or `ESC \`, and short ones.
The end of a line ends any of them, so that a stray one never swallows a log.
"""

from __future__ import annotations

import codecs
import re

_ESC, _BEL = "\x1b", "\x07"
_ENDS = "\n\x18\x1a"
_STRING_STARTS = "]PX^_"

# Where in the stream the next character stands, as the pattern of what passes there without a change.
_TEXT = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\x9f]+")
_ESCAPE = re.compile(r"[\x20-\x2f]+")
_CONTROL_SEQUENCE = re.compile(r"[\x20-\x3f]+")
_STRING = re.compile(r"[^\x00-\x1f]+")


class PlainText:
    """Decodes UTF-8 piece by piece and drops escape sequences and control characters.

    Bytes that are no UTF-8 become U+FFFD. Tabs and line ends stay; a carriage return that is not part
    of a line end becomes one, so that the states of a progress bar stand below each other.
    """

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._inside = _TEXT
        self._returned = False

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """The text that these bytes complete; `last` completes what is still open."""
        text = self._decode(data, last)
        kept: list[str] = []
        at = 0
        while at < len(text):
            run = self._inside.match(text, at)
            if run is None:
                kept.append(self._step(text[at]))
                at += 1
            else:
                if self._inside is _TEXT:
                    kept.append(self._line_end_before(run[0]) + run[0])
                at = run.end()
        if last:
            kept.append(self._line_end_before("."))
        return "".join(kept)

    def _step(self, char: str) -> str:
        """Act on a character that does not simply pass; the text it stands for."""
        inside, self._inside = self._inside, self._after(char)
        if char == "\n" or (inside is not _TEXT and char >= "\xa0"):
            return self._line_end_before(char) + char
        if char == "\r" and inside is _TEXT:
            self._returned = True
        return ""

    def _after(self, char: str) -> re.Pattern[str]:
        inside = self._inside
        if char == _ESC:
            return _ESCAPE
        if inside is _ESCAPE and char == "[":
            return _CONTROL_SEQUENCE
        if inside is _ESCAPE and char in _STRING_STARTS:
            return _STRING
        ends = char >= " " or char in _ENDS or (inside is _STRING and char == _BEL)
        return _TEXT if ends else inside

    def _line_end_before(self, text: str) -> str:
        """The line end that an earlier carriage return turns out to be, now that `text` follows."""
        pending, self._returned = self._returned and not text.startswith("\n"), False
        return "\n" if pending else ""


def plain(data: bytes) -> str:
    """All of these bytes as plain text."""
    return PlainText().feed(data, last=True)
