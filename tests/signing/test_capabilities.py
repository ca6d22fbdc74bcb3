"""A capability says what one run may do, for a while, at one door; whatever else is signed says nothing there."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import Unauthorized
from signing import seals
from signing.capabilities import KIND, Grant, checked
from signing.keys import Signer, open_or_make
from signing.minting import mint

NOW = datetime(2026, 3, 1, 22, 30, 0, 500_000, tzinfo=UTC)
TTL = timedelta(minutes=30)
CLAIMS = (
    "iss",
    "aud",
    "sub",
    "plan",
    "task",
    "run",
    "epoch",
    "role",
    "model_id",
    "max_budget_usd",
    "iat",
    "exp",
    "jti",
)
GRANT = Grant("ada", "plan-1", "plan-1-1", "plan-1-1-author-1", 3, "author", "claude-sonnet-4-6", 2_500_000_001)


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return open_or_make(tmp_path_factory.mktemp("keys") / "capability.pem")


@pytest.fixture(scope="module")
def keys(signer: Signer) -> dict[str, str]:
    return {signer.kid: signer.public}


def claims_of(token: str) -> dict[str, Any]:
    return dict(jwt.decode(token, options={"verify_signature": False}))


def refused(token: str, keys: dict[str, str], why: str, now: datetime = NOW) -> None:
    with pytest.raises(Unauthorized, match=why) as caught:
        checked(token, keys, now)
    assert "eyJ" not in str(caught.value)


def test_what_was_granted_is_read_back(signer: Signer, keys: dict[str, str]) -> None:
    token = mint(signer, GRANT, NOW, TTL)
    assert checked(token, keys, NOW) == GRANT
    assert claims_of(token)["max_budget_usd"] == "2.500000001"


def test_no_two_capabilities_are_alike(signer: Signer) -> None:
    assert mint(signer, GRANT, NOW, TTL) != mint(signer, GRANT, NOW, TTL)


@given(st.integers(0, 10**18 - 1), st.integers(1, 7_200_000), st.integers(1_600_000_000_000, 4_000_000_000_000))
def test_every_amount_and_every_time_to_live_holds_from_its_first_moment(
    signer: Signer, keys: dict[str, str], nano_usd: int, milliseconds: int, at: int
) -> None:
    ttl, now = max(timedelta(milliseconds=milliseconds), timedelta(seconds=1)), datetime.fromtimestamp(at / 1000, UTC)
    grant = replace(GRANT, max_budget_nano_usd=nano_usd)
    assert checked(mint(signer, grant, now, ttl), keys, now) == grant


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=-1), timedelta(hours=2, seconds=1)])
def test_none_is_minted_for_no_time_or_for_too_long(signer: Signer, ttl: timedelta) -> None:
    with pytest.raises(ValueError, match="two hours"):
        mint(signer, GRANT, NOW, ttl)


def test_it_holds_as_long_as_it_says_and_half_a_minute_for_clocks_that_differ(
    signer: Signer, keys: dict[str, str]
) -> None:
    token = mint(signer, GRANT, NOW, TTL)
    assert checked(token, keys, NOW - timedelta(seconds=29)) == GRANT
    assert checked(token, keys, NOW + TTL + timedelta(seconds=29)) == GRANT
    refused(token, keys, "in the future", NOW - timedelta(seconds=32))
    refused(token, keys, "expired", NOW + TTL + timedelta(seconds=30))


@pytest.mark.parametrize(
    ("claim", "value", "why"),
    [
        ("aud", "another", "another door"),
        ("aud", ["watchbill-relay"], "aud is not"),
        ("iss", "another", "another door"),
        ("exp", int(NOW.timestamp()) + 7201, "longer than"),
        ("exp", int(NOW.timestamp()), "longer than"),
        ("exp", 10**18, "calendar"),
        ("exp", float("1e9"), "exp is not"),
        ("iat", True, "iat is not"),
        ("epoch", "3", "epoch is not"),
        ("epoch", True, "epoch is not"),
        ("run", None, "run is not"),
        ("sub", 7, "sub is not"),
        ("max_budget_usd", "-1", "max_budget_usd is not"),
        ("max_budget_usd", "1e3", "max_budget_usd is not"),
        ("max_budget_usd", "٣", "max_budget_usd is not"),
        ("max_budget_usd", 2.5, "max_budget_usd is not"),
        ("scope", "everything", "not known here"),
    ],
)
def test_a_claim_of_another_form_is_refused_whoever_signed_it(
    signer: Signer, keys: dict[str, str], claim: str, value: object, why: str
) -> None:
    claims = {**claims_of(mint(signer, GRANT, NOW, TTL)), claim: value}
    refused(signer.sign(KIND, claims), keys, why)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_that_is_missing_is_refused(signer: Signer, keys: dict[str, str], claim: str) -> None:
    claims = claims_of(mint(signer, GRANT, NOW, TTL))
    del claims[claim]
    refused(signer.sign(KIND, claims), keys, f"lacks the claim {claim}")


def test_a_word_of_another_kind_is_no_capability(signer: Signer, keys: dict[str, str]) -> None:
    claims = claims_of(mint(signer, GRANT, NOW, TTL))
    refused(signer.sign("JWT", claims), keys, "not a watchbill-capability")
    refused(seals.seal(signer, seals.Head("c", 1, "h")), keys, "not a watchbill-capability")


@given(st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 3), st.text(max_size=3)), min_size=1, max_size=4))
def test_a_capability_of_which_anything_was_changed_is_refused(
    signer: Signer, keys: dict[str, str], changes: list[tuple[int, int, str]]
) -> None:
    token = changed = mint(signer, GRANT, NOW, TTL)
    for at, cut, put in changes:
        place = at % (len(changed) + 1)
        changed = changed[:place] + put + changed[place + cut :]
    if changed != token:
        refused(changed, keys, ".")


def test_a_capability_is_good_in_the_form_in_which_it_was_signed_and_in_no_other(
    signer: Signer, keys: dict[str, str]
) -> None:
    token = mint(signer, GRANT, NOW, TTL)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [token[:-1] + last for last in alphabet if last != token[-1]]
    others += [
        f"{token}=",
        f"{token}==",
        f"{token}!",
        f"{token[:-9]}!{token[-9:]}",
        f"{token}.",
        f"{token}\n",
        f" {token}",
    ]
    for other in others:
        refused(other, keys, ".")


def test_another_header_above_the_same_claims_is_refused(signer: Signer, keys: dict[str, str]) -> None:
    _, claims, signature = mint(signer, GRANT, NOW, TTL).split(".")
    headers: tuple[object, ...] = (
        {"alg": "EdDSA", "typ": KIND, "kid": signer.kid, "x": 1},
        {"alg": "EdDSA", "typ": KIND, "kid": [1]},
        [],
        7,
    )
    for told in headers:
        refused(f"{_part(told)}.{claims}.{signature}", keys, ".")


def test_claims_under_the_signature_of_others_are_refused(signer: Signer, keys: dict[str, str]) -> None:
    header, _, signature = mint(signer, GRANT, NOW, TTL).split(".")
    claims = claims_of(mint(signer, GRANT, NOW, TTL)) | {"max_budget_usd": "999"}
    refused(f"{header}.{_part(claims)}.{signature}", keys, "does not hold")


def test_the_algorithm_is_not_the_senders_to_choose(signer: Signer, keys: dict[str, str]) -> None:
    claims = claims_of(mint(signer, GRANT, NOW, TTL))
    for algorithm in ("none", "HS256"):
        header = {"alg": algorithm, "typ": KIND, "kid": signer.kid}
        unsigned = f"{_part(header)}.{_part(claims)}"
        signature = "" if algorithm == "none" else _hs256(unsigned, signer.public)
        refused(f"{unsigned}.{signature}", keys, "does not hold")


def test_a_strangers_key_vouches_for_nothing(signer: Signer, keys: dict[str, str], tmp_path: Path) -> None:
    stranger = open_or_make(tmp_path / "stranger.pem")
    refused(mint(stranger, GRANT, NOW, TTL), keys, "no key")
    # Under the name of a key that is known, too.
    claims = claims_of(mint(signer, GRANT, NOW, TTL))
    forged = replace(stranger, kid=signer.kid).sign(KIND, claims)
    refused(forged, keys, "does not hold")


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "eyJ" * 5000, "\x00", "..."])
def test_what_is_no_token_is_refused(keys: dict[str, str], token: str) -> None:
    refused(token, keys, ".")


def _part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def _hs256(text: str, secret: str) -> str:
    made = hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(made).rstrip(b"=").decode()
