"""Seals of chain heads, and the public halves of the keys that made them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "public_keys",
        sa.Column("kid", sa.Text(), nullable=False),
        sa.Column("pem", sa.Text(), nullable=False),
        sa.Column("since", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("kid", name="pk_public_keys"),
    )
    op.create_table(
        "seals",
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("chain", "seq", name="pk_seals"),
    )
