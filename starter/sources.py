"""What a rehearsal works on: a copy of somebody's repository or directory, which is never touched itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from domain.errors import NotFound, Unavailable

_IDENTITY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in {"NAME": "Watchbill", "EMAIL": "noreply@watchbill.invalid"}.items()
}
_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    **_IDENTITY,
}
_MADE_BY_RUNNING = ("__pycache__", ".venv", "node_modules", ".mypy_cache", ".pytest_cache", ".ruff_cache")


def copy_of(source: Path, into: Path) -> Path:
    """A bare git repository in `into` with the branches of `source`, its HEAD on the branch checked out.

    A directory that is no repository itself becomes one commit on `main`; what running made in it stays
    out. Raises NotFound when there is nothing to copy.
    """
    if not source.is_dir():
        raise NotFound(f"{source} is no directory")
    if _is_repository(source):
        _git("clone", "--quiet", "--bare", "--no-local", str(source.absolute()), str(into))
    else:
        _commit(source, into)
    _require_commit(source, "--git-dir", str(into))
    if not _succeeds("--git-dir", str(into), "symbolic-ref", "--quiet", "HEAD"):
        # A checkout by commit, as on a build server, is on no branch.
        _git("--git-dir", str(into), "update-ref", "refs/heads/main", "HEAD")
        _git("--git-dir", str(into), "symbolic-ref", "HEAD", "refs/heads/main")
    return into


def require_source(source: Path) -> None:
    """Raises NotFound for what `copy_of` could not copy, without copying it."""
    if not source.is_dir():
        raise NotFound(f"{source} is no directory")
    if _is_repository(source):
        _require_commit(source, "-C", str(source))
    elif not any(each.name not in _MADE_BY_RUNNING for each in source.iterdir()):
        raise NotFound(f"there is nothing in {source} to copy")


def uncommitted(source: Path) -> bool:
    """Whether the repository's directory has changes that no commit has."""
    if not (source / ".git").exists():
        return False
    return bool(_git("-c", "core.fsmonitor=false", "-C", str(source), "status", "--porcelain"))


def _commit(source: Path, into: Path) -> None:
    tree = into.with_name(into.name + ".tree")
    try:
        shutil.copytree(source, tree, symlinks=True, ignore=shutil.ignore_patterns(*_MADE_BY_RUNNING))
    except shutil.Error as error:
        # It lists every file that it could not copy; one says enough.
        file, _, reason = error.args[0][0]
        raise Unavailable(f"{file} cannot be copied: {reason}") from error
    _git("init", "--quiet", "--bare", "--initial-branch", "main", str(into))
    there = ("--git-dir", str(into), "--work-tree", str(tree))
    _git(*there, "add", "--all")
    if not _git(*there, "ls-files"):
        raise NotFound(f"there is nothing in {source} to copy")
    _git(*there, "commit", "--quiet", "--message", f"{source.resolve().name} as it is")
    shutil.rmtree(tree)


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ.get("PATH", os.defpath), **_ENVIRONMENT},
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise NotFound(f"git cannot copy it: {said[-1]}")
    return done.stdout


def _is_repository(source: Path) -> bool:
    return (source / ".git").exists() or (source / "HEAD").exists()


def _require_commit(source: Path, *where: str) -> None:
    if not _succeeds(*where, "rev-parse", "--quiet", "--verify", "HEAD^{commit}"):
        raise NotFound(f"{source} has no commit yet; commit something there first")


def _succeeds(*arguments: str) -> bool:
    try:
        _git(*arguments)
    except NotFound:
        return False
    return True
