"""The door as a process of its own, over a store that others read meanwhile, so that it can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from starter.local import ports
from store.database import Store
from tests.relay.conftest import MODEL

ROOT = Path(__file__).parents[2]


@contextmanager
def door(home: Path, **told: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A relay in a process of its own that listens, and its port."""
    with doors(1, home, told) as ((port, process),):
        yield port, process


@contextmanager
def doors(count: int, home: Path, told: Mapping[str, str]) -> Iterator[list[tuple[int, subprocess.Popen[bytes]]]]:
    """So many of them, all told the same. Each logs to a file beside the home: a pipe that nobody reads fills up."""
    opened = []
    try:
        for port in ports.choose((0,) * count):
            environment = {
                "PATH": os.environ["PATH"],
                "WATCHBILL_HOME": str(home),
                "WATCHBILL_RELAY_PORT": str(port),
                **told,
            }
            with log_of(home, port).open("ab") as log:
                argv = [sys.executable, "-m", "relay"]
                opened.append((port, subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=log, stderr=log)))
        for port, process in opened:
            while process.poll() is None and not ports.listening(port):
                time.sleep(0.05)
        yield opened
    finally:
        for _, process in opened:
            process.kill()
            process.wait()


def log_of(home: Path, port: int) -> Path:
    return home.with_name(f"relay-{port}.log")


def told_of(store: Store, models: str, folder: Path) -> dict[str, str]:
    """What a relay is told that serves this store, and asks one model, at 2 and 10 dollars, at this address.

    Nobody waits for money.
    """
    prices = folder / "prices.toml"
    prices.write_text(f"[models.{MODEL}]\ninput = 2\noutput = 10\n")
    return {
        "WATCHBILL_STORE_URL": store.url,
        "WATCHBILL_MODELS": models,
        "WATCHBILL_PRICES": str(prices),
        "WATCHBILL_RELAY_PATIENCE": "0",
    }
