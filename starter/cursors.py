"""How far each plan has been watched, kept in the home so that a later `watch` goes on from there."""

from __future__ import annotations

from pathlib import Path


class Cursor:
    """One plan's cursor: the seq of the last receipt that was told; 0 before the first."""

    def __init__(self, home: Path, plan_id: str) -> None:
        self._file = home / "cursors" / plan_id

    def read(self) -> int:
        try:
            return max(0, int(self._file.read_text()))
        except (OSError, ValueError):
            return 0

    def write(self, seq: int) -> None:
        """Keep it, whole or not at all. A home that cannot be written to only makes `watch` forgetful."""
        partial = self._file.with_suffix(".partial")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            partial.write_text(f"{seq}\n")
            partial.replace(self._file)
        except OSError:
            return
