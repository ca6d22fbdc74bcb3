"""What is done at the forge, once however often it is asked for."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from activities.landing import Landing
from domain.confinement import Confinement
from domain.errors import NotFound
from domain.identity import branch_of
from domain.metering import Metering
from domain.publication import BeginRun, FindRepository, MergeOrder
from domain.pull import MergeKind, Opened, OpenKind
from domain.run import EndKind, Role, RunEnd, RunState
from domain.task import TaskState
from signing.keys import Signer
from signing.seals import Head, head_in, seals_in
from store import runs, words
from store.inbox import Delivery, receive, unhandled
from store.receipts import head_of
from store.seals import seals_of
from tests.activities.conftest import KEEPER, Graph
from tests.workflows.world import ScriptedForge, sha


class Recording(ScriptedForge):
    """Keeps what a pull request said."""

    said: tuple[str, str] = ("", "")

    async def open_pull_request(self, name: str, *, title: str, body: str, **where: Any) -> Opened:
        self.said = (title, body)
        return await super().open_pull_request(name, title=title, body=body, **where)


@pytest.fixture
def recording(forge: ScriptedForge) -> Recording:
    return Recording(forge.script)


@pytest.fixture
def landing(graph: Graph, recording: Recording, signer: Signer) -> Landing:
    graph.confirm()
    return Landing(graph.store, recording, 1, signer)


async def in_review(graph: Graph, landing: Landing, forge: ScriptedForge) -> int:
    """The task's pull request, open at `commit`."""
    forge.branches[branch_of(graph.task)] = sha("commit")
    graph.move("worked", head_sha=sha("commit"))
    graph.check("commit")
    graph.move("cleared", proven_sha=sha("commit"))
    opened = await graph.call(landing.open_pull_request, graph.task)
    graph.move("published", pull_number=opened.pull.number, pushed_sha=sha("commit"))
    return int(opened.pull.number)


def hint(graph: Graph, name: str, at: datetime) -> None:
    delivery = Delivery(
        delivery=name,
        source="github",
        event="pull_request",
        payload="{}",
        received_at=at,
        repository="acme/shop",
        pull_number=1,
        task_id=graph.task,
    )
    with graph.store.write() as connection:
        receive(connection, delivery)


def waiting(graph: Graph) -> list[str]:
    with graph.store.read() as connection:
        return [one.delivery for one in unhandled(connection)]


async def test_a_base_that_is_not_there_is_named(graph: Graph, landing: Landing) -> None:
    found = await graph.call(landing.find_repository, FindRepository("acme/shop"))
    assert found.default_branch == "main"
    with pytest.raises(NotFound, match="acme/shop has no branch develop"):
        await graph.call(landing.find_repository, FindRepository("acme/shop", "develop"))


async def test_a_pull_request_is_opened_once_and_says_what_was_asked_and_proven(
    graph: Graph, landing: Landing, recording: Recording, signer: Signer
) -> None:
    graph.move("worked", head_sha=sha("commit"), host="host-a")
    check = graph.begin(Role.CHECK, 1, "make test")
    with graph.store.write() as connection:
        runs.spawned(connection, check, KEEPER, Confinement.CONFINED, datetime.now().astimezone(), 1)
    end = RunEnd(check.id, RunState.FINISHED, EndKind.EXITED, 0, "", "3 passed")
    with graph.store.write() as connection:
        runs.end(connection, check, end, [], KEEPER.worker, datetime.now().astimezone(), 1)
    recording.branches[branch_of(graph.task)] = sha("commit")
    opened = await graph.call(landing.open_pull_request, graph.task)
    again = await graph.call(landing.open_pull_request, graph.task)
    assert (opened.kind, again.kind) == (OpenKind.OPENED, OpenKind.FOUND)
    assert opened.pull.number == again.pull.number
    title, body = recording.said
    assert title == "Make it"
    assert "`make test`" in body
    assert "passed" in body
    assert "Runs are confined." in body
    assert "Closes #7" not in body
    assert "@ada" not in body
    (token,) = seals_in(body)
    with graph.store.read() as connection:
        assert head_in(token, {signer.kid: signer.public}) == Head(graph.plan, *head_of(connection, graph.plan))
        assert seals_of(connection, graph.plan) == [token]


async def test_what_the_agent_says_of_its_work_is_in_the_pull_request_and_calls_nobody(
    graph: Graph, recording: Recording, signer: Signer
) -> None:
    graph.confirm(runtime="claude")
    landing = Landing(graph.store, recording, 1, signer)
    for said in ("The first try.", f"Fixes #3, thanks @ada. <!-- hidden --> With ghp_{'a' * 36} in it."):
        run = graph.begin()
        speaker = words.Speaker("ada", graph.plan, graph.task, run.id, run.epoch, run.role)
        body = {"result": {"summary": said}, "revision": 1, "brief": "d"}
        end = RunEnd(run.id, RunState.FINISHED, EndKind.EXITED, 0)
        now = datetime.now().astimezone()
        with graph.store.write() as connection:
            words.say(connection, speaker, words.WordKind.RESULT, body, now)
            runs.end(connection, run, end, [], KEEPER.worker, now, 1)
        if said == "The first try.":
            graph.move("worked", head_sha=sha("first"), host="host-a")
            graph.move("checks_failed", round=2)
    graph.move("worked", head_sha=sha("commit"), host="host-a")
    recording.branches[branch_of(graph.task)] = sha("commit")
    await graph.call(landing.open_pull_request, graph.task)
    written = recording.said[1]
    assert "## What the agent says of its work" in written
    assert "With [redacted] in it." in written
    assert "The first try." not in written
    assert not any(harmful in written for harmful in ("#3", "@ada", "<!-- hidden"))


