"""Ed25519 keys that sign, and compact JWS over a few claims.

A private key is a file on the disk of whoever signs. Its `kid` is the RFC 7638 thumbprint of the public
half, so a key cannot be swapped under its name. Public halves are handed out as PEM and kept for good:
what an old key signed stays checkable after the key was replaced.
"""

from __future__ import annotations

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
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from domain.errors import Unauthorized, said
from signing.checking import ALGORITHM, thumbprint


@dataclass(frozen=True)
class Signer:
    """A private key in use. `public` is its other half, as PEM."""

    kid: str
    public: str
    _private: Ed25519PrivateKey = field(repr=False)

    def sign(self, kind: str, claims: Mapping[str, Any]) -> str:
        """A compact JWS of `claims` whose `typ` is `kind`. The same claims give the same bytes."""
        return jwt.encode(dict(claims), self._private, ALGORITHM, headers={"kid": self.kid, "typ": kind})


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
    return Signer(thumbprint(public), pem, private)


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
