"""Running the stand-in: inside a test, or as the process behind `python -m rehearsal`."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from rehearsal.app import Nudge, create_app
from rehearsal.faulty import DROP
from rehearsal.models import routes as models
from rehearsal.scene import Scene
from rehearsal.state import State, secret_file


class _Droppable(H11Protocol):
    """HTTP connections that a request can cut, so that an answer may get lost."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, DROP: self._drop}, _loop)

    def _drop(self) -> None:
        self.transport.abort()


class Rehearsal:
    """A stand-in GitHub over one folder, served by a thread while the context is entered.

    `folder` keeps everything; a later Rehearsal over it goes on where this one ended. `port` 0 takes
    a free one. `webhook_url` hears of every repository, signed with the secret in
    `<folder>/webhook-secret`. `address` overrides how clients reach us (behind a proxy or in a container).

    `url` ends with a slash; `scene` sets up what is there. Agent CLIs find a model at `models_url`.
    Raises state.FolderInUse on entering.
    """

    scene: Scene

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        webhook_url: str = "",
        address: str = "",
    ) -> None:
        self.folder = folder
        self._port, self._host = port, host
        self._webhook_url = webhook_url
        self._address = address

    @property
    def url(self) -> str:
        return self._state.address

    @property
    def models_url(self) -> str:
        """The base address of model calls, without a slash at its end."""
        return self.url.rstrip("/") + models.PREFIX

    def start(self) -> None:
        """Serve; returns once requests are answered."""
        self._state = State(self.folder)
        try:
            listener = self._listen()
        except OSError:
            self._state.close()
            raise
        nudge = Nudge()
        self.scene = Scene(self._state, nudge)
        if self._webhook_url:
            self.scene.webhook(self._webhook_url, secret_file(self.folder / "webhook-secret"))
        config = uvicorn.Config(
            create_app(self._state, nudge),
            http=_Droppable,
            # Logging is the embedding process's to set up.
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, args=(listener,), name="rehearsal", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            self._thread.join(0.005)
        if not self._server.started:
            self._state.close()
            raise RuntimeError("the stand-in GitHub did not start; its log says why")

    def stop(self) -> None:
        """Finish what is being answered (two seconds at most) and let go of port and folder."""
        self._server.should_exit = True
        self._thread.join()
        self._state.close()

    def _listen(self) -> socket.socket:
        try:
            listener = socket.create_server((self._host, self._port), backlog=256)
        except OSError as error:
            why = f"cannot listen on {self._host}:{self._port}: {error.strerror}"
            raise OSError(error.errno, why) from None
        port = listener.getsockname()[1]
        self._state.address = self._address or f"http://{self._host}:{port}/"
        return listener

    def _serve(self, listener: socket.socket) -> None:
        with listener:
            self._server.run(sockets=[listener])

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)
