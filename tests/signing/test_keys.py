"""A key is private to its file, is named by what it is, and vouches for one kind of statement only."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from domain.errors import Unauthorized
from signing.checking import verified
from signing.keys import Signer, open_or_make

KIND = "a-statement"


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return open_or_make(tmp_path / "keys" / "one.pem")


def test_what_was_signed_is_read_and_the_same_claims_are_the_same_bytes(signer: Signer) -> None:
    token = signer.sign(KIND, {"sub": "x", "n": 3})
    assert verified(token, KIND, {signer.kid: signer.public}) == {"sub": "x", "n": 3}
    assert signer.sign(KIND, {"sub": "x", "n": 3}) == token


def test_the_file_is_its_owners_alone_and_is_opened_again(signer: Signer, tmp_path: Path) -> None:
    path = tmp_path / "keys" / "one.pem"
    assert path.stat().st_mode & 0o077 == 0
    assert open_or_make(path).kid == signer.kid
    assert [one.name for one in path.parent.iterdir()] == ["one.pem"]


def test_a_key_that_others_may_read_is_refused(signer: Signer, tmp_path: Path) -> None:
    path = tmp_path / "keys" / "one.pem"
    path.chmod(0o640)
    with pytest.raises(Unauthorized, match="chmod 600"):
        open_or_make(path)


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.pem"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(Unauthorized, match="no private key"):
        open_or_make(path)


def test_another_kind_of_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ec.pem"
    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    with pytest.raises(Unauthorized, match="Ed25519"):
        open_or_make(path)


def test_those_who_make_it_at_once_end_up_with_one(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        kids = pool.map(_kid, [tmp_path / "same.pem"] * 8)
    assert len(set(kids)) == 1


def _kid(path: Path) -> str:
    return open_or_make(path).kid


def test_an_old_keys_word_holds_beside_a_new_one(signer: Signer, tmp_path: Path) -> None:
    new = open_or_make(tmp_path / "new.pem")
    keys = {one.kid: one.public for one in (signer, new)}
    assert [verified(one.sign(KIND, {"n": 1}), KIND, keys) for one in (signer, new)] == [{"n": 1}] * 2


def test_a_strangers_word_and_a_swapped_key_do_not_hold(signer: Signer, tmp_path: Path) -> None:
    stranger = open_or_make(tmp_path / "stranger.pem")
    token = stranger.sign(KIND, {"n": 1})
    with pytest.raises(Unauthorized, match="no key"):
        verified(token, KIND, {signer.kid: signer.public})
    with pytest.raises(Unauthorized, match="another key"):
        verified(signer.sign(KIND, {"n": 1}), KIND, {signer.kid: stranger.public})


def test_a_word_of_another_kind_is_not_taken(signer: Signer) -> None:
    with pytest.raises(Unauthorized, match="not a"):
        verified(signer.sign("another", {"n": 1}), KIND, {signer.kid: signer.public})


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS256"])
def test_the_algorithm_is_ours_to_choose(signer: Signer, algorithm: str) -> None:
    # `none`, the public key as a shared secret, and another kind of signature under our key's name.
    keys = {
        "none": "",
        "HS256": "a shared secret of more than thirty-two bytes",
        "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    }
    token = jwt.encode({"n": 1}, keys[algorithm], algorithm, headers={"kid": signer.kid, "typ": KIND})
    with pytest.raises(Unauthorized, match="does not hold"):
        verified(token, KIND, {signer.kid: signer.public})


@pytest.mark.parametrize("token", ["", "a.b.c", "eyJ.eyJ.x", "\x00", "é.é.é"])
def test_what_is_no_token_is_refused(signer: Signer, token: str) -> None:
    with pytest.raises(Unauthorized):
        verified(token, KIND, {signer.kid: signer.public})


def test_the_private_half_is_not_shown(signer: Signer) -> None:
    assert "private" not in repr(signer).lower()


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_folder_or_a_broken_link_in_the_keys_place_is_told_as_what_it_is(tmp_path: Path, mode: int) -> None:
    (tmp_path / "folder").mkdir(mode=mode)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("folder", "link"):
        with pytest.raises(Unauthorized, match="is no file"):
            open_or_make(tmp_path / name)


def test_what_a_killed_maker_left_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / f"one.pem.{os.getpid()}").touch()
    assert open_or_make(tmp_path / "one.pem").kid


@pytest.mark.parametrize("kept", [b"\x00\x01", "", "no key", None])
def test_a_public_key_that_is_none_vouches_for_nothing(signer: Signer, kept: object) -> None:
    with pytest.raises(Unauthorized, match="is none"):
        verified(signer.sign(KIND, {"n": 1}), KIND, {signer.kid: kept})  # type: ignore[dict-item]
