"""Reading the store: a plan's report, its receipts, and the audit."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection

from domain.brief import summary_in
from domain.errors import NotFound
from domain.lifecycle import GENESIS, Receipt, receipt_hash
from domain.task import TaskFacts
from domain.wording import counted
from signing.seals import seals_in
from starter import graph
from starter import settings as settings_
from starter.exits import Exit
from starter.looking import no_such_plan
from starter.names import plan_named
from starter.output import clean, one_line, say, say_json
from starter.report import Check, Report, Seen, build, to_markdown
from starter.sealing import audit_seals
from starter.settings import Settings
from store import audit as store_audit
from store.evidence import evidence_of
from store.plans import load_plan
from store.receipts import head_of, receipts_of
from store.seals import newest_seal
from store.tasks import load_tasks
from store.views import plan_view
from store.words import last_result

_PAGE = 1000


def report(name: str, *, markdown: bool, json: bool) -> Exit:
    settings = settings_.load()
    found = load_report(settings, plan_named(name, settings.owner))
    if json:
        say_json(found)
    else:
        show_report(found, plain=markdown)
    return Exit.DONE


def load_report(settings: Settings, plan_id: str) -> Report:
    """Raises NotFound for a plan that was never published, and Unavailable without the store."""
    with graph.opened(settings) as store, store.read() as connection:
        view = plan_view(connection, plan_id)
        if view is None:
            raise no_such_plan(settings, plan_id)
        evidence = (
            Seen(each.task_id or "", each.kind, Check(each.command, each.commit_sha, each.exit_code))
            for each in evidence_of(connection, plan_id=plan_id, limit=100_000)
        )
        tasks = load_tasks(connection, plan_id, datetime.now(UTC))
        asked = load_plan(connection, plan_id).spec
        chain, seal = _chain(connection, plan_id), newest_seal(connection, plan_id)
        return build(view, asked, tasks, evidence, chain, seal, _said(connection, tasks))


def _said(connection: Connection, tasks: Iterable[TaskFacts]) -> dict[str, str]:
    """What agents say of their work, without secrets and bounded, by the ids of tasks."""
    from activities.redaction import publishable
    from forge.text import MAX_SAID

    results = ((task.id, last_result(connection, task.id)) for task in tasks)
    return {task: publishable(summary_in(result.body))[:MAX_SAID] for task, result in results if result}


def show_report(found: Report, *, plain: bool = False) -> None:
    """The report as Markdown, typeset where a person reads it on a terminal."""
    text = clean(to_markdown(found))
    if plain or not sys.stdout.isatty():
        say(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text, hyperlinks=False))


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
    return one_line(f"{receipt.seq:5}  {at}  {receipt.kind} {receipt.subject}  {receipt.event}  {said}", 400)


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
