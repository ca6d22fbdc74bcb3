"""What an agent may not do, as plans and owners say it."""

from __future__ import annotations

import pytest

from domain.document import parse
from domain.errors import InvalidPlan
from domain.globs import matches_text, text_pattern
from domain.rules import NOTHING_REFUSED, Policy, both, policy_of

PLAN = """---
repository: acme/shop
slug: shop
{front}
---
- [x] one
"""


def test_a_plan_says_what_is_refused() -> None:
    front = 'refuse_tools: [WebFetch]\nrefuse_commands: ["git push*", "rm -rf *"]\nrefuse_paths: .github/**'
    policy = Policy(("WebFetch",), ("git push*", "rm -rf *"), (".github/**",))
    assert parse(PLAN.format(front=front)).policy == policy
    assert parse(PLAN.format(front="attempts: 2")).policy == NOTHING_REFUSED


@pytest.mark.parametrize(
    ("front", "fault"),
    [
        ("refuse_tools: []", "refuse_tools: there is no value"),
        ("refuse_tools: ['[a']", "refuse_tools: '[a' has a [ without its end"),
        ("refuse_commands: ['git [b-a]']", "refuse_commands: 'git [b-a]' has a range that runs backwards"),
        ("refuse_paths: /etc", "refuse_paths: '/etc' is not a path below"),
        ("refuse_path: a", "unknown key `refuse_path`; did you mean `refuse_paths`?"),
    ],
)
def test_a_refusal_that_could_never_be_meant_is_a_fault(front: str, fault: str) -> None:
    with pytest.raises(InvalidPlan) as refusal:
        parse(PLAN.format(front=front))
    assert [(found.line, fault in found.message) for found in refusal.value.faults] == [(4, True)]


def test_of_two_policies_everything_is_refused_that_one_of_them_refuses() -> None:
    one, other = Policy(("A",), ("a", "b"), ("x",)), Policy(("B",), ("b", "c"))
    assert both(one, other) == Policy(("A", "B"), ("a", "b", "c"), ("x",))
    assert both(one, NOTHING_REFUSED) == one == both(NOTHING_REFUSED, one)


def test_an_owners_policy_has_the_same_keys() -> None:
    table = {"refuse_tools": ["WebFetch"], "refuse_paths": [".github/**", ".github/**"]}
    assert policy_of(table) == Policy(("WebFetch",), (), (".github/**",))
    assert policy_of({}) == NOTHING_REFUSED


def test_everything_wrong_with_an_owners_policy_is_said_at_once() -> None:
    with pytest.raises(ValueError) as refusal:
        policy_of({"refuse": [], "refuse_tools": "Bash", "refuse_commands": [3], "refuse_paths": ["../x"]})
    said = str(refusal.value)
    assert all(key in said for key in ("refuse is none of", "refuse_tools is no", "refuse_commands is no", "'../x'"))


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("git push*", ["git push", "git push origin a/b"], ["git pull", "a git push"]),
        ("mcp__*", ["mcp__a__b"], ["MCP__a"]),
        ("rm -rf /*", ["rm -rf /", "rm -rf /a/b"], ["rm -rf a"]),
        ("*secret*", ["a\nsecret/b", "secret"], ["secre"]),
    ],
)
def test_in_a_text_a_star_stands_for_any_characters(pattern: str, matching: list[str], other: list[str]) -> None:
    assert all(matches_text(text_pattern(pattern), text) for text in matching)
    assert not any(matches_text(text_pattern(pattern), text) for text in other)
