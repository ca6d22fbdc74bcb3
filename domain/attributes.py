"""What a box may say for itself at the end of its line: `{after=1,2 budget="2.50 USD" runtime=codex}`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from domain.budget import parse_usd

KEYS = ("after", "budget", "runtime", "model", "timeout")
MAX_TIMEOUT = 24 * 3600

_PAIR = r"""[A-Za-z][\w-]*=(?:"[^"]*"|'[^']*'|[^\s"'{}`]+)"""
_GROUP = re.compile(rf"(?<!\\)\{{\s*({_PAIR}(?:\s+{_PAIR})*)\s*\}}$")
_NEARLY = re.compile(rf"(?<!\\)\{{\s*(?:{'|'.join(KEYS)})\s*[=:][^{{}}`]*\}}$")
_EACH = re.compile(r"""([A-Za-z][\w-]*)=(?:"([^"]*)"|'([^']*)'|(\S+))""")
_DURATION = re.compile(r"(?:(\d{1,5})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?", re.ASCII)


@dataclass(frozen=True)
class Attributes:
    """What the box says; None or empty where it says nothing. `budget` is nano-dollars, `timeout` seconds."""

    after: tuple[int, ...] = ()
    budget: int | None = None
    runtime: str = ""
    model: str = ""
    timeout: int | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """What the box says for itself, by the names of a task's facts."""
        named = {
            "budget_nano_usd": self.budget is not None,
            "runtime": bool(self.runtime),
            "model": bool(self.model),
            "timeout": self.timeout is not None,
        }
        return tuple(name for name, said in named.items() if said)


def split_attributes(line: str) -> tuple[str, Attributes, tuple[str, ...]]:
    """`(title, attributes, what is wrong with them)` of a box's line.

    Braces are attributes when they end the line and hold nothing but key=value pairs; anything
    else is text, except where it starts like a key that we know: that was meant, and misspelt.
    """
    group = _GROUP.search(line)
    if group is None:
        nearly = _NEARLY.search(line)
        if nearly is None:
            return line.strip(), Attributes(), ()
        problem = f'cannot read {nearly[0]}; attributes look like {{after=1,2 budget="2.50 USD"}}'
        return line[: nearly.start()].strip(), Attributes(), (problem,)
    attributes, problems = _read(group[1])
    return line[: group.start()].strip(), attributes, problems


def duration(text: str) -> int:
    """`"45m"`, `"1h30m"` or `"90s"` in seconds; ValueError for anything else, zero, and more than a day."""
    match = _DURATION.fullmatch(text.strip())
    hours, minutes, seconds = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
    total = hours * 3600 + minutes * 60 + seconds
    if not 0 < total <= MAX_TIMEOUT:
        raise ValueError(f"{text!r} is not a time such as 45m, 1h30m or 90s, up to 24h")
    return total


def word(text: str) -> str:
    """A name such as a runtime's or a model's: one word; ValueError for anything else."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99}", text):
        raise ValueError(f"{text!r} is not a name of one word")
    return text


def _read(pairs: str) -> tuple[Attributes, tuple[str, ...]]:
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, *quotings in _EACH.findall(pairs):
        if key not in KEYS:
            problems.append(f"unknown attribute `{key}`; a box knows {', '.join(KEYS)}")
        elif key in values:
            problems.append(f"attribute `{key}` stands twice")
        else:
            values[key] = None
            try:
                values[key] = _READERS[key]("".join(quotings))
            except ValueError as error:
                problems.append(f"{key}: {error}")
    known = {key: value for key, value in values.items() if value is not None}
    return Attributes(**known), tuple(problems)


def _ordinals(text: str) -> tuple[int, ...]:
    numbers = text.split(",")
    if not all(re.fullmatch(r"\s*[1-9][0-9]{0,3}\s*", number) for number in numbers):
        raise ValueError(f"{text!r} is not a list of task numbers such as 1,2")
    return tuple(sorted({int(number) for number in numbers}))


_READERS = {"after": _ordinals, "budget": parse_usd, "runtime": word, "model": word, "timeout": duration}
