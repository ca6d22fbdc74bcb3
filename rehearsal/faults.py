"""Failures on demand: each fault waits for requests or webhooks that match, and strikes so many times."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rehearsal.repositories import Unsuitable
from rehearsal.state import Row, State


class FaultKind(StrEnum):
    ERROR_BEFORE = "error-before"
    """Answers a server error and does nothing. Option `status` (500)."""
    ERROR_AFTER = "error-after"
    """Does what was asked, then answers a server error. Option `status` (500)."""
    LOST_BEFORE = "lost-before"
    """Drops the connection and does nothing."""
    LOST_AFTER = "lost-after"
    """Does what was asked, then drops the connection without a byte of answer."""
    SECONDARY_LIMIT = "secondary-limit"
    """Answers GitHub's secondary rate limit. Options `status` (403 or 429) and `retry_after` (what the
    header says: seconds, or an HTTP date; without it no header is sent)."""
    PRIMARY_LIMIT = "primary-limit"
    """Answers GitHub's primary rate limit: nothing remains. Option `reset_in` (seconds, 60)."""
    SLOW = "slow"
    """Waits before the request is looked at. Option `seconds` (1)."""
    MERGEABLE_UNKNOWN = "mergeable-unknown"
    """A pull request is read with `mergeable: null`, as when GitHub has not worked it out yet."""
    STALE_LIST = "stale-list"
    """A list of pull requests leaves out its newest, as a replica that lags behind would."""
    NO_DRAFTS = "no-drafts"
    """A draft is refused, as in a private repository whose owner pays for none."""
    WEBHOOK_DROPPED = "webhook-dropped"
    """Never sent. Recorded as a failed delivery, unless option `recorded` is false."""
    WEBHOOK_DUPLICATED = "webhook-duplicated"
    """Sent twice under one GUID."""
    WEBHOOK_PERMUTED = "webhook-permuted"
    """Held until as many have come as it strikes (or option `seconds`, 2, have passed), then sent in
    reverse order, or shuffled when option `seed` is given."""


IN_REQUESTS = (
    FaultKind.ERROR_BEFORE,
    FaultKind.ERROR_AFTER,
    FaultKind.LOST_BEFORE,
    FaultKind.LOST_AFTER,
    FaultKind.SECONDARY_LIMIT,
    FaultKind.PRIMARY_LIMIT,
)


@dataclass(frozen=True)
class Fault:
    """A fault that is in wait, or one that has just struck (`left` is how often it still will)."""

    id: int
    kind: FaultKind
    method: str
    path: str
    left: int
    struck: int
    options: Mapping[str, Any]


def add(
    state: State,
    kind: str,
    method: str = "*",
    path: str = "*",
    times: int = 1,
    options: Mapping[str, Any] | None = None,
) -> Fault:
    """Lay a fault. `path` is a shell pattern in which `*` also matches slashes; for a webhook it is
    matched against the event or `event.action` (`pull_request.closed`) and the method is ignored.

    Raises Unsuitable for a kind that there is not.
    """
    if kind not in list(FaultKind):
        raise Unsuitable(f"there is no fault {kind!r}; the kinds are {', '.join(FaultKind)}")
    row = state.one(
        "INSERT INTO fault (kind, method, path, times, options) VALUES (?, ?, ?, ?, ?) RETURNING *",
        kind, method.upper(), path, times, json.dumps(dict(options or {})),
    )  # fmt: skip
    assert row is not None
    return _fault(row)


def every(state: State) -> list[Fault]:
    """All faults, also those that have struck their last."""
    return [_fault(row) for row in state.all("SELECT * FROM fault ORDER BY id")]


def clear(state: State) -> None:
    state.run("DELETE FROM fault")


def strike(state: State, kinds: tuple[FaultKind, ...], method: str, *subjects: str) -> Fault | None:
    """The first fault of these kinds in wait for this method and one of these subjects, used up by one."""
    waiting = state.all(
        "SELECT * FROM fault WHERE times > 0 AND kind IN (SELECT value FROM json_each(?)) ORDER BY id",
        json.dumps(kinds),
    )
    for row in waiting:
        if row["method"] in ("*", method) and any(fnmatch.fnmatchcase(s, row["path"]) for s in subjects):
            struck = state.one(
                "UPDATE fault SET times = times - 1, struck = struck + 1 WHERE id = ? AND times > 0 RETURNING *",
                row["id"],
            )
            if struck is not None:
                return _fault(struck)
    return None


def _fault(row: Row) -> Fault:
    return Fault(
        id=row["id"],
        kind=FaultKind(row["kind"]),
        method=row["method"],
        path=row["path"],
        left=row["times"],
        struck=row["struck"],
        options=json.loads(row["options"]),
    )
