"""Where the bytes of evidence are: each under the sha256 of what it is, and looked at again whenever it is read.

On one machine, which is where a SQLite graph is, that is a folder beside the graph's file. With PostgreSQL a worker
on one host sees what a command on another is asked for, so it is a table that both can reach. What is small lies in
that table on either engine.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, select

from domain.errors import Damaged, NotFound, Unavailable, said
from domain.identity import digest
from store.database import insert_into
from store.tables import artifacts

FOLDER = "evidence"
"""The folder beside the file of a SQLite graph."""


SMALL = 4096
"""Bytes that lie in the graph all the same: its commit is synced anyway, and a file of their own takes three syncs
more, while everybody else waits for the graph's lock."""


class Place(StrEnum):
    """Where the bytes of an artifact are, as its row tells."""

    GRAPH = "graph"
    FOLDER = "folder"


class Contents(Protocol):
    """A place of bytes by their sha256 in hex."""

    @property
    def place(self) -> Place: ...

    def keep(self, name: str, content: bytes) -> None:
        """Keep what has this name, for good once this returns or its transaction ends; a repeat finds it.

        A file that is damaged is mended by that; a row of the graph is not.
        """
        ...

    def read(self, name: str) -> bytes:
        """The bytes, as they lie there, unproven. NotFound where there are none, Unavailable where nobody can tell."""
        ...


@dataclass(frozen=True)
class Folder:
    """Files by name, in folders by its first two letters. They are the reader's alone."""

    root: Path
    place: Place = Place.FOLDER

    def keep(self, name: str, content: bytes) -> None:
        file = self._file(name)
        with suppress(NotFound, Damaged, Unavailable):
            if self.read(name) == content:
                return
        # With what leads to it, where that is new: what a receipt names outlives a power cut.
        synced = (file.parent,) if file.parent.is_dir() else (file.parent, self.root, self.root.parent)
        draft = file.with_name(f".{name}.{secrets.token_hex(4)}")
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
                opened.write(content)
                opened.flush()
                os.fsync(opened.fileno())
            draft.replace(file)
            for folder in synced:
                _sync(folder)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise Unavailable(f"evidence cannot be kept: {said(error)}") from error

    def read(self, name: str) -> bytes:
        try:
            # Whatever somebody may have put there: nothing is followed, and nothing waited for.
            with os.fdopen(os.open(self._file(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
                return opened.read()
        except FileNotFoundError as error:
            raise NotFound(f"{self._file(name)} is not there") from error
        except OSError as error:
            if error.errno in _SOMETHING_ELSE:
                raise Damaged(f"what lies at {self._file(name)} is no file that was kept") from error
            raise Unavailable(f"evidence cannot be read: {said(error)}") from error

    def _file(self, name: str) -> Path:
        if not (len(name) == 64 and set(name) <= set("0123456789abcdef")):
            raise NotFound(f"{name[:80]!r} names no content")
        return self.root / name[:2] / name


_SOMETHING_ELSE = (errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.ENXIO)
"""A link, a directory or a socket stands there. Waiting would not make it what was seen."""


@dataclass(frozen=True)
class Table:
    """Rows of the graph itself."""

    connection: Connection
    place: Place = Place.GRAPH

    def keep(self, name: str, content: bytes) -> None:
        row = {"digest": name, "size": len(content), "content": content, "place": self.place}
        self.connection.execute(insert_into(self.connection, artifacts).on_conflict_do_nothing(), row)

    def read(self, name: str) -> bytes:
        found = self.connection.scalar(select(artifacts.c.content).where(artifacts.c.digest == name))
        if found is None:
            raise NotFound(f"the graph has nothing under {name}")
        return bytes(found)


def keep(connection: Connection, content: bytes) -> str:
    """Keep bytes where this graph's are kept, and answer their name. The row that tells where is this transaction's.

    A crash before its end leaves a file that no row names, and no row that names no file.
    """
    name = digest(content)
    contents = _where(connection, len(content))
    contents.keep(name, content)
    if contents.place is Place.GRAPH:
        return name
    row = {"digest": name, "size": len(content), "content": b"", "place": contents.place}
    connection.execute(insert_into(connection, artifacts).on_conflict_do_nothing(), row)
    return name


def read(connection: Connection, name: str) -> bytes:
    """The bytes of this name, proven to be those. NotFound where there are none, Damaged where they are others."""
    query = select(artifacts.c.size, artifacts.c.place).where(artifacts.c.digest == name)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"no content is kept under {name}")
    contents = Table(connection) if row.place == Place.GRAPH else _folder(connection)
    found = contents.read(name)
    if digest(found) != name:
        truncated = f", and has {len(found)} of its {row.size} bytes" if len(found) < row.size else ""
        raise Damaged(f"what is kept under {name} is not what was seen{truncated}")
    return found


def folder_beside(graph: str) -> Path:
    """Where the contents are of a SQLite graph in this file."""
    return Path(graph).absolute().with_name(FOLDER)


def _where(connection: Connection, size: int) -> Contents:
    in_graph = size <= SMALL or connection.dialect.name == "postgresql"
    return Table(connection) if in_graph else _folder(connection)


def _folder(connection: Connection) -> Folder:
    """NotFound for a graph that has no file: its contents lie beside one on some other machine."""
    if connection.dialect.name == "postgresql" or not connection.engine.url.database:
        raise NotFound("its content lies beside the SQLite file that this graph was copied from")
    return Folder(folder_beside(connection.engine.url.database))


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
