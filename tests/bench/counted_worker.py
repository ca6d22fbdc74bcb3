"""A worker as `python -m worker`, that also counts: SQL statements and git processes, since its start.

The counts are in a file that whoever measures reads at any time: two unsigned 64-bit numbers.
`WATCHBILL_BENCH_COUNTS` names it. Nothing else differs from the product's worker.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from pathlib import Path
from threading import Lock
from typing import Any

_FORM = struct.Struct("=QQ")
_SQL, _GIT = 0, 1


def read_counts(file: Path) -> tuple[int, int]:
    """SQL statements and git processes so far."""
    statements, gits = _FORM.unpack(file.read_bytes()[: _FORM.size])
    return statements, gits


def _count_into(file: Path) -> None:
    """Count from now on. The file is mapped, so a count costs no write."""
    from sqlalchemy import Engine, event

    file.write_bytes(bytes(_FORM.size))
    with file.open("r+b") as opened:
        shared = mmap.mmap(opened.fileno(), _FORM.size)
    counts, turn = [0, 0], Lock()

    def count(which: int) -> None:
        with turn:
            counts[which] += 1
            _FORM.pack_into(shared, 0, *counts)

    def on_audit(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "subprocess.Popen" and arguments[0] == "git":
            count(_GIT)

    event.listen(Engine, "before_cursor_execute", lambda *_: count(_SQL))
    sys.addaudithook(on_audit)


if __name__ == "__main__":
    from worker.__main__ import main

    _count_into(Path(os.environ["WATCHBILL_BENCH_COUNTS"]))
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
