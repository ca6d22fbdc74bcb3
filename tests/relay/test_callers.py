"""Who is let in: a live run, by a capability that says exactly that; everybody else gets one sentence."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from sqlalchemy import Connection, text
from starlette.datastructures import Headers

from domain.errors import Unauthorized
from relay.bookkeeper import Bookkeeper
from relay.callers import KEYS_FOR, Callers
from relay.graph import Graph as RelayGraph
from signing.capabilities import KIND, USE, checked_until
from signing.keys import open_or_make
from store.keys import SEAL, keep_key, known_keys, retire
from tests.relay.conftest import ASKED, MESSAGES, Relay

DOORS = ("/events", MESSAGES, "/mcp")
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
BODIES: dict[str, Any] = {"/events": {"events": []}, MESSAGES: ASKED, "/mcp": LIST}


def ask(relay: Relay, path: str, token: str) -> httpx.Response:
    headers = {**relay.headers(token), "Accept": "application/json, text/event-stream"}
    return relay.post(path, json=BODIES[path], headers=headers)


def refused(relay: Relay, token: str, status: int, why: str) -> None:
    for path in DOORS:
        answer = ask(relay, path, token)
        # Claude tries again and again over a 401.
        expected = 403 if (path, status) == (MESSAGES, 401) else status
        assert (answer.status_code, why in answer.text) == (expected, True), (path, answer.text)
        said = answer.json()["error"]["message"]
        assert said.count("\n") == 0
        assert "eyJ" not in answer.text
    assert relay.provider.asked == []


def claims(relay: Relay) -> dict[str, Any]:
    return dict(jwt.decode(relay.token(), options={"verify_signature": False}))


def test_a_live_run_is_let_in_everywhere(relay: Relay) -> None:
    assert [ask(relay, path, relay.token()).status_code for path in DOORS] == [202, 200, 200]


def test_without_a_capability_nobody_is_let_in(relay: Relay) -> None:
    for path in DOORS:
        for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": f"Basic {relay.token()}"}):
            answer = relay.post(path, json=BODIES[path], headers=headers)
            assert answer.status_code == (403 if headers and path == MESSAGES else 401)
            assert answer.status_code == 403 or answer.headers["www-authenticate"] == "Bearer"


def test_a_capability_that_was_tampered_with_is_refused(relay: Relay) -> None:
    header, _, signature = relay.token().split(".")
    more = base64.urlsafe_b64encode(json.dumps({**claims(relay), "epoch": 99}).encode()).rstrip(b"=").decode()
    refused(relay, f"{header}.{more}.{signature}", 401, "does not hold")


def test_a_capability_that_has_expired_is_refused(relay: Relay) -> None:
    refused(relay, relay.token(now=datetime.now(UTC) - timedelta(minutes=11)), 401, "expired")


@pytest.mark.parametrize(("claim", "value"), [("aud", "another"), ("iss", "another")])
def test_a_capability_for_another_door_is_refused(relay: Relay, claim: str, value: str) -> None:
    refused(relay, relay.signer.sign(KIND, {**claims(relay), claim: value}), 401, "another door")


def test_another_kind_of_statement_is_refused(relay: Relay) -> None:
    refused(relay, relay.signer.sign("watchbill-seal", claims(relay)), 401, "not a watchbill-capability")


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_the_algorithm_is_not_the_callers_to_choose(relay: Relay, algorithm: str) -> None:
    header = {"alg": algorithm, "typ": KIND, "kid": relay.signer.kid}
    text = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims(relay))
    )
    made = hmac.new(relay.signer.public.encode(), text.encode(), hashlib.sha256).digest()
    signature = "" if algorithm == "none" else base64.urlsafe_b64encode(made).rstrip(b"=").decode()
    refused(relay, f"{text}.{signature}", 401, "does not hold")


def test_a_capability_that_is_nested_too_deeply_is_none(relay: Relay) -> None:
    deep = base64.urlsafe_b64encode(b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}").decode().rstrip("=")
    assert relay.ask(headers={"x-goog-api-key": f"{deep}.e30.x"}).status_code == 401


def test_a_key_of_another_use_vouches_for_nobody(relay: Relay, tmp_path: Path) -> None:
    seal = open_or_make(tmp_path / "seal.pem")
    with relay.graph.store.write() as connection:
        keep_key(connection, seal.kid, seal.public, SEAL, datetime.now(UTC))
    refused(relay, relay.token(seal), 401, "no key")
    for use, key in ((SEAL, relay.signer), (USE, seal)):
        with pytest.raises(Unauthorized, match="a key of its own"), relay.graph.store.write() as connection:
            keep_key(connection, key.kid, key.public, use, datetime.now(UTC))


def test_a_key_that_was_made_just_now_is_known_at_once(relay: Relay, tmp_path: Path) -> None:
    assert ask(relay, "/events", relay.token()).status_code == 202
    for number in range(3):
        new = open_or_make(tmp_path / f"{number}.pem")
        assert ask(relay, "/events", relay.token(new)).status_code == 401
        with relay.graph.store.write() as connection:
            keep_key(connection, new.kid, new.public, USE, datetime.now(UTC))
        assert ask(relay, "/events", relay.token(new)).status_code == 202


async def test_however_many_strangers_ask_at_once_the_store_is_asked_for_all_of_them_together(
    relay: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[str] = []

    def counting(connection: Connection, use: str) -> dict[str, str]:
        readings.append(use)
        return known_keys(connection, use)

    monkeypatch.setattr("relay.callers.known_keys", counting)
    callers = Callers(RelayGraph(relay.graph.store))
    strangers = [relay.token(open_or_make(tmp_path / f"{number}.pem")) for number in range(50)]
    tokens = [Headers({"authorization": f"Bearer {token}"}) for token in strangers]
    told = await asyncio.gather(*(callers.caller(token) for token in tokens), return_exceptions=True)
    assert {str(each) for each in told if "no key" in str(each)} == {str(each) for each in told}
    # One for who came first, and one for whoever came after that had begun.
    assert len(readings) <= 2


def test_a_key_that_was_retired_lets_nobody_in_any_more(
    relay: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KEYS_FOR <= 1
    monkeypatch.setattr("relay.callers.KEYS_FOR", 0.0)
    token = relay.token()
    assert ask(relay, "/events", token).status_code == 202
    new = open_or_make(tmp_path / "new.pem")
    with relay.graph.store.write() as connection:
        keep_key(connection, new.kid, new.public, USE, datetime.now(UTC))
        retire(connection, relay.signer.kid, datetime.now(UTC))
    for old in (token, relay.token()):
        refused(relay, old, 401, "no key")
    assert ask(relay, "/events", relay.token(new)).status_code == 202


@pytest.mark.parametrize("end", ["finish", "crash", "lose", "refuse", "stop"])
def test_a_capability_is_void_as_soon_as_its_run_has_ended(relay: Relay, end: str) -> None:
    assert ask(relay, "/events", relay.token()).status_code == 202
    relay.end(end)
    for path in DOORS[:2]:
        answer = ask(relay, path, relay.token())
        assert answer.status_code == 403
        assert "any more" in answer.json()["error"]["message"]
    assert "counts any more" in ask(relay, "/mcp", relay.token()).json()["error"]["message"]
    assert relay.provider.asked == []


def test_an_older_epoch_is_refused_beside_a_newer_run(relay_on_both: Relay) -> None:
    relay, old = relay_on_both, relay_on_both.run
    facts = {"plan_id": old.plan_id, "task_id": old.task_id, "role": "author", "number": 2, "runtime": "shell"}
    relay.graph.move("start", "run", f"{old.task_id}-author-2", **facts, epoch=old.epoch + 1, round=1)
    for path in DOORS[:2]:
        answer = ask(relay, path, relay.token())
        assert answer.status_code == 403
        assert "newer run" in answer.json()["error"]["message"]


@pytest.mark.parametrize("other", ["task", "plan", "owner", "role", "run"])
def test_a_capability_that_does_not_fit_its_run_is_refused(relay: Relay, other: str) -> None:
    for named in ({other: "another"}, {"epoch": 7}):
        token = relay.token(**named)
        # A model call is measured by what the ledger knows, which has no part for the role.
        for path in DOORS[: 1 if named == {"role": "another"} else 2]:
            assert ask(relay, path, token).status_code == 403
        assert "error" in ask(relay, "/mcp", token).json()


def test_another_name_and_a_web_page_are_turned_away(relay: Relay) -> None:
    def status(**headers: str) -> int:
        return httpx.get(f"{relay.url}/healthz", headers=headers).status_code

    for host in ("127.0.0.1:1", "localhost", "LOCALHOST:8271", "[::1]:8271", "relay.example", "Relay.Example:80"):
        assert status(Host=host) == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil:8271", "[::2]:8271", "x@127.0.0.1"):
        assert status(Host=host) == 421
    assert status(Origin="http://127.0.0.1") == 403
    preflight = httpx.options(f"{relay.url}/events", headers={"Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 405
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_the_door_says_how_it_is(relay: Relay) -> None:
    assert httpx.get(f"{relay.url}/healthz").json() == {"status": "ok"}
    assert httpx.get(f"{relay.url}/readyz").json() == {"status": "ready"}
    assert httpx.get(f"{relay.url}/nowhere").json()["error"]["type"] == "not_found_error"


def test_a_door_whose_ledger_nobody_keeps_is_not_ready(relay: Relay) -> None:
    assert isinstance(relay.books, Bookkeeper)
    relay.books.close()
    assert httpx.get(f"{relay.url}/readyz").status_code == 503
    assert httpx.get(f"{relay.url}/healthz").status_code == 200


def test_a_store_that_is_away_is_said_to_be_worth_another_try(relay: Relay, tmp_path: Path) -> None:
    relay.graph.store.close()
    (tmp_path / "store.db").rename(tmp_path / "moved.db")
    (tmp_path / "store.db").mkdir()
    assert httpx.get(f"{relay.url}/healthz").status_code == 200
    assert httpx.get(f"{relay.url}/readyz").status_code == 503
    refused(relay, relay.token(), 503, "try again")


def test_a_capability_that_is_remembered_is_void_all_the_same_once_it_expires(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = relay.token()
    assert ask(relay, MESSAGES, token).status_code == 200
    later = datetime.now(UTC) + timedelta(minutes=10, seconds=31)
    monkeypatch.setattr("relay.callers.datetime", type("Later", (), {"now": lambda _: later}))
    answer = ask(relay, MESSAGES, token)
    assert answer.status_code == 403
    assert "expired" in answer.json()["error"]["message"]


def test_a_capability_that_is_remembered_is_void_once_its_key_vouches_no_more(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = relay.token()
    assert ask(relay, MESSAGES, token).status_code == 200
    monkeypatch.setattr("relay.callers.KEYS_FOR", 0.0)
    with relay.graph.store.write() as connection:
        connection.execute(text("DELETE FROM public_keys"))
    assert ask(relay, MESSAGES, token).status_code == 403


def test_a_signature_is_checked_once_however_often_its_keys_are_read_again(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []

    def check(token: str, *facts: Any) -> Any:
        checked.append(token)
        return checked_until(token, *facts)

    monkeypatch.setattr("relay.callers.checked_until", check)
    monkeypatch.setattr("relay.callers.KEYS_FOR", 0.0)
    token = relay.token()
    for _ in range(3):
        assert ask(relay, MESSAGES, token).status_code == 200
    assert checked == [token]


def test_no_more_capabilities_are_remembered_than_there_is_room_for(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay.callers.MOST_KNOWN", 2)
    tokens = [relay.token() for _ in range(4)]
    for token in tokens * 2:
        assert ask(relay, MESSAGES, token).status_code == 200
