"""What each run amounted to, the model it used, what its CLI remembers it by, and what it asked."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for name in ("model", "outcome", "session", "asked"):
        op.add_column("runs", sa.Column(name, sa.Text(), nullable=False, server_default=""))
