"""From when on nothing counts that a key signs, and what the capability of each run was good for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("public_keys", sa.Column("retired_at", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("cap_nano_usd", sa.BigInteger(), nullable=True))
