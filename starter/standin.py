"""A stand-in GitHub for a local installation: which repositories are in it, and how we are known there."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from domain.errors import NotFound, Unavailable
from starter.local.installation import GitHub, StandIn

_APP = "watchbill"


def stand_in(home: Path, repositories: Mapping[str, Path]) -> StandIn:
    """A stand-in with copies of local git repositories under names such as `acme/shop`.

    We are an App there, installed on all of them.
    """

    async def introduce(announcement: dict[str, Any]) -> GitHub:
        return await asyncio.to_thread(_introduce, home, repositories, announcement)

    return StandIn(introduce)


def environment_for_stand_in(environment: Mapping[str, str]) -> dict[str, str]:
    """What the doors inherit beside a stand-in: it is on this machine, and minds no pace of writing."""
    direct = {name: value for name, value in environment.items() if not name.lower().endswith("_proxy")}
    return {**direct, "WATCHBILL_GITHUB_PAUSE": "0"}


def _write_secret(path: Path, secret: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(secret)


def _introduce(home: Path, repositories: Mapping[str, Path], announcement: Mapping[str, Any]) -> GitHub:
    address = str(announcement["address"])
    token = Path(announcement["setup_token_file"]).read_text(encoding="utf-8")

    def tell(route: str, **body: Any) -> dict[str, Any]:
        return _post(f"{address}_rehearsal/{route}", token, body)

    app, key = tell("apps", slug=_APP), home / "stand-in-app.pem"
    _write_secret(key, app["private_key"])
    by_owner: dict[str, list[str]] = {}
    for name, source in repositories.items():
        tell("repositories", name=name, source=str(source))
        by_owner.setdefault(name.partition("/")[0].lower(), []).append(name)
    for names in by_owner.values():
        tell("installations", slug=_APP, repositories=names)
    secret = announcement["webhook_secret_file"]
    return GitHub(
        address.rstrip("/"),
        str(app["id"]),
        str(key),
        webhook_secret_file=str(secret),
        models=str(announcement["models"]),
    )


def _post(url: str, token: str, body: Mapping[str, Any]) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - the stand-in's own address
    try:
        # No proxy stands between us and this machine.
        with build_opener(ProxyHandler({})).open(request, timeout=120) as answer:
            decoded: dict[str, Any] = json.load(answer)
            return decoded
    except HTTPError as error:
        raise NotFound(f"the stand-in GitHub refuses: {_message(error)}") from error
    except URLError as error:
        raise Unavailable(f"the stand-in GitHub does not answer: {error.reason}") from error


def _message(error: HTTPError) -> str:
    try:
        return str(json.load(error)["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {error.code}"
