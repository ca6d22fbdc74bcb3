"""What an agent can read about: each topic is Markdown, rendered from the graph at the moment it is asked for."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from domain.errors import NotFound
from domain.view import to_markdown
from relay.callers import Caller
from store.plans import load_plan
from store.views import plan_view
from store.words import brief_of

_WATCHBILL = """\
Watchbill runs you. A person wrote a plan and confirmed it once; every box of it is a task, and becomes one
pull request. You are one run of one task, in a clone of the repository that is yours alone.

- What you leave in the files is committed, checked and published by Watchbill when you have ended. It takes
  no agent's word for the outcome of checks.
- You may be ended at any time, and another run goes on from the files as you left them. What it should know
  and cannot read from the code, say with `record_decision`.
- What only a person can decide, ask with `ask_person`, and end your turn: the answer comes into this session.
- When the task is done, say so with `submit_result`, and end your turn."""


def read(connection: Connection, caller: Caller, topic: str) -> str:
    """The topic as Markdown. NotFound, with a list of the topics, for one that there is not."""
    render = _TOPICS.get(topic)
    if render is None:
        raise NotFound(f"there is no topic {topic[:100]!r}; there are {', '.join(TOPICS)}")
    return render(connection, caller)


def _task(connection: Connection, caller: Caller) -> str:
    brief = brief_of(connection, caller.grant.run)
    if brief is None:
        raise NotFound("no brief is kept for this run; go by what you were told at its start")
    return brief.text


def _plan(connection: Connection, caller: Caller) -> str:
    view = plan_view(connection, caller.grant.plan)
    if view is None:
        raise NotFound(f"there is no plan {caller.grant.plan}")
    return to_markdown(view)


def _rules(connection: Connection, caller: Caller) -> str:
    plan = load_plan(connection, caller.grant.plan)
    changed = [f"- `{path}`" for path in plan.paths] or ["- everything in the repository"]
    checks = [f"- `{check}`" for check in plan.checks] or ["- none"]
    return "\n".join(
        [
            "You work in the current directory. Do not commit, push or open pull requests: Watchbill does.",
            "",
            "What this task may change; anything else that you leave changed stops it:",
            *changed,
            "",
            "What Watchbill runs on the commit when you have ended:",
            *checks,
        ]
    )


def _watchbill(_: Connection, __: Caller) -> str:
    return _WATCHBILL


_TOPICS: dict[str, Callable[[Connection, Caller], str]] = {
    "task": _task,
    "plan": _plan,
    "rules": _rules,
    "watchbill": _watchbill,
}
TOPICS = tuple(_TOPICS)
