"""What the keys between the `---` lines at the top of a plan mean.

Every value is read from the text in the file and never through a YAML type, so `base: on` is the
branch "on" and `budget: 12.10` never becomes a float.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from domain.attributes import duration, word
from domain.budget import parse_usd
from domain.confinement import Confine, Network
from domain.errors import Fault
from domain.flat_yaml import Entry, Unreadable, Value, read_entries
from domain.identity import SLUG
from domain.metering import Meter
from domain.plan import MergePolicy
from domain.review import Reviewer, reviewer_of
from domain.rules import pattern_problem

MAX_TITLE = 200

INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, those that break or reorder lines unseen, and what UTF-8 cannot hold.

A person confirms what they read, so none of these may stand in a plan.
https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing
"""


@dataclass(frozen=True)
class FrontMatter:
    """The values, with their defaults. `lines` says where each key stands that the document has.

    Budgets are in nano-dollars, `timeout` in seconds. `complete` is False when not all of it was read.
    """

    title: str = ""
    slug: str = ""
    repository: str = ""
    base: str = ""
    runtime: str = "shell"
    model: str = ""
    reviewers: tuple[Reviewer, ...] = ()
    budget: int | None = None
    review_budget: int | None = None
    concurrency: int = 1
    attempts: int = 4
    checks: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    refuse_tools: tuple[str, ...] = ()
    refuse_commands: tuple[str, ...] = ()
    refuse_paths: tuple[str, ...] = ()
    merge: MergePolicy = MergePolicy.BY_HAND
    timeout: int = 3600
    confine: Confine = Confine.AUTO
    network: Network = Network.NONE
    metering: Meter = Meter.ON
    lines: Mapping[str, int] = field(default_factory=dict)
    complete: bool = True


def read_front_matter(text: str, first_line: int) -> tuple[FrontMatter, tuple[Fault, ...]]:
    """The values of a YAML text whose first line is line `first_line` of the file, and its faults."""
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    faults: list[Fault] = []
    complete = True
    try:
        for entry in read_entries(text, first_line):
            problem = _misplaced(entry.key, lines)
            lines.setdefault(entry.key, entry.line)
            if not problem:
                try:
                    values[entry.key] = _value_of(entry)
                except ValueError as error:
                    problem = f"{entry.key}: {error}"
            if problem:
                faults.append(Fault(entry.line, problem))
    except Unreadable as reason:
        complete = False
        faults.append(Fault(reason.line, str(reason)))
    return FrontMatter(**values, lines=MappingProxyType(lines), complete=complete), tuple(faults)


def _misplaced(key: str, lines: Mapping[str, int]) -> str:
    """Why a key cannot stand here, or nothing."""
    if key in lines:
        return f"`{key}` stands on line {lines[key]} already; keep one of them"
    if key in _READERS:
        return ""
    near = get_close_matches(key.lower(), _READERS, 1)
    hint = f"did you mean `{near[0]}`?" if near else f"a plan knows {', '.join(_READERS)}"
    return f"unknown key `{key[:40]}`; {hint}"


def _value_of(entry: Entry) -> object:
    if entry.problem:
        raise ValueError(entry.problem)
    return _READERS[entry.key](entry.value)


def _text(value: Value) -> str:
    """One line of text."""
    if value is None or value == "":
        raise ValueError("there is no value; give one, or remove the line")
    if not isinstance(value, str):
        raise ValueError("one text is needed here, not a list")
    if not value.strip() or "\n" in value or INVISIBLE.search(value):
        raise ValueError("one line of visible text is needed here")
    return value.strip()


def _texts(value: Value) -> tuple[str, ...]:
    """A list of texts; one text is a list of one. Texts may have several lines."""
    if value is None or value in ("", ()):
        raise ValueError("there is no value; give one, or remove the line")
    texts = tuple(text.strip() for text in (value if isinstance(value, tuple) else (value,)))
    if not all(texts) or any(INVISIBLE.search(text) for text in texts):
        raise ValueError("a text here is empty or has invisible characters")
    return texts


