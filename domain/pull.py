"""A pull request as the forge tells it, and what came of an attempt to land it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Repository:
    """`name` is `owner/name` as the forge spells it; `clone_url` carries no credentials."""

    name: str
    default_branch: str
    clone_url: str


@dataclass(frozen=True)
class PullRequest:
    """Read from the forge, never from a webhook. `mergeable` is None while the forge works it out.

    A `draft` stands there to be read; the forge merges none.
    `closed_at` (ISO 8601) is empty while open; `merged_sha` is the commit on the base, set once merged.
    """

    number: int
    url: str
    open: bool
    merged: bool
    head_ref: str
    head_sha: str
    base_ref: str
    merged_sha: str = ""
    mergeable: bool | None = None
    closed_at: str = ""
    merged_by: str = ""
    draft: bool = False


class PushKind(StrEnum):
    PUSHED = "pushed"
    """The branch is at our commit: pushed now, or found there already."""
    MOVED = "moved"
    """Somebody else's commit is on the branch; nothing was overwritten."""


@dataclass(frozen=True)
class Push:
    """`sha` is what the remote branch holds now."""

    kind: PushKind
    sha: str


class OpenKind(StrEnum):
    OPENED = "opened"
    FOUND = "found"
    EMPTY = "empty"
    """The forge sees no commits between base and branch: the base contains the work already."""
    NO_DRAFTS = "no_drafts"
    """The forge has no drafts in this repository; nothing was opened."""


@dataclass(frozen=True)
class Opened:
    kind: OpenKind
    pull: PullRequest | None = None


class MergeKind(StrEnum):
    MERGED = "merged"
    HEAD_MOVED = "head_moved"
    """The sha guard held: somebody pushed after the proof was made."""
    CONFLICT = "conflict"
    BLOCKED = "blocked"
    """The repository's rules do not let this pull request merge now; `reason` is the forge's word."""
    UNPROVEN = "unproven"
    """The forge was not asked, because evidence is missing; `reason` says which."""


@dataclass(frozen=True)
class Merge:
    kind: MergeKind
    sha: str = ""
    reason: str = ""
