"""A plan as it is rehearsed: the same document, with other words in its front matter."""

from __future__ import annotations

import re
from collections.abc import Mapping

MODEL = "rehearsal"
"""What the stand-in's model is called. It works on a task by the script in its text, whoever asks it."""


def cast(text: str, runtime: str) -> str:
    """The document with this runtime, and for an agent the stand-in's model, for every box that names no other.

    `text` is a document that parses: its front matter ends with the second line `---`.
    """
    return _told(text, "runtime|model", {"runtime": runtime, **({} if runtime == "shell" else {"model": MODEL})})


def metered(text: str) -> str:
    """The document without its word that agents are on logins of their own: a rehearsal's model asks for none."""
    return _told(text, "metering", {})


def _told(text: str, without: str, values: Mapping[str, str]) -> str:
    lines = text.split("\n")
    end = next(number for number, line in enumerate(lines) if number and line.rstrip() == "---")
    kept = [line for line in lines[1:end] if not re.match(rf"({without})\s*:", line)]
    told = [f"{key}: {value}" for key, value in values.items()]
    return "\n".join([lines[0], *kept, *told, *lines[end:]])
