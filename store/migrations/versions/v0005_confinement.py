"""How each run was confined. What ran before there was any confinement was unconfined."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("runs", sa.Column("confinement", sa.Text(), nullable=False, server_default="unconfined"))
