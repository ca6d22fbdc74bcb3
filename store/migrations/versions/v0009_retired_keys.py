"""Keys are retired: from when on nothing that they sign counts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("public_keys", sa.Column("retired_at", sa.Text(), nullable=True))
