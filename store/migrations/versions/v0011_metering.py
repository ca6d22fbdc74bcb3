"""Whether each agent's run asked its model through the relay. What ran before had no other way, and says nothing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("runs", sa.Column("metering", sa.Text(), nullable=False, server_default=""))
