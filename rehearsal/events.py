"""What is told to webhooks: one waiting delivery for every hook that hears of an event."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from rehearsal import shapes
from rehearsal.answers import encode
from rehearsal.state import Row, State, now

EVENTS = (
    "check_run",
    "check_suite",
    "installation",
    "installation_repositories",
    "issue_comment",
    "issues",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "push",
    "status",
)
"""What an App hears of when it does not say otherwise."""


def announce(state: State, event: str, repository: Row, sender: str, payload: Mapping[str, Any]) -> None:
    """Queue an event of a repository for its Apps and its plain webhooks, in the caller's transaction."""
    common = {"repository": shapes.repository(state, repository), "sender": shapes.user(state, sender)}
    for app_hook in state.all(
        "SELECT hook.id, installation.id AS installation, app.events FROM hook"
        " JOIN app ON app.id = hook.app JOIN installation ON installation.app = app.id"
        " JOIN installed ON installed.installation = installation.id"
        " WHERE installed.repository = ? AND installation.suspended_at IS NULL",
        repository["id"],
    ):
        if event in json.loads(app_hook["events"]):
            number = app_hook["installation"]
            told = {**payload, **common, "installation": {"id": number, "node_id": shapes.node("I", number)}}
            _queue(state, app_hook["id"], event, told, number, repository["id"])
    for hook in state.all(
        "SELECT id FROM hook WHERE app IS NULL AND (repository IS NULL OR repository = ?)", repository["id"]
    ):
        _queue(state, hook["id"], event, {**payload, **common}, None, repository["id"])


def announce_installation(state: State, event: str, row: Row, sender: str, payload: Mapping[str, Any]) -> None:
    """Queue an event about an installation itself; only its own App hears of it."""
    told = {
        **payload,
        "installation": shapes.installation(state, row),
        "sender": shapes.user(state, sender),
    }
    for hook in state.all("SELECT id FROM hook WHERE app = ?", row["app"]):
        _queue(state, hook["id"], event, told, row["id"], None)


def _queue(
    state: State,
    hook: int,
    event: str,
    payload: Mapping[str, Any],
    installation: int | None,
    repository: int | None,
) -> None:
    state.run(
        "INSERT INTO delivery (guid, hook, event, action, installation, repository, redelivery, payload,"
        " created_at) VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?)",
        str(uuid.uuid4()), hook, event, payload.get("action"), installation, repository,
        encode(payload).decode(), now(),
    )  # fmt: skip
