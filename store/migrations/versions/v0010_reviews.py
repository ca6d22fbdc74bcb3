"""Reviews: what a reviewer's run said of one commit, and whose models its author and it used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "reviews",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("commit_sha", sa.Text(), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("vendor", sa.Text(), nullable=False),
        sa.Column("author_vendors", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("findings", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("receipt_seq", sa.BigInteger(), nullable=False),
        sa.Column("receipt_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reviews"),
        sa.ForeignKeyConstraint(["plan_id"], ["plans.id"], name="fk_reviews_plan_id"),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name="fk_reviews_task_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_reviews_run_id"),
        sa.UniqueConstraint("run_id", name="uq_reviews_run_id"),
    )
    op.create_index("ix_reviews_plan_id", "reviews", ["plan_id"])
    op.create_index("ix_reviews_task_id", "reviews", ["task_id"])
