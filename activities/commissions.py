"""What an agent is sent out with, and what it came back with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from sqlalchemy import Connection

from activities.policies import policy_in, terms_in
from domain.agents import AGENTS
from domain.brief import REMINDER_TOKENS, RESULT_SCHEMA, TOKENS, render
from domain.errors import Unauthorized
from domain.judge import turn_before, word_for
from domain.metering import Metering
from domain.review import VERDICT_SCHEMA
from domain.rules import Policy, both
from domain.run import Outcome, Role, RunFacts
from domain.task import TaskFacts
from forge.aside import remove
from forge.port import Forge
from runtimes import logins
from runtimes.logins import Logins
from runtimes.port import Door, Job, Verdict
from signing.capabilities import LONGEST, Grant
from signing.keys import Signer
from signing.minting import mint
from store import briefing, budgets, keys, plans, tasks, words
from store.database import Store

_BROKE_OFF = (Outcome.NO_RESULT, Outcome.DROPPED, Outcome.CRASHED)
"""Ends that take nothing from a question: whoever asked has been told that the answer will come."""

MARGIN = timedelta(minutes=5)
"""How much longer a capability is good than its run may last: a run ends before its capability does."""


@dataclass(frozen=True)
class Commissions:
    """`home` is this host's folder, `relay` the address of the agents' door, empty where there is none.

    `signer` mints capabilities, with a key that is for nothing else. `logins` are for agents that are unmetered.
    """

    store: Store
    forge: Forge
    home: Path
    relay: str
    signer: Signer
    logins: Logins

    async def require_welcome(self, run: RunFacts, task: TaskFacts) -> None:
        """Ask the forge whether we may work on the task's repository now; nothing is minted before it says so.

        One request, made again at every call: an answer from before says nothing about an installation that was
        suspended or removed since. Raises what the forge raises: Unauthorized and NotFound say what a person can
        do, Unavailable and RateLimited are worth another try.
        """
        if run.runtime in AGENTS:
            await self.forge.installation(task.repository)

    def job(self, job: Job, run: RunFacts, task: TaskFacts, now: datetime, metering: str = Metering.METERED) -> Job:
        """The job with all that an agent needs: its brief, its memory, and a capability for its door.

        The brief of a run is kept, and is the same at every call; the capability is not, and each is good
        for this run alone. That of an unmetered run is good for no model, and it has a login instead. Raises
        Unauthorized where there is no door to send an agent to, and where the key that signs capabilities here was
        retired.
        """
        if run.runtime not in AGENTS:
            return job
        if not self.relay:
            raise Unauthorized(
                f"{run.runtime} reaches its model through the relay, and this worker knows of none; start one with "
                "`watchbill relay`, and name it in WATCHBILL_RELAY"
            )
        note = self._note(run, task)
        with self.store.read() as connection:
            keys.require_in_use(connection, self.signer.kid)
            policy = policy_in(connection, run.plan_id, self.home)
            ceiling = _ceiling(connection, run)
        brief = self._brief(run, task, note, policy)
        around = metering == Metering.UNMETERED
        self._clear_memories(run, metering)
        timeout = min(timedelta(seconds=job.timeout), LONGEST - MARGIN)
        good_for = ("", 0) if around else (run.model, ceiling)
        grant = Grant(task.owner, task.plan_id, task.id, run.id, run.epoch, run.role, *good_for)
        token = mint(self.signer, grant, now, timeout + MARGIN)
        door = Door(f"{self.relay}/models", f"{self.relay}/mcp", token, ceiling)
        return replace(
            job,
            timeout=int(timeout.total_seconds()),
            role=run.role,
            brief=brief.text,
            reminder=self.reminder(run, task),
            note=note or "Go on where you stopped.",
            model=run.model,
            memory=self.memory(run, metering),
            session=task.session if run.role is Role.AUTHOR else "",
            schema=brief.schema,
            door=door,
            policy=both(policy, _MAY_WRITE_NOTHING) if run.role.judges else policy,
            login=self.logins.of(run.runtime) if around else None,
        )

    def memory(self, run: RunFacts, metering: str) -> Path:
        """Where the agent's CLI keeps its sessions: one folder for all runs of a task and role.

        What an unmetered run leaves there may hold its login, wherever its agent put it: metered ones have another.
        One in which a run broke off before its first turn is damaged, or may be: whoever comes next has another.
        """
        return self._memories(run, metering)[-1]

    def _memories(self, run: RunFacts, metering: str) -> list[Path]:
        """The memories that runs like this one have had, in their order, and its own at last."""
        with self.store.read() as connection:
            left = tasks.memories_left(connection, run)
        around = "-unmetered" if metering == Metering.UNMETERED else ""
        first = self.home / "memory" / run.task_id / f"{run.role}-{run.runtime}{around}"
        return [first, *(first.with_name(f"{first.name}-{number}") for number in range(2, left + 2))]

    def _clear_memories(self, run: RunFacts, metering: str) -> None:
        """Delete those that were given up but the last, which is for a person to look at."""
        for memory in self._memories(run, metering)[:-2]:
            remove(memory)

    def forget(self, run: RunFacts) -> None:
        """Take the login of a run that has ended out of its memory, if it had one."""
        if run.runtime in AGENTS:
            logins.forget(self.memory(run, Metering.UNMETERED))

    def outcome(self, run: RunFacts, owner: str, verdict: Verdict, now: datetime) -> tuple[Verdict, str]:
        """The verdict once what the run said to us is taken in, and what it asked a person.

        A question decides, beside a result and when the run broke off after it: it was said that the answer will
        come. A result that came by the CLI's own means is kept as if it had come by our tool. A repeat finds it.
        """
        if run.runtime not in AGENTS or verdict.outcome not in (Outcome.DONE, *_BROKE_OFF):
            return verdict, ""
        with self.store.read() as connection:
            asked = words.question_of(connection, run.id)
            brief = words.brief_of(connection, run.id)
            result = words.result_of(connection, run.id)
        if asked:
            why = f"it asks a person; {verdict.reason}" if verdict.reason else "it asks a person"
            return replace(verdict, outcome=Outcome.ASKED, reason=why), asked
        if verdict.outcome is not Outcome.DONE:
            return verdict, ""
        if brief is None or brief.schema is None or result is not None:
            return verdict, ""
        if verdict.result is None:
            return replace(verdict, outcome=Outcome.NO_RESULT, reason="it ended without a result"), ""
        fault = next(Draft202012Validator(brief.schema).iter_errors(verdict.result), None)
        if fault is not None:
            why = f"its result does not fit: {fault.message[:200]}"
            return replace(verdict, outcome=Outcome.SCHEMA_BROKEN, reason=why), ""
        said = {"result": verdict.result, "revision": brief.revision, "brief": brief.digest}
        with self.store.write() as connection:
            words.say(connection, _speaker(run, owner), words.WordKind.RESULT, said, now)
        return verdict, ""

    def _unheard(self, task: TaskFacts, run: RunFacts) -> bool:
        """Whether the turn before asked a person something and then ended in a way that kept it from them."""
        before = turn_before(task, run)
        if before is None or before.outcome in (Outcome.DONE, Outcome.ASKED):
            return False
        with self.store.read() as connection:
            return bool(words.question_of(connection, before.id))

    def reminder(self, run: RunFacts, task: TaskFacts) -> str:
        """What an agent that has forgotten is told again: its brief as the graph has it now, more closely bounded."""
        note = self._note(run, task)
        with self.store.read() as connection:
            policy = policy_in(connection, run.plan_id, self.home)
            return _rendered(connection, run, task, note, policy, REMINDER_TOKENS)

    def _note(self, run: RunFacts, task: TaskFacts) -> str:
        return word_for(task, run, unheard=self._unheard(task, run))

    def _brief(self, run: RunFacts, task: TaskFacts, note: str, policy: Policy) -> words.Brief:
        with self.store.read() as connection:
            there = words.brief_of(connection, run.id)
            if there is not None:
                return there
            text = _rendered(connection, run, task, note, policy, TOKENS)
            revision = plans.load_plan(connection, run.plan_id).revision
        # Apart from the rendering: a write is short. Whoever was first has told the run.
        with self.store.write() as connection:
            there = words.brief_of(connection, run.id)
            if there is None:
                words.put_brief(connection, words.Brief(run.id, text, _wanted(run), revision))
                there = words.brief_of(connection, run.id)
        assert there is not None
        return there


def _wanted(run: RunFacts) -> Mapping[str, Any] | None:
    """The JSON Schema of what the run is to answer."""
    return VERDICT_SCHEMA if run.role is Role.REVIEWER else RESULT_SCHEMA


def _rendered(connection: Connection, run: RunFacts, task: TaskFacts, note: str, policy: Policy, tokens: int) -> str:
    facts = briefing.facts_of(connection, run, task, note=note, policy=policy, schema=_wanted(run))
    return render(facts, tokens)


_MAY_WRITE_NOTHING = Policy(paths=("**",))


def _ceiling(connection: Connection, run: RunFacts) -> int:
    """What the run's capability is good for, in nano-dollars; once that was written down it stays so."""
    if run.cap_nano_usd is not None:
        return run.cap_nano_usd
    left = budgets.left_for(connection, run.plan_id, run.task_id)
    if run.role is Role.REVIEWER:
        of_review = terms_in(connection, run.plan_id).review_nano_usd
        left = min((amount for amount in (left, of_review) if amount is not None), default=None)
    # Nothing at all would be said by the least of amounts: zero stands for no ceiling of its own.
    return 0 if left is None else max(1, left)


def _speaker(run: RunFacts, owner: str) -> words.Speaker:
    return words.Speaker(owner, run.plan_id, run.task_id, run.id, run.epoch, run.role)
