"""The tables of the work graph, the same on SQLite and PostgreSQL.

Rows of the subject tables are the fold of their receipts: only a move changes them, and each
carries the seq and hash of its last receipt. The bookkeeping tables below them serve the moves and
the machinery, and are no facts of their own. Defaults stand here, not in the database, because the
audit folds receipts from them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from store.columns import (
    Json,
    amount,
    flag,
    moment,
    nano_usd,
    optional_text,
    reference,
    strings,
    text,
    tokens,
    whole,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def _subject(name: str, *columns: Column[Any] | Index | UniqueConstraint) -> Table:
    return Table(
        name,
        metadata,
        Column("id", Text, primary_key=True),
        text("state"),
        *columns,
        Column("receipt_seq", BigInteger, nullable=False),
        text("receipt_hash"),
    )


# Subjects: the fold of their receipts.

owners = _subject("owners", text("reason", ""), nano_usd("day_nano_usd"), text("zone", ""))

plans = _subject(
    "plans",
    text("owner"),
    text("slug"),
    text("title"),
    text("repository"),
    text("base", ""),
    text("merge"),
    whole("concurrency", 1),
    whole("attempts", 4),
    strings("checks"),
    strings("paths"),
    strings("reviewers"),
    nano_usd("budget_nano_usd"),
    text("spec", ""),
    flag("paused"),
    whole("revision", 1),
    # The revision that last changed what judges work, 0 for the first text.
    whole("judged", 0),
    text("reason", ""),
    UniqueConstraint("owner", "slug"),
    Index(None, "slug"),
)

revisions = _subject(
    "revisions",
    reference("plan_id"),
    whole("number"),
    text("digest"),
    text("text"),
    UniqueConstraint("plan_id", "number"),
)

tasks = _subject(
    "tasks",
    reference("plan_id"),
    text("owner"),
    whole("ordinal"),
    text("title"),
    text("body", ""),
    strings("after"),
    flag("after_waived"),
    text("runtime"),
    text("model", ""),
    whole("timeout", 3600),
    nano_usd("budget_nano_usd"),
    whole("round", 1),
    whole("allowed_runs", 4),
    text("base_sha", ""),
    text("head_sha", ""),
    text("tree_sha", ""),
    text("last_tree_sha", ""),
    text("proven_sha", ""),
    # What `judged` was of its plan when it was proven.
    whole("proven_by", 0),
    text("approved_sha", ""),
    text("pushed_sha", ""),
    Column("pull_number", Integer, nullable=True),
    text("pull_url", ""),
    text("merged_sha", ""),
    text("proof", ""),
    text("note", ""),
    text("reason", ""),
    text("host", ""),
    flag("foreign_commits"),
    flag("fresh_start"),
    # The plan's revision that last changed it, 0 for the text that was confirmed first.
    whole("revision", 0),
    # No foreign key: the task is paused before the question is asked, in one group of moves.
    optional_text("question_id"),
    UniqueConstraint("plan_id", "ordinal"),
    Index(None, "owner", "state"),
)

runs = _subject(
    "runs",
    reference("plan_id"),
    reference("task_id"),
    text("role"),
    whole("number"),
    whole("round", 1),
    whole("epoch", 0),
    whole("ordinal", 0),
    text("runtime"),
    text("command", ""),
    text("host", ""),
    text("start_sha", ""),
    text("head_sha", ""),
    Column("exit_code", Integer, nullable=True),
    text("reason", ""),
    text("started_at", ""),
    text("model", ""),
    text("outcome", ""),
    text("session", ""),
    text("asked", ""),
    # Receipts from before there was any confinement say nothing of it.
    text("confinement", "unconfined"),
    # What its capability is good for, 0 for no bound; receipts from before this was told say nothing of it.
    nano_usd("cap_nano_usd"),
    # Of an agent's run whether its model was asked through the relay; receipts from before it could be asked in any
    # other way say nothing of it.
    text("metering", ""),
    # The hash of what it was told; empty for what is no agent's, and in receipts from before this was told.
    text("brief", ""),
    # Its task's when it began.
    whole("revision", 0),
    UniqueConstraint("task_id", "role", "number"),
    Index(None, "plan_id"),
    Index(None, "host", "state"),
)

questions = _subject(
    "questions",
    reference("plan_id"),
    reference("task_id"),
    text("kind"),
    text("text"),
    text("resume_at"),
    text("answer", ""),
    Index(None, "plan_id"),
    Index(None, "task_id"),
)

evidence = _subject(
    "evidence",
    reference("plan_id"),
    reference("task_id", nullable=True),
    reference("run_id", nullable=True),
    # Receipts from before this was told say nothing of it.
    whole("epoch", 0),
    text("kind"),
    text("commit_sha", ""),
    text("command", ""),
    Column("exit_code", Integer, nullable=True),
    Column("digest", Text, ForeignKey("artifacts.digest"), nullable=False),
    whole("size"),
    flag("truncated"),
    text("seen_by", ""),
    Index(None, "plan_id"),
    Index(None, "task_id"),
)

reviews = _subject(
    "reviews",
    reference("plan_id"),
    reference("task_id"),
    reference("run_id"),
    text("commit_sha"),
    text("reviewer"),
    text("vendor"),
    strings("author_vendors"),
    text("summary", ""),
    text("findings", ""),
    text("why", ""),
    UniqueConstraint("run_id"),
    Index(None, "plan_id"),
    Index(None, "task_id"),
)

notes = _subject(
    "notes",
    # The chain that its receipts are on: a plan's, or its owner's for what is known of a repository.
    text("chain"),
    text("repository", ""),
    whole("number"),
    whole("version", 1),
    text("kind"),
    text("title"),
    text("text", ""),
    # The version that this one took the place of.
    optional_text("replaces"),
    reference("run_id", nullable=True),
    whole("epoch", 0),
    text("by", ""),
    UniqueConstraint("chain", "number", "version"),
    Index(None, "run_id"),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("digest", Text, primary_key=True),
    whole("size"),
    # Empty where the bytes are in a folder; rows from before there was one have them here.
    Column("content", LargeBinary, nullable=False),
    Column("place", Text, nullable=False, server_default="graph"),
)

# Bookkeeping: what the moves themselves keep.

chains = Table(
    "chains",
    metadata,
    Column("chain", Text, primary_key=True),
    text("owner"),
    Column("seq", BigInteger, nullable=False),
    text("hash"),
)

watermarks = Table(
    "watermarks",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("mark", BigInteger, nullable=False),
)

receipts = Table(
    "receipts",
    metadata,
    text("chain"),
    Column("seq", BigInteger, nullable=False),
    text("kind"),
    text("subject"),
    optional_text("before"),
    optional_text("after"),
    text("event"),
    text("key"),
    text("cause"),
    moment("at"),
    text("facts"),
    text("previous"),
    text("hash"),
    text("refused", ""),
    Column("mark", BigInteger, nullable=False),
    text("actor", ""),
    PrimaryKeyConstraint("chain", "seq"),
)

# The ledger: what may be spent, what is held, and what was. Each ceiling's sums are its reservations'.

ceilings = Table(
    "ceilings",
    metadata,
    Column("id", Text, primary_key=True),
    text("kind"),
    text("subject"),
    text("owner"),
    nano_usd("cap"),
    amount("held"),
    amount("settled"),
    Index(None, "owner"),
)

reservations = Table(
    "reservations",
    metadata,
    Column("id", Text, primary_key=True),
    reference("run_id"),
    # No foreign keys: whoever writes a reservation holds its four ceilings' locks, and the audit misses none.
    text("run_ceiling"),
    text("task_ceiling"),
    text("plan_ceiling"),
    text("day_ceiling"),
    text("model"),
    text("endpoint"),
    text("price"),
    text("state"),
    amount("held"),
    amount("settled"),
    moment("lease_until"),
    text("relay", ""),
    moment("asked_at"),
    moment("ended_at", nullable=True),
    Index(None, "plan_ceiling"),
)

usage = Table(
    "usage",
    metadata,
    Column("id", Text, ForeignKey("reservations.id"), primary_key=True),
    reference("run_id"),
    text("model"),
    text("endpoint"),
    tokens("input"),
    tokens("cache_read"),
    tokens("cache_write_5m"),
    tokens("cache_write_1h"),
    tokens("output"),
    tokens("reasoning"),
    text("price"),
    amount("nano_usd"),
    # Whether the provider said what it cost; else the whole reservation counts.
    flag("measured"),
    text("outcome"),
    whole("status"),
    # The provider's own id of it; empty where it told none.
    text("request_id", ""),
    moment("asked_at"),
    moment("answered_at"),
    Index(None, "run_id"),
)

# Bookkeeping: the machinery's own, no facts.

slots = Table(
    "slots",
    metadata,
    reference("task_id", primary_key=True),
    reference("plan_id"),
    text("owner"),
    moment("granted_at"),
    moment("lease_until"),
    Index(None, "owner"),
)

leases = Table(
    "leases",
    metadata,
    reference("run_id", primary_key=True),
    reference("task_id"),
    text("worker"),
    text("host"),
    text("boot"),
    whole("epoch"),
    moment("lease_until"),
    Index(None, "lease_until"),
)

inbox = Table(
    "inbox",
    metadata,
    Column("delivery", Text, primary_key=True),
    text("source"),
    text("event"),
    text("action", ""),
    text("repository", ""),
    text("branch", ""),
    Column("pull_number", Integer, nullable=True),
    text("payload"),
    optional_text("task_id"),
    moment("received_at"),
    moment("handled_at", nullable=True),
)
Index("ix_inbox_task_id", inbox.c.task_id)

run_events = Table(
    "run_events",
    metadata,
    reference("run_id"),
    Column("n", BigInteger, nullable=False),
    moment("at"),
    text("kind"),
    Column("data", Json, nullable=False),
    PrimaryKeyConstraint("run_id", "n"),
)

incarnations = Table(
    "incarnations",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    text("temporal_id"),
    moment("at"),
    UniqueConstraint("temporal_id"),
)

workers = Table(
    "workers",
    metadata,
    Column("id", Text, primary_key=True),
    text("host"),
    text("boot"),
    whole("pid"),
    moment("started_at"),
    moment("ended_at", nullable=True),
    flag("crashed"),
    Index(None, "host"),
)

public_keys = Table(
    "public_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    text("pem"),
    moment("since"),
    # What it may vouch for. Keys from before there were two uses are seals' keys.
    Column("use", Text, nullable=False, server_default="seal"),
    moment("retired_at", nullable=True),
)

briefs = Table(
    "briefs",
    metadata,
    reference("run_id", primary_key=True),
    text("text"),
    Column("schema", Json, nullable=False),
    whole("revision"),
    text("digest"),
)

words = Table(
    "words",
    metadata,
    reference("run_id"),
    text("id"),
    Column("n", BigInteger, nullable=False),
    text("kind"),
    moment("at"),
    Column("body", Json, nullable=False),
    text("refused", ""),
    PrimaryKeyConstraint("run_id", "id"),
    UniqueConstraint("run_id", "n"),
)

screens = Table(
    "screens",
    metadata,
    reference("run_id", primary_key=True),
    moment("at"),
    text("text"),
)

seals = Table(
    "seals",
    metadata,
    Column("chain", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    text("token"),
    PrimaryKeyConstraint("chain", "seq"),
)
