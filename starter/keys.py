"""The keys that sign: seen, and retired."""

from __future__ import annotations

from datetime import UTC, datetime

from starter import graph
from starter import settings as settings_
from starter.exits import Exit
from starter.output import say, say_json


def show(*, json: bool) -> Exit:
    """Every key that there ever was, the oldest first."""
    from store.keys import keys_of

    with graph.opened(settings_.load()) as store, store.read() as connection:
        keys = keys_of(connection)
    if json:
        say_json([_as_json(key) for key in keys])
        return Exit.DONE
    for key in keys:
        retired = f", retired {_said(key.retired_at)}" if key.retired_at else ""
        say(f"{key.kid}  {key.use}, since {_said(key.since)}{retired}")
    if not keys:
        say("there are no keys yet; a worker makes them at its first start")
    return Exit.DONE


def retire(named: str, *, json: bool) -> Exit:
    """Let nothing count that this key signs from now on. A repeat says the same."""
    from store import keys

    with graph.opened(settings_.load()) as store, store.write() as connection:
        key = keys.retire(connection, named, datetime.now(UTC))
    if json:
        say_json(_as_json(key))
        return Exit.DONE
    say(f"{key.kid}  {key.use}, retired {_said(key.retired_at)}")
    say("A worker that has it makes another once its file is moved away and it is started anew.")
    return Exit.DONE


def _as_json(key: object) -> dict[str, object]:
    return {name: _said(value) if isinstance(value, datetime) else value for name, value in vars(key).items()}


def _said(at: datetime | None) -> str:
    return at.isoformat(timespec="seconds") if at else ""