async def test_a_read_settles_the_hints_that_came_before_it_began(
    graph: Graph, landing: Landing, recording: Recording
) -> None:
    await in_review(graph, landing, recording)
    began = graph.environment.info.current_attempt_scheduled_time
    hint(graph, "before", began - timedelta(seconds=1))
    hint(graph, "after", began + timedelta(seconds=1))
    pull = await graph.call(landing.look_at_pull_request, graph.task)
    assert pull.head_sha == sha("commit")
    assert waiting(graph) == ["after"]


async def test_a_read_that_failed_settles_no_hint(graph: Graph, landing: Landing, recording: Recording) -> None:
    await in_review(graph, landing, recording)
    hint(graph, "before", graph.environment.info.current_attempt_scheduled_time - timedelta(seconds=1))
    recording.script.tell(graph.task, "look", NotFound("gone for now"))
    with pytest.raises(NotFound):
        await graph.call(landing.look_at_pull_request, graph.task)
    assert waiting(graph) == ["before"]


async def test_exactly_the_ordered_commit_is_merged_and_a_repeat_finds_it_merged(
    graph: Graph, landing: Landing, recording: Recording
) -> None:
    number = await in_review(graph, landing, recording)
    graph.check("another")
    moved = await graph.call(landing.merge_pull_request, MergeOrder(graph.task, number, sha("another")))
    assert moved.kind is MergeKind.HEAD_MOVED
    merged = await graph.call(landing.merge_pull_request, MergeOrder(graph.task, number, sha("commit")))
    assert merged.kind is MergeKind.MERGED


async def test_a_commit_without_its_evidence_is_not_merged_whatever_the_order_says(
    graph: Graph, landing: Landing, recording: Recording
) -> None:
    number = await in_review(graph, landing, recording)
    recording.push(graph.task, "unchecked")
    order = MergeOrder(graph.task, number, sha("unchecked"))
    blocked = await graph.call(landing.merge_pull_request, order)
    assert blocked.kind is MergeKind.UNPROVEN
    assert blocked.reason == f"it is not proven: `test -e made` has not passed on {sha('unchecked')[:12]}"
    assert not recording.merged[graph.task]
    graph.move("approved", approved_sha=sha("unchecked"))
    assert (await graph.call(landing.merge_pull_request, order)).kind is MergeKind.MERGED


async def test_the_forges_fact_moves_a_task_once(graph: Graph, landing: Landing, recording: Recording) -> None:
    await in_review(graph, landing, recording)
    hint(graph, "before", graph.environment.info.current_attempt_scheduled_time - timedelta(seconds=1))
    assert not await graph.call(landing.follow_forge, graph.task)
    recording.merge(graph.task)
    assert await graph.call(landing.follow_forge, graph.task)
    assert graph.facts().state is TaskState.MERGED
    looks = recording.looks[graph.task]
    assert not await graph.call(landing.follow_forge, graph.task)
    assert recording.looks[graph.task] == looks
    assert waiting(graph) == []


async def test_a_pull_request_that_the_graph_never_heard_of_is_found_by_its_branch(
    graph: Graph, landing: Landing, recording: Recording
) -> None:
    recording.branches[branch_of(graph.task)] = sha("commit")
    graph.move("worked", head_sha=sha("commit"))
    await graph.call(landing.open_pull_request, graph.task)
    recording.merge(graph.task)
    assert await graph.call(landing.follow_forge, graph.task)
    assert graph.facts().pull_number == recording.pull_of(graph.task).number


async def test_closing_what_is_closed_or_was_never_opened_is_nothing(
    graph: Graph, landing: Landing, recording: Recording
) -> None:
    await graph.call(landing.close_pull_request, graph.task)
    await in_review(graph, landing, recording)
    for _ in range(2):
        await graph.call(landing.close_pull_request, graph.task)
    assert not recording.pull_of(graph.task).open


async def test_a_pull_request_says_that_its_agent_was_not_metered(
    graph: Graph, recording: Recording, signer: Signer
) -> None:
    graph.confirm(runtime="claude", network="open", metering="off")
    landing = Landing(graph.store, recording, 1, signer)
    now = datetime.now().astimezone()
    with graph.store.write() as connection:
        run = runs.begin(connection, BeginRun(graph.task, Role.AUTHOR, now), KEEPER, 1)
        runs.spawned(connection, run, KEEPER, Confinement.NETWORKED, now, 1, metering=Metering.UNMETERED)
    with graph.store.write() as connection:
        end = RunEnd(run.id, RunState.FINISHED, EndKind.EXITED, 0)
        runs.end(connection, run, end, [], KEEPER.worker, now, 1)
    await in_review(graph, landing, recording)
    assert "Runs are partly confined. Agents are unmetered: they call their models on logins" in recording.said[1]