def _title(value: Value) -> str:
    title = " ".join(_text(value).split())
    if len(title) > MAX_TITLE:
        raise ValueError(f"longer than {MAX_TITLE} characters")
    return title


def _slug(value: Value) -> str:
    slug = _text(value)
    if not SLUG.fullmatch(slug):
        raise ValueError(f"{slug!r} is not made of at most 40 of a-z, 0-9 and hyphens between them")
    return slug


def is_repository(name: str) -> bool:
    """Whether this is `owner/name` as GitHub allows it; owners of managed users have an underscore."""
    parts = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/([A-Za-z0-9._-]{1,100})", name)
    return parts is not None and parts[1] not in (".", "..") and not parts[1].endswith(".git")


def _repository(value: Value) -> str:
    name = _text(value)
    if not is_repository(name):
        raise ValueError(f"{name!r} is not a repository such as acme/shop")
    return name


def _branch(value: Value) -> str:
    """What `git check-ref-format --branch` accepts. https://git-scm.com/docs/git-check-ref-format"""
    name = _text(value)
    legal = (
        not re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{", name)
        and not any(not part or part[0] == "." or part.endswith(".lock") for part in name.split("/"))
        and not name.startswith("-")
        and not name.endswith(".")
        and name not in ("@", "HEAD")
        and len(name.encode()) <= 200
    )
    if not legal:
        raise ValueError(f"{name!r} is not a name that git allows for a branch")
    return name


def _number(low: int, high: int) -> Callable[[Value], int]:
    def read(value: Value) -> int:
        text = _text(value)
        if not re.fullmatch(r"[0-9]{1,4}", text) or not low <= int(text) <= high:
            raise ValueError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return read


def _merge(value: Value) -> MergePolicy:
    text = _text(value)
    if text not in list(MergePolicy):
        raise ValueError(f"{text!r} is not one of {', '.join(MergePolicy)}")
    return MergePolicy(text)


def _confine(value: Value) -> Confine:
    text = _text(value)
    if text != Confine.REQUIRED:
        raise ValueError(f"{text!r} is not {Confine.REQUIRED}; whether a run may be unconfined is the worker's to say")
    return Confine.REQUIRED


def _network(value: Value) -> Network:
    text = _text(value)
    if text not in list(Network):
        raise ValueError(f"{text!r} is not one of {', '.join(Network)}")
    return Network(text)


def _reviewers(value: Value) -> tuple[Reviewer, ...]:
    reviewers = tuple(reviewer_of(text) for text in _texts(value))
    twice = next((each for each in reviewers if reviewers.count(each) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} stands twice")
    return reviewers


def _metering(value: Value) -> Meter:
    text = _text(value)
    if text != Meter.OFF:
        raise ValueError(f"{text!r} is not {Meter.OFF}; without this line agents are metered")
    return Meter.OFF


def _patterns(rule: str) -> Callable[[Value], tuple[str, ...]]:
    def read(value: Value) -> tuple[str, ...]:
        patterns = _texts(value)
        problems = [problem for pattern in patterns if (problem := pattern_problem(rule, pattern))]
        if problems:
            raise ValueError("; ".join(problems))
        return patterns

    return read


_READERS: dict[str, Callable[[Value], object]] = {
    "title": _title,
    "slug": _slug,
    "repository": _repository,
    "base": _branch,
    "runtime": lambda value: word(_text(value)),
    "model": lambda value: word(_text(value)),
    "reviewers": _reviewers,
    "budget": lambda value: parse_usd(_text(value)),
    "review_budget": lambda value: parse_usd(_text(value)),
    "concurrency": _number(1, 64),
    "attempts": _number(1, 20),
    "checks": _texts,
    "paths": _patterns("paths"),
    "refuse_tools": _patterns("tools"),
    "refuse_commands": _patterns("commands"),
    "refuse_paths": _patterns("paths"),
    "merge": _merge,
    "timeout": lambda value: duration(_text(value)),
    "confine": _confine,
    "network": _network,
    "metering": _metering,
}
