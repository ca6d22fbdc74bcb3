"""githubkit, with its typed models, takes our answers for GitHub's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from githubkit import AppAuthStrategy, GitHub
from githubkit.exception import PrimaryRateLimitExceeded, RequestFailed, SecondaryRateLimitExceeded

from tests.rehearsal.conftest import Installed, Shop

SHOP = ("acme", "shop")


def kit(shop: Shop, auth: Any) -> GitHub[Any]:
    return GitHub(auth, base_url=shop.github.url, timeout=10, auto_retry=False, http_cache=False, trust_env=False)


async def test_a_pull_request_from_app_to_merge(installed: Installed) -> None:
    shop = installed.shop
    head = shop.push("topic", {"a.txt": "a"})
    app = kit(shop, AppAuthStrategy(installed.app.id, installed.app.private_key))
    found = (await app.rest.apps.async_get_repo_installation(*SHOP)).parsed_data
    assert (found.id, found.suspended_at) == (installed.installation, None)
    minted = await app.rest.apps.async_create_installation_access_token(
        found.id,
        data={"repositories": ["shop"], "permissions": {"contents": "write", "pull_requests": "write"}},
    )
    github = kit(shop, minted.parsed_data.token)

    made = (await github.rest.pulls.async_create(*SHOP, title="Work", head="topic", base="main")).parsed_data
    listed = await github.rest.pulls.async_list(*SHOP, head="acme:topic", state="all")
    assert len(listed.parsed_data) == 1
    assert made.head.sha == head
    merged = (await github.rest.pulls.async_merge(*SHOP, made.number, sha=head)).parsed_data
    assert merged.sha == shop.tip("main")
    assert (await github.rest.pulls.async_get(*SHOP, made.number)).parsed_data.merged is True


async def test_of_concurrent_creates_one_makes_it_and_the_others_find_it(shop: Shop) -> None:
    shop.push("topic", {"a.txt": "a"})
    github = kit(shop, shop.token)

    async def find_or_create() -> tuple[str, int]:
        try:
            made = await github.rest.pulls.async_create(*SHOP, title="Work", head="topic", base="main")
        except RequestFailed:
            listed: Any = (await github.rest.pulls.async_list(*SHOP, head="acme:topic")).json()
            return "found", listed[0]["number"]
        return "made", made.parsed_data.number

    outcomes = await asyncio.gather(*(find_or_create() for _ in range(3)))
    assert sorted(outcomes) == [("found", 1), ("found", 1), ("made", 1)]


async def test_a_stale_merge_is_a_409(shop: Shop) -> None:
    shop.open("topic")
    github = kit(shop, shop.token)
    with pytest.raises(RequestFailed) as failed:
        await github.rest.pulls.async_merge(*SHOP, 1, sha="0" * 40)
    assert failed.value.response.status_code == 409


async def test_a_later_api_version_keeps_the_merge_commit_to_itself(shop: Shop) -> None:
    shop.open("topic")
    github = kit(shop, shop.token)
    pull = (await github.rest.pulls.async_get(*SHOP, 1)).json()
    assert "merge_commit_sha" not in pull
    assert "assignee" not in pull
    older = {"X-GitHub-Api-Version": "2022-11-28"}
    assert "merge_commit_sha" in (await github.arequest("GET", "/repos/acme/shop/pulls/1", headers=older)).json()


async def test_limits_are_told_apart(shop: Shop) -> None:
    github = kit(shop, shop.token)
    shop.github.scene.fault("secondary-limit", retry_after=7)
    with pytest.raises(SecondaryRateLimitExceeded) as limited:
        await github.rest.repos.async_get(*SHOP)
    assert limited.value.retry_after.total_seconds() == 7
    shop.github.scene.fault("primary-limit")
    with pytest.raises(PrimaryRateLimitExceeded):
        await github.rest.repos.async_get(*SHOP)
    shop.github.scene.fault("secondary-limit")
    with pytest.raises(RequestFailed) as plain:
        await github.rest.repos.async_get(*SHOP)
    assert not isinstance(plain.value, SecondaryRateLimitExceeded)


async def test_the_rest_of_what_a_forge_needs(installed: Installed) -> None:
    shop = installed.shop
    head = shop.open("topic")["head"]["sha"]
    shop.github.scene.collaborator("acme/shop", "bob")
    github = kit(shop, installed.mint()["token"])
    await github.rest.issues.async_add_labels(*SHOP, 1, labels=["new"])
    await github.rest.issues.async_add_assignees(*SHOP, 1, assignees=["bob"])
    comment = (await github.rest.issues.async_create_comment(*SHOP, 1, body="One")).parsed_data
    await github.rest.issues.async_update_comment(*SHOP, comment.id, body="Two")
    await github.rest.pulls.async_create_review(*SHOP, 1, event="COMMENT", body="Hm")
    await github.rest.checks.async_create(*SHOP, data={"name": "tests", "head_sha": head, "conclusion": "success"})
    runs = (await github.rest.checks.async_list_for_ref(*SHOP, head)).parsed_data
    assert [(run.name, run.conclusion) for run in runs.check_runs] == [("tests", "success")]
    assert (await github.rest.repos.async_get_branch(*SHOP, "topic")).parsed_data.commit.sha == head
    assert (await github.rest.repos.async_get_combined_status_for_ref(*SHOP, head)).parsed_data.state == "pending"
    permission = await github.rest.repos.async_get_collaborator_permission_level(*SHOP, "bob")
    assert permission.parsed_data.permission == "write"
    reviews = await github.rest.pulls.async_list_reviews(*SHOP, 1)
    assert len(reviews.parsed_data) == 1
