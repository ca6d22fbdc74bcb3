"""Every kind of answer GitHub gives when it will not, and what it means to us."""

from __future__ import annotations

import json
from email.utils import formatdate

import pytest

from domain.errors import NotFound, RateLimited, Unauthorized, Unavailable, WatchbillError
from forge.github_errors import LEAST_WAIT, ErrorAnswer, Refused, graphql_error
from forge.redact import redact

NOW = 1_700_000_000.0
USED_UP = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 600)}


def error(status: int, message: str = "", *, headers: dict[str, str] | None = None, **body: object) -> WatchbillError:
    content = json.dumps({"message": message, **body}).encode()
    return ErrorAnswer("GET /x", status, headers or {}, content, NOW).error()


@pytest.mark.parametrize(
    ("status", "message", "headers", "wait"),
    [
        (429, "", {}, LEAST_WAIT),
        (429, "", {"retry-after": "7"}, 7),
        (403, "You have exceeded a secondary rate limit", {}, LEAST_WAIT),
        (403, "You have triggered an abuse detection mechanism", {}, LEAST_WAIT),
        (403, "Forbidden", {"retry-after": "30"}, 30),
        (403, "x", {"retry-after": formatdate(NOW + 90, usegmt=True)}, 90),
        (403, "x", {"retry-after": formatdate(NOW - 90, usegmt=True)}, 1),
        (403, "x", {"retry-after": "soon"}, LEAST_WAIT),
        (403, "x", {"retry-after": "-3"}, LEAST_WAIT),
        (403, "API rate limit exceeded for user ID 1.", USED_UP, 600),
        (403, "API rate limit exceeded", USED_UP | {"x-ratelimit-reset": "never"}, LEAST_WAIT),
        (429, "x", USED_UP | {"retry-after": "5"}, 5),
        (429, "x", USED_UP | {"x-ratelimit-remaining": "12"}, LEAST_WAIT),
    ],
)  # fmt: skip
def test_a_rate_limit_in_any_form_says_how_long_to_wait(
    status: int, message: str, headers: dict[str, str], wait: float
) -> None:
    found = error(status, message, headers=headers)
    assert isinstance(found, RateLimited)
    assert found.retry_after == pytest.approx(wait, abs=1)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, Unauthorized), (403, Unauthorized), (404, NotFound), (410, NotFound), (408, Unavailable),
     (500, Unavailable), (502, Unavailable), (503, Unavailable), (405, Refused), (409, Refused),
     (422, Refused), (451, Refused)],
)  # fmt: skip
def test_each_status_has_its_meaning(status: int, kind: type[WatchbillError]) -> None:
    found = error(status, "because")
    assert type(found) is kind
    assert found.retryable == (kind is Unavailable)
    assert f"GitHub answered {status} to GET /x: because" in str(found)


def test_a_server_that_says_when_to_come_back_is_believed() -> None:
    assert error(503, headers={"retry-after": "11"}).retry_after == 11
    assert error(503).retry_after is None


@pytest.mark.parametrize(
    "content", [b"", b"<html>502</html>", b"[]", b'{"message": null}', b"\xff", b'{"errors": "x"}']
)
def test_an_answer_that_is_not_githubs_usual_json_is_understood_all_the_same(content: bytes) -> None:
    for status, kind in ((502, Unavailable), (403, Unauthorized), (422, Refused)):
        assert type(ErrorAnswer("GET /x", status, {}, content, NOW).error()) is kind


def test_a_refusal_keeps_githubs_sentences_and_fields() -> None:
    found = error(
        422,
        "Validation Failed",
        errors=[
            {"resource": "PullRequest", "code": "custom", "message": "No commits between main and x"},
            {"resource": "PullRequest", "field": "head", "code": "invalid"},
            "plain text",
        ],
    )
    assert isinstance(found, Refused)
    assert found.says("No commits between")
    assert not found.says("already exists")
    assert found.fields == ("head",)
    assert found.reasons == ("Validation Failed", "No commits between main and x", "plain text")


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_" + "a1" * 18,
        "ghs_" + "a.b-c_" * 80,
        "github_pat_" + "a1_B" * 20,
        "Authorization: Basic dXNlcjpwYXNz",
        "authorization: bearer abc.def",
        "https://x-access-token:hunter2@github.com/a/b",
    ],
)
def test_secrets_are_taken_out_of_what_is_said(secret: str) -> None:
    shown = redact(f"before {secret} after")
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    for part in ("a1a1", "a.b-c_", "a1_B", "dXNl", "abc.def", "hunter2"):
        assert part not in shown


def test_what_github_says_is_redacted_too() -> None:
    assert "ghp_" not in str(error(422, f"bad token ghp_{'x' * 36}"))


@pytest.mark.parametrize(
    ("kind", "means"),
    [
        ("RATE_LIMITED", RateLimited),
        ("FORBIDDEN", Unauthorized),
        ("NOT_FOUND", NotFound),
        ("INTERNAL", Unavailable),
        ("UNPROCESSABLE", Refused),
        (None, Refused),
    ],
)
def test_what_graphql_refuses_means_what_rest_would_say(kind: str | None, means: type[WatchbillError]) -> None:
    found = graphql_error("mark acme/shop#1 as ready", [{"type": kind, "message": "It may not be."}])
    assert type(found) is means
    assert str(found).startswith("GitHub did not mark acme/shop#1 as ready: It may not be.")
