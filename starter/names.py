"""What a person may call a plan or a task, and which one that is.

A plan is named by its document (`plans/faster.md`), its slug (`faster`) or its id (`faster-1a2b3c4d`);
a task as `PLAN#2` or by its id (`faster-1a2b3c4d-2`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import InvalidPlan, NotFound
from domain.identity import SLUG, plan_id, split_task
from starter.exits import CommandFailed, Exit, faulty

if TYPE_CHECKING:
    from domain.plan import PlanSpec

_ORDINAL = re.compile(r"(?P<plan>.+)#(?P<ordinal>[1-9][0-9]{0,3})")


def is_document(name: str) -> bool:
    """Whether this names a file: it has a folder or a Markdown suffix. Any other name is a slug or an id."""
    return "/" in name or name.lower().endswith((".md", ".markdown"))


def plan_named(name: str, owner: str) -> str:
    """The id of the owner's plan of this name; whether it was ever published is not asked here."""
    if is_document(name):
        return plan_id(owner, read_document(Path(name))[1].slug)
    slug, _, _ = name.rpartition("-")
    if slug and plan_id(owner, slug) == name:
        return name
    if not SLUG.fullmatch(name):
        raise CommandFailed(Exit.USAGE, f"{name!r} is no plan's file, slug or id")
    return plan_id(owner, name)


def task_named(name: str, owner: str) -> tuple[str, int]:
    """`(plan id, ordinal)` of the task of this name."""
    plan, ordinal = plan_or_task_named(name, owner)
    if ordinal is None:
        raise CommandFailed(Exit.USAGE, f"{name!r} names a whole plan; name one task of it, such as {name}#1")
    return plan, ordinal


def plan_or_task_named(name: str, owner: str) -> tuple[str, int | None]:
    """`(plan id, ordinal)`, with None as the ordinal when a whole plan is named."""
    if match := _ORDINAL.fullmatch(name):
        return plan_named(match["plan"], owner), int(match["ordinal"])
    if not is_document(name):
        try:
            plan, ordinal = split_task(name)
        except ValueError:
            pass
        else:
            # A slug may look like a task's id; the digest in it tells them apart.
            if plan_named(plan, owner) == plan:
                return plan, ordinal
    return plan_named(name, owner), None


def read_document(path: Path) -> tuple[str, PlanSpec]:
    """The document's text and the plan that it says. CommandFailed with every fault in it."""
    return read_text(read_bytes(path), path)


def read_text(raw: str | bytes, path: Path) -> tuple[str, PlanSpec]:
    """As `read_document`, of a document whose text is at hand; `path` is what it is called."""
    from domain.document import parse

    try:
        spec = parse(raw, file_name=path.name)
    except InvalidPlan as invalid:
        raise faulty(path, invalid.faults) from None
    return raw if isinstance(raw, str) else raw.decode(), spec


def read_bytes(path: Path) -> bytes:
    """A document as it lies on the disk; NotFound when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
