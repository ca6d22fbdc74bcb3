"""What is wished for, what several runs were, and how it is said."""

from __future__ import annotations

import pytest

from domain.confinement import Confine, Confinement, Network, of_runs, sentence, tightened
from domain.document import parse
from domain.errors import InvalidPlan

C, U, N = Confinement.CONFINED, Confinement.UNCONFINED, Confinement.NETWORKED


def plan(front: str) -> str:
    return f"---\nrepository: acme/shop\nslug: shop\n{front}\n---\n# Tasks\n- [x] one\n"


@pytest.mark.parametrize("worker", Confine)
def test_a_plan_asks_for_more_and_never_for_less(worker):
    assert tightened(worker, Confine.REQUIRED) is Confine.REQUIRED
    assert tightened(worker, Confine.AUTO) is worker


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ([], ""),
        (["", ""], ""),
        ([C, "", C], "confined"),
        ([U], "unconfined"),
        ([C, U], "partly confined"),
        ([N], "partly confined"),
        ([C, N], "partly confined"),
        ([N, U], "partly confined"),
    ],
)
def test_a_plan_is_confined_only_if_all_its_runs_were(seen, told):
    assert of_runs(seen) == told
    assert sentence(told) == (f"Runs are {told}." if told else "No run has begun.")


def test_a_document_says_what_it_requires_and_what_its_checks_reach():
    assert (parse(plan("")).confine, parse(plan("")).network) == (Confine.AUTO, Network.NONE)
    assert parse(plan("confine: required")).confine is Confine.REQUIRED
    assert parse(plan("network: open")).network is Network.OPEN


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("confine: off", "the worker's to say"),
        ("confine: auto", "the worker's to say"),
        ("network: all", "is not one of none, open"),
        ("confine: required\nnetwork: open", "network: open is no confinement"),
    ],
)
def test_a_document_that_would_loosen_it_is_refused(front, said):
    with pytest.raises(InvalidPlan, match=said):
        parse(plan(front))
