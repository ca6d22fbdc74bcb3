"""Which host this is: a name that lies on its disk, so that work on that disk finds its way back."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from domain.errors import WatchbillError
from runtimes.processes import boot_id

__all__ = ["boot_id", "host_id"]

_ID = re.compile(r"[0-9a-f]{12}")


def host_id(home: Path) -> str:
    """The host's id (12 hex digits), made up once and kept in `<home>/host`.

    Any number of first callers agree. WatchbillError when the file holds something else.
    """
    path = home / "host"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        draft = home / f"host.{secrets.token_hex(8)}"
        draft.write_text(secrets.token_hex(6) + "\n")
        try:
            # Unlike a rename, a link never replaces what somebody else put there first.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    found = path.read_text().strip()
    if not _ID.fullmatch(found):
        raise WatchbillError(f"{path} holds no host id (12 hex digits): restore it, or delete it for a new one.")
    return found
