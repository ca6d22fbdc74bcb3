"""Who calls: a capability that a known key signed, for a run that the graph says is live.

The relay holds public keys only, and reads them from the graph. What a key may vouch for stands beside
it there, so that a key that seals receipts, say, lets nobody in here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from anyio import Lock
from jwt import InvalidTokenError, get_unverified_header
from sqlalchemy import Connection
from starlette.datastructures import Headers

from domain.errors import Superseded, Unauthorized
from domain.identity import digest
from relay.answers import Refused
from relay.graph import Graph
from signing.capabilities import USE, Grant, checked
from store.keys import known_keys
from store.words import Speaker, why_void

KEYS_FOR = 5.0
"""Seconds for which keys are not read again."""

STRANGER_EVERY = 1.0
"""Seconds between two readings because of a key that is not known: it may have been made just now."""


@dataclass(frozen=True)
class Caller:
    """A run at the door. `fingerprint` stands for its token wherever something is written down."""

    grant: Grant
    fingerprint: str

    @property
    def speaker(self) -> Speaker:
        grant = self.grant
        return Speaker(grant.owner, grant.plan, grant.task, grant.run, grant.epoch, grant.role)


class Callers:
    """Tells who calls. Times are monotonic seconds, except in the capabilities themselves."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._keys: Mapping[str, str] = {}
        self._read_at = float("-inf")
        self._reading = Lock()

    async def caller(self, headers: Headers, *, api_key: bool = False) -> Caller:
        """Whom the bearer token names. With `api_key` it may also come the way Anthropic's clients send it.

        Raises Refused with 401, in one sentence without the token. Whether its run is live is not asked here.
        """
        token = _bearer(headers) or (headers.get("x-api-key", "") if api_key else "")
        if not token:
            raise Refused(401, "send the run's capability as `Authorization: Bearer …`")
        try:
            grant = checked(token, await self._keys_for(token), datetime.now(UTC))
        except Unauthorized as error:
            raise Refused(401, f"the capability is not accepted: {error}") from error
        return Caller(grant, digest(token)[:12])

    async def require_live(self, caller: Caller) -> None:
        """Raises Refused with 403 when the run has ended, is another than it was, or has a newer one beside it."""

        def ask(connection: Connection) -> None:
            require_live(connection, caller)

        try:
            await self._graph.read(ask)
        except (Superseded, Unauthorized) as error:
            raise Refused(403, str(error)) from error

    async def _keys_for(self, token: str) -> Mapping[str, str]:
        async with self._reading:
            age = time.monotonic() - self._read_at
            if age > KEYS_FOR or (age > STRANGER_EVERY and _kid(token) not in self._keys):
                self._keys = await self._graph.read(lambda connection: known_keys(connection, USE))
                self._read_at = time.monotonic()
            return self._keys


def require_live(connection: Connection, caller: Caller) -> None:
    """Raises Superseded when the run's word counts no more, Unauthorized when it is not what it was."""
    void = why_void(connection, caller.speaker)
    if void:
        raise Superseded(void)


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _kid(token: str) -> str:
    try:
        return str(get_unverified_header(token).get("kid"))
    except InvalidTokenError:
        return ""
