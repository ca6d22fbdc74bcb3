"""The body of a request, however it was compressed."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import AsyncIterable
from typing import Any

from rehearsal.models.api import Unreadable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LARGEST = 32 << 20
"""Bytes, before and after decompression. The bodies of agent CLIs are of some hundred kilobytes."""


class TooLarge(ValueError):
    """The body has more than LARGEST bytes."""


class UnknownEncoding(ValueError):
    """The content encoding is none that we know."""


async def received(chunks: AsyncIterable[bytes], encoding: str) -> dict[str, Any]:
    """The JSON object in a body. `encoding` is the request's Content-Encoding.

    Raises TooLarge, UnknownEncoding, or Unreadable for what is no such object.
    """
    raw = bytearray()
    async for chunk in chunks:
        raw += chunk
        if len(raw) > LARGEST:
            raise TooLarge(f"the request has more than {LARGEST} bytes")
    try:
        value = json.loads(_decompressed(bytes(raw), encoding.strip().lower()))
    except (TooLarge, UnknownEncoding, Unreadable):
        raise
    except (ValueError, zlib.error, zstd.ZstdError) as error:
        raise Unreadable(f"the request's body cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise Unreadable("the request's body is no JSON object")
    return value


def _decompressed(raw: bytes, encoding: str) -> bytes:
    match encoding:
        case "" | "identity":
            return raw
        case "gzip" | "deflate":
            # 32 lets zlib find out by itself whether it is gzip's or its own header.
            zlibs = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
            whole, ended = zlibs.decompress(raw, LARGEST + 1), zlibs.eof
        case "zstd":
            zstds = zstd.ZstdDecompressor()
            whole, ended = zstds.decompress(raw, LARGEST + 1), zstds.eof
        case _:
            raise UnknownEncoding(f"the content encoding {encoding!r} is not known; use gzip, deflate or zstd")
    if len(whole) > LARGEST:
        raise TooLarge(f"the request has more than {LARGEST} bytes once it is decompressed")
    if not ended:
        raise Unreadable(f"the request's body ends within its {encoding}")
    return whole
