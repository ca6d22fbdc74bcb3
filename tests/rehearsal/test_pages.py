"""The face for a person: what it shows, what its buttons do, and whom it does not believe."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.rehearsal.conftest import NAME, Installed, Shop


@pytest.fixture
def browser(shop: Shop) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=shop.github.url, trust_env=False) as client:
        yield client


def press(browser: httpx.Client, shop: Shop, action: str, **headers: str) -> httpx.Response:
    return browser.post(
        f"{NAME}/pull/1", data={"action": action}, headers={"Origin": shop.github.url.rstrip("/"), **headers}
    )


def test_repositories_lead_to_pull_requests(shop: Shop, browser: httpx.Client) -> None:
    shop.open("topic")
    assert f'href="/{NAME}/pulls"' in browser.get("").text
    assert f'href="/{NAME}/pull/1"' in browser.get(f"{NAME}/pulls").text
    assert browser.get("acme/nowhere/pulls").status_code == 404
    assert browser.get(f"{NAME}/pull/9").status_code == 404


def test_a_pull_request_shows_text_diff_checks_and_talk(
    shop: Shop, installed: Installed, browser: httpx.Client
) -> None:
    shop.push("topic", {"price.py": "PRICE = 2\n"})
    head = shop.open("topic", body="**Why**")["head"]["sha"]
    installed.client()("POST", f"repos/{NAME}/check-runs", name="tests", head_sha=head, conclusion="success")
    shop.owner("POST", f"repos/{NAME}/issues/1/comments", body="A word")
    page = browser.get(f"{NAME}/pull/1").text
    for part in (
        "From topic",
        "<strong>Why</strong>",
        "+PRICE = 2",
        "tests</td><td>success",
        "A word",
        ">Merge<",
        ">Close<",
    ):
        assert part in page


def test_what_people_write_stays_text(shop: Shop, browser: httpx.Client) -> None:
    evil = "<script>alert(1)</script> [x](javascript:alert(1))"
    shop.push("topic", {"evil.txt": "<img src=x>"})
    shop.owner("POST", f"repos/{NAME}/pulls", title=evil, body=evil, head="topic", base="main")
    answer = browser.get(f"{NAME}/pull/1")
    assert "<script>" not in answer.text
    assert "<img" not in answer.text
    assert 'href="javascript' not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_buttons_close_reopen_and_merge(shop: Shop, browser: httpx.Client) -> None:
    shop.open("topic")
    assert press(browser, shop, "close").headers["location"] == f"/{NAME}/pull/1"
    assert shop.pull(1)["state"] == "closed"
    press(browser, shop, "reopen")
    assert shop.pull(1)["state"] == "open"
    press(browser, shop, "merge")
    assert (shop.pull(1)["merged"], shop.pull(1)["merged_by"]["login"]) == (True, "acme")
    assert "Merged as" in browser.get(f"{NAME}/pull/1").text


def test_a_refused_button_says_why(shop: Shop, browser: httpx.Client) -> None:
    shop.push("topic", {"price.py": "PRICE = 2\n"})
    shop.open("topic")
    shop.push("main", {"price.py": "PRICE = 3\n"})
    assert "conflicts with its base" in browser.get(f"{NAME}/pull/1").text
    answer = press(browser, shop, "merge")
    assert answer.status_code == 405
    assert "Pull Request is not mergeable" in answer.text


def test_another_name_for_this_machine_sees_nothing(shop: Shop, browser: httpx.Client) -> None:
    shop.open("topic")
    assert browser.get("", headers={"Host": "evil.example"}).status_code == 421
    elsewhere = {"Host": "evil.example", "Origin": "http://evil.example"}
    assert press(browser, shop, "close", **elsewhere).status_code == 421
    assert shop.pull(1)["state"] == "open"


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}])
def test_a_form_from_elsewhere_changes_nothing(shop: Shop, browser: httpx.Client, headers: dict[str, str]) -> None:
    shop.open("topic")
    assert press(browser, shop, "close", **headers).status_code == 403
    assert shop.pull(1)["state"] == "open"
