"""What cannot be done is said in one sentence, with an exit code, and leaves nothing behind."""

from __future__ import annotations

import hashlib
import hmac
import json

import httpx
import pytest

from domain.identity import plan_id
from tests.end_to_end.installation import OWNER, Done
from tests.end_to_end.plans import Box
from tests.end_to_end.rig import Rig


def one_sentence(done: Done, *words: str) -> None:
    lines = done.err.strip().splitlines()
    assert len(lines) == 1, done
    assert all(word in lines[0] for word in words), done
    assert "Traceback" not in done.err


def nothing_of(rig: Rig, slug: str) -> None:
    plan = plan_id(OWNER, slug)
    for table, column in (
        ("plans", "id"),
        ("tasks", "plan_id"),
        ("receipts", "chain"),
        ("revisions", "plan_id"),
    ):
        assert rig.rows(f"SELECT * FROM {table} WHERE {column} = :plan", plan=plan) == []  # noqa: S608 - our own names
    rig.assert_untouched(slug)


def test_a_faulty_document_is_told_with_every_fault_and_published_nowhere(rig: Rig):
    path = rig.write("faulty", Box("Write it", "true", "after=9"), concurency="2")
    done = rig.command("submit", path, "--confirm", expect=1)
    assert done.err.count(f"{path}:") == 2
    nothing_of(rig, "faulty")


def test_a_repository_that_is_not_there_is_named(rig: Rig):
    path = rig.write("no-repository", "Write it", repository="acme/nowhere")
    one_sentence(rig.command("submit", path, "--confirm", expect=4), "acme/nowhere")
    nothing_of(rig, "no-repository")


def test_a_base_that_is_not_there_is_named(rig: Rig):
    path = rig.write("no-base", "Write it", base="trunk")
    one_sentence(rig.command("submit", path, "--confirm", expect=4), "acme/shop", "trunk")
    nothing_of(rig, "no-base")


def test_a_base_that_is_gone_by_the_time_of_the_run_is_asked_about_and_mended(rig: Rig):
    main = rig.git("ls-remote", "{url}", "refs/heads/main").split()[0]
    rig.forge("POST", "repos/acme/shop/git/refs", ref="refs/heads/short-lived", sha=main)
    path = rig.write("gone-base", "Write it", base="short-lived", checks='["true"]', merge="when-proven")
    rig.command("submit", path)
    rig.forge("DELETE", "repos/acme/shop/git/refs/heads/short-lived")
    rig.command("confirm", path)
    rig.until_asked("gone-base", "cannot_go_on")
    assert "short-lived" in rig.task("gone-base").question
    assert rig.branches("gone-base") == []
    rig.forge("POST", "repos/acme/shop/git/refs", ref="refs/heads/short-lived", sha=main)
    rig.command("resume", "gone-base#1")
    rig.until_completed("gone-base")
    assert rig.file("gone-base-1.txt", "short-lived") == "done\n"


@pytest.mark.parametrize(
    "command", ["confirm", "status", "watch", "pause", "resume", "cancel", "archive", "report", "receipts"]
)
def test_a_plan_that_nobody_published_is_not_found(rig: Rig, command):
    one_sentence(rig.command(command, "nobody-knows-it", expect=4), "nobody-knows-it")
    nothing_of(rig, "nobody-knows-it")


def test_a_task_that_is_not_there_is_not_found(rig: Rig):
    rig.command("submit", rig.write("one-task", "Write it"))
    for command in ("approve", "retry", "resume", "cancel", "pause"):
        one_sentence(rig.command(command, "one-task#2", expect=4), "no task 2")


def test_what_the_state_does_not_allow_is_refused_and_recorded(rig: Rig):
    rig.command("submit", rig.write("early", "Write it"))
    for command in (("approve", "early#1"), ("pause", "early"), ("cancel", "early"), ("retry", "early#1")):
        one_sentence(rig.command(*command, expect=3))
    assert rig.view("early").state == "awaiting_confirmation"
    rig.command("confirm", "early", "--digest", "0" * 12, expect=3)
    refused = [one for one in rig.receipts("early") if one.refused]
    assert len(refused) >= 3
    assert rig.pulls("early") == []


def deliver(rig: Rig, body: bytes, secret: str, delivery: str) -> httpx.Response:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "content-type": "application/json",
        "x-github-delivery": delivery,
        "x-github-event": "pull_request",
        "x-hub-signature-256": f"sha256={signature}",
    }
    return httpx.post(f"{rig.addresses.webhooks}/webhooks/github", content=body, headers=headers)


def test_a_delivery_with_a_wrong_signature_is_refused_and_leaves_no_row(rig: Rig):
    answer = deliver(rig, b'{"action": "closed"}', "guessed", "forged")
    assert (answer.status_code, "signature" in answer.json()["message"]) == (401, True)
    assert rig.rows("SELECT * FROM inbox WHERE delivery = 'forged'") == []


def test_a_forged_hint_moves_nothing_because_the_forge_is_asked(rig: Rig):
    """Even with the right signature a delivery is only a hint: what it claims is not believed."""
    rig.submit("claimed", "Write it")
    rig.until_state("claimed", 1, "in_review")
    secret = (rig.home / "rehearsal" / "webhook-secret").read_text().strip()
    number = rig.pull_number("claimed")
    pull = rig.forge("GET", f"repos/acme/shop/pulls/{number}")
    merged = {**pull, "merged": True, "state": "closed", "merged_at": pull["created_at"]}
    shop = {"full_name": "acme/shop"}
    body = {"action": "closed", "number": number, "repository": shop, "pull_request": merged}
    for _ in range(2):
        assert deliver(rig, json.dumps(body).encode(), secret, "a-claim").status_code == 202
    handled = "SELECT count(*) FROM inbox WHERE delivery = 'a-claim' AND handled_at IS NOT NULL"
    rig.until(lambda: rig.rows(handled)[0][0] == 1, "the hint is handled, as one row")
    assert rig.task("claimed").state == "in_review"
    rig.command("cancel", "claimed")
    rig.until_completed("claimed")
