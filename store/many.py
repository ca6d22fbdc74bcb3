"""Writing many rows in one statement: as one that takes them as JSON on PostgreSQL, as a prepared one a row on SQLite.

On PostgreSQL a statement a row cost the ledger three times as much, on both sides of the connection. On SQLite the
driver is given the rows as they are kept: SQLAlchemy would put each of their values in its place anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Boolean, Connection, Dialect, Integer, Table, TextClause, TypeDecorator
from sqlalchemy import text as sql
from sqlalchemy.types import TypeEngine

_TYPES: dict[type, str] = {BigInteger: "bigint", Integer: "integer", Boolean: "boolean"}


def insert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows, all of which name the same columns."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name != "postgresql":
        connection.exec_driver_sql(_insert_one(table, names), _as_tuples(connection, table, names, rows))
        return
    connection.execute(_insert(table, names), _as_json(connection, table, names, rows))


def update(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Set what each row says for the one with its `id`; all rows name the same columns, their `id` last."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name != "postgresql":
        connection.exec_driver_sql(_update_one(table, names), _as_tuples(connection, table, names, rows))
        return
    connection.execute(_update(table, names), _as_json(connection, table, names, rows))


@cache
def _insert_one(table: Table, names: tuple[str, ...]) -> str:
    # As all statements here, made of the names of our own tables and columns alone.
    columns, places = ", ".join(f'"{name}"' for name in names), ", ".join("?" for _ in names)
    return f"INSERT INTO {table.name} ({columns}) VALUES ({places})"  # noqa: S608


@cache
def _update_one(table: Table, names: tuple[str, ...]) -> str:
    assert names[-1] == "id", "the row is named by its last value"
    changes = ", ".join(f'"{name}" = ?' for name in names[:-1])
    return f"UPDATE {table.name} SET {changes} WHERE id = ?"  # noqa: S608


@cache
def _insert(table: Table, names: tuple[str, ...]) -> TextClause:
    columns = ", ".join(f'"{name}"' for name in names)
    # Made of the names of our own tables and columns alone.
    return sql(f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {_said(table, names)}")  # noqa: S608


@cache
def _update(table: Table, names: tuple[str, ...]) -> TextClause:
    changes = ", ".join(f'"{name}" = said."{name}"' for name in names if name != "id")
    return sql(
        f"UPDATE {table.name} SET {changes} FROM {_said(table, names)} "  # noqa: S608  # as above
        f"WHERE {table.name}.id = said.id"
    )


def _said(table: Table, names: tuple[str, ...]) -> str:
    columns = (f'"{name}" {_TYPES.get(type(table.c[name].type), "text")}' for name in names)
    return f"json_to_recordset(CAST(:rows AS json)) AS said({', '.join(columns)})"


def _as_json(
    connection: Connection, table: Table, names: tuple[str, ...], rows: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    kept = [dict(zip(names, values, strict=True)) for values in _as_tuples(connection, table, names, rows)]
    return {"rows": json.dumps(kept)}


def _as_tuples(
    connection: Connection, table: Table, names: tuple[str, ...], rows: Sequence[Mapping[str, Any]]
) -> list[tuple[Any, ...]]:
    """The rows as the driver takes them: what is kept in another form than it is worked with is brought into that."""
    binds = [_bind(table.c[name].type, connection.dialect) for name in names]
    return [
        tuple(bind(row[name]) if bind else row[name] for name, bind in zip(names, binds, strict=True)) for row in rows
    ]


def _bind(kind: TypeEngine[Any], dialect: Dialect) -> Callable[[Any], Any] | None:
    return (lambda value: kind.process_bind_param(value, dialect)) if isinstance(kind, TypeDecorator) else None
