"""As whom we speak to GitHub: as an App, or with a person's token."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from domain.errors import NotFound, Unauthorized
from forge.github_api import GitHubApi
from forge.github_errors import Refused

PERMISSIONS = {"contents": "write", "pull_requests": "write", "metadata": "read"}
"""All that Watchbill asks for: push, and work on pull requests."""

SPARE_SECONDS = 300.0
"""A token is not handed out any more when so little of its hour is left."""


class Credentials(Protocol):
    async def token(self, name: str) -> str:
        """A token for this repository, `owner/name`, with at least five minutes left."""
        ...

    async def installation(self, name: str) -> int:
        """The App's installation, known to reach there and to be in force now; 0 for a person's token, unasked."""
        ...

    async def login(self) -> str:
        """The account that is the author of what we write."""
        ...

    def forget(self, name: str) -> None:
        """Do not use the token for this repository again: it was refused."""
        ...


class PersonalToken:
    """A person's token: it reaches what that person gave it."""

    def __init__(self, api: GitHubApi, token: str) -> None:
        self._api, self._token = api, token
        self._login = ""

    async def token(self, name: str) -> str:
        return self._token

    async def installation(self, name: str) -> int:
        return 0

    async def login(self) -> str:
        if not self._login:
            self._login = (await self._api.ask(f"Bearer {self._token}", "GET", "/user"))["login"]
        return self._login

    def forget(self, name: str) -> None:
        pass


@dataclass(frozen=True)
class _Minted:
    token: str = field(repr=False)
    expires_at: float


class App:
    """A GitHub App: tokens of an hour, each for one repository and with no more than PERMISSIONS.

    Any number of tasks asking at once make one token. The private key is read whenever it is needed, so
    a new one needs no restart.
    """

    def __init__(self, api: GitHubApi, app_id: int, private_key: Path) -> None:
        self._api, self._app_id, self._private_key = api, app_id, private_key
        self._minted: dict[str, _Minted] = {}
        self._minting: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._login = ""

    async def token(self, name: str) -> str:
        async with self._minting[name]:
            minted = self._minted.get(name)
            if minted is None or minted.expires_at - time.time() < SPARE_SECONDS:
                minted = await self._mint(name)
                self._minted[name] = minted
        return minted.token

    async def installation(self, name: str) -> int:
        try:
            found = await self._ask("GET", f"/repos/{name}/installation")
        except NotFound:
            raise NotFound(
                f"the App is not installed on {name}; add that repository to it on GitHub, or with a "
                f"stand-in: watchbill up --stand-in {name}=PATH"
            ) from None
        if found["suspended_at"]:
            raise Unauthorized(f"the App's installation on {name} is suspended; its owner can lift that on GitHub")
        return int(found["id"])

    async def login(self) -> str:
        if not self._login:
            self._login = f"{(await self._ask('GET', '/app'))['slug']}[bot]"
        return self._login

    def forget(self, name: str) -> None:
        self._minted.pop(name, None)

    async def _mint(self, name: str) -> _Minted:
        installation = await self.installation(name)
        wanted = {"repositories": [name.split("/")[1]], "permissions": PERMISSIONS}
        try:
            answer = await self._ask("POST", f"/app/installations/{installation}/access_tokens", wanted)
        except Refused as refused:
            needed = ", ".join(f"{what}: {level}" for what, level in PERMISSIONS.items())
            said = "; ".join(refused.reasons)
            raise Unauthorized(f"the App may not work on {name}, where it needs {needed} ({said})") from None
        return _Minted(answer["token"], datetime.fromisoformat(answer["expires_at"]).timestamp())

    async def _ask(self, method: str, path: str, json: Any = None) -> Any:
        return await self._api.ask(f"Bearer {self._signed()}", method, path, json=json, paced=False)

    def _signed(self) -> str:
        """The App's own token, signed with its key: valid for nine minutes, and from a minute ago."""
        import jwt

        now = int(time.time())
        claims = {"iat": now - 60, "exp": now + 540, "iss": str(self._app_id)}
        try:
            return jwt.encode(claims, self._private_key.read_bytes(), algorithm="RS256")
        except OSError as error:
            raise Unauthorized(f"the App's private key cannot be read: {error}") from None
        except (ValueError, TypeError, jwt.PyJWTError):
            raise Unauthorized(f"{self._private_key} holds no RSA private key in PEM form") from None
