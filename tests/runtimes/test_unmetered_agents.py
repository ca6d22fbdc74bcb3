"""The real CLIs on logins of their own: each asks its model with that, and at no address of ours."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from domain.confinement import Confine, Confinement
from domain.run import Outcome
from runtimes import logins
from runtimes.confiner import Confiner
from runtimes.logins import Logins
from runtimes.port import Door
from tests.runtimes.celled import needs_sandbox
from tests.runtimes.test_agents import TOKEN, Agents, agents, provider, served
from tests.runtimes.test_logins import jwt, put, with_key

__all__ = ["agents", "provider", "served"]

pytestmark = [pytest.mark.agents, pytest.mark.slow, pytest.mark.timeout(300)]

KEY = "sk-ant-api03-a-key-of-ones-own-0123456789"
ACCESS = "sk-ant-oat01-what-a-subscription-asks-with-0123456789"
NOBODY = "http://127.0.0.1:9/models"


def on_its_own(agents: Agents, **changes: Any) -> Any:
    """A job whose door leads nowhere, with a login for the stand-in."""
    login = Logins(agents.home / "logins", agents.provider.url).of(agents.cli)
    return agents.job(login=login, door=Door(NOBODY, "", TOKEN), **changes)


def seen(agents: Agents) -> set[str]:
    return {request["token"] for request in agents.provider.asked() if request["main"]}


def holding(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def mark(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def test_it_does_its_work_with_a_key_of_its_own(agents):
    with_key(agents.cli, agents.home / "logins" / agents.cli, KEY)
    verdict = agents.perform(on_its_own(agents))
    assert (verdict.outcome, verdict.exit_code, verdict.reason) == (Outcome.DONE, 0, "")
    assert (agents.work / "hi.txt").read_text() == "hi\n"
    assert seen(agents) == {mark(KEY)}
    # A CLI keeps its key nowhere else.
    logins.forget(agents.home / "memory")
    assert all(each.is_relative_to(agents.home / "logins") for each in holding(agents.home))


@needs_sandbox
def test_it_does_its_work_in_a_cell_with_the_hosts_network(agents):
    with_key(agents.cli, agents.home / "logins" / agents.cli, KEY)
    confiner = Confiner(Confine.AUTO, hidden=(agents.home,))
    job = on_its_own(agents, script=f"cat {agents.home}/logins/{agents.cli}/* > stolen.txt; echo hi > hi.txt")
    launch = agents.runtime.launch(confiner.job(job, Confinement.NETWORKED))
    agents.folder = agents.bench.folder(job.folder.name)
    agents.folder.spawn(confiner.confine(launch, job, Confinement.NETWORKED), datetime.now(UTC) + timedelta(minutes=9))
    verdict, _ = agents.end()
    assert (verdict.outcome, verdict.reason) == (Outcome.DONE, "")
    assert (agents.work / "hi.txt").read_text() == "hi\n"
    assert (agents.work / "stolen.txt").read_text() == ""
    assert seen(agents) == {mark(KEY)}


@pytest.mark.parametrize("agents", ["claude"], indirect=True)
@pytest.mark.parametrize("kind", ["login", "setup-token"])
def test_claude_does_its_work_on_a_subscription_that_it_cannot_renew(agents, kind):
    folder = agents.home / "logins" / "claude"
    if kind == "login":
        told = {"accessToken": ACCESS, "refreshToken": "sk-ant-ort01-x", "expiresAt": (time.time() + 3600) * 1000}
        put(folder, ".credentials.json", {"claudeAiOauth": {**told, "scopes": ["user:inference", "user:profile"]}})
    else:
        put(folder, "setup-token", f"{ACCESS}\n")
    before = {path: path.read_text() for path in folder.rglob("*")}
    assert agents.perform(on_its_own(agents)).outcome is Outcome.DONE
    assert (agents.work / "hi.txt").read_text() == "hi\n"
    assert seen(agents) == {mark(ACCESS)}
    assert {path: path.read_text() for path in folder.rglob("*")} == before


@pytest.mark.parametrize("agents", ["codex"], indirect=True)
def test_codex_does_its_work_on_a_subscription_that_it_cannot_renew(agents):
    folder, access = agents.home / "logins" / "codex", jwt(exp=int(time.time()) + 3600)
    account = {"https://api.openai.com/auth": {"chatgpt_account_id": "an-account", "chatgpt_plan_type": "pro"}}
    tokens = {"id_token": jwt(email="ada@example.org", **account), "access_token": access, "refresh_token": "renews"}
    auth = {
        "auth_mode": "chatgpt",
        "tokens": {**tokens, "account_id": "an-account"},
        "last_refresh": "2020-01-01T00:00:00Z",
    }
    put(folder, "auth.json", {"OPENAI_API_KEY": None, **auth})
    assert agents.perform(on_its_own(agents)).outcome is Outcome.DONE
    assert (agents.work / "hi.txt").read_text() == "hi\n"
    assert seen(agents) == {mark(access)}


def test_a_session_is_gone_on_with_although_the_login_was_taken_away_between(agents):
    with_key(agents.cli, agents.home / "logins" / agents.cli, KEY)
    first = agents.perform(on_its_own(agents))
    logins.forget(agents.home / "memory")
    again = agents.perform(replace(on_its_own(agents), session=first.session, note="A person says: use tabs."))
    assert (again.outcome, again.session) == (Outcome.DONE, first.session)
    assert "A person says: use tabs." in json.dumps(agents.provider.asked()[-1]["messages"])
