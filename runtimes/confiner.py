"""Confining runs on this host: whether one is, what its cell is made of, and which address it is given."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import domain
from domain.confinement import Confine, Confinement, Network, tightened
from domain.errors import NotFound, WatchbillError
from runtimes.agent import put
from runtimes.hooks import TOLD
from runtimes.mounts import SECRET, Mounts
from runtimes.port import PRIVATE, Cell, Job, Launch, Passage
from runtimes.sandbox import Sandbox, find_sandbox

_ROOMS = tuple(str(Path(module).parent) for module in (__file__, str(domain.__file__)))
"""What runs of ours inside: the cell's first process, and the hook."""

_INSIDE = str(Path(__file__).with_name("inside.py"))
_FIRST_FREE_PORT = 1024
"""Below it, listening is a privilege that nobody has in a cell."""

_SHIFT = 20_000


@dataclass(frozen=True)
class Confiner:
    """`wish` is this worker's. `hidden` are places that no run may see: Watchbill's home, files with secrets.

    `shown` are places that every run may read besides. `find` answers what sandbox there is.
    """

    wish: Confine
    hidden: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()
    find: Callable[[], Sandbox] = find_sandbox

    def choose(self, plan: Confine, network: Network, *, has_door: bool) -> Confinement:
        """What a run of a plan is to be, by its wishes and by what this host can.

        `has_door` is whether the relay is all that it needs to reach: so it is for an agent, unless it is unmetered.

        Raises NotFound where it has to be confined and cannot be, WatchbillError where the plan asks for
        the host's network and has to be confined.
        """
        wish = tightened(self.wish, plan)
        if wish is Confine.OFF:
            return Confinement.UNCONFINED
        is_open = network is Network.OPEN and not has_door
        if is_open and wish is Confine.REQUIRED:
            raise WatchbillError(
                "this worker's runs have to be confined, and the plan's `network: open` is no confinement; publish it "
                "without it and without what needs it, or set WATCHBILL_CONFINE=auto"
            )
        sandbox = self.find()
        if not sandbox.missing:
            return Confinement.NETWORKED if is_open else Confinement.CONFINED
        if wish is Confine.REQUIRED:
            raise NotFound(_refusal(sandbox))
        return Confinement.UNCONFINED

    def job(self, job: Job, how: Confinement) -> Job:
        """The job as a run of this confinement needs it: in a cell, its door has another address at times."""
        if how is Confinement.UNCONFINED:
            return job
        if how is Confinement.NETWORKED:
            return replace(job, confined=True)
        door = job.door
        if door:
            mcp = _seen_inside(door.mcp) if door.mcp else ""
            door = replace(door, models=_seen_inside(door.models), mcp=mcp)
        return replace(job, door=door, confined=True)

    def confine(self, launch: Launch, job: Job, how: Confinement) -> Launch:
        """The launch in a cell. `job` is the run's before `job` changed it.

        Raises NotFound where there is no sandbox any more.
        """
        if how is Confinement.UNCONFINED:
            return launch
        sandbox = self.find()
        if sandbox.missing:
            raise NotFound(_refusal(sandbox))
        # With the host's network it finds the door where it is.
        passage = _passage(job.door.models) if job.door and how is not Confinement.NETWORKED else None
        argv = (
            sandbox.program,
            *sandbox.shut,
            *(("--share-net",) if how is Confinement.NETWORKED else ()),
            *self._mounts(launch, job, how).arguments,
            *("--chdir", str(launch.cwd)),
            *("--", sys.executable, "-I", "-S", _INSIDE),
        )
        return replace(launch, cell=Cell(argv, passage))

    def _mounts(self, launch: Launch, job: Job, how: Confinement) -> Mounts:
        mounts = Mounts()
        mounts.show_python()
        for room in _ROOMS:
            mounts.show(room)
        mounts.show_programs(job.path)
        for place in self.shown:
            mounts.show(str(place))
        if how is Confinement.NETWORKED:
            mounts.show(os.path.realpath("/etc/resolv.conf"))
        for hidden in (*SECRET, *map(str, self.hidden)):
            mounts.hide(hidden)
        mounts.hide_roots()
        mounts.hide_sockets()
        mounts.fix(str(job.folder))
        for name in (*PRIVATE, TOLD):
            mounts.lend(str(job.folder / name))
        (mounts.fix if job.reads_only else mounts.lend)(str(job.workspace))
        if job.memory:
            mounts.lend(str(job.memory))
        for file in launch.fixed:
            mounts.fix(str(file))
        shut = job.door if how is not Confinement.NETWORKED else None
        if shut and (name := _name_in(shut.models)) and os.path.exists("/etc/hosts"):
            hosts = job.folder / "hosts"
            put(hosts, f"127.0.0.1 localhost {name}\n::1 localhost\n")
            mounts.fix("/etc/hosts", str(hosts))
        return mounts


def _refusal(sandbox: Sandbox) -> str:
    mend = f"; mend it on this host with: {sandbox.mend}" if sandbox.mend else ""
    return f"this run has to be confined, and {sandbox.missing}{mend}"


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if not parts.hostname:
        raise WatchbillError(f"{url} is no address that an agent could be let out to; correct WATCHBILL_RELAY")
    return parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _ip_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _name_in(url: str) -> str:
    """The name in an address that a cell has to know; empty where it is none, or known everywhere."""
    host = _address(url)[0]
    return "" if _ip_of(host) or host == "localhost" else host


def _inside(url: str) -> tuple[str, int]:
    """Where a cell listens for what is meant for this address: it has no interface but its loopback."""
    host, port = _address(url)
    ip = _ip_of(host)
    port = port if port >= _FIRST_FREE_PORT else port + _SHIFT
    return (host if ip and ip.is_loopback else "127.0.0.1"), port


def _passage(url: str) -> Passage:
    return Passage(_inside(url), _address(url))


def _seen_inside(url: str) -> str:
    """The address as an agent in a cell is to call it: a name stays, whose certificate may be asked for."""
    parts, (host, port) = urlsplit(url), _inside(url)
    name = _name_in(url) or host
    shown = f"[{name}]" if ":" in name else name
    return parts._replace(netloc=f"{shown}:{port}").geturl()
