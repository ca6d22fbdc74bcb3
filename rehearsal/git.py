"""Git as a server uses it: bare repositories, read and written by plumbing commands.

Every command runs without the user's own configuration and without hooks. Merges are made in the
object store alone, with no worktree.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ZERO = "0" * 40
"""How git and GitHub write "no commit": a ref that is not there yet, or no longer."""

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "LC_ALL": "C",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_COMMITTER_NAME": "GitHub",
    "GIT_COMMITTER_EMAIL": "noreply@github.com",
}

_CONFIGURATION = """\
[core]
\thooksPath = /dev/null
\tfsync = none
[gc]
\tauto = 0
[http]
\treceivepack = true
; GitHub shows pull request heads under refs/pull, lets nobody push there, and serves any commit by id.
[receive]
\tautogc = false
\thideRefs = refs/pull
[uploadpack]
\tallowAnySHA1InWant = true
\tallowFilter = true
"""


class GitFailed(RuntimeError):
    """A git command that had to succeed did not; the message carries its own words."""


@dataclass(frozen=True)
class Commit:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: str
    email: str
    date: str
    message: str


@dataclass(frozen=True)
class Comparison:
    """What a pull request from `head` into `base` amounts to.

    `related` is whether the two have any history in common; `mergeable` is False on a conflict.
    """

    related: bool
    mergeable: bool
    commits: int
    additions: int
    deletions: int
    changed_files: int


class Bare:
    """One bare repository on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, default_branch: str) -> None:
        branch = f"--initial-branch={default_branch}"
        self._run("init", "--quiet", "--bare", "--template=", branch, str(self.path), at=None)
        with (self.path / "config").open("a") as config:
            config.write(_CONFIGURATION)

    def fetch(self, source: Path | Bare, *refspecs: str) -> None:
        """Bring these refs from another repository on this disk, which may well be a shallow clone."""
        place = source.path if isinstance(source, Bare) else source
        self._run("fetch", "--quiet", "--no-write-fetch-head", "--update-shallow", str(place), *refspecs)

    def branches(self) -> dict[str, str]:
        out = self._run("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads")
        pairs = (line.split(" ", 1) for line in out.splitlines())
        return {name.removeprefix("refs/heads/"): sha for sha, name in pairs}

    def head_branch(self) -> str:
        """The branch that HEAD names; empty when HEAD is detached or this is no repository."""
        return self._try("symbolic-ref", "--short", "--quiet", "HEAD").stdout.strip()

    def resolve(self, name: str) -> str | None:
        """The commit that a ref or an object id names, or None."""
        done = self._try("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return done.stdout.strip() if done.returncode == 0 else None

    def update(self, ref: str, new: str, old: str | None = None) -> bool:
        """Set a ref; False when it no longer held `old` (40 zeros: it must not be there yet)."""
        expected = () if old is None else (old,)
        return self._try("update-ref", ref, new, *expected).returncode == 0

    def delete(self, ref: str) -> None:
        self._run("update-ref", "-d", ref)

    def point_head_at(self, branch: str) -> None:
        self._run("symbolic-ref", "HEAD", f"refs/heads/{branch}")

    def contains(self, commit: str, ancestor: str) -> bool:
        return self._try("merge-base", "--is-ancestor", ancestor, commit).returncode == 0

    def related(self, one: str, other: str) -> bool:
        return self._try("merge-base", one, other).returncode == 0

    def pulls_within(self, commit: str, numbers: Iterable[int]) -> set[int]:
        """Of these pull requests, those whose head this commit contains."""
        heads = [f"refs/pull/{number}/head" for number in numbers]
        out = self._run("for-each-ref", f"--merged={commit}", "--format=%(refname)", *heads) if heads else ""
        return {int(line.split("/")[2]) for line in out.splitlines()}

    def pack(self) -> None:
        """Put refs and objects together: as files of their own, git opens each when somebody fetches or pushes."""
        self._run("pack-refs", "--all")
        self._run("repack", "-d", "--quiet", "--geometric=2")

    def commits(self, base: str, head: str, limit: int | None = None) -> list[Commit]:
        """The commits in head and not in base, oldest first; only the last `limit` where that is given.

        40 zeros as base: all of them.
        """
        known = [] if base == ZERO else [f"^{base}"]
        limits = [] if limit is None else [f"--max-count={limit}"]
        layout = "--format=tformat:%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%B"
        fields = self._run("log", "--reverse", "-z", *limits, layout, head, *known, "--").split("\0")
        found = []
        for sha, tree, parents, author, email, date, message in zip(*[iter(fields)] * 7, strict=False):
            found.append(Commit(sha, tree, tuple(parents.split()), author, email, date, message.strip("\n")))
        return found

    def commit(self, sha: str) -> Commit:
        return self.commits(ZERO, sha, limit=1)[0]

    def compare(self, base: str, head: str) -> Comparison:
        commits = int(self._run("rev-list", "--count", head, f"^{base}"))
        diff = self._try("diff", "--numstat", f"{base}...{head}")
        if diff.returncode and not self.related(base, head):
            return Comparison(
                related=False, mergeable=False, commits=commits, additions=0, deletions=0, changed_files=0
            )
        numbers = [line.split("\t") for line in diff.stdout.splitlines()]
        return Comparison(
            related=True,
            mergeable=self.merge_tree(base, head) is not None,
            commits=commits,
            additions=sum(int(row[0]) for row in numbers if row[0] != "-"),
            deletions=sum(int(row[1]) for row in numbers if row[1] != "-"),
            changed_files=len(numbers),
        )

    def diff(self, base: str, head: str) -> str:
        return self._run("diff", f"{base}...{head}")

    def merge_tree(self, base: str, head: str) -> str | None:
        """The tree that merging the two gives, or None when they conflict."""
        done = self._try("merge-tree", "--write-tree", base, head)
        if done.returncode > 1:
            raise GitFailed(done.stderr.strip())
        return done.stdout.split("\n", 1)[0] if done.returncode == 0 else None

    def commit_tree(
        self, tree: str, parents: Iterable[str], message: str, author: Mapping[str, str] | None = None
    ) -> str:
        """Write a commit; `author` holds GIT_AUTHOR_* variables, and defaults to the committer."""
        named = [word for parent in parents for word in ("-p", parent)]
        who = author or {"GIT_AUTHOR_NAME": "GitHub", "GIT_AUTHOR_EMAIL": "noreply@github.com"}
        return self._run("commit-tree", tree, *named, "-F", "-", stdin=message, environment=who).strip()

    def rebased(self, base: str, head: str) -> str | None:
        """The commits of head replayed on base, as new commits; None when one conflicts."""
        onto = base
        for commit in self.commits(base, head):
            if len(commit.parents) != 1:
                continue
            # merge-tree finds its own merge base; a commit with our tree and the replayed commit's
            # parent makes that parent the base, which is what a cherry-pick merges against.
            tree_of_onto = self._run("rev-parse", f"{onto}^{{tree}}").strip()
            ours = self.commit_tree(tree_of_onto, commit.parents, "")
            tree = self.merge_tree(ours, commit.sha)
            if tree is None:
                return None
            author = {
                "GIT_AUTHOR_NAME": commit.author,
                "GIT_AUTHOR_EMAIL": commit.email,
                "GIT_AUTHOR_DATE": commit.date,
            }
            onto = self.commit_tree(tree, [onto], commit.message, author)
        return onto

    def first_commit(self, branch: str, files: Mapping[str, str]) -> None:
        """Begin a branch with one commit of these files (path -> text)."""
        stream = [
            f"commit refs/heads/{branch}",
            "committer GitHub <noreply@github.com> now",
            _data("Initial commit"),
        ]
        for name, text in files.items():
            stream += [f"M 100644 inline {json.dumps(name, ensure_ascii=False)}", _data(text)]
        self._run("fast-import", "--quiet", "--date-format=now", stdin="\n".join(stream) + "\n")

    def _run(
        self,
        *arguments: str,
        stdin: str = "",
        environment: Mapping[str, str] | None = None,
        at: tuple[str, ...] | None = (),
    ) -> str:
        done = self._try(*arguments, stdin=stdin, environment=environment, at=at)
        if done.returncode:
            raise GitFailed(f"git {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def _try(
        self,
        *arguments: str,
        stdin: str = "",
        environment: Mapping[str, str] | None = None,
        at: tuple[str, ...] | None = (),
    ) -> subprocess.CompletedProcess[str]:
        here = () if at is None else ("--git-dir", str(self.path))
        return subprocess.run(
            ["git", *here, *arguments],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env={**ENVIRONMENT, **(environment or {})},
            check=False,
        )


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"
