"""What the CLIs say in their streams that they used is read as their word, and what is none is left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.told import ToldUsage
from runtimes.registry import RUNTIMES
from runtimes.stream import GAP

STREAMS = Path(__file__).with_name("streams")


def stream(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, (STREAMS / f"{name}.jsonl").read_text().splitlines())


def counts(**told: int) -> dict[str, int]:
    return {"input": 0, "cache_read": 0, "cache_write": 0, "output": 0, **told}


@pytest.mark.parametrize(
    ("name", "tokens", "nano_usd"),
    [
        ("claude-success", counts(input=3000, output=150), 15_000_000),
        ("claude-hook-deny-and-mcp", counts(input=6000, output=300), 30_000_000),
        ("codex-success", counts(input=3000, output=150, reasoning=0), None),
        # One more call, in a session that had one: it tells of both.
        ("codex-resume", counts(input=2000, output=100, reasoning=0), None),
        ("opencode-success", counts(input=3000, output=150, reasoning=0), None),
        # It tells each step as it ends: those before the one that was refused.
        ("opencode-402", counts(input=1000, output=50, reasoning=0), None),
    ],
)
def test_each_cli_tells_in_its_own_way(name: str, tokens: dict[str, int], nano_usd: int | None) -> None:
    cli = name.partition("-")[0]
    assert RUNTIMES[cli].usage(stream(name)) == ToldUsage(cli, tokens, nano_usd)


@pytest.mark.parametrize("name", ["claude-sigterm", "codex-402", "codex-stream-dropped"])
def test_one_that_ended_otherwise_says_nothing_of_what_it_used(name: str) -> None:
    assert RUNTIMES[name.partition("-")[0]].usage(stream(name)) is None


def test_a_part_of_steps_is_not_told_as_all_of_them() -> None:
    said = [*stream("opencode-success"), {"type": GAP, "bytes": 5}]
    assert RUNTIMES["opencode"].usage(said) is None


@pytest.mark.parametrize("value", [-1, True, "3000", 1 << 60, 0.5, [], {"a": 1}, None])
@pytest.mark.parametrize("cli", ["claude", "codex", "opencode"])
def test_what_can_be_no_number_of_tokens_is_left_out(cli: str, value: object) -> None:
    said = {
        "claude": {"type": "result", "usage": {"input_tokens": value, "output_tokens": 7}},
        "codex": {"type": "turn.completed", "usage": {"input_tokens": value, "output_tokens": 7}},
        "opencode": {"type": "step_finish", "part": {"tokens": {"input": value, "output": 7, "cache": value}}},
    }[cli]
    told = RUNTIMES[cli].usage([said])
    assert told is not None
    assert {kind: count for kind, count in told.tokens.items() if count} == {"output": 7}


@pytest.mark.parametrize("value", [-1, True, "1", 1e300, 10_000_001, [], float("inf"), float("nan"), 10**400])
def test_what_can_be_no_amount_is_left_out(value: object) -> None:
    said = {"type": "result", "usage": {"output_tokens": 7}, "total_cost_usd": value}
    assert RUNTIMES["claude"].usage([said]) == ToldUsage("claude", {"output": 7})


@pytest.mark.parametrize("usage", [None, 3, [], "text", {"input_tokens": []}])
def test_a_stream_without_a_number_says_nothing(usage: object) -> None:
    assert RUNTIMES["claude"].usage([{"type": "result", "usage": usage}]) is None
    assert RUNTIMES["codex"].usage([{"type": "turn.completed", "usage": usage}]) is None
    assert RUNTIMES["opencode"].usage([{"type": "step_finish", "part": {"tokens": usage}}]) is None
