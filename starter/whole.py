"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a file in one step: whoever reads it has the old text or the new one, and a crash leaves one of them.

    Raises OSError for what the disk refuses.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            # As anybody else would have made it: a temporary file is its maker's alone.
            os.fchmod(file.fileno(), 0o666 & ~_mask())
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
