"""GitHub's REST API: one place that every request goes through."""

from __future__ import annotations

import asyncio
from asyncio import sleep
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forge.github_client import Client

GRAPHQL = "/graphql"
"""The path that stands for GraphQL's address, wherever that is."""

SECONDS_BETWEEN_WRITES = 1.0
"""What GitHub asks for, so that its secondary limits are not met."""


class GitHubApi:
    """One GitHub, asked from one event loop. githubkit is loaded with the first request."""

    def __init__(self, base_url: str, *, seconds_between_writes: float = SECONDS_BETWEEN_WRITES) -> None:
        """`base_url` is the API's address, such as https://api.github.com/."""
        self._base_url = base_url
        self._pause = seconds_between_writes
        self._next_write = 0.0
        self._client: Client | None = None

    async def ask(
        self,
        authorization: str,
        method: str,
        path: str,
        *,
        params: dict[str, str | int] | None = None,
        json: Any = None,
        paced: bool = True,
    ) -> Any:
        """The decoded JSON that GitHub answers, None for an empty answer.

        `authorization` is the header's value. A write waits for its turn unless it is not `paced`.
        Raises github_errors.Refused for 405, 409 and 422, and the domain's errors for the rest.
        """
        if paced and method != "GET":
            await self._turn()
        if self._client is None:
            self._client = await asyncio.to_thread(self._load)
        return await self._client.send(authorization, method, path, params, json)

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _turn(self) -> None:
        now = asyncio.get_running_loop().time()
        turn = max(now, self._next_write)
        self._next_write = turn + self._pause
        await sleep(turn - now)

    def _load(self) -> Client:
        from forge.github_client import Client

        return Client(self._base_url)
