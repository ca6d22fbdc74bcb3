"""Who may do what: Apps, installations, people, and nobody."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rehearsal.server import Rehearsal
from tests.rehearsal.conftest import NAME, Installed, Shop

REPOSITORY = f"repos/{NAME}"


def test_an_app_reads_itself_and_finds_its_installation(installed: Installed) -> None:
    itself = installed.itself
    assert itself.read("app")["slug"] == "watchbill"
    found = itself.read(f"{REPOSITORY}/installation")
    assert (found["id"], found["account"]["login"]) == (installed.installation, "acme")
    assert found["suspended_at"] is None


def test_an_app_may_be_named_by_its_client_id(installed: Installed) -> None:
    client = installed.shop.client(installed.jwt(iss=installed.app.client_id))
    assert client.read("app")["id"] == installed.app.id


def test_a_repository_without_the_app_has_no_installation(installed: Installed) -> None:
    installed.shop.github.scene.repository("acme/other")
    assert installed.itself("GET", "repos/acme/other/installation").status_code == 404
    assert installed.itself("GET", "repos/acme/nowhere/installation").status_code == 404


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"exp": int(time.time()) + 3600}, "'Expiration time' claim ('exp') is too far in the future"),
        ({"exp": 1}, "'Expiration time' claim ('exp') must be a numeric value"),
        ({"iat": int(time.time()) + 3600}, "'Issued at' claim ('iat') must be an Integer"),
    ],
)
def test_a_jwt_with_the_wrong_times_is_refused(installed: Installed, claims: dict[str, Any], words: str) -> None:
    answer = installed.shop.client(installed.jwt(**claims))("GET", "app")
    assert answer.status_code == 401
    assert answer.json()["message"].startswith(words)


def test_a_jwt_of_another_key_is_refused(installed: Installed) -> None:
    stale = installed.jwt()
    installed.shop.github.scene.app("watchbill")
    answer = installed.shop.client(stale)("GET", "app")
    assert (answer.status_code, answer.json()["message"]) == (401, "A JSON web token could not be decoded")


def test_an_unknown_app_is_not_found(installed: Installed) -> None:
    answer = installed.shop.client(installed.jwt(iss="999"))("GET", "app")
    assert (answer.status_code, answer.json()["message"]) == (404, "Integration not found")


def test_an_installation_token_lasts_an_hour_and_reaches_what_it_names(installed: Installed) -> None:
    scene = installed.shop.github.scene
    scene.repository("acme/other", private=True)
    scene.install("watchbill", NAME, "acme/other")
    minted = installed.mint(repositories=["shop"], permissions={"contents": "read"})
    assert minted["token"].startswith("ghs_")
    left = time.mktime(time.strptime(minted["expires_at"], "%Y-%m-%dT%H:%M:%SZ")) - time.mktime(time.gmtime())
    assert 3500 < left <= 3600
    assert [repository["full_name"] for repository in minted["repositories"]] == [NAME]
    narrow = installed.shop.client(minted["token"])
    assert narrow("GET", "repos/acme/other").status_code == 404
    assert installed.client()("GET", "repos/acme/other").status_code == 200
    assert [found["full_name"] for found in narrow.read("installation/repositories")["repositories"]] == [NAME]


def test_an_installation_token_lacks_what_was_not_granted(installed: Installed) -> None:
    reader = installed.client(permissions={"pull_requests": "read"})
    refused = reader("POST", f"{REPOSITORY}/pulls", title="x", head="x", base="main")
    assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")
    assert reader("GET", f"{REPOSITORY}/pulls").status_code == 200


@pytest.mark.parametrize("narrowed", [{"repositories": ["nowhere"]}, {"permissions": {"administration": "write"}}])
def test_a_token_for_more_than_the_installation_has_is_refused(installed: Installed, narrowed: dict[str, Any]) -> None:
    path = f"app/installations/{installed.installation}/access_tokens"
    assert installed.itself("POST", path, **narrowed).status_code == 422


def test_an_expired_token_is_bad_credentials(installed: Installed) -> None:
    client = installed.client()
    installed.shop.github.scene.expire_tokens()
    answer = client("GET", REPOSITORY)
    assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")


def test_a_suspended_installation_is_refused_until_that_is_lifted(installed: Installed) -> None:
    client, scene = installed.client(), installed.shop.github.scene
    scene.suspend(installed.installation)
    assert client("GET", REPOSITORY).status_code == 403
    assert installed.itself.read(f"{REPOSITORY}/installation")["suspended_at"]
    scene.suspend(installed.installation, suspended=False)
    assert client("GET", REPOSITORY).status_code == 200


def test_an_uninstalled_app_has_lost_its_tokens(installed: Installed) -> None:
    client = installed.client()
    installed.shop.github.scene.uninstall(installed.installation)
    assert client("GET", REPOSITORY).status_code == 401
    assert installed.itself("GET", f"{REPOSITORY}/installation").status_code == 404


def test_a_private_repository_does_not_exist_for_strangers(rehearsal: Rehearsal, shop: Shop) -> None:
    rehearsal.scene.repository("acme/secret", private=True)
    stranger = shop.person("mallory")
    assert stranger("GET", "repos/acme/secret").json()["message"] == "Not Found"
    assert shop.client("")("GET", "repos/acme/secret").status_code == 404
    assert shop.owner("GET", "repos/acme/secret").status_code == 200


def test_a_made_up_token_is_bad_credentials(shop: Shop) -> None:
    assert shop.client("ghp_" + "0" * 36)("GET", REPOSITORY).status_code == 401


def test_a_stranger_may_talk_but_not_act(shop: Shop) -> None:
    shop.open("topic")
    stranger = shop.person("mallory")
    assert stranger("POST", f"{REPOSITORY}/issues/1/comments", body="hello").status_code == 201
    assert stranger("PUT", f"{REPOSITORY}/pulls/1/merge").status_code == 403
    assert stranger("PATCH", f"{REPOSITORY}/pulls/1", state="closed").status_code == 403
    assert stranger("POST", f"{REPOSITORY}/issues/1/labels", labels=["mine"]).status_code == 403
    assert shop.client("")("POST", f"{REPOSITORY}/issues/1/comments", body="hi").status_code == 401
    permission = shop.owner.read(f"{REPOSITORY}/collaborators/mallory/permission")["permission"]
    assert permission == "read"


def test_a_pull_request_of_the_app_is_by_its_bot(installed: Installed) -> None:
    installed.shop.push("topic", {"a.txt": "a"})
    pull = installed.client()("POST", f"{REPOSITORY}/pulls", title="x", head="topic", base="main").json()
    assert (pull["user"]["login"], pull["user"]["type"]) == ("watchbill[bot]", "Bot")


def test_only_an_app_writes_check_runs(shop: Shop) -> None:
    refused = shop.owner("POST", f"{REPOSITORY}/check-runs", name="x", head_sha=shop.tip("main"))
    assert (refused.status_code, refused.json()["message"]) == (
        403,
        "You must authenticate via a GitHub App.",
    )


def test_a_token_is_kept_nowhere_in_the_folder(shop: Shop, installed: Installed) -> None:
    token = installed.mint()["token"]
    installed.shop.client(token).read(REPOSITORY)
    kept = b"".join(path.read_bytes() for path in shop.github.folder.rglob("*") if path.is_file())
    assert token.encode() not in kept
    assert shop.token.encode() not in kept
    assert installed.app.private_key.encode() not in kept
