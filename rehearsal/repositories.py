"""Accounts and repositories: who owns what, and the bare git repository behind each."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from rehearsal.answers import not_found
from rehearsal.git import Bare
from rehearsal.state import Row, State, now

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,98}")
# The first segments of our own paths; an owner of that name could never be reached.
_RESERVED = frozenset({"_rehearsal", "app", "apps", "installation", "models", "rate_limit", "repos", "user", "users"})

MERGE_METHODS = ("merge", "squash", "rebase")


class Unsuitable(ValueError):
    """What was asked of the set-up cannot be done; the message says why and what would be."""


def account(state: State, login: str, kind: str = "User") -> None:
    """Make sure that an account is known. Its kind is settled by whoever names it first."""
    state.run("INSERT OR IGNORE INTO account (login, type) VALUES (?, ?)", login, kind)


def find(state: State, owner: str, name: str) -> Row | None:
    return state.one("SELECT * FROM repository WHERE owner = ? AND name = ?", owner, name)


def by_id(state: State, repository: int) -> Row:
    row = state.one("SELECT * FROM repository WHERE id = ?", repository)
    if row is None:
        raise not_found()
    return row


def full_name(repository: Row) -> str:
    return f"{repository['owner']}/{repository['name']}"


def bare(state: State, repository: Row | int) -> Bare:
    number = repository if isinstance(repository, int) else repository["id"]
    return Bare(state.folder / "repositories" / f"{number}.git")


def split(name: str) -> tuple[str, str]:
    """`(owner, name)` of `owner/name`; Unsuitable when it is not of that form."""
    owner, _, rest = name.partition("/")
    if not (_NAME.fullmatch(owner) and _NAME.fullmatch(rest)) or owner.lower() in _RESERVED:
        raise Unsuitable(f"{name!r} names no repository; give owner/name, such as acme/shop")
    return owner, rest.removesuffix(".git")


def create(
    state: State,
    name: str,
    *,
    source: Path | None = None,
    files: Mapping[str, str] | None = None,
    private: bool = False,
    default_branch: str = "",
    parent: Row | None = None,
) -> Row:
    """A new repository with the branches and tags of a local one, or with one commit of `files`.

    A repository that is already there stays as it is and is answered, so that a set-up can be
    repeated. Raises Unsuitable when `source` is no git repository or has no commits.
    """
    owner, short = split(name)
    existing = find(state, owner, short)
    if existing is not None:
        return existing
    branch = default_branch or (_head_branch(source) if source else "main")
    with state.transaction():
        account(state, owner)
        repository = state.run(
            "INSERT INTO repository (owner, name, private, default_branch, parent, merge_methods, created_at,"
            " pushed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            owner, short, private, branch, parent["id"] if parent else None,
            json.dumps(MERGE_METHODS), now(), now(),
        )  # fmt: skip
        _fill(bare(state, repository), source, files or {"README.md": f"# {short}\n"}, branch)
        remember_branches(state, repository)
    return by_id(state, repository)


def _fill(git: Bare, source: Path | None, files: Mapping[str, str], branch: str) -> None:
    # What a set-up that failed half-way has left behind would be taken for this one's.
    shutil.rmtree(git.path, ignore_errors=True)
    git.create(branch)
    if source is None:
        git.first_commit(branch, files)
        return
    git.fetch(source, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
    if branch not in git.branches():
        raise Unsuitable(f"{source} has no branch {branch!r}; commit something there, or name another branch")


def _head_branch(source: Path) -> str:
    git_directory = source / ".git" if (source / ".git").exists() else source
    branch = Bare(git_directory).head_branch()
    if not branch:
        raise Unsuitable(f"{source} is no git repository with a branch checked out")
    return branch


def remember_branches(state: State, repository: int) -> None:
    """Take what git holds now as seen: nothing of it will be announced as a push."""
    state.run("DELETE FROM branch WHERE repository = ?", repository)
    for name, sha in bare(state, repository).branches().items():
        state.run("INSERT INTO branch VALUES (?, ?, ?)", repository, name, sha)


def branch_sha(state: State, repository: int, name: str) -> str | None:
    row = state.one("SELECT sha FROM branch WHERE repository = ? AND name = ?", repository, name)
    return row["sha"] if row else None


def in_network(state: State, repository: Row, owner: str) -> Row | None:
    """The repository of this owner that shares a fork network with `repository`, or None."""
    root = repository["parent"] or repository["id"]
    return state.one(
        "SELECT * FROM repository WHERE owner = ? AND (id = ? OR parent = ?) ORDER BY id = ? DESC",
        owner, root, root, repository["id"],
    )  # fmt: skip
