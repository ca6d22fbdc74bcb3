"""The set-up routes under `/_rehearsal`: what `Scene` does, for whoever can read the set-up token's file."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rehearsal.git import GitFailed
from rehearsal.repositories import Unsuitable
from rehearsal.scene import Scene

PREFIX = "/_rehearsal"

Body = dict[str, Any]


def routes(scene: Scene, token: str) -> list[Route]:
    """Each takes the arguments of its `Scene` method as a JSON object, and the token as a bearer token."""
    actions: Mapping[tuple[str, str], Callable[[Body], object]] = {
        ("POST", "/accounts"): lambda body: scene.account(**body),
        ("POST", "/repositories"): lambda body: {"id": scene.repository(**_with_source(body))},
        ("POST", "/forks"): lambda body: {"name": scene.fork(**body)},
        ("POST", "/collaborators"): lambda body: scene.collaborator(**body),
        ("POST", "/protections"): lambda body: scene.protect(**body),
        ("POST", "/tokens"): lambda body: {"token": scene.personal_token(**body)},
        ("POST", "/tokens/expire"): lambda body: scene.expire_tokens(**body),
        ("POST", "/apps"): lambda body: asdict(scene.app(**body)),
        ("POST", "/installations"): lambda body: {"id": scene.install(body["slug"], *body["repositories"])},
        ("POST", "/installations/suspend"): lambda body: scene.suspend(**body),
        ("POST", "/installations/delete"): lambda body: scene.uninstall(**body),
        ("POST", "/webhooks"): lambda body: scene.app_webhook(**body) if "slug" in body else scene.webhook(**body),
        ("POST", "/limits"): lambda body: scene.limits(**body),
        ("POST", "/faults"): lambda body: asdict(scene.fault(**body)),
        ("GET", "/faults"): lambda _: [asdict(fault) for fault in scene.faults()],
        ("DELETE", "/faults"): lambda _: scene.clear_faults(),
        ("GET", "/requests"): lambda _: [asdict(request) for request in scene.requests()],
    }

    async def handle(request: Request) -> Response:
        refused = refusal(request, token)
        if refused is not None:
            return refused
        action = actions.get((request.method, request.url.path.removeprefix(PREFIX)))
        if action is None:
            return JSONResponse({"message": "no such set-up route"}, 404)
        raw = await request.body()
        return await run_in_threadpool(_perform, action, raw)

    return [Route(PREFIX + "/{rest:path}", handle, methods=["GET", "POST", "DELETE"])]


def refusal(request: Request, token: str) -> Response | None:
    """What a set-up request is answered that does not carry the set-up token, or None."""
    given = request.headers.get("authorization", "").encode()
    if hmac.compare_digest(given, f"Bearer {token}".encode()):
        return None
    return JSONResponse({"message": "the set-up token's file says what to send as a bearer token"}, 401)


def _perform(action: Callable[[Body], object], raw: bytes) -> Response:
    try:
        done = action(json.loads(raw) if raw else {})
        return JSONResponse({} if done is None else done)
    except (Unsuitable, GitFailed, ValueError, TypeError, KeyError) as error:
        return JSONResponse({"message": str(error)}, 422)


def _with_source(body: Body) -> Body:
    return body | {"source": Path(body["source"])} if body.get("source") else body
