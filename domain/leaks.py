"""Secrets that nobody means to publish, by the few forms that cannot be taken for anything else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from domain.tokens import TOKENS, WHOLE_TOKEN

# What may stand between two lines of a key, in a file or in the strings of a program.
_BREAK = r"[\s\\nr\"',+]{1,40}"
# Lines such as `DEK-Info: …` of an encrypted key, or `Version: …` and `Comment: …` of one of PGP.
_HEADER = _BREAK + r"[A-Z][A-Za-z-]{2,24}: [^\n\r\\]{0,200}"
# With the beginning of the key: a program may well speak of the line above it.
_PRIVATE_KEY = (
    r"-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:{_HEADER}){{0,8}}"
    rf"{_BREAK}[A-Za-z0-9+/:=, -]{{24}}"
)
_NAMES = ("a private key", *(form.kind for form in TOKENS))
_ANY = re.compile("|".join(f"({form})" for form in (_PRIVATE_KEY, *(form.certain for form in TOKENS))).encode())
_MADE_UP = re.compile(rb"example", re.IGNORECASE)
_HEADERS = re.compile(_HEADER.encode())

# A key whole, or as far as it is there; then the other forms, a signed token such as a run's capability, and the
# credentials in an address. The head of a signed token is bounded, since another may seem to begin at each `-eyJ` in
# what never comes to an end as one.
_SECRET = re.compile(
    r"-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]+-----|\Z)|"
    + WHOLE_TOKEN
    + r"|\beyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|(?<=://)[^/\s@\"]+(?=@)",
    re.ASCII | re.DOTALL,
)


@dataclass(frozen=True)
class Leak:
    """`kind` says what it looks like, `line` where it begins. The secret itself is not in it."""

    kind: str
    line: int


def leaks(content: bytes, before: bytes = b"") -> Iterator[Leak]:
    """What looks like a secret in a file's content and was not in it before.

    What has "example" in it is none: that is how providers mark those in their manuals. A key's headers, in which
    anything may stand, do not count for that. Text in UTF-16 or UTF-32 is read without its NULs.
    """
    known = {found[0] for found in _found(before)}
    for found in _found(content):
        if found[0] not in known and not _MADE_UP.search(_HEADERS.sub(b"", found[0])):
            known.add(found[0])
            yield Leak(_NAMES[(found.lastindex or 1) - 1], found.string.count(b"\n", 0, found.start()) + 1)


def _found(content: bytes) -> Iterator[re.Match[bytes]]:
    yield from _ANY.finditer(content)
    if b"\0" in content:
        yield from _ANY.finditer(content.replace(b"\0", b""))


def struck(text: str) -> str:
    """The text with `[redacted]` in the place of whatever looks like a secret."""
    return _SECRET.sub("[redacted]", text)


def covered(text: str) -> str:
    """The text with stars over whatever looks like a secret: its shape stays, for what is a picture."""
    return _SECRET.sub(lambda found: "*" * len(found[0]), text)
