"""`python -m worker`: serve this host's queue and the shared one until told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
import uvloop
from temporalio.client import Client
from temporalio.runtime import PrometheusConfig, Runtime, TelemetryConfig

from domain.errors import Unauthorized, WatchbillError
from doors import serving, told
from doors.temporal import connection
from forge.github import GitHub
from forge.github_api import GitHubApi
from forge.github_auth import App, Credentials, PersonalToken
from runtimes.crashes import WorkerLog
from runtimes.host import boot_id, host_id
from signing import capabilities
from store.database import Store, migrate, open_store
from store.runs import Keeper
from telemetry.logs import configure
from worker import standing, upkeep
from worker.incarnation import incarnation
from worker.plugin import first_time, watchbill_plugin
from worker.settings import WorkerSettings
from worker.wiring import Ports, host_worker, shared_worker

log = structlog.get_logger("worker")

THREADS = 64
CONNECT_PATIENCE = 60.0
"""Seconds to wait for Temporal at the start; it may be starting beside us."""


async def serve(settings: WorkerSettings, keeper: Keeper, store: Store) -> None:
    """Serve until SIGTERM or SIGINT. Runs are detached from, not ended: their supervisors live on."""
    options = connection(os.environ, settings.temporal_address, settings.temporal_namespace)
    client = await _connect(options, settings.metrics)
    number = await incarnation(client, store, adopt=settings.adopt)
    api = GitHubApi(settings.github_api, seconds_between_writes=settings.github_pause)
    forge = GitHub(api, _credentials(settings, api), merge_method=settings.merge_method)
    signer = await asyncio.to_thread(upkeep.signer_of, store, settings.seal_key)
    minter = await asyncio.to_thread(upkeep.signer_of, store, settings.capability_key, capabilities.USE)
    ports = Ports(client, store, forge, keeper, number, signer, minter)
    await asyncio.to_thread(upkeep.account_for_the_dead, store, settings.folder, number)
    await asyncio.to_thread(upkeep.sign_on, store, keeper)
    await asyncio.to_thread(upkeep.take_over, store, keeper)
    await asyncio.to_thread(upkeep.end_orphans, settings.folder)
    await standing.prepare(client, settings.policy)
    stop = asyncio.Event()
    for wanted in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(wanted, stop.set)
    with ThreadPoolExecutor(THREADS) as threads:
        async with shared_worker(ports, settings, threads), host_worker(ports, settings, threads):
            log.info("serving", worker=keeper.worker, host=keeper.host, temporal=options["target_host"])
            await stop.wait()
            log.info("stopping", worker=keeper.worker)
    await asyncio.to_thread(upkeep.sign_off, store, keeper)
    await api.close()


async def _connect(options: dict[str, Any], metrics: str) -> Client:
    runtime = None
    if metrics:
        runtime = Runtime(telemetry=TelemetryConfig(metrics=PrometheusConfig(bind_address=metrics)))
    deadline = asyncio.get_running_loop().time() + CONNECT_PATIENCE
    while True:
        try:
            return await Client.connect(**options, plugins=[watchbill_plugin()], runtime=runtime)
        except RuntimeError as error:
            if asyncio.get_running_loop().time() > deadline:
                raise WatchbillError(
                    f"Temporal does not answer at {options['target_host']}; start it, or correct "
                    "WATCHBILL_TEMPORAL_ADDRESS"
                ) from error
            await asyncio.sleep(0.3)


def _credentials(settings: WorkerSettings, api: GitHubApi) -> Credentials:
    if settings.github_app_id is not None and settings.github_app_key_file is not None:
        return App(api, settings.github_app_id, settings.github_app_key_file)
    if settings.github_token_file is not None:
        return PersonalToken(api, told.secret(settings, "github_token_file"))
    raise Unauthorized(
        "there are no credentials for GitHub: set WATCHBILL_GITHUB_APP_ID and WATCHBILL_GITHUB_APP_KEY_FILE, "
        "or WATCHBILL_GITHUB_TOKEN_FILE"
    )


def main() -> int:
    try:
        settings = told.read(WorkerSettings)
        settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        host = host_id(settings.folder)
        keeper = Keeper(f"{host}-{os.getpid()}-{int(time.time())}", host, boot_id(), settings.lease_time)
        record = WorkerLog(settings.folder, keeper.worker)
    except (WatchbillError, OSError) as error:
        return serving.cannot_serve("worker", error)
    record.redirect()
    configure(first_time)
    code = 0
    try:
        migrate(settings.store)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings, keeper, open_store(settings.store)))
    except WatchbillError as error:
        log.error("cannot serve", reason=str(error))
        code = serving.cannot_serve("worker", error)
    record.close()
    return code


if __name__ == "__main__":
    serving.leave(main())
