"""What a plan says of its agents, what several runs were, and how it is said."""

from __future__ import annotations

import re

import pytest

from domain.document import inspect, parse
from domain.metering import Meter, Metering, has_unmetered, known, of_runs, sentence

M, U = Metering.METERED, Metering.UNMETERED
SAID = "of their own, and what that costs is not known."


def plan(front: str, boxes: str = "- [ ] one") -> str:
    return f"---\nrepository: acme/shop\nslug: shop\n{front}\n---\n# Tasks\n{boxes}\n"


def faults(front: str, boxes: str = "- [ ] one") -> list[tuple[int, str]]:
    return [(fault.line, fault.message) for fault in inspect(plan(front, boxes))[1]]


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ([], ""),
        ([M, M], "metered"),
        ([U], "unmetered"),
        ([U, M], "partly unmetered"),
        # Runs from before there was anything but metered ones say nothing.
        ([""], "metered"),
        (["", U], "partly unmetered"),
        (["partly unmetered", U], "partly unmetered"),
    ],
)
def test_a_plan_is_metered_only_if_all_its_agents_were(seen, told):
    assert of_runs(seen) == told
    assert has_unmetered(told) is ("unmetered" in told)


def test_people_are_told_of_what_is_not_metered_and_of_nothing_else():
    assert sentence("") == sentence("metered") == ""
    assert sentence("unmetered") == f"Agents are unmetered: they call their models on logins {SAID}"
    assert sentence("partly unmetered") == f"Agents are partly unmetered: some call their models on logins {SAID}"


def test_nothing_is_said_to_be_spent_only_where_that_is_known():
    assert (known(0, unmetered=False), known(7, unmetered=False), known(7, unmetered=True)) == (0, 7, 7)
    assert known(0, unmetered=True) is None


def test_a_plan_is_metered_unless_it_says_that_it_is_not():
    assert parse(plan("runtime: claude")).metering is Meter.ON
    assert parse(plan("runtime: claude")).expected_metering == M
    unmetered = parse(plan("runtime: claude\nnetwork: open\nmetering: off"))
    assert (unmetered.metering, unmetered.expected_metering) == (Meter.OFF, U)


def test_a_plan_without_agents_is_neither():
    assert parse(plan("", "- [x] one")).expected_metering == ""


OFF = "runtime: claude\nmetering: off"


@pytest.mark.parametrize(
    ("front", "line", "said"),
    [
        ("runtime: claude\nmetering: on", 5, "metering: 'on' is not off; without this line agents are metered"),
        (OFF, 5, "metering: off needs `network: open`: an agent that goes around the relay needs the host's network"),
        (f"{OFF}\nnetwork: none", 5, "metering: off needs `network: open`"),
        (f"{OFF}\nnetwork: open\nbudget: 5 USD", 7, "budget: with `metering: off` nobody counts what agents cost"),
        (f"{OFF}\nconfine: required", 6, "confine: required: the only address of a confined agent is the relay"),
    ],
)
def test_what_cannot_be_said_together_is_refused_at_its_line(front, line, said):
    (found,) = faults(front)
    assert (found[0], found[1][: len(said)]) == (line, said)


def test_a_tasks_budget_holds_nothing_either():
    (found,) = faults(f"{OFF}\nnetwork: open", '- [ ] one\n- [ ] two {budget="2 USD"}')
    assert (found[0], found[1][:21]) == (10, "budget: with `meterin")


def test_a_plan_of_scripts_alone_has_nothing_that_could_be_unmetered():
    (found,) = faults("metering: off\nnetwork: open", "- [ ] one\n  ```sh\n  true\n  ```")
    assert found[0] == 4
    assert re.match(r"metering: no task is done by an agent \(claude, codex, opencode\)", found[1])


def test_one_agent_among_scripts_is_enough():
    boxes = "- [ ] one\n  ```sh\n  true\n  ```\n- [ ] two {runtime=codex}"
    assert parse(plan("metering: off\nnetwork: open", boxes)).expected_metering == U
