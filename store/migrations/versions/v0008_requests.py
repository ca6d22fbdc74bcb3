"""What providers call the calls that they were asked, so that an invoice of theirs can be held beside the ledger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("usage", sa.Column("request_id", sa.Text(), nullable=False, server_default=""))
