"""What an agent can read about: each topic is Markdown, rendered from the graph at the moment it is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Connection

from activities.policies import plans_own_policy
from domain.brief import BriefFacts, whole
from domain.contextspace import to_markdown as context_to_markdown
from domain.errors import NotFound
from domain.view import to_markdown
from relay.callers import Caller
from store import briefing, notes
from store.plans import load_plan
from store.tasks import load_run, load_task
from store.views import plan_view
from store.words import brief_of

PAGE = 20_000
"""Characters of an answer: longer ones are cut by the CLIs themselves, and say nothing of it."""

_WATCHBILL = """\
Watchbill runs you. A person wrote a plan and confirmed it once; every box of it is a task, and becomes one
pull request. You are one run of one task, in a clone of the repository that is yours alone.

- What you leave in the files is committed, checked and published by Watchbill when you have ended. It takes
  no agent's word for the outcome of checks.
- You may be ended at any time, and another run goes on from the files as you left them. What it should know
  and cannot read from the code, say with `record_decision`: it stands in the brief of every later run of this plan.
- What only a person can decide, ask with `ask_person`, and end your turn: the answer comes into this session.
- When the task is done, say so with `submit_result`, and end your turn.
- Your brief is bounded. Where something was left out of it, it says so and names the topic that has it."""


def read(connection: Connection, caller: Caller, topic: str, page: int = 1) -> str:
    """A page of the topic as Markdown. NotFound, with a list of the topics, for one that there is not."""
    render = _TOPICS.get(topic)
    if render is None:
        raise NotFound(f"there is no topic {topic[:100]!r}; there are {', '.join(TOPICS)}")
    return _page(render(connection, caller), topic, page)


def _page(text: str, topic: str, number: int) -> str:
    pages = max(1, -(-len(text) // PAGE))
    if number > pages:
        raise NotFound(f"the topic {topic} has {pages} pages")
    shown = text[(number - 1) * PAGE : number * PAGE]
    if pages == 1:
        return shown
    onward = f"; `read_brief` with topic `{topic}` and page {number + 1} goes on" if number < pages else ""
    return f"{shown}\n\n[Page {number} of {pages}{onward}.]"


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


def _text(connection: Connection, caller: Caller) -> str:
    return whole(_facts(connection, caller), "task")


def _rules(connection: Connection, caller: Caller) -> str:
    shown = whole(_facts(connection, caller), "rules", "paths", "refused", "checks")
    more = (
        "Whoever runs Watchbill may refuse more than the plan does; your brief, the topic `task`, tells of all of it."
    )
    return f"{shown}\n\n{more}"


def _context(connection: Connection, caller: Caller) -> str:
    plan = load_plan(connection, caller.grant.plan)
    return context_to_markdown(notes.of_plan(connection, plan))


def _predecessors(connection: Connection, caller: Caller) -> str:
    return whole(_facts(connection, caller), "delivered") or "This task follows no other."


def _attempts(connection: Connection, caller: Caller) -> str:
    return whole(_facts(connection, caller), "note", "last") or "Nobody worked on this task before you."


def _answer(connection: Connection, caller: Caller) -> str:
    brief = brief_of(connection, caller.grant.run)
    schema = brief.schema if brief else None
    return json.dumps(schema, indent=2) if schema is not None else "Any JSON will do as a result."


def _watchbill(_: Connection, __: Caller) -> str:
    return _WATCHBILL


def _facts(connection: Connection, caller: Caller) -> BriefFacts:
    """What the brief was rendered from, as it is now; of the rules those that the plan itself has."""
    run = load_run(connection, caller.grant.run)
    task = load_task(connection, run.task_id, datetime.now(UTC))
    policy = plans_own_policy(connection, run.plan_id)
    return briefing.facts_of(connection, run, task, note=task.note, policy=policy)


_TOPICS: dict[str, Callable[[Connection, Caller], str]] = {
    "task": _task,
    "text": _text,
    "plan": _plan,
    "rules": _rules,
    "context": _context,
    "predecessors": _predecessors,
    "attempts": _attempts,
    "answer": _answer,
    "watchbill": _watchbill,
}
TOPICS = tuple(_TOPICS)
