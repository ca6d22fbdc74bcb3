"""What keys and tokens of the known makers look like: one table for whoever looks for them, in files or in words.

Who looks for what must not be published takes only what cannot be anything else. Who takes secrets out of words
rather takes out too much.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """A key that begins with `head`, with at least `least` letters of `alphabet` behind it; all are patterns' text.

    `ends` is what has to follow where more letters would make it something else. `in_words` is a wider pattern for
    words, where only a part of a key may have been written. One of `marks` is in every key, in whatever case.
    """

    kind: str
    head: str
    alphabet: str
    least: int
    marks: tuple[str, ...]
    ends: str = ""
    in_words: str = ""

    @property
    def certain(self) -> str:
        """The pattern of what cannot be anything else; it ends where it is certain, and not with the key."""
        return rf"\b{self.head}[{self.alphabet}]{{{self.least}}}{self.ends}"

    @property
    def whole(self) -> str:
        """The pattern of the key to its end."""
        return self.in_words or rf"\b{self.head}[{self.alphabet}]{{{self.least},}}"


# Installation tokens have up to about 520 characters and hold dots and dashes.
_GITHUB = r"gh[a-z]_[A-Za-z0-9._-]{20,}|(?i:gh[a-z]_[A-Za-z0-9._-]{36,})"

TOKENS = (
    Form("a GitHub token", "gh[pousr]_", "A-Za-z0-9", 36, ("gh",), in_words=_GITHUB),
    Form("a GitHub token", "github_pat_", "A-Za-z0-9_", 60, ("github_pat_",), in_words=r"(?i:github_pat_\w{20,})"),
    Form("a GitLab token", "glpat-", "A-Za-z0-9_-", 20, ("glpat-",)),
    Form("an Anthropic key", "sk-ant-", "A-Za-z0-9_-", 24, ("sk-ant-",)),
    Form("an OpenAI key", "sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20}T3BlbkFJ", "A-Za-z0-9_-", 20, ("t3blbkfj",)),
    Form("an AWS access key", "(?:AKIA|ASIA)", "A-Z2-7", 16, ("akia", "asia"), ends=r"\b"),
    Form("a Google API key", "AIza", "A-Za-z0-9_-", 35, ("aiza",), ends=r"\b"),
    Form("a Slack token", "xox[abeprs]-", "A-Za-z0-9-", 20, ("xox",)),
    Form("a Stripe key", "[rs]k_live_", "A-Za-z0-9", 24, ("k_live_",)),
    Form("an npm token", "npm_", "A-Za-z0-9", 36, ("npm_",), ends=r"\b"),
    Form("a PyPI token", "pypi-AgEIcHlwaS5vcmc", "A-Za-z0-9_-", 40, ("pypi-ageichlwas5vcmc",)),
)

WHOLE_TOKEN = "|".join(form.whole for form in TOKENS)
"""One pattern for every key, to its end, to be taken out of words."""

MARKS = tuple(mark for form in TOKENS for mark in form.marks)
"""In lower case: text without any of them holds no key. Looking for them takes a small part of the pattern's time."""
