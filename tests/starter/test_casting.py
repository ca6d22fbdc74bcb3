"""A plan that is rehearsed with another runtime is the same plan, but for who works on it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.document import parse
from domain.metering import Meter
from starter.casting import MODEL, cast, metered

DOCUMENT = """\
---
title: Faster
slug: faster
repository: acme/shop
runtime: claude
model: claude-sonnet-4-6
checks: ["make test"]
---
Why we do this: the runtime: it is slow.

## Tasks
- [ ] One
  ```sh
  true
  ```
- [ ] Two  {after=1 runtime=shell}
  ```sh
  printf '%s\\n' '---' 'model: none' > two
  ```
"""


@pytest.mark.parametrize("runtime", ["claude", "codex", "opencode"])
def test_every_box_that_names_no_other_is_for_the_agent_and_the_stand_ins_model(runtime: str) -> None:
    spec = parse(cast(DOCUMENT, runtime))
    assert [(task.runtime, task.model) for task in spec.tasks] == [(runtime, MODEL), ("shell", "")]


def test_a_plan_cast_for_the_shell_has_no_model() -> None:
    assert [(task.runtime, task.model) for task in parse(cast(DOCUMENT, "shell")).tasks] == [("shell", "")] * 2


def test_all_else_of_the_plan_stays_as_it_was() -> None:
    before, after = parse(DOCUMENT), parse(cast(DOCUMENT, "codex"))
    assert [replace(task, runtime="", model="") for task in after.tasks] == [
        replace(task, runtime="", model="") for task in before.tasks
    ]
    assert (after.title, after.checks, after.repository) == (before.title, before.checks, before.repository)
    assert cast(DOCUMENT, "codex").partition("---\nWhy")[2] == DOCUMENT.partition("---\nWhy")[2]


@pytest.mark.parametrize(
    "front",
    ["---\nslug: faster\nrepository: acme/shop\n--- \n", "---\nruntime : shell\nslug: s\nrepository: a/b\n---\n"],
)
def test_a_front_matter_without_or_with_odd_words_of_its_own_is_cast_as_well(front: str) -> None:
    text = f"{front}\n## Tasks\n- [ ] One\n  ```sh\n  true\n  ```\n"
    assert [task.runtime for task in parse(cast(text, "codex")).tasks] == ["codex"]


def test_a_plan_is_rehearsed_with_agents_that_are_metered() -> None:
    text = DOCUMENT.replace("runtime: claude\n", "runtime: claude\nnetwork: open\nmetering: off\n", 1)
    assert (parse(text).metering, parse(metered(text)).metering) == (Meter.OFF, Meter.ON)
    assert metered(text) == DOCUMENT.replace("runtime: claude\n", "runtime: claude\nnetwork: open\n", 1)
    # Without an agent the word would be refused.
    assert parse(cast(metered(text), "shell")).expected_metering == ""
    assert metered(DOCUMENT) == DOCUMENT
