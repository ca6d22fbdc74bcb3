"""The model providers behind the relay: where each is, with whose key, and what of a call it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from starlette.datastructures import Headers

from domain.errors import Misconfigured
from relay.usage import plain_id

PROVIDERS: Mapping[str, tuple[str, str, str]] = {
    "anthropic": ("https://api.anthropic.com", "x-api-key", ""),
    "openai": ("https://api.openai.com", "authorization", "Bearer "),
    "gemini": ("https://generativelanguage.googleapis.com", "x-goog-api-key", ""),
}
"""Each provider's own address, and the header and the prefix that its key is sent with."""

# The run's capability is for us alone: what a provider is shown is put in its place.
_PASSED_ON = ("accept", "anthropic-version", "openai-beta", "user-agent")
_PASSED_BACK = ("content-type", "request-id", "retry-after", "x-request-id", "x-should-retry")

_REQUEST = ("request-id", "x-request-id")

_BETAS = frozenset(
    {
        "claude-code-20250219", "context-1m-2025-08-07", "context-management-2025-06-27", "effort-2025-11-24",
        "extended-cache-ttl-2025-04-11", "fine-grained-tool-streaming-2025-05-14", "interleaved-thinking-2025-05-14",
        "mid-conversation-tool-changes-2026-07-01", "per-turn-control-2026-07-01", "prompt-caching-2024-07-31",
        "structured-outputs-2025-11-13", "thinking-display-updates-2026-08-18", "thinking-token-count-2026-05-13",
    }
)  # fmt: skip
"""What of Anthropic's trials changes no bound. Others are left out: a client asks for more of them than it needs."""

CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 3.0
"""For less time than providers keep idle connections: one that they are closing would cost a call.

Servers that people run themselves are often uvicorn's or Node's, which keep them for 5 seconds.
"""

_BUFFER = 64 * 1024


@dataclass(frozen=True)
class Upstream:
    """A provider at `url`, which stands for what is behind its name in a path. `key` is a secret; empty for none.

    `tells_runs`: the stand-in tells runs apart by their names, and takes those for keys.
    """

    url: str
    header: str = "authorization"
    key: str = field(default="", repr=False)
    tells_runs: bool = False

    def headers(self, told: Headers, run: str) -> dict[str, str]:
        """What it is sent with: nothing of the caller's but what is listed, and never compressed in answer."""
        passed = {name: told[name] for name in _PASSED_ON if name in told}
        if betas := _betas(told):
            passed["anthropic-beta"] = betas
        passed |= {"content-type": "application/json", "accept-encoding": "identity"}
        if self.tells_runs:
            passed["authorization"] = f"Bearer {run}"
        elif self.key:
            passed[self.header] = self.key
        return passed

    def is_told_in(self, body: bytes | bytearray) -> bool:
        """Whether something holds the key."""
        secret = self.key.rpartition(" ")[2].encode()
        return bool(secret) and secret in body


def _betas(told: Headers) -> str:
    """Those that were told and are let through, as they are sent."""
    named = (name.strip() for each in told.getlist("anthropic-beta") for name in each.split(","))
    return ",".join(name for name in named if name in _BETAS)


def passed_back(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {name: answer.headers[name] for name in _PASSED_BACK if name in answer.headers}


def request_of(answer: aiohttp.ClientResponse) -> str:
    """What the provider calls this request; empty where no header says it."""
    return next((plain_id(answer.headers[name]) for name in _REQUEST if name in answer.headers), "")


def upstream(provider: str, url: str, key_file: Path | None, models: str) -> Upstream | None:
    """The stand-in at `models`, where there is one: a rehearsal reaches no provider, whatever else is set.

    Else the provider by its settings, and None without any. Raises Misconfigured for a key that cannot be read.
    """
    if models:
        return Upstream(f"{models.rstrip('/')}/{provider}", tells_runs=True)
    if not url and key_file is None:
        return None
    default, header, prefix = PROVIDERS[provider]
    # Clients are told the address of OpenAI's API with its version, and their users copy it.
    base = (url or default).rstrip("/").removesuffix("/v1").removesuffix("/v1beta")
    return Upstream(base, header, f"{prefix}{_key(provider, key_file)}" if key_file else "")


def _key(provider: str, file: Path) -> str:
    try:
        key = file.expanduser().read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise Misconfigured(f"the key for {provider} in {file} cannot be read: {type(error).__name__}") from error
    if not key or not key.isprintable() or " " in key:
        raise Misconfigured(f"{file} holds no key for {provider}: one line without spaces is expected")
    return key


def session() -> aiohttp.ClientSession:
    """To be opened within a running loop. No cookies, no redirects, no proxy of the environment's.

    Without a bound on connections no stream waits for the end of another. Who waits for how long is watched elsewhere.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        auto_decompress=False,
        trust_env=False,
        raise_for_status=False,
        read_bufsize=_BUFFER,
        skip_auto_headers=("User-Agent", "Accept-Encoding", "Accept"),
    )
