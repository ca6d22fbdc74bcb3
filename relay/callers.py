"""Who calls: a capability that a known key signed, for a run that the graph says is live.

The relay holds public keys only, and reads them from the graph. What a key may vouch for stands beside
it there, so that a key that seals receipts, say, lets nobody in here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from anyio import Lock, sleep
from sqlalchemy import Connection
from starlette.datastructures import Headers

from domain.errors import Superseded, Unauthorized
from domain.identity import digest
from relay.answers import Refused
from relay.graph import Graph
from signing.capabilities import USE, Grant, checked_until
from signing.checking import kid_of
from store.keys import known_keys
from store.words import Speaker, why_void

KEYS_FOR = 1.0
"""Seconds for which keys are not read again: so long at most one that was retired lets anybody in."""

STRANGER_EVERY = 0.25
"""Seconds between two readings because of keys that are not known, however many ask: each may have been made just now,
so nobody is refused over keys that were read before they came.
"""


MOST_KNOWN = 4096
"""Capabilities that are remembered, so that their signature is not checked at every call."""


@dataclass(frozen=True)
class Caller:
    """A run at the door. `fingerprint` stands for its token wherever something is written down."""

    grant: Grant
    fingerprint: str

    @property
    def speaker(self) -> Speaker:
        grant = self.grant
        return Speaker(grant.owner, grant.plan, grant.task, grant.run, grant.epoch, grant.role)


@dataclass(frozen=True)
class _Known:
    """A capability whose signature held, by the key `key` (PEM) of the id `kid`, and from when on it is void."""

    caller: Caller
    until: datetime
    kid: str
    key: str


class Callers:
    """Tells who calls. Times are monotonic seconds, except in the capabilities themselves."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._keys: Mapping[str, str] = {}
        self._read_at = float("-inf")
        self._reading = Lock()
        self._known: dict[str, _Known] = {}

    async def caller(self, headers: Headers, *, api_key: bool = False) -> Caller:
        """Whom the bearer token names. With `api_key` it may also come as Anthropic's and Google's clients send it.

        Raises Refused with 401, in one sentence without the token. Whether its run is live is not asked here.
        """
        token = _bearer(headers)
        if api_key and not token:
            token = headers.get("x-api-key", "") or headers.get("x-goog-api-key", "")
        if not token:
            raise Refused(401, "send the run's capability as `Authorization: Bearer …`")
        name, now = digest(token), datetime.now(UTC)
        known = self._known.get(name)
        kid = known.kid if known else kid_of(token)
        keys = await self._keys_for(kid)
        # All who waited for the keys ask again: a signature that held by the same key holds still.
        known = self._known.get(name)
        if known is None or now >= known.until or keys.get(known.kid) != known.key:
            known = self._checked(token, name, kid, keys, now)
        return known.caller

    def _checked(self, token: str, name: str, kid: str, keys: Mapping[str, str], now: datetime) -> _Known:
        self._known.pop(name, None)
        try:
            grant, until = checked_until(token, keys, now)
        except Unauthorized as error:
            raise Refused(401, f"the capability is not accepted: {error}") from error
        if len(self._known) >= MOST_KNOWN:
            del self._known[next(iter(self._known))]
        known = self._known[name] = _Known(Caller(grant, name[:12]), until, kid, keys[kid])
        return known

    async def require_live(self, caller: Caller) -> None:
        """Raises Refused with 403 when the run has ended, is another than it was, or has a newer one beside it."""

        def ask(connection: Connection) -> None:
            require_live(connection, caller)

        try:
            await self._graph.read(ask)
        except (Superseded, Unauthorized) as error:
            raise Refused(403, str(error)) from error

    async def _keys_for(self, kid: str) -> Mapping[str, str]:
        """The keys that vouch for anybody, read not long ago; and if `kid` is none of them, since it was asked for."""
        came = time.monotonic()
        if not self._settles(kid, came):
            async with self._reading:
                if not self._settles(kid, came):
                    if kid not in self._keys:
                        await sleep(max(0.0, self._read_at + STRANGER_EVERY - time.monotonic()))
                    began = time.monotonic()
                    self._keys = await self._graph.read(lambda connection: known_keys(connection, USE))
                    self._read_at = began
        return self._keys

    def _settles(self, kid: str, came: float) -> bool:
        """Whether what was last read tells if this key vouches for anybody."""
        since = came if kid not in self._keys else time.monotonic() - KEYS_FOR
        return self._read_at >= since


def require_live(connection: Connection, caller: Caller) -> None:
    """Raises Superseded when the run's word counts no more, Unauthorized when it is not what it was."""
    void = why_void(connection, caller.speaker)
    if void:
        raise Superseded(void)


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
