"""What the stand-in answers as a reviewer: what the `review` block of the task's text prints, when it is run.

The block is a script for the reviewer's own shell. It prints `approve`, `reject WHY`, or a line
`request_changes PATH:LINE WHAT` for everything that is to change. A task without one is approved.
"""

from __future__ import annotations

import re
from typing import Any

from domain.brief import REVIEW
from rehearsal.models.conversation import block

_VERDICT = re.compile(r"^\s*(approve|reject|request_changes)\b[ \t]*(.*)$", re.MULTILINE)
_PLACE = re.compile(r"(\S+):(\d+)\s+(.*)")


def is_asked(brief: str) -> bool:
    """Whether this is what a reviewer is told: CLIs hold the tool back whose schema would say so."""
    return brief.lstrip().startswith(REVIEW)


def script(brief: str) -> str:
    return block(brief, "review")


def verdict(printed: str) -> dict[str, Any]:
    """The answer that fits a reviewer's schema, from what the script printed; nothing is an approval."""
    told = _VERDICT.findall(printed.replace("\\n", "\n"))
    if not told:
        return {"verdict": "approve", "summary": "This was rehearsed, without a model: there was nothing to find."}
    kind = next((kind for kind, _ in told if kind != "approve"), "approve")
    words = [text.strip() for each, text in told if each == kind and text.strip()]
    findings = [_finding(text) for text in words] if kind == "request_changes" else []
    return {"verdict": kind, "summary": " ".join(words) or "It does what was asked for.", "findings": findings}


def _finding(text: str) -> dict[str, Any]:
    place = _PLACE.fullmatch(text)
    return (
        {"path": place[1], "line": int(place[2]), "text": place[3]} if place else {"path": "", "line": 0, "text": text}
    )
