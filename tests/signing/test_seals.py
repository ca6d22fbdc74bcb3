"""A seal names one head, and is found in whatever text it was put into."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from domain.errors import Unauthorized
from forge import text
from signing.keys import Signer, open_or_make
from signing.seals import KIND, Head, head_in, seal, seals_in

HEAD = Head("ada-faster", 12, "a" * 64)


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return open_or_make(tmp_path / "seal.pem")


def test_a_seal_is_read_back(signer: Signer) -> None:
    assert head_in(seal(signer, HEAD), {signer.kid: signer.public}) == HEAD


def test_a_seal_is_found_in_a_pull_requests_body(signer: Signer) -> None:
    tokens = [seal(signer, Head("p", seq, "h")) for seq in range(200)]
    for token in tokens:
        assert seals_in(text.body(task_id="t", asked="eyJust. asking. this", seal=token)) == [token]


def test_each_seal_is_found_once(signer: Signer) -> None:
    one, other = seal(signer, HEAD), seal(signer, Head("p", 1, "h"))
    assert seals_in(f"{one} and `{other}`, {one}.") == [one, other]


def test_a_changed_seal_does_not_hold(signer: Signer) -> None:
    header, claims, signature = seal(signer, HEAD).split(".")
    other = seal(signer, Head("ada-faster", 13, "b" * 64)).split(".")[1]
    with pytest.raises(Unauthorized, match="does not hold"):
        head_in(f"{header}.{other}.{signature}", {signer.kid: signer.public})
    assert claims != other


@pytest.mark.parametrize("claims", [{}, {"sub": "p", "seq": "1", "hash": "h"}, {"sub": 1, "seq": 1, "hash": "h"}])
def test_what_names_no_head_is_refused(signer: Signer, claims: dict[str, object]) -> None:
    with pytest.raises(Unauthorized):
        head_in(signer.sign(KIND, claims), {signer.kid: signer.public})


def test_other_signed_tokens_in_what_was_asked_are_none_of_ours(signer: Signer) -> None:
    other = signer.sign("JWT", {"sub": "1234567890"})
    assert seals_in(f"{other} {seal(signer, HEAD)} {other}") == [seal(signer, HEAD)]


@pytest.mark.timeout(20)
def test_a_hostile_text_is_looked_through_in_no_time() -> None:
    assert seals_in("eyJ" * 100_000 + ".eyJ" * 100_000) == []


def test_a_token_that_would_forge_a_line_is_one_line(signer: Signer) -> None:
    header = {"alg": "EdDSA", "typ": KIND, "kid": "x\nevery receipt agrees" + "y" * 1000}
    token = ".".join(
        base64.urlsafe_b64encode(part).rstrip(b"=").decode()
        for part in (json.dumps(header).encode(), b'{"sub":"p"}', b"signature")
    )
    with pytest.raises(Unauthorized) as raised:
        head_in(token, {signer.kid: signer.public})
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 200
