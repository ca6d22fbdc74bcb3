"""What plans and tasks may be called."""

from __future__ import annotations

import pytest

from domain.errors import NotFound
from domain.identity import plan_id, task_id
from starter.exits import CommandFailed, Exit
from starter.names import plan_named, plan_or_task_named, task_named
from tests.starter.conftest import plan

FASTER = plan_id("ada", "faster")


def test_a_plan_is_named_by_slug_id_or_file(write):
    path = write("whatever.md", plan("faster"))
    assert {plan_named(name, "ada") for name in ("faster", FASTER, str(path))} == {FASTER}


def test_a_slug_that_looks_like_an_id_is_still_a_slug():
    assert plan_named("faster-12345678", "ada") == plan_id("ada", "faster-12345678")


def test_the_same_slug_of_another_owner_is_another_plan():
    assert plan_named("faster", "ada") != plan_named("faster", "bob")
    assert plan_named(FASTER, "bob") == plan_id("bob", FASTER)


def test_a_task_is_named_by_number_or_id(write):
    path = write("whatever.md", plan("faster"))
    names = ("faster#12", f"{FASTER}#12", task_id(FASTER, 12), f"{path}#12")
    assert {task_named(name, "ada") for name in names} == {(FASTER, 12)}


def test_a_slug_that_looks_like_a_task_id_names_a_plan():
    name = "faster-12345678-2"
    assert plan_or_task_named(name, "ada") == (plan_id("ada", name), None)


def test_a_whole_plan_is_no_task():
    with pytest.raises(CommandFailed) as failed:
        task_named("faster", "ada")
    assert failed.value.exit is Exit.USAGE


@pytest.mark.parametrize("name", ["", "#1", "faster#0", "faster#x", "Faster", "a b", "-", "x" * 60])
def test_what_names_nothing_is_refused(name):
    with pytest.raises(CommandFailed) as failed:
        plan_or_task_named(name, "ada")
    assert failed.value.exit is Exit.USAGE


def test_a_file_that_is_not_there_is_not_taken_for_a_slug(tmp_path):
    with pytest.raises(NotFound):
        plan_named(str(tmp_path / "faster.md"), "ada")


def test_a_file_with_faults_tells_them_all(write):
    path = write("whatever.md", plan("faster", slug="Nope", repository="shop"))
    with pytest.raises(CommandFailed) as failed:
        plan_named(str(path), "ada")
    assert failed.value.exit is Exit.FAULTS
    assert len(str(failed.value).splitlines()) == 2
