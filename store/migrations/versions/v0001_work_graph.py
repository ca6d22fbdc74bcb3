"""The work graph as it began: subjects, receipts, and the bookkeeping beside them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "artifacts",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_artifacts"),
    )
    op.create_table(
        "chains",
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("chain", name="pk_chains"),
    )
    op.create_table(
        "inbox",
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("pull_number", sa.Integer(), nullable=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=True),
        sa.Column("received_at", sa.Text(), nullable=False),
        sa.Column("handled_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("delivery", name="pk_inbox"),
    )
    op.create_index("ix_inbox_task_id", "inbox", ["task_id"])
    op.create_index(
        "ix_inbox_unhandled",
        "inbox",
        ["received_at"],
        sqlite_where=sa.text("handled_at IS NULL"),
        postgresql_where=sa.text("handled_at IS NULL"),
    )
    op.create_table(
        "incarnations",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("temporal_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_incarnations"),
        sa.UniqueConstraint("temporal_id", name="uq_incarnations_temporal_id"),
    )
    op.create_table(
        "owners",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("receipt_seq", sa.BigInteger(), nullable=False),
        sa.Column("receipt_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_owners"),
    )
    op.create_table(
        "plans",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("base", sa.Text(), nullable=False),
        sa.Column("merge", sa.Text(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("checks", sa.Text(), nullable=False),
        sa.Column("paths", sa.Text(), nullable=False),
        sa.Column("reviewers", sa.Text(), nullable=False),
        sa.Column("budget_nano_usd", sa.BigInteger(), nullable=True),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("receipt_seq", sa.BigInteger(), nullable=False),
        sa.Column("receipt_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_plans"),
        sa.UniqueConstraint("owner", "slug", name="uq_plans_owner_slug"),
    )
    op.create_index("ix_plans_slug", "plans", ["slug"])
    op.create_table(
        "receipts",
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("refused", sa.Text(), nullable=False),
        sa.Column("mark", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("chain", "seq", name="pk_receipts"),
    )
    op.create_index(
        "ix_receipts_refused",
        "receipts",
        ["chain", "key"],
        sqlite_where=sa.text("refused != ''"),
        postgresql_where=sa.text("refused != ''"),
    )
    op.create_index(
        "uq_receipts_chain_key",
        "receipts",
        ["chain", "key"],
        unique=True,
        sqlite_where=sa.text("refused = ''"),
        postgresql_where=sa.text("refused = ''"),
    )
    op.create_table(
        "watermarks",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("mark", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_watermarks"),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Text(), nullable=True),
        sa.Column("crashed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
    op.create_index("ix_workers_host", "workers", ["host"])
    op.create_table(
        "revisions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("receipt_seq", sa.BigInteger(), nullable=False),
        sa.Column("receipt_hash", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name="fk_revisions_plan_id"),
        sa.PrimaryKeyConstraint("id", name="pk_revisions"),
        sa.UniqueConstraint("plan_id", "number", name="uq_revisions_plan_id_number"),
    )
    op.create_table(
        "tasks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("after_waived", sa.Boolean(), nullable=False),
        sa.Column("runtime", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("timeout", sa.Integer(), nullable=False),
        sa.Column("budget_nano_usd", sa.BigInteger(), nullable=True),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("allowed_runs", sa.Integer(), nullable=False),
        sa.Column("base_sha", sa.Text(), nullable=False),
        sa.Column("head_sha", sa.Text(), nullable=False),
        sa.Column("tree_sha", sa.Text(), nullable=False),
        sa.Column("last_tree_sha", sa.Text(), nullable=False),
        sa.Column("proven_sha", sa.Text(), nullable=False),
        sa.Column("approved_sha", sa.Text(), nullable=False),
        sa.Column("pushed_sha", sa.Text(), nullable=False),
        sa.Column("pull_number", sa.Integer(), nullable=True),
        sa.Column("pull_url", sa.Text(), nullable=False),
        sa.Column("merged_sha", sa.Text(), nullable=False),
        sa.Column("proof", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("foreign_commits", sa.Boolean(), nullable=False),
        sa.Column("fresh_start", sa.Boolean(), nullable=False),
        sa.Column("question_id", sa.Text(), nullable=True),
        sa.Column("receipt_seq", sa.BigInteger(), nullable=False),
        sa.Column("receipt_hash", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name="fk_tasks_plan_id"),
        sa.PrimaryKeyConstraint("id", name="pk_tasks"),
        sa.UniqueConstraint("plan_id", "ordinal", name="uq_tasks_plan_id_ordinal"),
    )
    op.create_index("ix_tasks_owner_state", "tasks", ["owner", "state"])
    op.create_table(
        "questions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("resume_at", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("receipt_seq", sa.BigInteger(), nullable=False),
        sa.Column("receipt_hash", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name="fk_questions_plan_id"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_questions_task_id"),
        sa.PrimaryKeyConstraint("id", name="pk_questions"),
    )
    op.create_index("ix_questions_plan_id", "questions", ["plan_id"])
    op.create_index("ix_questions_task_id", "questions", ["task_id"])
    op.create_table(
        "runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("runtime", sa.Text(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("start_sha", sa.Text(), nullable=False),
        sa.Column("head_sha", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=False),
        sa.Column("receipt_seq", sa.BigInteger(), nullable=False),
        sa.Column("receipt_hash", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name="fk_runs_plan_id"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_runs_task_id"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("task_id", "role", "number", name="uq_runs_task_id_role_number"),
    )
    op.create_index("ix_runs_host_state", "runs", ["host", "state"])
    op.create_index("ix_runs_plan_id", "runs", ["plan_id"])
    op.create_table(
        "slots",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("granted_at", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name="fk_slots_plan_id"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_slots_task_id"),
        sa.PrimaryKeyConstraint("task_id", name="pk_slots"),
    )
    op.create_index("ix_slots_owner", "slots", ["owner"])
    op.create_table(
        "evidence",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("commit_sha", sa.Text(), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("seen_by", sa.Text(), nullable=False),
        sa.Column("receipt_seq", sa.BigInteger(), nullable=False),
        sa.Column("receipt_hash", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["digest"], ["artifacts.digest"], name="fk_evidence_digest"),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name="fk_evidence_plan_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_evidence_run_id"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_evidence_task_id"),
        sa.PrimaryKeyConstraint("id", name="pk_evidence"),
    )
    op.create_index("ix_evidence_plan_id", "evidence", ["plan_id"])
    op.create_index("ix_evidence_task_id", "evidence", ["task_id"])
    op.create_table(
        "leases",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("boot", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_leases_run_id"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_leases_task_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_leases"),
    )
    op.create_index("ix_leases_lease_until", "leases", ["lease_until"])
    op.create_table(
        "run_events",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_events_run_id"),
        sa.PrimaryKeyConstraint("run_id", "n", name="pk_run_events"),
    )
