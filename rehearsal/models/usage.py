"""What a reply is said to have used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from rehearsal.models.conversation import Conversation, Reply, tokens


@dataclass(frozen=True)
class Usage:
    """Tokens. `input` is all of the request: also what was read from the provider's cache (`cached`) and
    written to it (`written`). `output` is all of the reply, also `reasoning` that nobody is shown.
    """

    input: int
    output: int
    cached: int = 0
    written: int = 0
    reasoning: int = 0

    @classmethod
    def of(cls, conversation: Conversation, reply: Reply) -> Self:
        size = conversation.size
        output = tokens(reply.text) + sum(tokens(call.tool.name) + tokens(call.input) for call in reply.calls)
        return cls(size.tokens, output, size.cached, size.written)

    @classmethod
    def scripted(cls, given: Mapping[str, Any]) -> Self:
        """Raises ValueError for numbers that no provider would tell."""
        names = {field.name for field in fields(cls)}
        if not given.keys() <= names or not all(type(value) is int and value >= 0 for value in given.values()):
            raise ValueError(f"usage has the fields {', '.join(sorted(names))}, each a number of tokens")
        usage = cls(**{"input": 0, "output": 0, **given})
        if usage.cached + usage.written > usage.input or usage.reasoning > usage.output:
            raise ValueError("cached and written tokens are a part of the input, reasoning of the output")
        return usage
