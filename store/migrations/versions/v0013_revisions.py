"""Which revision last changed a task, which one a run was made for, and by which rules a task was proven."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    for table, column in (("plans", "judged"), ("tasks", "proven_by"), ("tasks", "revision"), ("runs", "revision")):
        op.add_column(table, sa.Column(column, sa.Integer(), nullable=False, server_default="0"))
