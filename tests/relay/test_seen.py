"""What operators see of the door: a line for whatever was asked, and one word for how each call ended."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from domain.errors import Unavailable
from domain.ledger import CeilingKind
from relay.exchange import End
from tests.relay.books import Purse
from tests.relay.conftest import MESSAGES, Relay
from tests.relay.test_callers import BODIES, ask
from tests.relay.test_money import until

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "relay.md"
OTHERS = {"void", "left", "cancelled", "listed", "unavailable", "failed", "turned_away"}


def outcomes(relay: Relay) -> list[str]:
    until(lambda: relay.metrics.under_way == 0)
    return re.findall(r'outcome="(.*?)"', relay.metrics.text())


def test_every_outcome_is_told_of_in_the_reference() -> None:
    told = re.search(r"Outcomes are\n?(.+?)\. The log", PAGE.read_text(), re.DOTALL)
    assert told is not None
    known = {end.value for end in End} | {f"short_{kind.value}" for kind in CeilingKind} | OTHERS
    assert set(re.findall("`([a-z_]+)`", told[1])) == known


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the door has said of requests; each is told once its answer is."""
    told: list[dict[str, Any]] = []

    class Log:
        def info(self, event: str, **about: Any) -> None:
            assert event == "a request"
            told.append(about)

    monkeypatch.setattr("relay.app.log", Log())
    return told


def only(lines: list[dict[str, Any]]) -> dict[str, Any]:
    until(lambda: bool(lines))
    (line,) = lines
    lines.clear()
    return line


@pytest.mark.parametrize("path", ["/mcp", "/events"])
def test_a_request_that_goes_well_has_its_line_too(relay: Relay, path: str, lines: list[dict[str, Any]]) -> None:
    ask(relay, path, relay.token())
    line = only(lines)
    assert (line["path"], line["run"]) == (path, relay.run.id)
    assert line["status"] == (202 if path == "/events" else 200)


def test_a_request_that_is_refused_has_one_line_with_the_reason(relay: Relay, lines: list[dict[str, Any]]) -> None:
    relay.post("/events", json={"events": 7})
    line = only(lines)
    assert (line["run"], line["status"]) == (relay.run.id, 400)
    assert "events:" in line["why"]
    ask(relay, "/events", "no-capability")
    line = only(lines)
    assert (line["run"], line["status"]) == (None, 401)


def test_probes_have_no_line(relay: Relay, lines: list[dict[str, Any]]) -> None:
    assert [relay.client.get(path).status_code for path in ("/healthz", "/readyz")] == [200, 200]
    ask(relay, "/events", relay.token())
    assert only(lines)["path"] == "/events"


def test_a_fault_of_the_relays_and_a_store_that_is_away_are_not_counted_as_turned_away(
    metered: Relay, purse: Purse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("on purpose")

    monkeypatch.setattr("relay.models.ask_of", broken)
    assert metered.ask().status_code == 500
    assert outcomes(metered) == ["failed"]
    monkeypatch.undo()
    monkeypatch.setattr(purse, "admit", away)
    assert metered.ask().status_code == 503
    assert outcomes(metered) == ["failed", "unavailable"]
    assert metered.ask(body={"model": "other"}).status_code == 400
    assert outcomes(metered) == ["failed", "unavailable", "turned_away"]


async def away(*_: Any) -> Any:
    raise Unavailable("the store does not answer")


def test_a_fault_behind_the_first_byte_has_a_word_as_well(metered: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("on purpose")

    monkeypatch.setattr("relay.exchange.Exchange.finish", broken)
    monkeypatch.setattr("relay.models.Models._settle", lambda *_: None)
    with pytest.raises(httpx.RemoteProtocolError):
        metered.ask()
    assert outcomes(metered) == ["failed"]


@pytest.mark.parametrize("path", ["/events", "/mcp", MESSAGES])
def test_whoever_is_refused_is_told_not_to_try_again(relay: Relay, path: str) -> None:
    refusals = [
        relay.client.post(path, json=BODIES[path]),
        relay.post(path, "no-capability", json=BODIES[path]),
        relay.post(path, headers={**relay.headers(), "Host": "evil.example"}, json=BODIES[path]),
        relay.post(path, headers={**relay.headers(), "Origin": "http://localhost"}, json=BODIES[path]),
        relay.client.put(path, headers=relay.headers()),
        relay.post(f"{path}/nowhere", json=BODIES[path]),
    ]
    assert [answer.status_code for answer in refusals[2:]] == [421, 403, 405, 404]
    assert {answer.headers.get("x-should-retry") for answer in refusals} == {"false"}
