"""Check runs and commit statuses over the API."""

from __future__ import annotations

from rehearsal import checks
from rehearsal.answers import Answer, Refused
from rehearsal.call import Call, Endpoint

_REPOSITORY = "/repos/{owner}/{repo}"


def _require_app(call: Call) -> int:
    """Only Apps write check runs; a person gets GitHub's words for it."""
    row = call.state.one("SELECT app FROM installation WHERE id = ?", call.actor.installation)
    if row is None:
        raise Refused(403, "You must authenticate via a GitHub App.")
    return int(row["app"])


def create_run(call: Call) -> Answer:
    app = _require_app(call)
    row = checks.create_run(call.state, call.repository, app, call.actor.login, call.body)
    return Answer(checks.run_shape(call.state, call.repository, row), 201)


def update_run(call: Call) -> Answer:
    _require_app(call)
    row = checks.update_run(call.state, call.repository, call.number("run"), call.actor.login, call.body)
    return Answer(checks.run_shape(call.state, call.repository, row))


def read_run(call: Call) -> Answer:
    row = checks.read_run(call.state, call.repository, call.number("run"))
    return Answer(checks.run_shape(call.state, call.repository, row))


def list_runs(call: Call) -> Answer:
    sha = call.commit(call.path["ref"])
    found = checks.runs(call.state, call.repository, sha, call.asked.get("check_name", ""))
    return call.page([checks.run_shape(call.state, call.repository, row) for row in found], wrap="check_runs")


def create_status(call: Call) -> Answer:
    row = checks.create_status(call.state, call.repository, call.path["sha"], call.actor.login, call.body)
    return Answer(checks.status_shape(call.state, call.repository, row), 201)


def combined_status(call: Call) -> Answer:
    return Answer(checks.combined_shape(call.state, call.repository, call.commit(call.path["ref"])))


ENDPOINTS = (
    Endpoint("POST", f"{_REPOSITORY}/check-runs", create_run, "checks:write"),
    Endpoint("GET", f"{_REPOSITORY}/check-runs/{{run}}", read_run, "checks:read"),
    Endpoint("PATCH", f"{_REPOSITORY}/check-runs/{{run}}", update_run, "checks:write"),
    Endpoint("GET", f"{_REPOSITORY}/commits/{{ref:path}}/check-runs", list_runs, "checks:read"),
    Endpoint("GET", f"{_REPOSITORY}/commits/{{ref:path}}/status", combined_status, "statuses:read"),
    Endpoint("POST", f"{_REPOSITORY}/statuses/{{sha}}", create_status, "statuses:write"),
)
