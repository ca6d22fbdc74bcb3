"""Ed25519 keys, and compact JWS over a few claims.

A private key is a file on the disk of whoever signs. Its `kid` is the RFC 7638 thumbprint of the public
half, so a key cannot be swapped under its name. Public halves are handed out as PEM and kept for good:
what an old key signed stays checkable after the key was replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from jwt.algorithms import OKPAlgorithm
from jwt.types import Options
from jwt.utils import base64url_decode, base64url_encode

from domain.errors import Unauthorized, said

_ALGORITHM = "EdDSA"
_SIGNATURE_ALONE = Options(
    verify_aud=False,
    verify_exp=False,
    verify_iat=False,
    verify_iss=False,
    verify_jti=False,
    verify_nbf=False,
    verify_sub=False,
)


@dataclass(frozen=True)
class Signer:
    """A private key in use. `public` is its other half, as PEM."""

    kid: str
    public: str
    _private: Ed25519PrivateKey = field(repr=False)

    def sign(self, kind: str, claims: Mapping[str, Any]) -> str:
        """A compact JWS of `claims` whose `typ` is `kind`. The same claims give the same bytes."""
        return jwt.encode(dict(claims), self._private, _ALGORITHM, headers={"kid": self.kid, "typ": kind})


def verified(token: str, kind: str, keys: Mapping[str, str]) -> dict[str, Any]:
    """The claims of a token of this kind that one of `keys` (PEM by kid) signed.

    Only Ed25519 is taken. No clock is read here: what claims say about time, and for whom they are
    meant, is judged by whoever knows the kind. Raises Unauthorized in one sentence.
    """
    try:
        header = jwt.get_unverified_header(token)
        if header.get("typ") != kind:
            raise Unauthorized(f"it is not a {kind}")
        kid = str(header.get("kid"))
        if kid not in keys:
            raise Unauthorized(f"no key {kid[:40]!r} is known")
        public = _public_key(keys[kid])
        if _thumbprint(public) != kid:
            raise Unauthorized(f"what is kept as key {kid} is another key")
        claims: dict[str, Any] = jwt.decode(token, public, algorithms=[_ALGORITHM], options=_SIGNATURE_ALONE)
        signature = token.rpartition(".")[2]
        # Base64 has bits and characters that mean nothing; what was signed has one form only.
        if base64url_encode(base64url_decode(signature)).decode() != signature:
            raise Unauthorized("the signature does not hold: it is not written as it was signed")
    except (jwt.InvalidTokenError, RecursionError) as error:
        raise Unauthorized(f"the signature does not hold: {error}") from error
    return claims


def kind_of(token: str) -> str:
    """What a token says that it is, unchecked; empty for what is none."""
    try:
        return str(jwt.get_unverified_header(token).get("typ", ""))
    except (jwt.InvalidTokenError, RecursionError):
        return ""


def open_or_make(path: Path) -> Signer:
    """The key in this file, made on first use; two who make it at once end up with the same one.

    Raises Unauthorized for a file that others than its owner may read, and for what cannot be read or made or is no
    such key.
    """
    try:
        return _opened(path)
    except OSError as error:
        raise Unauthorized(f"there is no key to sign with: {said(error)}") from error


def _opened(path: Path) -> Signer:
    if not path.exists():
        _make(path)
    if not path.is_file():
        raise Unauthorized(f"{path} is no file; name one for the key, or remove what stands there")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Unauthorized(f"{path} may be read by others; keep a signing key to yourself: chmod 600 {path}")
    try:
        private = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, InvalidKey) as error:
        raise Unauthorized(f"{path} holds no private key; move it away, and one is made anew") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise Unauthorized(f"{path} is no Ed25519 key")
    public = private.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return Signer(_thumbprint(public), pem, private)


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(beside, path)  # never over a key that somebody made meanwhile
    finally:
        Path(beside).unlink()


def _public_key(pem: str) -> Ed25519PublicKey:
    try:
        public = load_pem_public_key(pem.encode())
    except (ValueError, AttributeError, TypeError) as error:
        raise Unauthorized("what is kept as a key is none") from error
    if not isinstance(public, Ed25519PublicKey):
        raise Unauthorized("what is kept as a key is no Ed25519 key")
    return public


def _thumbprint(public: Ed25519PublicKey) -> str:
    jwk = OKPAlgorithm.to_jwk(public, as_dict=True)
    said = json.dumps({name: jwk[name] for name in ("crv", "kty", "x")}, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:32]
