"""Reading the store: a plan's receipts, and the audit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection

from domain.errors import NotFound
from domain.lifecycle import GENESIS, Receipt, receipt_hash
from domain.wording import counted
from signing.seals import seals_in
from starter import graph
from starter import settings as settings_
from starter.exits import Exit
from starter.looking import no_such_plan
from starter.names import plan_named
from starter.output import one_line, say, say_json
from starter.sealing import audit_seals
from store import audit as store_audit
from store.receipts import head_of, receipts_of

_PAGE = 1000


def receipts(name: str, after: int, *, verify: bool, json: bool) -> Exit:
    """Print the chain after a receipt; where `verify` says so, the whole chain is checked, link by link."""
    settings = settings_.load()
    plan_id = plan_named(name, settings.owner)
    broken: list[str] = []
    with graph.opened(settings) as store, store.read() as connection:
        head = head_of(connection, plan_id)
        if head[0] == 0:
            raise no_such_plan(settings, plan_id)
        link = (0, GENESIS)
        for receipt in _chain(connection, plan_id, 0 if verify else after):
            if verify:
                broken += faults_of(receipt, *link)
                link = (receipt.seq, receipt.hash)
            if receipt.seq > after:
                say_json(receipt) if json else say(line_of(receipt))
        if verify and head != link:
            broken.append(f"the chain's head names receipt {head[0]}, but receipt {link[0]} is the last")
    for fault in broken:
        say_json({"broken": fault}) if json else say(fault)
    if verify and not broken and not json:
        say(f"{counted(head[0], 'receipt')}; every hash and every link holds")
    return Exit.FAULTS if broken else Exit.DONE


def line_of(receipt: Receipt) -> str:
    at = receipt.at.isoformat(timespec="seconds")
    moved = receipt.before != receipt.after
    change = f"{receipt.before or 'new'} → {receipt.after}" if moved else str(receipt.after)
    said = f"refused: {receipt.refused}" if receipt.refused else f"{change} ({receipt.cause})"
    by = f" by {receipt.actor}" if receipt.actor else ""
    return one_line(f"{receipt.seq:5}  {at}  {receipt.kind} {receipt.subject}  {receipt.event}{by}: {said}", 400)


def faults_of(receipt: Receipt, seq: int, link: str) -> list[str]:
    """What is wrong with a receipt that should follow receipt `seq` with the hash `link`."""
    faults = []
    if receipt.seq != seq + 1:
        faults.append(f"receipt {seq + 1} is missing before receipt {receipt.seq}")
    elif receipt.previous != link:
        faults.append(f"receipt {receipt.seq} does not follow from receipt {seq}")
    said = {name: value for name, value in vars(receipt).items() if name != "hash"}
    if receipt_hash(**said) != receipt.hash:
        faults.append(f"receipt {receipt.seq} was changed: its hash is not that of what it says")
    return faults


def audit(name: str, sealed: Path | None, *, json: bool) -> Exit:
    """Audit one plan, or the whole store where no name is given, and the seals in `sealed` beside those kept."""
    from starter.reckoning import reckoned

    settings = settings_.load()
    shown = _seals_in(sealed) if sealed else []
    chain = plan_named(name, settings.owner) if name else None
    with graph.opened(settings) as store, store.read() as connection:
        if chain is not None and next(_chain(connection, chain), None) is None:
            raise no_such_plan(settings, chain)
        broken, held = audit_seals(connection, chain, shown)
        findings = (*store_audit.audit(connection, chain, reckoned), *broken)
    if json:
        say_json({"findings": findings, "seals": held})
    for finding in () if json else findings:
        say(one_line(f"{finding.chain}: {finding.message}" if finding.chain else finding.message, 500))
    if not findings and not json:
        say(f"every receipt, hash and row agrees; seals that hold: {held}")
    return Exit.FAULTS if findings else Exit.DONE


def _seals_in(file: Path) -> list[str]:
    """Raises NotFound for a file that is not there or has no seal in it."""
    try:
        text = _piped() if str(file) == "-" else file.read_text(errors="replace")
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {error.strerror}") from error
    found = seals_in(text)
    if not found:
        raise NotFound(f"there is no seal in {'what was piped in' if str(file) == '-' else file}")
    return found


def _piped() -> str:
    """What comes by standard input, which may be closed."""
    return sys.stdin.buffer.read().decode(errors="replace") if sys.stdin else ""


def _chain(connection: Connection, chain: str, after: int = 0) -> Iterator[Receipt]:
    while page := receipts_of(connection, chain, after, _PAGE):
        yield from page
        after = page[-1].seq
