"""What holds of a plan's graph whatever was done to it, told again from its raw rows: nothing here asks our own code.

Every state has the receipts that lead to it. What was called proven had, by then, everything that its plan asks for.
What Watchbill merged was proven, or a person had approved that very commit. No approval is by a maker of the work.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from store import tables

WATCHBILL_MERGED = "Watchbill merged it"
MAKERS = {"claude-sonnet-4-6": "anthropic", "gpt-5.5": "openai", "gemini-2.5-pro": "google", "mystery-1": ""}
"""Who made the models that are used here, said by hand."""
AGENTS = ("claude", "codex", "opencode")

_SUBJECTS = {
    "plan": (tables.plans, "id"), "task": (tables.tasks, "plan_id"), "run": (tables.runs, "plan_id"),
    "question": (tables.questions, "plan_id"), "evidence": (tables.evidence, "plan_id"),
    "review": (tables.reviews, "plan_id"),
}  # fmt: skip


def broken(connection: Connection, plan: str, void: Collection[str] = ()) -> list[str]:
    """What does not hold, a sentence each. `void` are digests whose content never was there as it was seen."""
    told = connection.execute(select(tables.receipts).where(tables.receipts.c.chain == plan).order_by("seq"))
    receipts = [dict(row._mapping) for row in told]
    story = Story(void)
    found = [*_chained(connection, plan, receipts)]
    for receipt in receipts:
        if not receipt["refused"]:
            found += story.take(receipt, json.loads(receipt["facts"]))
    return [*found, *_rows(connection, plan, story)]


def _chained(connection: Connection, plan: str, receipts: list[dict[str, Any]]) -> Iterator[str]:
    previous = "0" * 64
    for seq, receipt in enumerate(receipts, 1):
        facts, at = json.loads(receipt["facts"]), receipt["at"].isoformat(timespec="microseconds")
        names = ("chain", "seq", "kind", "subject", "before", "after", "event", "key", "cause")
        said = [previous, *(receipt[name] for name in names), at, facts, receipt["refused"], receipt["actor"]]
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        if (receipt["seq"], receipt["previous"]) != (seq, previous):
            yield f"receipt {receipt['seq']} does not follow the one before it"
        if receipt["hash"] != hashlib.sha256(text.encode()).hexdigest():
            yield f"receipt {seq} has another hash than what it says"
        previous = receipt["hash"]
    head = select(tables.chains.c.seq, tables.chains.c.hash).where(tables.chains.c.chain == plan)
    if tuple(connection.execute(head).one()) != (len(receipts), previous):
        yield "the head is not the last receipt"


@dataclass
class Story:
    """What the receipts say, as far as they were taken: of each thing its facts, with its state and last receipt."""

    void: Collection[str] = ()
    things: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: {kind: {} for kind in _SUBJECTS})

    def take(self, receipt: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[str]:
        things, name = self.things[receipt["kind"]], receipt["subject"]
        if receipt["before"] != things.get(name, {}).get("state"):
            yield f"{name} was not {receipt['before']} before receipt {receipt['seq']}"
        before = dict(things.get(name, {}))
        kept = {"state": receipt["after"], "receipt_seq": receipt["seq"], "receipt_hash": receipt["hash"]}
        things[name] = {**before, **facts, **kept}
        if receipt["kind"] == "review" and receipt["after"] == "approved":
            yield from self._approval(name, facts)
        if receipt["kind"] == "task":
            yield from self._closing(name, receipt, facts, before)

    def _closing(
        self, task: str, receipt: Mapping[str, Any], facts: Mapping[str, Any], before: Mapping[str, Any]
    ) -> Iterator[str]:
        merged = receipt["event"] == "merged"
        shas = {facts.get("proven_sha")} | ({before.get("proven_sha")} if facts.get("proof") == "proven" else set())
        for sha in map(str, shas - {None, ""}):
            yield from (f"{task} is called proven at {sha[:4]}: {why}" for why in self._lacking(task, sha))
        if merged and facts.get("proof") == "proven" and not before.get("proven_sha"):
            yield f"{task} is merged as proven, and was never proven"
        if merged and receipt["cause"].startswith(WATCHBILL_MERGED):
            head = before.get("head_sha")
            wanted = head and head == before.get("approved_sha")
            if not wanted:
                yield from (f"Watchbill merged {task}, and {why}" for why in self._lacking(task, str(head)))

    def _lacking(self, task: str, sha: str) -> Iterator[str]:
        """What the plan asks for on this commit that nobody has seen by now."""
        (plan,) = self.things["plan"].values()
        seen = [e for e in self.things["evidence"].values() if (e.get("task_id"), e.get("commit_sha")) == (task, sha)]
        seen = [each for each in seen if each["digest"] not in self.void]
        runs = self.things["run"]
        for check in plan["checks"]:
            if not any(
                each["kind"] == "check" and each["exit_code"] == 0 and each["command"] == check and each["seen_by"]
                and self._is_from(each, "check", task, sha)
                and (runs[each["run_id"]].get("command"), runs[each["run_id"]].get("exit_code")) == (check, 0)
                for each in seen
            ):  # fmt: skip
                yield f"no run of {check} has passed"
        for reviewer in plan["reviewers"]:
            if not any(
                (given["task_id"], given["commit_sha"], given["reviewer"]) == (task, sha, reviewer)
                and given["state"] == "approved"
                and any(
                    e["kind"] == "review" and e["run_id"] == given["run_id"] and e["seen_by"]
                    and self._is_from(e, "reviewer", task, sha)
                    for e in seen
                )
                for given in self.things["review"].values()
            ):  # fmt: skip
                yield f"{reviewer} has not approved with evidence"

    def _is_from(self, seen: Mapping[str, Any], role: str, task: str, sha: str) -> bool:
        run = self.things["run"].get(seen.get("run_id") or "", {})
        told = (run.get("role"), run.get("task_id"), run.get("start_sha"), run.get("epoch"))
        return told == (role, task, sha, seen.get("epoch"))

    def _approval(self, name: str, facts: Mapping[str, Any]) -> Iterator[str]:
        run = self.things["run"].get(facts["run_id"], {})
        what = (run.get("role"), run.get("task_id"), run.get("start_sha"), run.get("outcome"))
        if what != ("reviewer", facts["task_id"], facts["commit_sha"], "done"):
            yield f"{name} is no reviewer's of this commit who came to an end"
        maker = MAKERS.get(run.get("model", ""), "")
        authors = {
            MAKERS.get(other.get("model", ""), "")
            for other in self.things["run"].values()
            if (other["task_id"], other["role"]) == (facts["task_id"], "author") and other["runtime"] in AGENTS
        }
        if not maker or "" in authors or maker in authors:
            yield f"{name} is by {maker or 'nobody'}, and the work by {sorted(authors)}"
        if facts["reviewer"] != f"{run.get('runtime')}:{run.get('model')}":
            yield f"{name} is said to be another reviewer's"


def _rows(connection: Connection, plan: str, story: Story) -> Iterator[str]:
    for kind, (table, home) in _SUBJECTS.items():
        rows = {row["id"]: row for row in connection.execute(select(table).where(table.c[home] == plan)).mappings()}
        things = story.things[kind]
        if rows.keys() != things.keys():
            yield f"of {kind} {sorted(rows.keys() ^ things.keys())} there is a row or there are receipts, not both"
        for name in rows.keys() & things.keys():
            for column, value in things[name].items():
                if rows[name][column] != value:
                    yield f"{column} of {name} is {rows[name][column]!r}, its receipts say {value!r}"
