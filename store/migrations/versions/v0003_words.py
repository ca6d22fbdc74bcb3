"""What runs are told and what they say, and what each public key may vouch for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    # Every key that is there already seals heads.
    op.add_column("public_keys", sa.Column("use", sa.Text(), nullable=False, server_default="seal"))
    op.create_table(
        "briefs",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("schema", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_briefs_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_briefs"),
    )
    op.create_table(
        "words",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("refused", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_words_run_id"),
        sa.PrimaryKeyConstraint("run_id", "id", name="pk_words"),
        sa.UniqueConstraint("run_id", "n", name="uq_words_run_id_n"),
    )
