"""The ASGI application: the API, git, the pages and the set-up routes over one state; and models beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from rehearsal import api, git_http, pages, pushes, scene_api
from rehearsal.answers import not_found
from rehearsal.faulty import Faulty
from rehearsal.hooks import Sender
from rehearsal.models import routes as models
from rehearsal.scene import Scene
from rehearsal.state import State


class Nudge:
    """Tells the sender, once there is one, that a webhook may be waiting."""

    def __init__(self) -> None:
        self.sender: Sender | None = None

    def __call__(self) -> None:
        if self.sender is not None:
            self.sender.nudge()


def create_app(state: State, nudge: Nudge) -> Starlette:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(state.forget_old)
        await run_in_threadpool(pushes.notice_all, state)
        nudge.sender = Sender(state)
        sending = asyncio.create_task(nudge.sender.run())
        try:
            yield
        finally:
            nudge.sender = None
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending

    token = state.setup_token()
    return Starlette(
        routes=[
            *scene_api.routes(Scene(state, nudge), token),
            models.mount(lambda request: scene_api.refusal(request, token)),
            *api.routes(state, nudge),
            *git_http.routes(state, nudge),
            *pages.routes(state, nudge),
        ],
        middleware=[Middleware(Faulty, state=state, untouched=(scene_api.PREFIX, models.PREFIX + "/"))],
        exception_handlers={404: _not_found, 405: _not_found},
        lifespan=lifespan,
    )


async def _not_found(_: Request, __: Exception) -> Response:
    return JSONResponse(not_found().body, 404)
