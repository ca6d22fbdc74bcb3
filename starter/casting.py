"""Another runtime for a plan that is rehearsed: the same document, with other words in its front matter."""

from __future__ import annotations

import re

MODEL = "rehearsal"
"""What the stand-in's model is called. It works on a task by the script in its text, whoever asks it."""


def cast(text: str, runtime: str) -> str:
    """The document with this runtime, and for an agent the stand-in's model, for every box that names no other.

    `text` is a document that parses: its front matter ends with the second line `---`.
    """
    values = {"runtime": runtime, **({} if runtime == "shell" else {"model": MODEL})}
    lines = text.split("\n")
    end = next(number for number, line in enumerate(lines) if number and line.rstrip() == "---")
    kept = [line for line in lines[1:end] if not re.match(r"(runtime|model)\s*:", line)]
    told = [f"{key}: {value}" for key, value in values.items()]
    return "\n".join([lines[0], *kept, *told, *lines[end:]])
