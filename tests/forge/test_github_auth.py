"""As whom we speak: least rights, one token for many, and nothing shown."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from domain.errors import NotFound, Unauthorized, WatchbillError
from forge import github_auth
from forge.github import GitHub
from forge.github_api import GitHubApi
from forge.github_auth import App, PersonalToken
from tests.forge.github_scene import PERSON, REPOSITORY, Canned, GitHubScene, canned_server


async def test_ten_first_calls_at_once_mint_one_token(github: GitHubScene) -> None:
    tokens = await asyncio.gather(*(github.app.token(REPOSITORY) for _ in range(10)))
    assert len(set(tokens)) == 1
    await github.asked(1, "POST", "/access_tokens")


async def test_a_token_reaches_one_repository_and_does_no_more_than_is_needed(github: GitHubScene) -> None:
    github.standin.scene.repository("acme/other", files={"a": "1"}, private=True)
    github.standin.scene.install("watchbill-test", REPOSITORY, "acme/other")
    token = await github.app.token(REPOSITORY)
    reached = await github.api.ask(f"Bearer {token}", "GET", "/installation/repositories")
    assert [repository["full_name"] for repository in reached["repositories"]] == [REPOSITORY]
    head = await github.forge.branch_head(REPOSITORY, "main")
    with pytest.raises(Unauthorized):
        await github.api.ask(
            f"Bearer {token}", "POST", f"/repos/{REPOSITORY}/check-runs", json={"name": "x", "head_sha": head}
        )


async def test_each_repository_has_its_own_token(github: GitHubScene) -> None:
    github.standin.scene.repository("acme/other", files={"a": "1"})
    github.standin.scene.install("watchbill-test", REPOSITORY, "acme/other")
    assert await github.app.token(REPOSITORY) != await github.app.token("acme/other")


async def test_a_token_that_is_about_to_expire_is_not_handed_out(
    github: GitHubScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await github.app.token(REPOSITORY)
    assert await github.app.token(REPOSITORY) == first
    monkeypatch.setattr(github_auth, "SPARE_SECONDS", 3601)
    assert await github.app.token(REPOSITORY) != first


async def test_a_token_that_was_refused_is_replaced_at_once(github: GitHubScene) -> None:
    await github.forge.repository(REPOSITORY)
    github.standin.scene.expire_tokens()
    assert (await github.forge.repository(REPOSITORY)).name == REPOSITORY


async def test_a_failure_to_mint_is_not_kept(github: GitHubScene) -> None:
    github.standin.scene.fault("error-before", "POST", "*/access_tokens")
    with pytest.raises(WatchbillError):
        await github.app.token(REPOSITORY)
    assert await github.app.token(REPOSITORY)


async def test_the_installation_is_known_or_it_is_said_what_to_do(github: GitHubScene) -> None:
    assert await github.forge.installation(REPOSITORY) == github.installation
    github.standin.scene.repository("acme/other", files={"a": "1"})
    with pytest.raises(NotFound, match="the App is not installed on acme/other; add that repository"):
        await github.forge.installation("acme/other")
    github.standin.scene.suspend(github.installation)
    with pytest.raises(Unauthorized, match="suspended"):
        await github.forge.installation(REPOSITORY)


async def test_an_app_that_was_granted_too_little_is_told_what_it_needs(
    github: GitHubScene, key_pair: tuple[bytes, str]
) -> None:
    github.standin.scene.app("watchbill-test", public_key=key_pair[1], permissions={"contents": "read"})
    with pytest.raises(Unauthorized, match="needs contents: write, pull_requests: write, metadata: read"):
        await github.app.token(REPOSITORY)


async def test_a_key_that_is_missing_or_no_key_is_named(github: GitHubScene, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    with pytest.raises(Unauthorized, match="private key cannot be read"):
        await App(github.api, github.app_id, nothing).token(REPOSITORY)
    nothing.write_text("not a key")
    with pytest.raises(Unauthorized, match=r"nothing\.pem holds no RSA private key"):
        await App(github.api, github.app_id, nothing).token(REPOSITORY)


async def test_a_stranger_is_refused(github: GitHubScene) -> None:
    forge = GitHub(github.api, PersonalToken(github.api, "ghp_" + "x" * 36))
    with pytest.raises(Unauthorized, match="Bad credentials"):
        await forge.repository(REPOSITORY)


async def test_a_persons_token_works_as_well(github: GitHubScene) -> None:
    forge = github.forge_of(PERSON)
    assert await forge.installation(REPOSITORY) == 0
    assert (await forge.repository(REPOSITORY)).name == REPOSITORY


async def test_a_persons_token_is_good_for_no_repository_that_it_does_not_reach(github: GitHubScene) -> None:
    forge = github.forge_of(PERSON)
    with pytest.raises(NotFound, match="acme/gone is not there, or our credentials do not reach it"):
        await forge.installation("acme/gone")


async def test_a_persons_token_is_good_for_no_repository_that_was_archived(canned: Canned) -> None:
    canned.content = json.dumps({"archived": True}).encode()
    api = GitHubApi(canned.url)
    with pytest.raises(Unauthorized, match="acme/shop is archived"):
        await GitHub(api, PersonalToken(api, "ghp_" + "x" * 36)).installation("acme/shop")
    await api.close()


async def test_credentials_are_not_shown(github: GitHubScene) -> None:
    token = await github.app.token(REPOSITORY)
    auth = await github.forge.push_auth(REPOSITORY)
    for shown in (repr(auth), str(auth), f"{auth}", repr(vars(github.app)), repr(github.app)):
        assert token not in shown
        assert auth.header not in shown


async def test_a_token_does_not_follow_a_redirect_to_another_host(canned: Canned) -> None:
    with canned_server() as other:
        # Another port is another origin.
        canned.status, canned.headers = 302, {"location": f"{other.url}user"}
        api = GitHubApi(canned.url)
        await api.ask("Bearer ghp_secret", "GET", "/user")
        await api.close()
        assert canned.asked[0][2]["authorization"] == "Bearer ghp_secret"
        assert [path for _, path, _ in other.asked] == ["/user"]
        assert "authorization" not in other.asked[0][2]


def test_nothing_heavy_is_imported_before_the_first_request() -> None:
    program = "import sys, forge.github, forge.github_auth, forge.mirror, forge.text; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"githubkit", "httpx", "jwt", "cryptography", "pydantic"} & set(done.stdout.split())
