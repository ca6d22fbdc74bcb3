"""The imprint of a projection: the lines by which it is known for one, and by which an edit of it shows.

It stands in the front matter as comments, where no prose can be mistaken for it and no reader has to look at it.
A document that carries one is refused wherever plans are read: what was made from the graph is not read back into it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from domain.identity import digest

NOTICE = "# Made by `watchbill show` from the work graph. An edit is noticed and discarded, and never read back."

_IMPRINT = re.compile(
    r"# watchbill-projection plan=(?P<plan>[a-z0-9-]+) chain=(?P<seq>\d+):(?P<head>[0-9a-f]{64})"
    r" digest=(?P<digest>[0-9a-f]{64})"
)
_UNPRINTED = "-"
"""What stands in the digest's place in the text that it is the digest of."""


@dataclass(frozen=True)
class Imprint:
    """Which plan a projection is of, and where that plan's chain stood; `line` is where it says so, from 1.

    `intact` is whether the text is still the one that was made.
    """

    plan: str
    seq: int
    head: str
    digest: str
    line: int
    intact: bool


def imprinted(plan: str, seq: int, head: str, front: Sequence[str], below: str) -> str:
    """A whole projection: the lines of its front matter, and everything below that, under an imprint of its own."""
    said = f"# watchbill-projection plan={plan} chain={seq}:{head} digest="
    text = "\n".join(["---", NOTICE, said + _UNPRINTED, *front, "---", below])
    return text.replace(said + _UNPRINTED, said + digest(text), 1)


def imprint_of(text: str) -> Imprint | None:
    """The imprint that a text carries; None for what is no projection."""
    # Who checks a repository out may have asked for other line ends.
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    first, *lines = text.split("\n")
    if first.rstrip() != "---":
        return None
    for number, line in enumerate(lines, 2):
        if not line.startswith("#"):
            return None
        found = _IMPRINT.fullmatch(line.rstrip())
        if found:
            unprinted = text.replace(f"digest={found['digest']}", f"digest={_UNPRINTED}", 1)
            # A text that is no UTF-8 is no text of ours, and still has to be told from one.
            intact = digest(unprinted.encode("utf-8", "surrogatepass")) == found["digest"]
            return Imprint(found["plan"], int(found["seq"]), found["head"], found["digest"], number, intact)
    return None
