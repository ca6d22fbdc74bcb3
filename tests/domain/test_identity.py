"""Names that stay the same through any number of restarts, and that nothing else can claim."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.identity import (
    OWNER,
    SLUG,
    branch_of,
    digest,
    heartbeat_workflow_id,
    host_queue,
    plan_id,
    plan_of_task,
    plan_workflow_id,
    run_id,
    slugify,
    split_task,
    task_id,
    task_of_branch,
    task_workflow_id,
)

NAMES = st.from_regex(SLUG, fullmatch=True)
ORDINALS = st.integers(1, 9999)


def test_a_plans_id_is_known_for_good() -> None:
    expected = hashlib.sha256(b"ada/faster-cold-start").hexdigest()[:8]
    assert plan_id("ada", "faster-cold-start") == f"faster-cold-start-{expected}"


@given(NAMES, NAMES, NAMES, NAMES)
def test_two_plans_share_an_id_only_when_owner_and_slug_agree(one: str, slug: str, other: str, name: str) -> None:
    assert (plan_id(one, slug) == plan_id(other, name)) == ((one, slug) == (other, name))


@given(NAMES, NAMES, ORDINALS)
def test_a_tasks_id_tells_its_plan_and_ordinal(owner: str, slug: str, ordinal: int) -> None:
    plan = plan_id(owner, slug)
    task = task_id(plan, ordinal)
    assert split_task(task) == (plan, ordinal)
    assert plan_of_task(task) == plan


@given(NAMES, NAMES, ORDINALS)
def test_a_branch_tells_its_task_and_only_its_own(owner: str, slug: str, ordinal: int) -> None:
    task = task_id(plan_id(owner, slug), ordinal)
    assert task_of_branch(branch_of(task)) == task
    branch = branch_of(task)
    for near in (task, f"{branch}-fix", f"{branch}/x", f"x/{branch}", f"refs/heads/{branch}", f"{branch}\n"):
        assert task_of_branch(near) is None


@pytest.mark.parametrize(
    "branch",
    [
        "main",
        "watchbill/",
        "watchbill/shop-1234abcd",
        "watchbill/shop-1234abcd-0",
        "watchbill/shop-1234abcd-01",
        "watchbill/shop-1234abcd-12345",
        "watchbill/shop-1234ABCD-1",
        "watchbill/shop-1234abcd-1\n",
        "watchbill/shop-1234abcd-1-author-1",
        "watchbill/shop-1234abcd-\u0661",
        "watchbill/1234abcd-1",
        "Watchbill/shop-1234abcd-1",
    ],
)
def test_a_look_alike_branch_belongs_to_no_task(branch: str) -> None:
    assert task_of_branch(branch) is None


@pytest.mark.parametrize("task", ["", "shop", "shop-1234abcd", "shop-1234abcd-0", "shop-1234abcd-1-author-1"])
def test_what_is_no_task_id_is_not_split(task: str) -> None:
    with pytest.raises(ValueError, match="is not a task id"):
        split_task(task)


@given(NAMES, NAMES, ORDINALS, st.sampled_from(["author", "check"]), st.integers(1, 99))
def test_names_of_different_kinds_never_meet(owner: str, slug: str, ordinal: int, role: str, number: int) -> None:
    plan = plan_id(owner, slug)
    task = task_id(plan, ordinal)
    names = [
        plan_workflow_id(plan), task_workflow_id(task), heartbeat_workflow_id(owner),
        plan, task, run_id(task, role, number), branch_of(task), host_queue(owner),
    ]  # fmt: skip
    assert len(set(names)) == len(names)


@given(st.text())
def test_a_slug_made_from_any_name_is_a_slug_or_nothing(name: str) -> None:
    slug = slugify(name)
    assert slug == "" or SLUG.fullmatch(slug)
    assert slugify(slug) == slug


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Faster Cold Start", "faster-cold-start"),
        ("Café crème", "cafe-creme"),
        ("--a__b--", "a-b"),
        ("日本", ""),
        ("a" * 39 + " b", "a" * 39),
        ("v2.0", "v2-0"),
    ],
)
def test_a_slug_is_the_name_in_few_characters(name: str, slug: str) -> None:
    assert slugify(name) == slug


@pytest.mark.parametrize("name", ["", "-", "a-", "-a", "A", "a_b", "a" * 41, "a\n", "ä"])
def test_slugs_and_owners_are_made_of_few_characters(name: str) -> None:
    assert SLUG.fullmatch(name) is None
    assert OWNER.fullmatch(name) is None


def test_text_and_its_utf8_have_one_digest() -> None:
    assert digest("größe") == digest("größe".encode()) == hashlib.sha256("größe".encode()).hexdigest()
