"""The ledger: what an owner spends a day at most, ceilings, reservations, and the usage of model calls."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_TOKENS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")


def upgrade() -> None:
    op.add_column("owners", sa.Column("day_nano_usd", sa.BigInteger(), nullable=True))
    op.add_column("owners", sa.Column("zone", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "ceilings",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("cap", sa.BigInteger(), nullable=True),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ceilings"),
    )
    op.create_index("ix_ceilings_owner", "ceilings", ["owner"])
    op.create_table(
        "reservations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("run_ceiling", sa.Text(), nullable=False),
        sa.Column("task_ceiling", sa.Text(), nullable=False),
        sa.Column("plan_ceiling", sa.Text(), nullable=False),
        sa.Column("day_ceiling", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("price", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.Text(), nullable=False),
        sa.Column("relay", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_reservations_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_reservations"),
    )
    op.create_index("ix_reservations_plan_ceiling", "reservations", ["plan_ceiling"])
    op.create_index(
        "ix_reservations_lease_until",
        "reservations",
        ["lease_until"],
        sqlite_where=sa.text("state = 'held'"),
        postgresql_where=sa.text("state = 'held'"),
    )
    op.create_table(
        "usage",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        *(sa.Column(kind, sa.BigInteger(), nullable=False) for kind in _TOKENS),
        sa.Column("price", sa.Text(), nullable=False),
        sa.Column("nano_usd", sa.BigInteger(), nullable=False),
        sa.Column("measured", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("asked_at", sa.Text(), nullable=False),
        sa.Column("answered_at", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["reservations.id"], name="fk_usage_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_usage_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_usage"),
    )
    op.create_index("ix_usage_run_id", "usage", ["run_id"])
