"""Answers as the providers document them cost what the public list reads from them, to the nano-dollar."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from genai_prices.data_snapshot import get_snapshot

from pricing.prices import Prices
from relay.metering import Meter
from relay.shapes import SHAPES
from relay.shapes.shape import Wish
from relay.usage import Usage

ANSWERS = Path(__file__).parent / "recorded" / "answers"
SHAPE = {shape.endpoint: shape for shape in SHAPES}
FLAVOR = {"openai.chat": "chat", "openai.responses": "responses"}
NOW = datetime.now(UTC)
CASES = sorted({path.stem for path in ANSWERS.iterdir()})


def metered(
    endpoint: str, raw: bytes, size: int, *, streamed: bool, strips: bool = False
) -> tuple[Usage | None, bytes]:
    """What an answer that comes in pieces of this size is read to have used, and what of it is passed on."""
    meter, passed = Meter(SHAPE[endpoint], Wish({}, "m", streamed, 1, 1, strips_usage=strips), streamed=streamed), b""
    for begin in range(0, len(raw), size):
        piece = raw[begin : begin + size]
        passed += meter.passing(piece)
        meter.look(piece)
    return meter.used(whole=True), passed + meter.rest()


def listed(endpoint: str, answer: Any) -> tuple[str, int]:
    """The model of an answer, and the nano-dollars that the public list reads from it."""
    oracle = get_snapshot().extract_usage(answer, SHAPE[endpoint].prices, api_flavor=FLAVOR.get(endpoint, "default"))
    assert oracle.model is not None
    return oracle.model.id, math.ceil(oracle.calc_price(genai_request_timestamp=NOW).total_price * 10**9)


def assembled(endpoint: str, stream: bytes) -> Any:
    """The answer that a stream tells, put together as the documentation says, and not as the relay does it."""
    lines = [line.removeprefix(b"data: ") for line in stream.splitlines() if line.startswith(b"data: {")]
    events = [orjson.loads(line) for line in lines]
    match endpoint:
        case "anthropic.messages":
            message = events[0]["message"]
            (delta,) = [event for event in events if event["type"] == "message_delta"]
            return {**message, "usage": {**message["usage"], **delta["usage"]}}
        case "openai.responses":
            return events[-1]["response"]
    return events[-1]


def cost(endpoint: str, model: str, used: Usage | None) -> int:
    price = Prices().of(SHAPE[endpoint].prices, model, NOW)
    assert price is not None
    assert used is not None
    return price.cost(used)


@pytest.mark.parametrize("case", CASES)
def test_an_answer_costs_what_the_public_list_reads_from_it_whole_or_streamed(case: str) -> None:
    endpoint = case.partition("-")[0]
    raw, stream = (ANSWERS / f"{case}.json").read_bytes(), (ANSWERS / f"{case}.sse").read_bytes()
    model, due = listed(endpoint, orjson.loads(raw))
    assert listed(endpoint, assembled(endpoint, stream)) == (model, due)
    for size in (1, 7, 1000, 1 << 20):
        used, passed = metered(endpoint, raw, size, streamed=False)
        assert (passed, cost(endpoint, model, used)) == (raw, due)
        told, passed = metered(endpoint, stream, size, streamed=True)
        assert (passed, told) == (stream, used)


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("openai.chat")])
def test_usage_that_only_the_relay_asked_for_costs_the_same_and_is_not_passed_on(case: str) -> None:
    stream = (ANSWERS / f"{case}.sse").read_bytes()
    told, whole = metered("openai.chat", stream, 100, streamed=True)
    used, passed = metered("openai.chat", stream, 100, streamed=True, strips=True)
    assert used == told
    assert passed != whole
    assert b"prompt_tokens" not in passed
    assert passed.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(("case", "past"), [("edge", 0), ("long", 1)])
def test_what_is_recorded_lies_at_the_length_from_which_on_a_model_costs_more(case: str, past: int) -> None:
    for path in ANSWERS.glob(f"*-{case}.json"):
        endpoint, answer = path.name.partition("-")[0], orjson.loads(path.read_bytes())
        price = Prices().of(SHAPE[endpoint].prices, listed(endpoint, answer)[0], NOW)
        used = SHAPE[endpoint].used(answer)
        assert price is not None
        assert used is not None
        assert used.whole_input == price.tiers[-1].above + past
