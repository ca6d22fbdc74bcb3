"""What an App does as itself: find its installations, mint tokens, read and repeat its deliveries."""

from __future__ import annotations

import json
from typing import Any

from rehearsal import auth, hooks, shapes
from rehearsal.answers import Answer, Refused, not_found, number_or
from rehearsal.auth import at_least
from rehearsal.call import Call, Endpoint
from rehearsal.repositories import find
from rehearsal.state import Row


def _app(call: Call) -> Row:
    row = call.state.one("SELECT * FROM app WHERE id = ?", call.actor.app)
    if row is None:
        raise Refused(401, "A JSON web token could not be decoded")
    return row


def read_app(call: Call) -> Answer:
    return Answer(shapes.app(call.state, _app(call)))


def list_installations(call: Call) -> Answer:
    rows = call.state.all("SELECT * FROM installation WHERE app = ? ORDER BY id", _app(call)["id"])
    return call.page([shapes.installation(call.state, row) for row in rows])


def read_installation(call: Call) -> Answer:
    return Answer(shapes.installation(call.state, _installation(call)))


def _installation(call: Call) -> Row:
    row = call.state.one(
        "SELECT * FROM installation WHERE id = ? AND app = ?", call.number("installation"), _app(call)["id"]
    )
    if row is None:
        raise not_found()
    return row


def repository_installation(call: Call) -> Answer:
    app = _app(call)
    repository = find(call.state, call.path["owner"], call.path["repo"])
    row = repository and call.state.one(
        "SELECT installation.* FROM installation JOIN installed ON installed.installation = installation.id"
        " WHERE installation.app = ? AND installed.repository = ?",
        app["id"], repository["id"],
    )  # fmt: skip
    if not row:
        raise not_found()
    return Answer(shapes.installation(call.state, row))


def create_token(call: Call) -> Answer:
    app, installation = _app(call), _installation(call)
    if installation["suspended_at"]:
        raise Refused(403, "This installation has been suspended")
    repositories = _narrowed_repositories(call, installation)
    permissions = _narrowed_permissions(call, json.loads(app["permissions"]))
    token, expires_at = auth.issue_installation_token(
        call.state, call.actor.login, installation["id"], [row["id"] for row in repositories], permissions
    )
    body: dict[str, Any] = {
        "token": token,
        "expires_at": expires_at,
        "permissions": permissions,
        "repository_selection": "selected",
    }
    if call.body.get("repositories") or call.body.get("repository_ids"):
        body["repositories"] = [shapes.repository(call.state, row) for row in repositories]
    return Answer(body, 201)


def _narrowed_repositories(call: Call, installation: Row) -> list[Row]:
    reached = call.state.all(
        "SELECT repository.* FROM repository JOIN installed ON installed.repository = repository.id"
        " WHERE installed.installation = ? ORDER BY repository.id",
        installation["id"],
    )
    names = {name.lower() for name in call.body.get("repositories") or []}
    numbers = set(call.body.get("repository_ids") or [])
    if not names and not numbers:
        return reached
    chosen = [row for row in reached if row["name"].lower() in names or row["id"] in numbers]
    if len(chosen) < max(len(names), len(numbers)):
        raise Refused(
            422,
            "There is at least one repository that does not exist or is not accessible to the parent installation.",
        )
    return chosen


def _narrowed_permissions(call: Call, granted: dict[str, str]) -> dict[str, str]:
    wanted: dict[str, str] = call.body.get("permissions") or granted
    for name, level in wanted.items():
        if name != "metadata" and not at_least(granted.get(name, "none"), level):
            raise Refused(422, "The permissions requested are not granted to this installation.")
    return {"metadata": "read", **wanted}


def installation_repositories(call: Call) -> Answer:
    if call.actor.installation is None:
        raise Refused(403, "You must authenticate with an installation access token in order to list repositories.")
    rows = [
        row
        for row in call.state.all("SELECT * FROM repository ORDER BY id")
        if row["id"] in (call.actor.repositories or ())
    ]
    return call.page([shapes.repository(call.state, row) for row in rows], wrap="repositories")


def list_deliveries(call: Call) -> Answer:
    """Newest first, a page at a time by cursor, as GitHub does; `status` is success or failure."""
    asked = call.asked
    size = max(1, min(number_or(asked.get("per_page"), 30), 100))
    before = number_or(asked.get("cursor", "").removeprefix("v1_"), 2**62)
    status = asked.get("status", "")
    rows = call.state.all(
        "SELECT delivery.* FROM delivery JOIN hook ON hook.id = delivery.hook WHERE hook.app = ?"
        " AND delivered_at IS NOT NULL AND delivery.id < ?"
        " AND (? NOT IN ('success', 'failure') OR (status_code BETWEEN 200 AND 399) = (? = 'success'))"
        " ORDER BY delivery.id DESC LIMIT ?",
        _app(call)["id"], before, status, status, size + 1,
    )  # fmt: skip
    headers = {}
    if len(rows) > size:
        cursor = f"v1_{rows[size - 1]['id']}"
        headers["Link"] = f'<{call.url}?per_page={size}&cursor={cursor}>; rel="next"'
    return Answer([_delivery_item(row) for row in rows[:size]], headers=headers)


def read_delivery(call: Call) -> Answer:
    row = _delivery(call)
    hook = call.state.one("SELECT url FROM hook WHERE id = ?", row["hook"])
    details = {
        "url": hook["url"] if hook else "",
        "request": {"headers": json.loads(row["request_headers"]), "payload": json.loads(row["payload"])},
        "response": {"headers": json.loads(row["response_headers"]), "payload": row["response_body"]},
    }
    return Answer(_delivery_item(row) | details)


def redeliver(call: Call) -> Answer:
    hooks.redeliver(call.state, _delivery(call))
    return Answer({}, 202)


def _delivery(call: Call) -> Row:
    row = call.state.one(
        "SELECT delivery.* FROM delivery JOIN hook ON hook.id = delivery.hook"
        " WHERE delivery.id = ? AND hook.app = ? AND delivered_at IS NOT NULL",
        call.number("delivery"), _app(call)["id"],
    )  # fmt: skip
    if row is None:
        raise not_found()
    return row


def _delivery_item(row: Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "guid": row["guid"],
        "delivered_at": row["delivered_at"],
        "redelivery": bool(row["redelivery"]),
        "duration": row["duration"],
        "status": row["status"],
        "status_code": row["status_code"],
        "event": row["event"],
        "action": row["action"],
        "installation_id": row["installation"],
        "repository_id": row["repository"],
        "throttled_at": None,
    }


ENDPOINTS = (
    Endpoint("GET", "/app", read_app),
    Endpoint("GET", "/app/installations", list_installations),
    Endpoint("GET", "/app/installations/{installation}", read_installation),
    Endpoint("POST", "/app/installations/{installation}/access_tokens", create_token),
    Endpoint("GET", "/app/hook/deliveries", list_deliveries),
    Endpoint("GET", "/app/hook/deliveries/{delivery}", read_delivery),
    Endpoint("POST", "/app/hook/deliveries/{delivery}/attempts", redeliver),
    Endpoint("GET", "/repos/{owner}/{repo}/installation", repository_installation),
    Endpoint("GET", "/installation/repositories", installation_repositories),
)
