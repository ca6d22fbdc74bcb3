"""Clone, fetch and push over HTTP, by git's own `git http-backend` as a CGI program.

Bodies stream both ways. Only the short report of a push is held back until its branches have been
noticed, so that whoever has pushed reads the new state next.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from rehearsal import auth, pushes
from rehearsal.answers import Refused
from rehearsal.auth import Actor
from rehearsal.git import ENVIRONMENT
from rehearsal.repositories import find, full_name
from rehearsal.state import Row, State

_CHUNK = 65_536
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="GitHub"'}
_NOT_FOUND = "Repository not found."
_SERVICES = ("git-upload-pack", "git-receive-pack")


def routes(state: State, changed: Callable[[], None]) -> list[Route]:
    async def serve(request: Request) -> Response:
        return await _serve(state, request, changed)

    return [
        Route("/{owner}/{repo}/info/refs", serve, methods=["GET"]),
        *(Route(f"/{{owner}}/{{repo}}/{service}", serve, methods=["POST"]) for service in _SERVICES),
    ]


async def _serve(state: State, request: Request, changed: Callable[[], None]) -> Response:
    service = request.query_params.get("service") or request.url.path.rpartition("/")[2]
    if service not in _SERVICES:
        return PlainTextResponse("Please use the smart HTTP protocol.", 403)
    try:
        repository, actor = await run_in_threadpool(_admit, state, request, service)
    except Refused as refused:
        return PlainTextResponse(str(refused), refused.status, refused.headers)
    backend = await _Backend.start(state, request, repository, actor)
    if request.method == "POST" and service == "git-receive-pack":
        return await _receive(state, backend, repository, actor, changed)
    return StreamingResponse(backend.output(), backend.status, backend.headers)


def _admit(state: State, request: Request, service: str) -> tuple[Row, Actor]:
    """The repository and the caller, if they may do this there. Raises Refused as GitHub would."""
    owner, name = request.path_params["owner"], request.path_params["repo"].removesuffix(".git")
    with state.transaction():
        actor = _caller(state, request)
        request.state.holder = actor.holder
        repository = find(state, owner, name)
        if repository is None or not auth.sees(state, actor, repository):
            # Whoever has not said who they are might be allowed once they do.
            raise Refused(404, _NOT_FOUND) if actor.login else Refused(401, _NOT_FOUND, headers=_CHALLENGE)
        level = "write" if service == "git-receive-pack" else "read"
        if not actor.login and level == "write":
            raise Refused(401, _NOT_FOUND, headers=_CHALLENGE)
        if not auth.may(state, actor, repository, "contents", level):
            raise Refused(403, f"Permission to {full_name(repository)}.git denied to {actor.login}.")
    return repository, actor


def _caller(state: State, request: Request) -> Actor:
    try:
        return auth.authenticate(state, request.headers.get("authorization"))
    except Refused as refused:
        if refused.status != 401:
            raise
        raise Refused(401, "Invalid username or token.", headers=_CHALLENGE) from None


async def _receive(
    state: State, backend: _Backend, repository: Row, actor: Actor, changed: Callable[[], None]
) -> Response:
    report = b"".join([chunk async for chunk in backend.output()])
    await run_in_threadpool(pushes.notice, state, repository["id"], actor.login)
    changed()
    return Response(report, backend.status, backend.headers)


class _Backend:
    """One running `git http-backend`: fed with the request's body, read for head and body of the answer."""

    def __init__(self, process: asyncio.subprocess.Process, feeding: asyncio.Task[None]) -> None:
        self._process = process
        self._feeding = feeding
        self.status = 200
        self.headers: dict[str, str] = {}

    @classmethod
    async def start(cls, state: State, request: Request, repository: Row, actor: Actor) -> _Backend:
        process = await asyncio.create_subprocess_exec(
            _program(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(state, request, repository, actor),
        )
        backend = cls(process, asyncio.create_task(_feed(process, request)))
        await backend._read_head()
        return backend

    async def _read_head(self) -> None:
        assert self._process.stdout is not None
        while line := (await self._process.stdout.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            if name.lower() == "status":
                self.status = int(value.split()[0])
            else:
                self.headers[name] = value.strip()
        if not self.headers:
            await self._end()
            self.status = 500

    async def output(self) -> AsyncIterator[bytes]:
        """The body, chunk by chunk. Leaving early, as when the client is gone, ends the process."""
        assert self._process.stdout is not None
        try:
            while chunk := await self._process.stdout.read(_CHUNK):
                yield chunk
        finally:
            await self._end()

    async def _end(self) -> None:
        self._feeding.cancel()
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                # Not by asyncio, which would take the exit code from whoever waits for it.
                os.kill(self._process.pid, signal.SIGTERM)
        await self._process.wait()


@functools.cache
def _program() -> str:
    """Git's own CGI program, where git itself would look for it: asking git to start it costs a process more."""
    told = subprocess.run(["git", "--exec-path"], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return str(Path(told.stdout.strip()) / "git-http-backend")


async def _feed(process: asyncio.subprocess.Process, request: Request) -> None:
    assert process.stdin is not None
    with suppress(ConnectionError, ClientDisconnect):
        async for chunk in request.stream():
            process.stdin.write(chunk)
            await process.stdin.drain()
    process.stdin.close()


def _environment(state: State, request: Request, repository: Row, actor: Actor) -> dict[str, str]:
    """The CGI variables. Without CONTENT_LENGTH (a chunked body) the backend reads to the end; it
    unpacks a gzip body itself when it is told of the encoding.
    """
    rest = request.url.path.split("/", 3)[3]
    named = {
        "CONTENT_TYPE": request.headers.get("content-type"),
        "CONTENT_LENGTH": request.headers.get("content-length"),
        "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding"),
        "GIT_PROTOCOL": request.headers.get("git-protocol"),
    }
    return {
        **ENVIRONMENT,
        "GIT_PROJECT_ROOT": str(state.folder / "repositories"),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": f"/{repository['id']}.git/{rest}",
        "REQUEST_METHOD": request.method,
        "QUERY_STRING": request.url.query,
        "REMOTE_USER": actor.login or "anonymous",
        "REMOTE_ADDR": "127.0.0.1",
        **{name: value for name, value in named.items() if value is not None},
    }
