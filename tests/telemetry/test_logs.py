"""Logs are one JSON object a line, say nothing that is a secret, and nothing twice."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Replayer, Worker

from domain.tokens import MARKS
from telemetry import secrets
from telemetry.logs import configure
from telemetry.secrets import without_secrets
from worker.plugin import first_time

TOKENS = [
    "ghs_" + "a1B2" * 9,
    "ghp_" + "a1B2" * 9,
    "ghs_" + "eyJ0eXAi.eyJpc3Mi-_" * 20,
    "github_pat_" + "11AB_" * 12,
    "Bearer " + "x9" * 20,
    "basic " + "eDp5eg==" * 3,
]
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nWm3Jq8vY\n-----END RSA PRIVATE KEY-----\n"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Everything that was logged since the last look, read as JSON."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    quiet = {name: logging.getLogger(name).level for name in ("temporalio", "httpx")}
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    configure(first_time)

    def read() -> list[dict[str, Any]]:
        written = errors.getvalue()
        errors.seek(0)
        errors.truncate()
        return [json.loads(line) for line in written.splitlines()]

    yield read
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level
    for name, before in quiet.items():
        logging.getLogger(name).setLevel(before)


def test_a_line_says_when_how_bad_and_what(lines: Any) -> None:
    structlog.get_logger("worker").warning("a worker had died", worker="w1", runs=["r1"])
    logging.getLogger("library").warning("it is %s", "late", extra={"seconds": 3})
    ours, theirs = lines()
    assert (ours["event"], ours["level"], ours["worker"], ours["runs"]) == (
        "a worker had died",
        "warning",
        "w1",
        ["r1"],
    )
    assert (theirs["event"], theirs["level"], theirs["seconds"]) == ("it is late", "warning", 3)
    assert ours["timestamp"].endswith("Z")


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_taken_out_wherever_it_stands(lines: Any, token: str) -> None:
    secret = token.removeprefix("Bearer ").removeprefix("basic ")
    log = structlog.get_logger("x")
    asked = f"asked with {token} twice: {token}"
    log.info(asked, headers={"authorization": token, "list": [token, {"deep": token}]})
    log.info("an object", it=Exception(token))
    logging.getLogger("library").warning("sent %s", token, extra={"nested": {"deep": [token]}})
    try:
        raise RuntimeError(f"the peer said {token}")
    except RuntimeError:
        log.exception("it failed")
        logging.getLogger("library").exception("it failed")
    seen = lines()
    assert len(seen) == 5
    assert secret not in json.dumps(seen)
    assert "[redacted]" in json.dumps(seen)


def test_a_private_key_is_taken_out_whole(lines: Any) -> None:
    structlog.get_logger("x").info("read", text=f"before {KEY} after", cut=KEY[:60])
    (line,) = lines()
    assert line["text"] == "before [redacted]\n after"
    assert line["cut"] == "[redacted]"


def test_credentials_in_an_address_are_taken_out_and_the_rest_stays(lines: Any) -> None:
    addresses = ["https://x-access-token:hunter2@github.com/acme/shop.git", "postgresql://ada:hunter2@db/watchbill"]
    structlog.get_logger("x").info("asked", urls=addresses, plain="see https://example.org/a@b")
    (line,) = lines()
    assert line["urls"] == ["https://[redacted]@github.com/acme/shop.git", "postgresql://[redacted]@db/watchbill"]
    assert line["plain"] == "see https://example.org/a@b"


@given(
    st.text() | st.lists(st.sampled_from([*TOKENS, KEY, *MARKS, "BASIC ", "://", "@", '"', "Ba\u017fic "])).map("".join)
)
def test_what_is_passed_over_in_haste_holds_nothing_that_would_be_taken_out(said: str) -> None:
    assert without_secrets(said) == secrets._SECRET.sub("[redacted]", said)


def test_what_is_no_secret_stays_as_it_is(lines: Any) -> None:
    said = "plan a-plan-0123abcd: 40 hex " + "0123456789abcdef" * 2 + " and gh_things, begin basic work"
    structlog.get_logger("x").info(said)
    (line,) = lines()
    assert line["event"] == said


@workflow.defn(sandboxed=False)
class Talks:
    @workflow.run
    async def run(self) -> None:
        logging.getLogger("inside").warning("said in a workflow")


async def test_a_replay_says_nothing_again(lines: Any, temporal_client: Client) -> None:
    queue = f"talks-{uuid4().hex[:8]}"
    async with Worker(temporal_client, task_queue=queue, workflows=[Talks]):
        handle = await temporal_client.start_workflow("Talks", id=queue, task_queue=queue)
        await handle.result()
    assert [line["event"] for line in lines() if line["event"] == "said in a workflow"] == ["said in a workflow"]
    await Replayer(workflows=[Talks]).replay_workflow(await handle.fetch_history())
    assert [line for line in lines() if line["event"] == "said in a workflow"] == []
