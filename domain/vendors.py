"""Who made a model. A reviewer is of another maker than the author, whichever CLI either of them uses.

A maker is told from the model's name alone, and only from names that are its own: a name that says nothing
has no maker here, and whoever needs one refuses it.
"""

from __future__ import annotations

import re

_FAMILIES = {
    "anthropic": ("claude",),
    "openai": ("gpt", "chatgpt", "codex", "o1", "o3", "o4"),
    "google": ("gemini", "gemma"),
    "meta": ("llama",),
    "mistral": ("mistral", "ministral", "codestral", "devstral", "magistral"),
    "deepseek": ("deepseek",),
    "alibaba": ("qwen", "qwq"),
    "xai": ("grok",),
    "moonshot": ("kimi",),
    "zhipu": ("glm",),
    "rehearsal": ("rehearsal",),
}
"""The first word of a model's name, by maker. The last is the stand-in's."""

_MAKERS = {family: maker for maker, families in _FAMILIES.items() for family in families}
_BASE = re.compile(r"[a-z]+(?:[0-9](?=-|$))?")


def vendor_of(model: str) -> str:
    """The maker of a model, such as `anthropic`; empty where the name does not tell.

    What stands before the last slash is who serves it (`openrouter/anthropic/claude-sonnet-4-6`), and so is what
    stands before a dot (`us.anthropic.claude-sonnet-4-6-v1:0`): neither made it.
    """
    name = model.rpartition("/")[2].lower()
    for part in (name, *(name[dot + 1 :] for dot in range(len(name)) if name[dot] == ".")):
        family = _BASE.match(part)
        if family is None:
            continue
        word = family[0]
        maker = _MAKERS.get(word) or _MAKERS.get(word.rstrip("0123456789"))
        if maker:
            return maker
    return ""
