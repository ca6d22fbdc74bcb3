"""What can be said of a text that somebody typed. It imports next to nothing: every command pays for it."""

from __future__ import annotations

import re

_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
_HOST_PORT = re.compile(rf"{_HOST}:(?P<port>[0-9]{{1,5}})")
_URL = re.compile(rf"(?i:https?)://{_HOST}(?::(?P<port>[0-9]{{1,5}}))?(?:/[!-~]*)?")


def host_port(text: str) -> str:
    """The text, where it is an address such as `127.0.0.1:7233` or `[::1]:7233`; ValueError says how one looks."""
    found = _HOST_PORT.fullmatch(text)
    if not found or not _is_port(found["port"]):
        raise ValueError("it should look like HOST:PORT, such as 127.0.0.1:7233")
    return text


def web_address(text: str) -> str:
    """The text, where it is an address such as `http://127.0.0.1:8271`; ValueError says how one looks."""
    found = _URL.fullmatch(text)
    if not found or not _is_port(found["port"] or "80"):
        raise ValueError("it should look like http://HOST:PORT or https://HOST")
    return text


def is_utf8(text: str) -> bool:
    """Whether it was, before Python read it: bytes that are none come as surrogates, which nobody takes from us."""
    return not re.search("[\ud800-\udfff]", text)


def _is_port(text: str) -> bool:
    return 0 < int(text) < 65536
