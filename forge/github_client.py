"""githubkit, set up for us. Importing this takes a second, so forge.github_api does when first asked."""

from __future__ import annotations

import re
import time
from typing import Any

import httpx
from githubkit import GitHub
from githubkit.exception import RequestError

from domain.errors import Unavailable, WatchbillError
from forge.github_api import GRAPHQL
from forge.github_errors import ErrorAnswer

API_VERSION = "2022-11-28"
"""Later versions no longer tell which commit merged a pull request."""

_TIMEOUT = 10.0


class _Connections(httpx.AsyncHTTPTransport):
    """Connections that outlive a request: githubkit closes its transport after every one."""

    async def aclose(self) -> None:
        pass

    async def close_all(self) -> None:
        await super().aclose()


class Client:
    """Sends requests, and turns what goes wrong into the domain's errors."""

    def __init__(self, base_url: str) -> None:
        # On a GitHub of one's own it lies beside the version of REST, not below it.
        beside = re.sub(r"/api/v3/?$", "/api/graphql", base_url)
        self._graphql = beside if beside != base_url else GRAPHQL
        self._connections = _Connections(trust_env=False, limits=httpx.Limits(keepalive_expiry=30))
        # Its defaults wait for ever, repeat a POST by themselves, and share one HTTP cache between tokens.
        self._github = GitHub(
            None,
            base_url=base_url,
            timeout=_TIMEOUT,
            auto_retry=False,
            http_cache=False,
            trust_env=False,
            async_transport=self._connections,
            async_event_hooks={"response": [_refuse_errors]},
        )

    async def send(
        self, authorization: str, method: str, path: str, params: dict[str, str | int] | None, json: Any
    ) -> Any:
        """The decoded answer, None for an empty one. Raises the errors of forge.github_errors."""
        headers = {"Authorization": authorization, "X-GitHub-Api-Version": API_VERSION}
        address = self._graphql if path == GRAPHQL else path
        try:
            response = await self._github.arequest(method, address, params=params, json=json, headers=headers)
        except RequestError as error:
            if isinstance(error.exc, WatchbillError):
                raise error.exc from None
            kind = type(error.exc).__name__
            raise Unavailable(f"GitHub did not answer {method} {path} ({kind})") from None
        try:
            return response.json() if response.content else None
        except ValueError:
            raise Unavailable(f"what answered {method} {path} is not GitHub: it sent no JSON") from None

    async def close(self) -> None:
        await self._connections.close_all()


async def _refuse_errors(response: httpx.Response) -> None:
    """Raises before githubkit looks at an error itself: it trips over some Retry-After headers."""
    if response.is_error:
        content = await response.aread()
        request = response.request
        asked = f"{request.method} {request.url.path}"
        raise ErrorAnswer(asked, response.status_code, response.headers, content, time.time()).error()
