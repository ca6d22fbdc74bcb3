"""The APIs that model calls come in. One module an API; what is not told of there is not let through.

Each says which fields of a request are let through, how much its content and its answer can come to at
most, where the answer tells what was used, and how its clients are told no.
"""

from __future__ import annotations

from relay.shapes.anthropic import CountTokens, Messages
from relay.shapes.chat import ChatCompletions
from relay.shapes.gemini import GenerateContent
from relay.shapes.responses import Responses
from relay.shapes.shape import Shape

SHAPES: tuple[Shape, ...] = (Messages(), CountTokens(), Responses(), ChatCompletions(), GenerateContent())
