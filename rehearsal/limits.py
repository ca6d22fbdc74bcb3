"""Rate limits as GitHub counts them. Off until a scene turns them on: a rehearsal should not wait."""

from __future__ import annotations

import time

from rehearsal.answers import Answer, Json, Refused
from rehearsal.auth import Actor
from rehearsal.call import Call, Endpoint
from rehearsal.state import State

PER_HOUR = 5000
WRITES_PER_MINUTE = 80
WRITES_PER_HOUR = 500

_SECONDARY = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
_PRIMARY = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"


def enforce(state: State, *, enforced: bool) -> None:
    state.run("INSERT OR REPLACE INTO setting VALUES ('limits', ?)", "on" if enforced else "off")


def enforced(state: State) -> bool:
    row = state.one("SELECT value FROM setting WHERE name = 'limits'")
    return row is not None and row["value"] == "on"


def used(state: State, actor: Actor) -> int:
    """What the caller used of its hour. A 304 costs nothing."""
    if not enforced(state):
        return 0
    return state.count(
        "SELECT count(*) FROM request WHERE holder = ? AND at > ? AND status NOT IN (0, 304)",
        actor.holder, time.time() - 3600,
    )  # fmt: skip


def refuse_over(state: State, actor: Actor, method: str) -> None:
    """Raises Refused 403 as GitHub does when the caller has used up a primary or a secondary limit."""
    if not enforced(state):
        return
    if used(state, actor) >= PER_HOUR:
        raise primary(actor)
    if method in ("GET", "HEAD"):
        return
    for seconds, allowed in ((60, WRITES_PER_MINUTE), (3600, WRITES_PER_HOUR)):
        written = state.count(
            "SELECT count(*) FROM request WHERE holder = ? AND at > ? AND method NOT IN ('GET', 'HEAD')"
            " AND status BETWEEN 200 AND 299",
            actor.holder, time.time() - seconds,
        )  # fmt: skip
        if written >= allowed:
            raise secondary(retry_after=str(seconds))


def primary(actor: Actor, reset_in: float = 3600) -> Refused:
    whose = actor.holder.replace(":", " ID ") if actor.installation else "user"
    headers = {
        "x-ratelimit-limit": str(PER_HOUR),
        "x-ratelimit-remaining": "0",
        "x-ratelimit-used": str(PER_HOUR),
        "x-ratelimit-reset": str(int(time.time() + reset_in)),
        "x-ratelimit-resource": "core",
    }
    return Refused(403, f"API rate limit exceeded for {whose}.", headers=headers, documentation=_PRIMARY)


def secondary(status: int = 403, retry_after: str | None = None) -> Refused:
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return Refused(
        status,
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
        headers=headers,
        documentation=_SECONDARY,
    )


def headers(state: State, actor: Actor) -> dict[str, str]:
    count = used(state, actor)
    return {
        "x-ratelimit-limit": str(PER_HOUR),
        "x-ratelimit-remaining": str(max(0, PER_HOUR - count)),
        "x-ratelimit-used": str(count),
        "x-ratelimit-reset": str(int(time.time()) + 3600),
        "x-ratelimit-resource": "core",
    }


def read_rate_limit(call: Call) -> Answer:
    count = used(call.state, call.actor)
    core: Json = {
        "limit": PER_HOUR,
        "remaining": max(0, PER_HOUR - count),
        "reset": int(time.time()) + 3600,
        "used": count,
        "resource": "core",
    }
    return Answer({"resources": {"core": core, "search": core}, "rate": core})


ENDPOINTS = (Endpoint("GET", "/rate_limit", read_rate_limit),)
