"""What the stand-in GitHub of a home was given: a copy of each repository, and a record that it has them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from domain.errors import NotFound
from starter.output import note
from starter.sources import copy_of


class Copies:
    """The copies in one home, by names such as `acme/shop`."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "stand-in-sources"
        self._record = home / "stand-in.json"

    def of(self, sources: Mapping[str, Path]) -> dict[str, Path]:
        """A copy of each source. Raises NotFound for what is no folder, or holds nothing to copy.

        What the stand-in has already stays as it is, and so does the copy that it was made from.
        """
        for name, source in sources.items():
            if not source.is_dir():
                what = "is no folder" if source.exists() else "is not there"
                raise NotFound(f"{source}, to be copied as {name}, {what}")
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return {name: self._made(name, source) for name, source in sources.items()}

    def remembered(self) -> dict[str, Path]:
        """What the stand-in of this home has had; empty in a home that was begun without one."""
        try:
            names = json.loads(self._record.read_bytes())["repositories"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return {str(name): self._copy(str(name)) for name in names}

    def remember(self, names: Iterable[str]) -> None:
        """Record that the stand-in has these, beside what it had: the next `watchbill up` has it again."""
        known = sorted({*self.remembered(), *names})
        partial = self._record.with_suffix(".partial")
        partial.write_text(json.dumps({"repositories": known}) + "\n", encoding="utf-8")
        partial.replace(self._record)

    def _made(self, name: str, source: Path) -> Path:
        copy = self._copy(name)
        if copy.exists():
            note(f"{name} is in this stand-in already, copied once and gone on since; {source} is not read")
        else:
            # A copy that was given up half-way would be taken for a whole one.
            with tempfile.TemporaryDirectory(dir=self._folder) as unfinished:
                copy_of(source, Path(unfinished) / copy.name).rename(copy)
        return copy

    def _copy(self, name: str) -> Path:
        return self._folder / f"{name.replace('/', '+')}.git"
