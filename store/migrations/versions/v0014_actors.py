"""Who caused a move, in its receipt. What was recorded before says nobody, and its hash holds as it is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("receipts", sa.Column("actor", sa.Text(), nullable=False, server_default=""))
