"""What CLIs said that their unmetered runs used. Shown beside what is known, and never added to it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from sqlalchemy import Connection, select

from domain.identity import digest
from domain.metering import Metering
from domain.run import EvidenceKind
from domain.told import ToldUsage, read_content
from store.tables import artifacts, evidence, runs


def usage_told(connection: Connection, plan_ids: Collection[str]) -> dict[str, ToldUsage]:
    """What was said of the runs of these plans, by their ids; without what is no longer what was heard.

    One statement: it is small, and lies in the graph on either engine.
    """
    query = (
        select(runs.c.id, artifacts.c.digest, artifacts.c.content)
        .select_from(
            evidence.join(artifacts, artifacts.c.digest == evidence.c.digest).join(
                runs, (runs.c.id == evidence.c.run_id) & (runs.c.epoch == evidence.c.epoch)
            )
        )
        .where(
            evidence.c.plan_id.in_(plan_ids),
            evidence.c.kind == EvidenceKind.USAGE,
            runs.c.metering == Metering.UNMETERED,
        )
        .order_by(evidence.c.plan_id, evidence.c.receipt_seq)
    )
    found: dict[str, ToldUsage] = {}
    for run, name, content in connection.execute(query):
        if digest(bytes(content)) == name:
            with suppress(ValueError):
                found[run] = read_content(bytes(content))
    return found
