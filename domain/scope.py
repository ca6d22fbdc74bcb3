"""What a task may change: globs over paths, counted from the repository's root, in the language of domain.globs.

A pattern matches the whole path: `*.md` is a file at the root, `**/*.md` one at any depth.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from domain.globs import leaves_root, matches_path, path_pattern

_pattern = lru_cache(maxsize=1024)(path_pattern)


def outside(paths: tuple[str, ...], changed: Iterable[str]) -> tuple[str, ...]:
    """The changed paths that no pattern allows, in their order. Without patterns everything is allowed.

    A path that is absolute or has `.` or `..` in it leaves the repository and is always outside.
    """
    patterns = [_pattern(path) for path in paths]
    return tuple(
        path
        for path in changed
        if leaves_root(path) or (patterns and not any(matches_path(pattern, path) for pattern in patterns))
    )


def refused(paths: tuple[str, ...], changed: Iterable[str]) -> tuple[str, ...]:
    """The changed paths that a pattern refuses, in their order, whatever the plan's scope allows."""
    patterns = [_pattern(path) for path in paths]
    return tuple(path for path in changed if any(matches_path(pattern, path) for pattern in patterns))
