"""What is known of plans and repositories, where the bytes of evidence are, and which brief each run was told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "notes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("replaces", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("receipt_seq", sa.BigInteger(), nullable=False),
        sa.Column("receipt_hash", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_notes_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_notes"),
        sa.UniqueConstraint("chain", "number", "version", name="uq_notes_chain_number_version"),
    )
    op.create_index("ix_notes_run_id", "notes", ["run_id"])
    op.add_column("artifacts", sa.Column("place", sa.Text(), nullable=False, server_default="graph"))
    op.add_column("evidence", sa.Column("epoch", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("brief", sa.Text(), nullable=False, server_default=""))
