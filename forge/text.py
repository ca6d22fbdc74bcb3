"""What we write on the forge: titles, bodies, comments and commit messages.

Text that people wrote for a task goes in as text. On the forge the same letters can close a stranger's
issue, call somebody, or pretend to be our own marker, so whatever has such a meaning is broken by a
character that nobody sees. This holds for code as well: a squash merge makes a commit message of the
body, and there nothing is code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from domain.wording import OWN_WORDS

MAX_BODY = 65_536
MAX_SAID = 4_000
"""Characters of an agent's own words that are passed on."""

_WIDTH = 100
MAX_TITLE = 256
_MAX_CELL = 300

_JOINER = "\u200d"

_MEANINGFUL = re.compile(
    r"#(?=\d)"  # #12, owner/repository#12
    r"|\bGH-(?=\d)"
    r"|/(?:issues?|pulls?|discussions|commit)/(?=\w)"  # an address does what #12 does
    r"|@(?=\w)"  # a person, a team, a commit
    r"|&(?=[#\w])"  # &#35;12 is read as #12
    r"|<(?=[a-z/!?])",  # our own markers, and tags that would hide what follows
    re.IGNORECASE,
)


_UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""What is not seen, or has what is seen stand in another order."""


@dataclass(frozen=True)
class Evidence:
    """A row of the evidence table: what was looked at, what came of it, and on which commit or by whom."""

    subject: str
    result: str
    detail: str = ""


def neutral(text: str) -> str:
    """The text without any meaning to the forge; it looks the same."""
    return _MEANINGFUL.sub(rf"\g<0>{_JOINER}", text)


def verbatim(words: str) -> str:
    """Somebody's words as nothing but words: a fence that they cannot close, in lines of 100 characters.

    At most `MAX_SAID` characters of them; nothing unseen is left in them, and nothing that means something.
    """
    told = words.strip()
    told = told if len(told) <= MAX_SAID else f"{told[: MAX_SAID - 1]}…"
    lines = [_UNSEEN.sub("\ufffd", line.expandtabs(4)) for line in told.splitlines()]
    kept = [part for line in lines for part in wrap(line, _WIDTH, replace_whitespace=False) or [""]]
    text = neutral("\n".join(kept))
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    return f"{fence}text\n{text}\n{fence}"


def marker(kind: str, name: str) -> str:
    """A line that is invisible on the forge and tells our own text from everybody else's."""
    return f"<!-- watchbill {kind}={name} -->"


def title(text: str) -> str:
    """A pull request's title, or the first line of a commit message: one line of at most 256 characters."""
    line = neutral(" ".join(text.split()))
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"


def message(subject: str, text: str = "") -> str:
    """A commit message. Nothing in it closes or mentions anything when it reaches the base."""
    return f"{title(subject)}\n\n{neutral(text).strip()}".strip() + "\n"


def body(
    *,
    task_id: str,
    asked: str,
    said: str = "",
    evidence: Sequence[Evidence] = (),
    chain: str = "",
    seal: str = "",
    unfinished: bool = False,
) -> str:
    """A pull request's body: what was asked, what the agent says, the evidence, the chain's head, and the markers.

    One of `unfinished` work says so first.

    `asked` is the task's text, `said` the agent's own word of its work, `chain` a line of ours, `seal` the head as
    it was signed. What was asked is cut where the whole would be longer than the forge takes.
    """
    parts = ["## What the agent says of its work", OWN_WORDS, _quoted(verbatim(said), MAX_BODY)] if said.strip() else []
    parts += ["## Evidence", _table(evidence)] if evidence else []
    parts += [chain] if chain else []
    parts += [marker("seal", seal)] if seal else []
    below = "\n\n".join([*parts, marker("task", task_id)])
    head = f"{UNFINISHED}\n\n" if unfinished else ""
    head += "## What was asked\n\n"
    room = MAX_BODY - len(head) - len(below) - 2
    return f"{head}{_quoted(neutral(asked), room)}\n\n{below}"


def _quoted(text: str, room: int) -> str:
    """As a quotation: a code fence or list that is open at its end does not go on below."""
    quoted = "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines()) or "> (no text)"
    return quoted if len(quoted) <= room else f"{quoted[: room - len(_CUT)]}{_CUT}"


UNFINISHED = "**Unfinished.** The money for this work was spent before it was done. It goes on here once there is more."

_CUT = "\n>\n> … (cut here)"


def _table(evidence: Sequence[Evidence]) -> str:
    rows = [f"| {_cell(row.subject)} | {_cell(row.result)} | {_cell(row.detail)} |" for row in evidence]
    return "\n".join(["| what | result | detail |", "| --- | --- | --- |", *rows])


def _cell(text: str) -> str:
    shown = neutral(" ".join(text.split())).replace("\\", "\\\\").replace("|", "\\|")
    return shown if len(shown) <= _MAX_CELL else f"{shown[: _MAX_CELL - 1]}…"
