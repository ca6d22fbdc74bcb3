"""Checking seals: whether the chains in the store are still those that were signed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import Connection

from domain.errors import Unauthorized
from signing.seals import head_in
from store.audit import Finding
from store.keys import SEAL, known_keys
from store.receipts import hash_at
from store.seals import seals_of


def audit_seals(connection: Connection, chain: str | None, shown: Iterable[str]) -> tuple[list[Finding], int]:
    """What does not add up, and how many seals hold: those the store keeps, of one chain or of all, and those shown.

    A seal that is shown counts whatever chain it is about.
    """
    keys = known_keys(connection, SEAL)
    findings: list[Finding] = []
    held = 0
    for token in dict.fromkeys((*seals_of(connection, chain), *shown)):
        fault = next(_faults(connection, token, keys), None)
        if fault is None:
            held += 1
        else:
            findings.append(fault)
    return findings, held


def _faults(connection: Connection, token: str, keys: dict[str, str]) -> Iterator[Finding]:
    try:
        head = head_in(token, keys)
    except Unauthorized as error:
        yield Finding("", f"a seal does not hold: {error} ({token[-12:]})")
        return
    there = hash_at(connection, head.chain, head.seq)
    if there != head.hash:
        now = f"now it is {there[:16]}" if there else "now there is no such receipt"
        yield Finding(head.chain, f"receipt {head.seq} was sealed as {head.hash[:16]}, and {now}", head.seq)
