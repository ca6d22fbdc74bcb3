"""What each process of an installation is told, held beside what it reads."""

from __future__ import annotations

import pytest

from relay.bookkeeper import FLUSH
from relay.models import CANCELLED_SECONDS
from relay.settings import RelaySettings
from starter.local.telling import relay_stops_within, told_to, without_settings
from webhooks.settings import WebhookSettings
from worker.settings import WorkerSettings

DOORS = {"worker": WorkerSettings, "webhooks": WebhookSettings, "relay": RelaySettings}


def read_by(door: str) -> set[str]:
    return {f"WATCHBILL_{name.upper()}" for name in DOORS[door].model_fields}


EVERYTHING = {name: "x" for door in DOORS for name in read_by(door)} | {"PATH": "/bin", "WATCHBILL_OWNER": "ada"}


@pytest.mark.parametrize("door", DOORS)
def test_a_door_is_told_all_that_it_reads_and_what_anybody_may_know(door: str) -> None:
    assert read_by(door) | {"PATH"} <= told_to(door, EVERYTHING).keys()


@pytest.mark.parametrize("door", DOORS)
def test_a_door_is_told_nothing_that_another_reads_alone_and_so_no_secret_of_anothers(door: str) -> None:
    others = {name for other in DOORS.keys() - {door} for name in read_by(other)} - read_by(door)
    told = told_to(door, EVERYTHING).keys() & others
    # These say how the worker goes about its work, and are no secrets.
    assert not {name for name in told if name.endswith("_FILE") or door == "worker"}
    secrets = {name for name in told_to(door, EVERYTHING) if name.endswith("_FILE")}
    assert secrets == {name for name in read_by(door) if name.endswith("_FILE")}
    assert secrets


def test_what_is_no_door_of_ours_is_told_no_setting() -> None:
    assert without_settings(EVERYTHING) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    ("told", "drain"), [({}, RelaySettings.model_fields["relay_drain"].default), ({"WATCHBILL_RELAY_DRAIN": "7"}, 7)]
)
def test_a_relay_may_take_as_long_to_stop_as_it_lets_streams_go_on_and_writes_down_what_they_came_to(
    told: dict[str, str], drain: int
) -> None:
    assert relay_stops_within(told) > drain + CANCELLED_SECONDS + FLUSH


def test_a_drain_that_the_relay_will_refuse_is_left_for_it_to_refuse() -> None:
    assert relay_stops_within({"WATCHBILL_RELAY_DRAIN": "soon"}) == relay_stops_within({})


def test_where_models_are_is_told_to_the_two_that_ask_them_and_logins_to_the_worker_alone() -> None:
    for name in ("WATCHBILL_MODELS", "WATCHBILL_ANTHROPIC_URL", "WATCHBILL_OPENAI_URL"):
        assert [door for door in DOORS if name in told_to(door, EVERYTHING)] == ["worker", "relay"]
    assert [door for door in DOORS if "WATCHBILL_LOGINS" in told_to(door, EVERYTHING)] == ["worker"]
    assert [door for door in DOORS if "WATCHBILL_ANTHROPIC_KEY_FILE" in told_to(door, EVERYTHING)] == ["relay"]
