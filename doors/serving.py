"""A door as a process: it reads what it is told, makes the store ready, serves, and says why it cannot."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from typing import Any, NoReturn, TypeVar

import uvicorn
from starlette.types import ASGIApp

from domain.errors import Misconfigured, WatchbillError, said
from doors import told
from doors.told import DoorSettings
from store.database import migrate
from telemetry.logs import configure

UNUSABLE, CANNOT_SERVE = 2, 1
"""The exit codes of a door whose settings are to be corrected, and of one that cannot open for another reason."""

T = TypeVar("T", bound=DoorSettings)


def serve_as(
    door: str,
    kind: type[T],
    serve: Callable[[T], Coroutine[Any, Any, None]],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> int:
    """Run the door of this name until it is told to stop; its exit code, which is 0 after SIGTERM."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        settings = told.read(kind)
        configure()
        migrate(settings.store)
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(serve(settings))
    except (WatchbillError, OSError) as error:
        return cannot_serve(door, error)
    except _Stopped:
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


class _Stopped(SystemExit):
    """SIGTERM came. It goes through every `finally` on its way out."""


def _stop(*_: object) -> NoReturn:
    # Uvicorn raises the signal that ended it once more when it is done, and by default that ends the process
    # before anything of the door's is closed. What closes then is not to be cut short by a second one.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Stopped(0)


def cannot_serve(door: str, error: WatchbillError | OSError) -> int:
    """Say in one line why the door does not open; its exit code."""
    print(f"watchbill {door}: {said(error)}", file=sys.stderr, flush=True)
    return UNUSABLE if isinstance(error, Misconfigured) else CANNOT_SERVE


async def listen(app: ASGIApp, host: str, port: int, **options: Any) -> None:
    """Serve an app until SIGTERM or SIGINT. Raises WatchbillError where nobody can listen there.

    `options` are uvicorn's, on top of what holds for every door of ours: who is asked logs, and not uvicorn.
    """
    config = uvicorn.Config(app, host, port, log_config=None, log_level="warning", server_header=False, **options)
    with ExitStack() as stack:
        # Uvicorn would only log why it cannot listen, and leave.
        sockets = [stack.enter_context(each) for each in _sockets(host, port)]
        await uvicorn.Server(config).serve(sockets)


def _sockets(host: str, port: int) -> Iterator[socket.socket]:
    """One for every address of the host."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            yield socket.create_server(address, family=family)
    except OSError as error:
        raise WatchbillError(f"cannot listen at {host}:{port}: {(error.strerror or str(error)).lower()}") from error


def leave(code: int) -> NoReturn:
    """End this process, which used Temporal's client: that one can abort in a late destructor.

    https://github.com/temporalio/sdk-python/issues/300
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
