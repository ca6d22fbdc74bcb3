"""Writing many rows in one statement: as one that takes them as JSON on PostgreSQL, as a prepared one a row on SQLite.

On PostgreSQL a statement a row cost the ledger three times as much, on both sides of the connection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Boolean, Connection, Integer, Table, TextClause, TypeDecorator, bindparam
from sqlalchemy import insert as insert_into
from sqlalchemy import text as sql
from sqlalchemy import update as update_of
from sqlalchemy.sql.dml import Update

_TYPES: dict[type, str] = {BigInteger: "bigint", Integer: "integer", Boolean: "boolean"}


def insert(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows, all of which name the same columns."""
    if not rows:
        return
    if connection.dialect.name != "postgresql":
        connection.execute(insert_into(table), [dict(row) for row in rows])
        return
    names = tuple(rows[0])
    connection.execute(_insert(table, names), _as_json(connection, table, names, rows))


def update(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Set what each row says for the one with its `id`; all rows name the same columns."""
    if not rows:
        return
    names = tuple(rows[0])
    if connection.dialect.name != "postgresql":
        connection.execute(_update_one(table, names), [{f"new_{name}": row[name] for name in names} for row in rows])
        return
    connection.execute(_update(table, names), _as_json(connection, table, names, rows))


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


@cache
def _update_one(table: Table, names: tuple[str, ...]) -> Update:
    changes: dict[str, Any] = {name: bindparam(f"new_{name}") for name in names if name != "id"}
    return update_of(table).where(table.c.id == bindparam("new_id")).values(changes)


def _said(table: Table, names: tuple[str, ...]) -> str:
    columns = (f'"{name}" {_TYPES.get(type(table.c[name].type), "text")}' for name in names)
    return f"json_to_recordset(CAST(:rows AS json)) AS said({', '.join(columns)})"


def _as_json(
    connection: Connection, table: Table, names: tuple[str, ...], rows: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    bound = {name: table.c[name].type for name in names}
    kept = [
        {
            name: kind.process_bind_param(row[name], connection.dialect)
            if isinstance(kind, TypeDecorator)
            else row[name]
            for name, kind in bound.items()
        }
        for row in rows
    ]
    return {"rows": json.dumps(kept)}
