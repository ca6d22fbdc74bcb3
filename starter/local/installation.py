"""`watchbill up`: everything that one machine needs to take plans to merged pull requests."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from domain.identity import TASK_QUEUE
from starter.local import ports, temporal
from starter.local.addresses import Addresses, Claim
from starter.local.service import Service, Supervised, module
from starter.local.signals import Signals
from starter.local.telling import relay_stops_within, told_to, without_settings

_STAND_IN_PORT = "stand-in-port"


@dataclass(frozen=True)
class GitHub:
    """How the doors reach GitHub. A secret is named by the file it is in, never given."""

    api: str = "https://api.github.com"
    app_id: str = ""
    app_key_file: str = ""
    token_file: str = ""
    webhook_secret_file: str = ""
    models: str = ""
    """Where the relay passes model calls on to; known of a stand-in, which has a model of its own."""

    def environment(self) -> dict[str, str]:
        """The variables of what is set."""
        variables = {
            "WATCHBILL_GITHUB_API": self.api,
            "WATCHBILL_GITHUB_APP_ID": self.app_id,
            "WATCHBILL_GITHUB_APP_KEY_FILE": self.app_key_file,
            "WATCHBILL_GITHUB_TOKEN_FILE": self.token_file,
            "WATCHBILL_WEBHOOK_SECRET_FILE": self.webhook_secret_file,
            "WATCHBILL_MODELS": self.models,
        }
        return {name: value for name, value in variables.items() if value}


@dataclass(frozen=True)
class StandIn:
    """A stand-in GitHub in the home, in place of the real one. It sends its webhooks to our door.

    `introduce` is given what the stand-in announced; it makes us known there, and answers how the doors
    reach it.
    """

    introduce: Callable[[dict[str, Any]], Awaitable[GitHub]]
    port: int = 8280
    command: tuple[str, ...] = module("rehearsal")


@dataclass(frozen=True)
class Installation:
    """What is to run. `environment` is what the processes inherit, each what it has a use for.

    Without a `store_url` the store is a SQLite file in the home; without a webhook secret one is made
    there. A port is a wish: where it is taken any free one is used instead, and 0 means any. The worker
    is up when it is seen on `worker_queue`; empty: when it has been started.
    """

    home: Path
    owner: str
    github: GitHub | StandIn
    environment: Mapping[str, str]
    store_url: str = ""
    temporal_port: int = 7233
    ui_port: int = 8233
    webhooks_port: int = 8270
    relay_port: int = 8271
    worker: tuple[str, ...] = module("worker")
    webhooks: tuple[str, ...] = module("webhooks")
    relay: tuple[str, ...] = module("relay")
    worker_queue: str = TASK_QUEUE


class Local:
    """A running installation: `start`, `wait` for a signal, `stop`; or `async with`.

    From its start to its end SIGINT, SIGTERM and SIGHUP are its own. The first one ends `wait`; whoever does
    anything else is cancelled, and leaves with KeyboardInterrupt. The next one kills what has not ended by
    then. `tell` hears what a person may want to know, in sentences: what died and starts again, and what an
    end waits for.
    """

    def __init__(self, installation: Installation, tell: Callable[[str], None] = lambda _: None) -> None:
        self._installation = installation
        self._home = installation.home.absolute()
        self._tell = tell
        self._claim: Claim | None = None
        self._addresses: Addresses | None = None
        # In the order of their start; what is in one phase ends together.
        self._phases: list[list[Supervised]] = []
        self._signals: Signals | None = None
        self._user: asyncio.Task[Any] | None = None
        # While it waits or stops anyway, nobody needs to be cancelled.
        self._ending_by_itself = False
        self._asked = asyncio.Event()

    @property
    def addresses(self) -> Addresses:
        assert self._addresses is not None, "not started"
        return self._addresses

    @property
    def pids(self) -> dict[str, int | None]:
        """The process id of each part by name; None while it is down."""
        return {part.service.name: part.pid for phase in self._phases for part in phase}

    async def start(self) -> Addresses:
        """Start everything in order; on the main thread.

        Raises AlreadyUp when the home is in use, NotFound without a Temporal server, DidNotStart or
        Unavailable when a part did not come up; then nothing is left running.
        """
        self._claim = Claim(self._home)
        self._user = asyncio.current_task()
        self._signals = Signals(self._end)
        try:
            self._addresses = await self._start()
            self._claim.write(self._addresses)
        except BaseException as error:
            await self.stop()
            self._blame_the_signal(error)
            raise
        return self._addresses

    async def wait(self) -> None:
        """Until this process is asked to end: SIGINT, SIGTERM, or its terminal is gone."""
        self._ending_by_itself = True
        await self._asked.wait()

    async def stop(self) -> None:
        """End everything, the doors before what they stand on; each within its own time. Repeatable."""
        if self._claim is None:
            return
        self._ending_by_itself = True
        self._claim.withdraw()
        while self._phases:
            await asyncio.gather(*(part.stop() for part in self._phases[-1]))
            self._phases.pop()
        self._claim.release()
        self._claim = None
        if self._signals is not None:
            self._signals.release()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        self._blame_the_signal(error)

    def _end(self) -> None:
        """A signal came: the first one ends things in order, the next one at once."""
        parts = [part for phase in reversed(self._phases) for part in phase]
        if self._asked.is_set():
            for part in parts:
                part.kill()
            self._tell("Killing what has not ended")
            return
        self._asked.set()
        if not self._ending_by_itself and self._user is not None:
            self._user.cancel()
        at_most = sum(max(part.service.stop_within for part in phase) for phase in self._phases)
        names = ", ".join(part.service.name for part in parts) or "what has begun"
        self._tell(f"Stopping: {names}; within {at_most:g} s; press Ctrl-C again to kill them at once")

    def _blame_the_signal(self, error: BaseException | None) -> None:
        if isinstance(error, asyncio.CancelledError) and self._asked.is_set():
            raise KeyboardInterrupt from None

    async def _start(self) -> Addresses:
        wanted = self._installation
        stand_in = wanted.github if isinstance(wanted.github, StandIn) else None
        wishes = (wanted.temporal_port, wanted.ui_port, 0, wanted.webhooks_port, wanted.relay_port)
        port, ui_port, http_port, webhooks_port, relay_port, stand_in_port = ports.choose(
            (*wishes, self._port_of(stand_in) if stand_in else 0)
        )
        webhooks = ports.url(webhooks_port)
        database = self._home / "temporal.db"
        new = not database.exists()
        program = await asyncio.to_thread(temporal.choose_program, database)
        server = temporal.Server(program, port, http_port, ui_port, database)
        ground = [Service("temporal", server.command(), without_settings(wanted.environment), server.ready)]
        if stand_in:
            ground.append(self._stand_in(stand_in, stand_in_port, webhooks))
        started = await self._start_phase(ground)
        await asyncio.to_thread(server.prepare)

        if isinstance(wanted.github, StandIn):
            github = await wanted.github.introduce(started[-1].announcement)
        else:
            github = wanted.github
        if not github.webhook_secret_file:
            github = replace(github, webhook_secret_file=self._webhook_secret_file())
        environment = self._environment(server, github, webhooks_port, relay_port)
        if new:
            # The home's old Temporal, if there was one, is gone for good: this one takes over the work graph.
            environment["WATCHBILL_ADOPT"] = "true"
        serving = partial(server.polled, wanted.worker_queue) if wanted.worker_queue else None
        relay = Service("relay", wanted.relay, told_to("relay", environment), partial(ports.listening, relay_port))
        hears = partial(ports.listening, webhooks_port)
        await self._start_phase(
            [
                Service("worker", wanted.worker, told_to("worker", environment), serving),
                Service("webhooks", wanted.webhooks, told_to("webhooks", environment), hears),
                replace(relay, stop_within=relay_stops_within(environment)),
            ]
        )
        return Addresses(
            temporal=server.address,
            ui=ports.url(ui_port),
            webhooks=webhooks,
            github=github.api if stand_in else None,
            pid=os.getpid(),
            relay=ports.url(relay_port),
        )

    async def _start_phase(self, services: list[Service]) -> list[Supervised]:
        """Start these at once; raises what the first of them raised, when all have come up or failed."""
        parts = [Supervised(service, self._home / "logs", self._tell) for service in services]
        self._phases.append(parts)
        outcomes = await asyncio.gather(*(part.start() for part in parts), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        return parts

    def _port_of(self, stand_in: StandIn) -> int:
        """The port that the home's stand-in had before: links to its pull requests lead there."""
        try:
            return int((self._home / _STAND_IN_PORT).read_text())
        except (OSError, ValueError):
            return stand_in.port

    def _stand_in(self, stand_in: StandIn, port: int, webhooks: str) -> Service:
        (self._home / _STAND_IN_PORT).write_text(str(port))
        command = (
            *stand_in.command,
            *("--folder", str(self._home / "rehearsal")),
            *("--port", str(port)),
            *("--webhook-url", f"{webhooks}/webhooks/github"),
        )
        return Service("stand-in", command, without_settings(self._installation.environment), announces=True)

    def _environment(
        self, server: temporal.Server, github: GitHub, webhooks_port: int, relay_port: int
    ) -> dict[str, str]:
        """What the doors are told, on top of what they inherit."""
        return {
            # Agents that the person has installed are found where the person finds them.
            "WATCHBILL_AGENT_PATH": self._installation.environment.get("PATH", os.defpath),
            **self._installation.environment,
            "WATCHBILL_HOME": str(self._home),
            "WATCHBILL_OWNER": self._installation.owner,
            "WATCHBILL_STORE_URL": self._installation.store_url or f"sqlite:///{self._home / 'graph.db'}",
            "WATCHBILL_TEMPORAL_ADDRESS": server.address,
            "WATCHBILL_TEMPORAL_NAMESPACE": temporal.NAMESPACE,
            "WATCHBILL_WEBHOOKS_PORT": str(webhooks_port),
            "WATCHBILL_RELAY_PORT": str(relay_port),
            "WATCHBILL_RELAY": ports.url(relay_port),
            **github.environment(),
        }

    def _webhook_secret_file(self) -> str:
        """A secret of our own, for when none was given: nobody's delivery is then believed by accident."""
        path = self._home / "webhook-secret"
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32))
        return str(path)
