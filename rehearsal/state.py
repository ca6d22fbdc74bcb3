"""Everything the stand-in knows, in one folder: a SQLite file beside the bare repositories.

One lock makes every request one transaction, one after another, as GitHub's database would answer
two identical creates. What is committed survives `kill -9`.
"""

from __future__ import annotations

import fcntl
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Row = sqlite3.Row

_SCHEMA = Path(__file__).with_name("schema.sql")


class FolderInUse(RuntimeError):
    """Another stand-in already serves this folder; stop it, or choose another folder."""


class State:
    """The SQLite file of one folder, held by one process at a time.

    `address` is where clients reach us (with a trailing slash); every URL in an answer begins with it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = "http://127.0.0.1/"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder_lock = (folder / "lock").open("w")
        try:
            fcntl.flock(self._folder_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._folder_lock.close()
            raise FolderInUse(f"another stand-in GitHub serves {folder}; stop it first") from None
        self._lock = threading.RLock()
        self._depth = 0
        self._connection = sqlite3.connect(folder / "github.sqlite3", check_same_thread=False, isolation_level=None)
        self._connection.row_factory = Row
        # A killed process loses nothing with NORMAL; only a power cut may take the last commits.
        self._connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;")
        self._connection.executescript(_SCHEMA.read_text())

    def close(self) -> None:
        with self._lock:
            self._connection.close()
            self._folder_lock.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, one at a time. A transaction inside another one is a part of it."""
        with self._lock:
            if self._depth:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            self._depth = 1
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    def checkpoint(self) -> None:
        """Commit what this transaction wrote so far and go on: what git does next cannot be undone."""
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")

    def one(self, sql: str, *values: Any) -> Row | None:
        rows = self.all(sql, *values)
        return rows[0] if rows else None

    def all(self, sql: str, *values: Any) -> list[Row]:
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def count(self, sql: str, *values: Any) -> int:
        row = self.one(sql, *values)
        return int(row[0]) if row is not None and row[0] is not None else 0

    def run(self, sql: str, *values: Any) -> int:
        """Execute one statement; the id of the row it inserted, if it did."""
        with self._lock:
            return self._connection.execute(sql, values).lastrowid or 0

    def forget_old(self) -> None:
        """Drop requests after a day, and deliveries after three, as GitHub does."""
        at = time.time()
        self.run("DELETE FROM request WHERE at < ?", at - 86_400)
        self.run("DELETE FROM delivery WHERE delivered_at < ?", timestamp(at - 3 * 86_400))

    def setup_token(self) -> str:
        """What opens the set-up routes: a random token in a file that only this user can read."""
        return secret_file(self.folder / "setup-token")


def secret_file(path: Path) -> str:
    """The secret in this file (mode 0600), made when the file is not there."""
    path.touch(mode=0o600)
    secret = path.read_text()
    if not secret:
        secret = secrets.token_urlsafe(32)
        path.write_text(secret)
    return secret


def now() -> str:
    """The time as GitHub writes it: UTC, whole seconds, `Z`."""
    return timestamp(time.time())


def timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
