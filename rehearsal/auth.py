"""Who is calling, and how far they reach: App JWTs, installation tokens, personal tokens, roles.

A repository that the caller cannot see does not exist for them (404), as on GitHub.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import jwt

from rehearsal.answers import Refused
from rehearsal.state import Row, State, timestamp

INSTALLATION_TOKEN_SECONDS = 3600
LONGEST_JWT_SECONDS = 600

Level = Literal["none", "read", "write", "admin"]
_LEVELS: tuple[Level, ...] = ("none", "read", "write", "admin")


@dataclass(frozen=True)
class Actor:
    """Whoever stands behind a request.

    `app` is set when an App speaks for itself, `installation` when one of its installations does.
    `repositories` (ids) and `permissions` are None where the token does not narrow what its holder may.
    `holder` is whose rate limit the request counts against.
    """

    login: str = ""
    app: int | None = None
    installation: int | None = None
    repositories: frozenset[int] | None = None
    permissions: Mapping[str, str] | None = None

    @property
    def holder(self) -> str:
        if self.installation:
            return f"installation:{self.installation}"
        return f"app:{self.app}" if self.app else f"user:{self.login}"


ANONYMOUS = Actor()


def at_least(level: str, wanted: str) -> bool:
    return _LEVELS.index(level) >= _LEVELS.index(wanted) if level in _LEVELS else False


def authenticate(state: State, header: str | None) -> Actor:
    """Read an Authorization header (bearer, token, or basic with the token as password).

    Raises Refused 401 when what it carries is not, or no longer, good.
    """
    if not header:
        return ANONYMOUS
    scheme, _, credentials = header.partition(" ")
    credential = credentials.strip()
    if scheme.lower() == "basic":
        credential = _password(credential)
    elif scheme.lower() not in ("bearer", "token"):
        raise bad_credentials()
    if credential.count(".") == 2 and credential.startswith("ey"):
        return _app_of(state, credential)
    return _holder_of(state, credential)


def bad_credentials() -> Refused:
    return Refused(401, "Bad credentials")


def _password(encoded: str) -> str:
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise bad_credentials() from None
    return password if password not in ("", "x-oauth-basic") else user


def _app_of(state: State, token: str) -> Actor:
    try:
        issuer = str(jwt.decode(token, options={"verify_signature": False}).get("iss", ""))
    except jwt.PyJWTError:
        raise Refused(401, "A JSON web token could not be decoded") from None
    app = state.one("SELECT * FROM app WHERE CAST(id AS TEXT) = ? OR client_id = ?", issuer, issuer)
    if app is None:
        raise Refused(404, "Integration not found")
    try:
        claims = jwt.decode(
            token,
            app["public_key"],
            algorithms=["RS256"],
            # The times are ours to judge: GitHub has its own words and its own limits for them.
            options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
    except jwt.PyJWTError:
        raise Refused(401, "A JSON web token could not be decoded") from None
    _check_times(claims.get("iat"), claims.get("exp"))
    return Actor(login=f"{app['slug']}[bot]", app=app["id"])


def _check_times(issued: object, expires: object) -> None:
    at = time.time()
    if not isinstance(expires, int | float):
        raise Refused(401, "Missing 'expiration' claim ('exp') in assertion")
    if not isinstance(issued, int | float) or issued > at:
        raise Refused(
            401,
            "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
        )
    if expires <= at:
        raise Refused(
            401,
            "'Expiration time' claim ('exp') must be a numeric value representing the future time "
            "at which the assertion expires",
        )
    if expires > at + LONGEST_JWT_SECONDS:
        raise Refused(401, "'Expiration time' claim ('exp') is too far in the future")


def _holder_of(state: State, token: str) -> Actor:
    row = state.one("SELECT * FROM token WHERE digest = ?", digest(token))
    if row is None or (row["expires_at"] is not None and row["expires_at"] <= time.time()):
        raise bad_credentials()
    if row["installation"]:
        installation = state.one("SELECT * FROM installation WHERE id = ?", row["installation"])
        if installation is None or installation["suspended_at"]:
            raise Refused(403, "This installation has been suspended")
    return Actor(
        login=row["login"],
        installation=row["installation"],
        repositories=None if row["repositories"] is None else frozenset(json.loads(row["repositories"])),
        permissions=None if row["permissions"] is None else json.loads(row["permissions"]),
    )


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def issue_personal_token(state: State, login: str) -> str:
    token = f"ghp_{secrets.token_hex(18)}"
    state.run("INSERT INTO token (digest, login) VALUES (?, ?)", digest(token), login)
    return token


def issue_installation_token(
    state: State, login: str, installation: int, repositories: Collection[int], permissions: Mapping[str, str]
) -> tuple[str, str]:
    """A token for an hour, narrowed to these repositories and permissions, and when it expires."""
    token = f"ghs_{secrets.token_hex(18)}"
    expires = time.time() + INSTALLATION_TOKEN_SECONDS
    state.run(
        "INSERT INTO token VALUES (?, ?, ?, ?, ?, ?)",
        digest(token), login, installation, json.dumps(sorted(repositories)),
        json.dumps(dict(permissions)), expires,
    )  # fmt: skip
    return token, timestamp(expires)


def role(state: State, login: str, repository: Row) -> Level:
    """What a person may do in a repository: its owner administers, the public reads what is public."""
    if login and login.lower() == repository["owner"].lower():
        return "admin"
    row = state.one("SELECT permission FROM collaborator WHERE repository = ? AND login = ?", repository["id"], login)
    if row is not None:
        level: Level = row["permission"]
        return level
    return "none" if repository["private"] else "read"


def sees(state: State, actor: Actor, repository: Row) -> bool:
    if not repository["private"]:
        return True
    if actor.repositories is not None:
        return repository["id"] in actor.repositories
    return actor.app is None and role(state, actor.login, repository) != "none"


def may(state: State, actor: Actor, repository: Row, permission: str, level: str, person: str = "") -> bool:
    """Whether the caller may use a permission (such as `pull_requests`) of a repository at a level.

    A person needs the role `person` instead, or `level` where it is empty: anybody who reads a
    public repository may comment there, although an App needs `issues: write` for it.
    """
    if level == "read" and not repository["private"]:
        return True
    if actor.installation is None:
        named = actor.app is None and bool(actor.login)
        return named and at_least(role(state, actor.login, repository), person or level)
    if actor.repositories is None or repository["id"] not in actor.repositories:
        return False
    return permission == "metadata" or at_least((actor.permissions or {}).get(permission, "none"), level)


def denied(actor: Actor) -> Refused:
    if actor.installation is not None or actor.app is not None:
        return Refused(403, "Resource not accessible by integration")
    if not actor.login:
        return Refused(401, "Requires authentication")
    return Refused(403, "Must have admin rights to Repository.")
