"""The kinds of columns that the work graph is made of, the same on both engines.

Times and JSON are kept as text with one spelling, so that both engines hold the same bytes.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Dialect, ForeignKey, Integer, Text, TypeDecorator

from domain.lifecycle import canonical


def instant(at: datetime) -> str:
    """How a time is spelt in the graph: ISO 8601 in UTC, to the microsecond: text then sorts as time."""
    if at.tzinfo is None:
        raise ValueError(f"{at} has no time zone; times here are aware")
    return at.astimezone(UTC).isoformat(timespec="microseconds")


class Moment(TypeDecorator[datetime]):
    """An aware UTC time, kept as text: both engines then give the same receipts byte for byte."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        return None if value is None else instant(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


class Json(TypeDecorator[Any]):
    """JSON in its one canonical spelling, kept as text for the same reason; compared as text by the audit."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        return canonical(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


def text(name: str, default: str | None = None) -> Column[Any]:
    return Column(name, Text, nullable=False, default=default)


def optional_text(name: str) -> Column[Any]:
    return Column(name, Text, nullable=True)


def whole(name: str, default: int | None = None) -> Column[Any]:
    return Column(name, Integer, nullable=False, default=default)


def flag(name: str) -> Column[Any]:
    return Column(name, Boolean, nullable=False, default=False)


def strings(name: str) -> Column[Any]:
    return Column(name, Json, nullable=False, default=())


def nano_usd(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=True)


def amount(name: str) -> Column[Any]:
    """An amount of money that is always there, in nano-dollars."""
    return Column(name, BigInteger, nullable=False)


def tokens(name: str) -> Column[Any]:
    """How many tokens of one kind a call took."""
    return Column(name, BigInteger, nullable=False, default=0)


def moment(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, Moment, nullable=nullable)


def reference(column: str, *, nullable: bool = False, primary_key: bool = False) -> Column[Any]:
    """A reference to another subject, named as its table is: `plan_id` points at `plans.id`."""
    target = f"{column.removesuffix('_id')}s.id"
    return Column(column, Text, ForeignKey(target), nullable=nullable, primary_key=primary_key)
