"""Checking what was signed, with public keys alone: all that whoever holds no private key has to load."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt.algorithms import OKPAlgorithm
from jwt.types import Options
from jwt.utils import base64url_decode, base64url_encode

from domain.errors import Unauthorized

ALGORITHM = "EdDSA"
_SIGNATURE_ALONE = Options(
    verify_aud=False,
    verify_exp=False,
    verify_iat=False,
    verify_iss=False,
    verify_jti=False,
    verify_nbf=False,
    verify_sub=False,
)


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
        if thumbprint(public) != kid:
            raise Unauthorized(f"what is kept as key {kid} is another key")
        claims: dict[str, Any] = jwt.decode(token, public, algorithms=[ALGORITHM], options=_SIGNATURE_ALONE)
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


def kid_of(token: str) -> str:
    """The key that a token says signed it, unchecked; empty for what is none."""
    try:
        return str(jwt.get_unverified_header(token).get("kid"))
    except (jwt.InvalidTokenError, RecursionError):
        return ""


def thumbprint(public: Ed25519PublicKey) -> str:
    """The RFC 7638 thumbprint of a key, which is its kid: the first 32 hex digits."""
    jwk = OKPAlgorithm.to_jwk(public, as_dict=True)
    said = json.dumps({name: jwk[name] for name in ("crv", "kty", "x")}, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _public_key(pem: str) -> Ed25519PublicKey:
    try:
        public = load_pem_public_key(pem.encode())
    except (ValueError, AttributeError, TypeError) as error:
        raise Unauthorized("what is kept as a key is none") from error
    if not isinstance(public, Ed25519PublicKey):
        raise Unauthorized("what is kept as a key is no Ed25519 key")
    return public
