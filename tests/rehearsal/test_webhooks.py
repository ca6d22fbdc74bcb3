"""Webhooks: signed, once, recorded, and repeated only when somebody asks for it."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from typing import Any

import pytest

from tests.rehearsal.conftest import NAME, Ear, Installed, Shop, eventually

PULLS = f"repos/{NAME}/pulls"


@pytest.fixture
def app(installed: Installed, ear: Ear) -> Installed:
    installed.shop.github.scene.app_webhook("watchbill", ear.url, Ear.SECRET)
    return installed


def deliveries(app: Installed, query: str = "") -> Any:
    return app.itself.read(f"app/hook/deliveries{query}")


def test_a_delivery_is_signed_over_its_raw_body(app: Installed, ear: Ear) -> None:
    app.shop.open("topic")
    [opened] = ear.wait("pull_request.opened")
    signature = hmac.new(Ear.SECRET.encode(), opened.body, hashlib.sha256).hexdigest()
    assert opened.headers["x-hub-signature-256"] == f"sha256={signature}"
    assert opened.payload["installation"]["id"] == app.installation
    assert opened.payload["repository"]["full_name"] == NAME
    assert opened.payload["sender"]["login"] == "acme"
    assert opened.payload["pull_request"]["mergeable"] is None


def test_each_delivery_has_a_connection_of_its_own(app: Installed, ear: Ear) -> None:
    """One that is kept may be closed by its other end just as the next delivery goes into it, and that one is lost."""
    app.shop.open("topic")
    ear.wait("pull_request.opened")
    for state in ("closed", "open"):
        app.shop.owner("PATCH", f"{PULLS}/1", state=state)
    heard = ear.wait("push", "pull_request.opened", "pull_request.closed", "pull_request.reopened")
    assert len({told.port for told in heard}) == len(heard) == 4


def test_every_change_is_told(app: Installed, ear: Ear) -> None:
    shop, owner = app.shop, app.shop.owner
    before = shop.open("topic")["head"]["sha"]
    after = shop.push("topic", {"more.txt": "more"}, start="origin/topic")
    owner("PATCH", f"{PULLS}/1", title="Other")
    owner("PATCH", f"{PULLS}/1", state="closed")
    owner("PATCH", f"{PULLS}/1", state="open")
    owner("POST", f"repos/{NAME}/issues/1/comments", body="Hello")
    shop.person("bob", "write")("POST", f"{PULLS}/1/reviews", event="APPROVE", body="Good")
    app.client()("POST", f"repos/{NAME}/check-runs", name="tests", head_sha=after, conclusion="success")
    owner("POST", f"repos/{NAME}/statuses/{after}", state="success", context="lint")
    owner("PUT", f"{PULLS}/1/merge")
    expected = [
        "push", "pull_request.opened", "push", "pull_request.synchronize", "pull_request.edited",
        "pull_request.closed", "pull_request.reopened", "issue_comment.created",
        "pull_request_review.submitted", "check_run.completed", "check_suite.completed", "status", "push",
        "pull_request.closed",
    ]  # fmt: skip
    heard = ear.wait(*expected)
    assert Counter(told.name for told in heard) == Counter(expected)
    by_name = {told.name: told.payload for told in heard}
    moved = by_name["pull_request.synchronize"]
    assert (moved["before"], moved["after"]) == (before, after)
    assert by_name["pull_request.edited"]["changes"] == {"title": {"from": "From topic"}}
    assert by_name["pull_request_review.submitted"]["review"]["state"] == "approved"
    assert [pull["number"] for pull in by_name["check_run.completed"]["check_run"]["pull_requests"]] == [1]
    assert any(told.payload["pull_request"]["merged"] for told in heard if told.name == "pull_request.closed")


def test_a_failed_delivery_is_recorded_and_not_tried_again(app: Installed, ear: Ear) -> None:
    ear.answers = [500]
    app.shop.push("topic", {"a.txt": "a"})
    eventually(lambda: len(deliveries(app)) == 1)
    [item] = deliveries(app, "?status=failure")
    assert (item["event"], item["status_code"], item["redelivery"]) == ("push", 500, False)
    assert len(ear.heard) == 1


def test_a_redelivery_keeps_guid_and_body(app: Installed, ear: Ear) -> None:
    ear.answers = [500]
    app.shop.push("topic", {"a.txt": "a"})
    eventually(lambda: len(deliveries(app)) == 1)
    [failed] = deliveries(app)
    again = app.itself("POST", f"app/hook/deliveries/{failed['id']}/attempts")
    assert again.status_code == 202
    eventually(lambda: len(deliveries(app)) == 2)
    first, second = ear.heard
    assert first.guid == second.guid == failed["guid"]
    assert first.body == second.body
    assert first.headers["x-hub-signature-256"] == second.headers["x-hub-signature-256"]
    newest, oldest = deliveries(app)
    assert (newest["redelivery"], newest["status_code"], oldest["redelivery"]) == (True, 204, False)
    assert newest["guid"] == oldest["guid"]


def test_a_delivery_shows_what_was_sent_and_answered(app: Installed, ear: Ear) -> None:
    app.shop.push("topic", {"a.txt": "a"})
    eventually(lambda: len(deliveries(app)) == 1)
    shown = app.itself.read(f"app/hook/deliveries/{deliveries(app)[0]['id']}")
    assert shown["request"]["payload"] == ear.heard[0].payload
    assert shown["request"]["headers"]["X-GitHub-Delivery"] == ear.heard[0].guid


def test_deliveries_come_in_pages_newest_first(app: Installed, ear: Ear) -> None:
    for branch in ("a", "b", "c"):
        app.shop.push(branch, {f"{branch}.txt": branch})
    eventually(lambda: len(deliveries(app)) == 3)
    first = app.itself("GET", "app/hook/deliveries?per_page=2")
    second = app.itself.http.get(first.links["next"]["url"])
    ids = [item["id"] for item in first.json() + second.json()]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 3
    assert "next" not in second.links


def test_nobody_listening_is_a_failed_delivery(app: Installed) -> None:
    app.shop.github.scene.app_webhook("watchbill", "http://127.0.0.1:9/hook", Ear.SECRET)
    app.shop.push("topic", {"a.txt": "a"})
    eventually(lambda: len(deliveries(app)) == 1)
    assert deliveries(app)[0]["status"] == "failed to connect to host"


def test_an_answer_that_does_not_come_in_time_is_a_failed_delivery(
    app: Installed, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rehearsal.hooks.TIME_LIMIT_SECONDS", 0.05)
    ear.silent.set()
    app.shop.push("topic", {"a.txt": "a"})
    eventually(lambda: [item["status"] for item in deliveries(app)] == ["timed out"])
    ear.silent.clear()


def test_a_suspended_app_hears_of_its_suspension_and_of_nothing_after(app: Installed, ear: Ear) -> None:
    app.shop.github.scene.suspend(app.installation)
    app.shop.push("topic", {"a.txt": "a"})
    app.shop.github.scene.suspend(app.installation, suspended=False)
    ear.wait("installation.suspend", "installation.unsuspend")
    assert sorted(ear.names()) == ["installation.suspend", "installation.unsuspend"]


def test_a_plain_webhook_hears_of_its_repository(shop: Shop, ear: Ear) -> None:
    shop.github.scene.repository("acme/other")
    shop.github.scene.webhook(ear.url, Ear.SECRET, NAME)
    shop.open("topic")
    [opened] = ear.wait("pull_request.opened")
    assert "installation" not in opened.payload


def test_a_dropped_webhook_is_seen_in_the_deliveries_alone(app: Installed, ear: Ear) -> None:
    app.shop.github.scene.fault("webhook-dropped", path="pull_request.opened")
    app.shop.open("topic")
    eventually(lambda: len(deliveries(app, "?status=failure")) == 1)
    ear.wait("push")
    assert ear.names() == ["push"]


def test_a_lost_webhook_leaves_no_trace(app: Installed, ear: Ear) -> None:
    app.shop.github.scene.fault("webhook-dropped", path="push", recorded=False)
    app.shop.open("topic")
    ear.wait("pull_request.opened")
    eventually(lambda: [item["event"] for item in deliveries(app)] == ["pull_request"])


def test_a_duplicated_webhook_comes_twice_under_one_guid(app: Installed, ear: Ear) -> None:
    app.shop.github.scene.fault("webhook-duplicated", path="push")
    app.shop.push("topic", {"a.txt": "a"})
    first, second = ear.wait("push", "push")
    assert (first.guid, first.body) == (second.guid, second.body)


def test_permuted_webhooks_come_in_another_order(app: Installed, ear: Ear) -> None:
    app.shop.github.scene.fault("webhook-permuted", path="pull_request*", times=3)
    app.shop.open("topic")
    app.shop.owner("PATCH", f"{PULLS}/1", title="Other")
    app.shop.owner("PATCH", f"{PULLS}/1", state="closed")
    ear.wait("pull_request.opened", "pull_request.closed")
    told = [name for name in ear.names() if name.startswith("pull_request")]
    assert told == ["pull_request.closed", "pull_request.edited", "pull_request.opened"]


def test_held_webhooks_are_sent_when_no_more_come(app: Installed, ear: Ear) -> None:
    app.shop.github.scene.fault("webhook-permuted", path="pull_request*", times=9, seconds=0.05)
    app.shop.open("topic")
    ear.wait("pull_request.opened")


def test_a_webhook_that_is_set_up_again_keeps_its_deliveries(app: Installed, ear: Ear) -> None:
    scene = app.shop.github.scene
    scene.webhook(ear.url, "before")
    app.shop.open("topic")
    ear.wait("pull_request.opened")
    scene.webhook(ear.url, Ear.SECRET)
    app.shop.owner("PATCH", f"{PULLS}/1", state="closed")
    closed = ear.wait("pull_request.closed")
    signature = hmac.new(Ear.SECRET.encode(), closed[-1].body, hashlib.sha256).hexdigest()
    assert closed[-1].headers["x-hub-signature-256"] == f"sha256={signature}"
