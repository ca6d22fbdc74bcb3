"""Checking seals: whether the chains in the store are still those that were signed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from sqlalchemy import Connection

from domain.errors import Unauthorized
from signing.checking import kid_of
from signing.seals import head_in
from store.audit import Finding
from store.keys import SEAL, Key, keys_of
from store.receipts import hash_and_moment_at
from store.seals import seals_of

SKEW = timedelta(seconds=30)
"""How far the clocks of who made a receipt and of who retired a key may be apart."""


def audit_seals(connection: Connection, chain: str | None, shown: Iterable[str]) -> tuple[list[Finding], int]:
    """What does not add up, and how many seals hold: those the store keeps, of one chain or of all, and those shown.

    A seal that is shown counts whatever chain it is about. One that a retired key made counts if its receipt is from
    before.
    """
    keys = {key.kid: key for key in keys_of(connection, SEAL)}
    findings: list[Finding] = []
    held = 0
    for token in dict.fromkeys((*seals_of(connection, chain), *shown)):
        fault = next(_faults(connection, token, keys), None)
        if fault is None:
            held += 1
        else:
            findings.append(fault)
    return findings, held


def _faults(connection: Connection, token: str, keys: Mapping[str, Key]) -> Iterator[Finding]:
    try:
        head = head_in(token, {kid: key.pem for kid, key in keys.items()})
    except Unauthorized as error:
        yield Finding("", f"a seal does not hold: {error} ({token[-12:]})")
        return
    kid = kid_of(token)
    there, at = hash_and_moment_at(connection, head.chain, head.seq)
    if there != head.hash:
        now = f"now it is {there[:16]}" if there else "now there is no such receipt"
        yield Finding(head.chain, f"receipt {head.seq} was sealed as {head.hash[:16]}, and {now}", head.seq)
    elif (retired := keys[kid].retired_at) is not None and at is not None and at > retired + SKEW:
        said = f"receipt {head.seq} is of {at.isoformat(timespec='seconds')}, and was sealed with key {kid}, which had"
        yield Finding(head.chain, f"{said} been retired at {retired.isoformat(timespec='seconds')}", head.seq)
