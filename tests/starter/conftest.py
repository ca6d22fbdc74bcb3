"""The `watchbill` command as its users have it: a process of its own, told where things are by its environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from starter.local import addresses, ports
from starter.local.addresses import Addresses
from starter.local.service import leashed
from tests.temporal_fixture import dev_server

WATCHBILL = str(Path(sys.executable).with_name("watchbill"))

SHOP = {"README.md": "# shop\n", "src/shop.py": "PRICES = {}\n"}


@dataclass(frozen=True)
class Watchbill:
    """Runs commands in a folder, with this home and nothing else of this process's settings."""

    home: Path
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        base = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**base, "HOME": str(self.folder), "WATCHBILL_HOME": str(self.home), **self.settings}

    def __call__(self, *arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [WATCHBILL, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**self.environment, **settings},
            check=False,
        )

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            leashed([WATCHBILL, *map(str, arguments)]),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )

    def json(self, *arguments: object) -> Any:
        done = self(*arguments, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)


def plan(slug: str, /, *boxes: str, **front: str) -> str:
    """A plan for the stand-in's repository; a box is its title, or a title and a script after a bar."""
    values = {"title": slug.replace("-", " "), "slug": slug, "repository": "acme/shop", **front}
    lines = ["---", *(f"{key}: {value}" for key, value in values.items()), "---", "", "## Tasks", ""]
    for box in boxes or ("Write it down | echo written > note.md",):
        title, _, script = box.partition("|")
        lines += [f"- [ ] {title.strip()}", "", "  ```sh", f"  {script.strip() or 'true'}", "  ```", ""]
    return "\n".join(lines)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a document, and answer its path."""

    def write_(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_


@pytest.fixture
def watchbill(tmp_path: Path) -> Watchbill:
    """The command on a machine where nothing is up."""
    free, _ = ports.choose((0, 0))
    return Watchbill(tmp_path / "home", tmp_path, {"WATCHBILL_TEMPORAL_ADDRESS": f"127.0.0.1:{free}"})


@dataclass(frozen=True)
class Installed(Watchbill):
    """As `watchbill`, where `watchbill up` is running with a stand-in GitHub that has `acme/shop`."""

    addresses: Addresses | None = None


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """One installation for a module's tests: each publishes plans of its own."""
    folder = tmp_path_factory.mktemp("installed")
    for name, text in SHOP.items():
        path = folder / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    commands = Installed(folder / "home", folder)
    process = commands.start("up", "--stand-in", f"acme/shop={folder / 'shop'}")
    try:
        while (found := addresses.read(commands.home)) is None:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        yield Installed(commands.home, folder, addresses=found)
    finally:
        process.terminate()
        process.communicate(timeout=120)


@pytest.fixture(scope="module")
def idle_temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a Temporal server that no worker has ever served."""
    with dev_server(tmp_path_factory.mktemp("idle")) as server:
        server.prepare()
        yield server.address


@pytest.fixture
def published_graph(sqlite_url: str) -> str:
    """The URL of a store in which `local` has published the plan `faster`."""
    from datetime import UTC, datetime

    from domain.document import parse
    from domain.publication import Publish, PublishTo
    from domain.pull import Repository
    from store.database import open_store
    from store.publication import publish

    text = plan("faster", "One", "Two")
    order = PublishTo(
        Publish("local", text, "acme/shop"), Repository("acme/shop", "main", ""), "main", datetime.now(UTC)
    )
    store = open_store(sqlite_url)
    with store.write() as connection:
        publish(connection, order, parse(text), 0)
    store.close()
    return sqlite_url
