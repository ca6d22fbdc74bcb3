"""The REST API: find the endpoint, know the caller, check what they may, answer in one transaction."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rehearsal import app_api, auth, check_api, graphql_api, issue_api, limits, pull_api, repository_api
from rehearsal.answers import Answer, Json, Refused, etag, not_found
from rehearsal.auth import ANONYMOUS, Actor
from rehearsal.call import Call, Endpoint
from rehearsal.repositories import find
from rehearsal.state import Row, State

ENDPOINTS: tuple[Endpoint, ...] = (
    *app_api.ENDPOINTS,
    *repository_api.ENDPOINTS,
    *pull_api.ENDPOINTS,
    *issue_api.ENDPOINTS,
    *check_api.ENDPOINTS,
    *graphql_api.ENDPOINTS,
    *limits.ENDPOINTS,
    *repository_api.LAST_ENDPOINTS,
)


def routes(state: State, changed: Callable[[], None]) -> list[Route]:
    """All routes of the API; `changed` is called after whatever may have queued a webhook."""
    paths = dict.fromkeys(endpoint.path for endpoint in ENDPOINTS)
    return [_route(state, path, changed) for path in paths]


def _route(state: State, path: str, changed: Callable[[], None]) -> Route:
    by_method = {endpoint.method: endpoint for endpoint in ENDPOINTS if endpoint.path == path}

    async def handle(request: Request) -> Response:
        endpoint = by_method["GET" if request.method == "HEAD" else request.method]
        raw = await request.body()
        response = await run_in_threadpool(_respond, state, endpoint, request, raw)
        if request.method not in ("GET", "HEAD"):
            changed()
        return response

    return Route(path, handle, methods=list(by_method))


def _respond(state: State, endpoint: Endpoint, request: Request, raw: bytes) -> Response:
    actor = ANONYMOUS
    try:
        with state.transaction():
            actor = auth.authenticate(state, request.headers.get("authorization"))
            limits.refuse_over(state, actor, request.method)
            answer = endpoint.answer(_call(state, endpoint, request, actor, raw))
    except Refused as refused:
        answer = Answer(refused.body, refused.status, refused.headers)
    request.state.holder = actor.holder
    content = answer.content()
    headers = {
        **limits.headers(state, actor),
        **answer.headers,
        "X-GitHub-Media-Type": "github.v3; format=json",
        "X-GitHub-Request-Id": uuid.uuid4().hex.upper(),
    }
    if request.method in ("GET", "HEAD") and answer.status == 200:
        headers |= {"ETag": etag(content), "Cache-Control": "private, max-age=60, s-maxage=60"}
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
    if answer.body is None:
        return Response(status_code=answer.status, headers=headers)
    return Response(content, answer.status, headers, answer.media)


def _call(state: State, endpoint: Endpoint, request: Request, actor: Actor, raw: bytes) -> Call:
    return Call(
        state=state,
        actor=actor,
        path=request.path_params,
        url=state.address + request.url.path.removeprefix("/"),
        query=request.url.query,
        accept=request.headers.get("accept", ""),
        version=request.headers.get("x-github-api-version", ""),
        body=_body(raw),
        target=_target(state, endpoint, request, actor) if endpoint.needs else None,
    )


def _body(raw: bytes) -> dict[str, Json]:
    try:
        body = json.loads(raw) if raw else {}
    except ValueError:
        raise Refused(400, "Problems parsing JSON") from None
    if not isinstance(body, dict):
        raise Refused(400, "Body should be a JSON object")
    return body


def _target(state: State, endpoint: Endpoint, request: Request, actor: Actor) -> Row:
    """The repository in the path, if the caller sees it and may do this there."""
    repository = find(state, request.path_params["owner"], request.path_params["repo"])
    if repository is None or not auth.sees(state, actor, repository):
        raise not_found()
    for alternative in endpoint.needs.split("|"):
        permission, _, level = alternative.partition(":")
        if auth.may(state, actor, repository, permission, level, endpoint.person):
            return repository
    raise auth.denied(actor)
