"""Slots, leases, the inbox, runs' events, evidence and workers: what stands beside the facts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.errors import NotFound, Superseded
from domain.identity import digest
from domain.run import EvidenceKind
from store import inbox, leases
from store.database import Store
from store.events import Event, append, events_of
from store.evidence import MAX_CONTENT, Observation, content, evidence_of, record
from store.inbox import Delivery
from store.leases import Lease, Slot
from store.moves import move
from store.workers import Worker, incarnation_of, worker_ended, worker_started, workers_not_ended

MINUTE = timedelta(minutes=1)


def slot_of(wishes: Any, task: str, *, after: timedelta = timedelta()) -> Slot:
    at = wishes.at + after
    return Slot(task, wishes.plan, wishes.owner, at, at + 10 * MINUTE)


def test_a_slot_is_granted_once_until_its_lease_has_run_out(store: Store, confirmed: Any) -> None:
    first, again, later = (slot_of(confirmed, confirmed.task, after=n * MINUTE) for n in (0, 9, 10))
    with store.write() as connection:
        assert leases.grant_slot(connection, first)
        assert not leases.grant_slot(connection, again)
        assert leases.slots_of(connection, "ada", confirmed.at) == (first,)
        assert leases.grant_slot(connection, later)
        assert leases.slots_of(connection, "ada", confirmed.at) == (later,)


def test_a_slot_is_renewed_released_and_taken_back_when_nobody_renews_it(store: Store, confirmed: Any) -> None:
    mine, other = (slot_of(confirmed, task) for task in (confirmed.task, confirmed.other_task))
    with store.write() as connection:
        assert not leases.renew_slot(connection, mine.task_id, mine.lease_until)
        for slot in (mine, other):
            leases.grant_slot(connection, slot)
        assert leases.renew_slot(connection, mine.task_id, mine.lease_until + MINUTE)
        assert leases.expire_slots(connection, mine.lease_until) == (other,)
        assert leases.slots_of(connection, "ada", mine.lease_until) == (
            replace(mine, lease_until=mine.lease_until + MINUTE),
        )
        assert leases.slots_of(connection, "bob", mine.granted_at) == ()
        assert leases.release_slot(connection, mine.task_id)
        assert not leases.release_slot(connection, mine.task_id)


def test_gates_that_count_under_the_owners_lock_never_grant_too_much(store: Store, confirmed: Any) -> None:
    def gate(task: str) -> bool:
        with store.write() as connection:
            leases.lock_owner(connection, "ada")
            taken = leases.slots_of(connection, "ada", confirmed.at)
            return not taken and leases.grant_slot(connection, slot_of(confirmed, task))

    with ThreadPoolExecutor(4) as threads:
        granted = list(threads.map(gate, [confirmed.task, confirmed.other_task] * 2))

    assert sum(granted) == 1


@pytest.fixture
def lease(store: Store, confirmed: Any) -> Lease:
    confirmed.go(store, confirmed.run())
    run = f"{confirmed.task}-author-1"
    return Lease(run, confirmed.task, "worker-1", "host", "boot", 1, confirmed.at + MINUTE)


def test_a_lease_is_taken_again_by_its_own_worker(store: Store, lease: Lease) -> None:
    longer = replace(lease, lease_until=lease.lease_until + MINUTE)
    with store.write() as connection:
        leases.take_lease(connection, lease, lease.lease_until - MINUTE)
        leases.take_lease(connection, longer, lease.lease_until - MINUTE)
        assert leases.load_lease(connection, lease.run_id) == longer


def test_a_lease_is_taken_over_only_after_it_has_lapsed(store: Store, lease: Lease) -> None:
    other = replace(lease, worker="worker-2", epoch=2, lease_until=lease.lease_until + MINUTE)
    with store.write() as connection:
        leases.take_lease(connection, lease, lease.lease_until - MINUTE)
        with pytest.raises(Superseded, match="another worker"):
            leases.take_lease(connection, other, lease.lease_until - MINUTE)
        leases.take_lease(connection, other, lease.lease_until)
        assert leases.load_lease(connection, lease.run_id) == other


def test_whoever_lost_a_lease_is_told_so(store: Store, lease: Lease) -> None:
    other = replace(lease, worker="worker-2", epoch=2)
    with store.write() as connection:
        leases.take_lease(connection, lease, lease.lease_until)
        leases.renew_lease(connection, lease.run_id, "worker-1", 1, lease.lease_until)
        leases.take_lease(connection, other, lease.lease_until)
        with pytest.raises(Superseded, match="no longer held by worker-1"):
            leases.renew_lease(connection, lease.run_id, "worker-1", 1, lease.lease_until)
        with pytest.raises(Superseded):
            leases.take_lease(connection, lease, lease.lease_until)


def test_runs_that_nobody_looks_after_are_found(store: Store, lease: Lease) -> None:
    with store.write() as connection:
        leases.take_lease(connection, lease, lease.lease_until - MINUTE)
        assert leases.lapsed_leases(connection, lease.lease_until - MINUTE) == ()
        assert leases.lapsed_leases(connection, lease.lease_until) == (lease,)
        assert leases.release_lease(connection, lease.run_id)
        assert leases.lapsed_leases(connection, lease.lease_until) == ()
        assert leases.load_lease(connection, lease.run_id) is None


def test_a_hosts_new_worker_looks_after_every_run_of_the_host(store: Store, lease: Lease) -> None:
    later = lease.lease_until + MINUTE
    with store.write() as connection:
        leases.take_lease(connection, lease, lease.lease_until)
        assert leases.take_over_host(connection, "another", "worker-9", "boot-2", later) == 0
        assert leases.runs_of_worker(connection, "worker-1") == (lease.run_id,)
        assert leases.take_over_host(connection, "host", "worker-2", "boot-2", later) == 1
        assert leases.runs_of_worker(connection, "worker-1") == ()
        assert leases.load_lease(connection, lease.run_id) == replace(
            lease, worker="worker-2", boot="boot-2", lease_until=later
        )


def delivery(wishes: Any, name: str = "d1", *, after: timedelta = timedelta(), **other: Any) -> Delivery:
    known = {"repository": "Acme/Shop", "task_id": wishes.task, **other}
    return Delivery(
        delivery=name,
        source="github",
        event="pull_request",
        payload="{}",
        received_at=wishes.at + after,
        **known,
    )


def test_a_delivery_that_comes_twice_is_one_row(store: Store, confirmed: Any) -> None:
    first = delivery(confirmed)
    with store.write() as connection:
        assert inbox.receive(connection, first)
        assert not inbox.receive(connection, replace(first, payload="{'again': 1}"))
        assert inbox.unhandled(connection) == (first,)


def test_hints_are_handled_when_somebody_looked_after_they_came(store: Store, confirmed: Any) -> None:
    early, late = (delivery(confirmed, f"d{n}", after=n * MINUTE) for n in (1, 2))
    with store.write() as connection:
        for each in (late, early):
            inbox.receive(connection, each)
        assert inbox.unhandled(connection) == (early, late)
        assert inbox.mark_handled(connection, confirmed.task, before=early.received_at, at=confirmed.at) == 1
        assert inbox.unhandled(connection) == (late,)
        assert inbox.mark_handled(connection, confirmed.other_task, before=late.received_at, at=confirmed.at) == 0


def test_a_hint_counts_for_the_task_whose_repository_it_is_about(store: Store, confirmed: Any) -> None:
    ours = delivery(confirmed)
    fork = delivery(confirmed, "d2", repository="mallory/shop", task_id=confirmed.other_task)
    nobodys = delivery(confirmed, "d3", task_id=None)
    with store.write() as connection:
        for each in (ours, fork, nobodys):
            inbox.receive(connection, each)
        assert inbox.hinted_tasks(connection, "ada") == {confirmed.task}
        assert inbox.hinted_tasks(connection, "bob") == set()
        assert inbox.owners_with_hints(connection) == set()
        inbox.receive(connection, delivery(confirmed, "d4", pull_number=7))
        assert inbox.hinted_tasks(connection, "ada", about_pulls=True) == {confirmed.task}
        assert inbox.owners_with_hints(connection) == {"ada"}
        assert [inbox.owner_of(connection, each) for each in (ours, fork, nobodys)] == ["ada", None, None]
        assert inbox.settle(connection, "d4", confirmed.at)
        assert not inbox.settle(connection, "d4", confirmed.at)
        assert inbox.hinted_tasks(connection, "ada") == {confirmed.task}
        assert inbox.owners_with_hints(connection) == set()


def test_hints_about_merged_tasks_are_settled_and_no_others(store: Store, confirmed: Any) -> None:
    about_one, about_other = delivery(confirmed), delivery(confirmed, "d2", task_id=confirmed.other_task)
    confirmed.go(store, confirmed.make("task", confirmed.task, "merged"))
    with store.write() as connection:
        for each in (about_one, about_other):
            inbox.receive(connection, each)
        inbox.settle_merged(connection, "bob", confirmed.at)
        assert inbox.unhandled(connection) == (about_one, about_other)
        inbox.settle_merged(connection, "ada", confirmed.at)
        assert inbox.unhandled(connection) == (about_other,)


def test_a_payload_may_hold_anything(store: Store, confirmed: Any) -> None:
    with store.write() as connection:
        assert inbox.receive(connection, replace(delivery(confirmed), payload="a\0\ud800"))
        assert inbox.unhandled(connection)[0].payload == "a\ufffd?"


def test_a_runs_events_are_added_once_however_often_they_are_sent(store: Store, lease: Lease) -> None:
    events = [Event(n, lease.lease_until, "output", {"text": f"line {n} \0"}) for n in range(4)]
    with store.write() as connection:
        assert append(connection, lease.run_id, events[:3]) == 3
        assert append(connection, lease.run_id, events) == 1
        assert append(connection, lease.run_id, []) == 0
        kept = events_of(connection, lease.run_id)
        assert events_of(connection, lease.run_id, after=0, limit=2) == kept[1:3]
    assert [event.data["text"] for event in kept] == [f"line {n} \ufffd" for n in range(4)]
    assert kept[0].at == lease.lease_until


def test_whatever_an_agent_tells_is_kept_as_far_as_there_is_room(store: Store, lease: Lease) -> None:
    events = [Event(n, lease.lease_until, "k\0\ud800", {"t": "\0\ud800", "x": 1.5}) for n in range(9)]
    with store.write() as connection:
        assert append(connection, lease.run_id, events[:2], most=3) == 2
        assert append(connection, lease.run_id, events, most=3) == 1
        assert append(connection, lease.run_id, events, most=3) == 0
        assert append(connection, lease.run_id, events, most=5) == 2
        kept = events_of(connection, lease.run_id)
    assert [event.n for event in kept] == [0, 1, 2, 3, 4]
    assert (kept[0].kind, kept[0].data) == ("k\ufffd?", {"t": "\ufffd?", "x": 1.5})


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_no_part_of_an_event(store: Store, lease: Lease, number: float) -> None:
    with store.write() as connection, pytest.raises(TypeError):
        append(connection, lease.run_id, [Event(0, lease.lease_until, "x", {"x": number})])


def test_the_same_observation_is_one_piece_of_evidence(store: Store, confirmed: Any) -> None:
    seen = Observation(
        plan_id=confirmed.plan,
        task_id=confirmed.task,
        kind=EvidenceKind.CHECK,
        content=b"2 passed\xff\0",
        command="make test",
        exit_code=0,
        commit_sha="abc",
    )
    for _ in range(2):
        with store.write() as connection:
            move(connection, record(connection, seen, "a check ended", confirmed.at))
    with store.write() as connection:
        move(connection, record(connection, replace(seen, commit_sha="def"), "a check ended", confirmed.at))

    with store.read() as connection:
        first, second = evidence_of(connection, task_id=confirmed.task)
        assert evidence_of(connection, plan_id=confirmed.plan) == (first, second)
        assert evidence_of(connection, task_id=confirmed.other_task) == ()
        assert content(connection, first.digest) == seen.content
    assert (first.commit_sha, first.command, first.exit_code, first.kind) == ("abc", "make test", 0, "check")
    assert (first.digest, first.size) == (digest(seen.content), len(seen.content)) == (second.digest, second.size)


def test_evidence_is_bounded(store: Store, confirmed: Any) -> None:
    seen = Observation(plan_id=confirmed.plan, kind=EvidenceKind.DIFF, content=b"x" * (MAX_CONTENT + 1))
    with pytest.raises(ValueError, match="65537 bytes of evidence"), store.write() as connection:
        record(connection, seen, "a test", confirmed.at)


def test_content_that_is_not_kept_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound), store.read() as connection:
        content(connection, "0" * 64)


def test_a_worker_is_known_until_its_end_is(store: Store, confirmed: Any) -> None:
    worker = Worker("worker-1", "host", "boot", 4711, confirmed.at)
    with store.write() as connection:
        worker_started(connection, worker)
        worker_started(connection, replace(worker, pid=1))
        assert workers_not_ended(connection, "host") == (worker,)
        assert workers_not_ended(connection, "another") == ()
        assert worker_ended(connection, "worker-1", confirmed.at, crashed=True)
        assert not worker_ended(connection, "worker-1", confirmed.at, crashed=False)
        assert workers_not_ended(connection, "host") == ()


def test_a_temporal_that_was_not_seen_before_is_a_new_incarnation(store: Store, confirmed: Any) -> None:
    def number(temporal: str) -> int:
        with store.write() as connection:
            return incarnation_of(connection, temporal, confirmed.at)

    assert [number(temporal) for temporal in ("one", "one", "two", "one")] == [1, 1, 2, 1]
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(number, ["three"] * 4)) == {3}
