"""How large an image is, read from its head: what a model makes of it may go by its form."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode

_HEAD = 256 * 1024
"""Characters in which the size has to stand: a JPEG may have a preview and a colour profile before it."""

# Any frame but the tables for Huffman (C4), its extension (C8) and arithmetic coding (CC).
_FRAME = re.compile(rb"[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]")


def sides(data: str) -> tuple[int, int] | None:
    """Width and height in pixels of a PNG, JPEG, WebP or GIF in base64; None for what is none, or of no size."""
    try:
        head = b64decode(data[:_HEAD] + "=" * (-len(data[:_HEAD]) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    found = _sides(head)
    return found if found and min(found) > 0 else None


def _sides(head: bytes) -> tuple[int, int] | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return _big(head[16:20]), _big(head[20:24])
    if head[:6] in (b"GIF87a", b"GIF89a") and len(head) >= 10:
        return _little(head[6:8]), _little(head[8:10])
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        return _webp(head)
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """https://www.w3.org/Graphics/JPEG/itu-t81.pdf, B.2: segments with their lengths, until the frame's."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        if _FRAME.match(head, at + 1):
            return _big(head[at + 7 : at + 9]), _big(head[at + 5 : at + 7])
        at += 2 + _big(head[at + 2 : at + 4])
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    """https://developers.google.com/speed/webp/docs/riff_container."""
    match head[12:16]:
        case b"VP8X":
            return _little(head[24:27]) + 1, _little(head[27:30]) + 1
        case b"VP8 ":
            return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
        case b"VP8L":
            bits = _little(head[21:25])
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return None


def _big(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")
