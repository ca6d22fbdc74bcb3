"""Our own bare repository for each repository on the forge.

Everything we do with git happens here, where no agent can write: branches are fetched into
`refs/remotes/origin/`, what runs leave is preserved under `refs/watchbill/<task>/<run>`, and branches are
pushed from here by explicit address. Workspaces are cut from it and collected into it.

Operations share the mirror's lock (forge.lock) and leave it to git to settle who writes a ref first.
When git finds another at work, or a lock file that a killed process left, the operation is repeated
alone: then nothing of ours is at work, every lock file is a leftover, and it is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from domain.errors import NotFound, WatchbillError
from domain.identity import digest
from domain.pull import Push, PushKind
from forge import workspace
from forge.aside import beside, remove
from forge.collect import Work, collect
from forge.git import Auth, Contended, exists, is_ancestor, refs, run
from forge.lock import held, if_free
from forge.port import owner_of
from forge.remote import Remote

T = TypeVar("T")

MANY_LOOSE = 64
"""Tasks whose preserved refs may be files of their own: git opens every one of them whenever it fetches or pushes."""

MANY_PACKS = 16
"""Fetches whose objects may be packs of their own; what runs left lies loose until then."""


class Mirror:
    """The bare repository of one repository of the forge; see the module for how it is kept.

    Synchronous: it runs in activity threads, any number of them at once, in any number of processes.
    """

    def __init__(self, home: Path, repository: str) -> None:
        """`home` is Watchbill's directory on this host, `repository` is `owner/name`."""
        owner_of(repository)
        self.repository = repository
        # The forge takes names without regard to case, and so do some file systems.
        name = repository.lower()
        self.path = home / "repositories" / f"{name.replace('/', '__')}-{digest(name)[:8]}.git"

    def fetch(self, url: str, auth: Auth | None, base: str, *branches: str) -> dict[str, str | None]:
        """The commits at the remote's base and at the other branches (None where there is no such branch).

        They are at `refs/remotes/origin/<branch>` afterwards. Raises NotFound for a base that is not
        there, Unauthorized, Unavailable.
        """
        heads = self._with(url, auth, lambda remote: remote.fetch(base, *branches))
        if heads[base] is None:
            raise NotFound(f"{self.repository} has no branch {base!r} to start from; correct the plan's base")
        return heads

    def cut(self, directory: Path, *, start: str, branch: str, base: str, base_sha: str) -> None:
        """Make the workspace of a task: `branch` checked out at `start`, and a branch `base` at `base_sha`.

        A workspace that stands there already is left as it is: someone may be at work in it.
        """
        own = {f"refs/heads/{base}": base_sha, f"refs/heads/{branch}": start}
        head = f"ref: refs/heads/{branch}"
        self._together(lambda lock: workspace.build(directory, self.path, lock, head=head, branches=own, start=start))

    def checkout(self, directory: Path, sha: str, *, base: str = "", base_sha: str = "") -> None:
        """Make a clean checkout of one commit, for who judges it; one that stands there already is left as it is.

        With `base_sha` it has a branch `base` there, to compare it with.
        """
        own = {f"refs/heads/{base}": base_sha} if base_sha else {}
        self._together(lambda lock: workspace.build(directory, self.path, lock, head=sha, branches=own, start=sha))

    def collect(
        self,
        directory: Path,
        *,
        task_id: str,
        run_id: str,
        start: str,
        base_sha: str,
        message: str,
        at: datetime,
        refuse: tuple[str, ...] = (),
    ) -> Work:
        """Commit what a run left in its workspace, and preserve it at its ref.

        `refuse` are patterns over paths that may not differ from the base; what does is in `faults`.
        The same files and the same `at` give the same commit. Files that the tree's own .gitignore names
        stay out, as do pipes, sockets and devices; what should be in but could not be is in `faults`.
        Raises NotFound when the workspace is not there.
        """
        work = partial(
            collect,
            directory,
            self.path,
            ref=_preserved(task_id, run_id),
            start=start,
            base_sha=base_sha,
            message=message,
            at=at,
            refuse=refuse,
        )
        done = self._together(work)
        self._tidy()
        return done

    def has(self, sha: str) -> bool:
        """Whether this commit is here."""
        return self._together(lambda lock: exists(self.path, lock, sha))

    def contains(self, sha: str, ancestor: str) -> bool:
        """Whether `ancestor` is in the history of `sha`; both are here."""
        return self._together(lambda lock: is_ancestor(self.path, lock, ancestor, sha))

    def preserved(self, task_id: str, run_id: str) -> str | None:
        """The commit that was made of what this run left, or None."""
        ref = _preserved(task_id, run_id)
        return self._together(lambda lock: refs(self.path, lock, ref).get(ref))

    def discard(self, directory: Path, *, task_id: str, run_id: str) -> str:
        """Delete a workspace whose last run is preserved; NotFound when it is not, and all stays.

        Answers what could not be deleted, in a sentence, or nothing. What `Work.faults` names is not
        in the preserved commit: whoever discards has seen them.
        """
        if self.preserved(task_id, run_id) is None:
            raise NotFound(f"the work of {run_id} is not preserved, so {directory} stays")
        return remove(directory)

    def discard_checkout(self, directory: Path) -> str:
        """Delete a check's checkout; answers what could not be deleted, or nothing."""
        return remove(directory)

    def push(self, url: str, auth: Auth | None, branch: str, sha: str, expected: str) -> Push:
        """Set the remote branch to `sha`, if it is where we left it: at `expected`, or not there when empty.

        PUSHED also when it is at `sha` already, so a repeat is safe. MOVED when somebody else pushed or
        deleted it: nothing was overwritten, and their commit has been fetched. WatchbillError when the
        forge's rules refuse the commit.
        """
        return self._with(url, auth, lambda remote: remote.push(branch, sha, expected))

    def delete_branch(self, url: str, auth: Auth | None, branch: str, sha: str) -> bool:
        """Delete the remote branch if it is still at `sha`; answers whether it is gone."""
        return self._with(url, auth, lambda remote: remote.push(branch, "", sha)).kind == PushKind.PUSHED

    def _with(self, url: str, auth: Auth | None, work: Callable[[Remote], T]) -> T:
        return self._together(lambda lock: work(Remote(self.path, lock, url, auth)))

    def _together(self, work: Callable[[int], T]) -> T:
        """Do this beside others; when another is in the way, do it alone and without what the dead left."""
        if not self._whole():
            self._create()
        try:
            with held(self._lock, exclusive=False) as lock:
                return work(lock)
        except Contended:
            with held(self._lock) as lock:
                self._clear_leftovers()
                return work(lock)

    @property
    def _lock(self) -> Path:
        return self.path / "in-use"

    def _whole(self) -> bool:
        try:
            head = (self.path / "HEAD").read_text()
        except OSError:
            return False
        return head.startswith("ref: refs/") and all((self.path / part).exists() for part in _PARTS)

    def _create(self) -> None:
        """Create the repository, or give back what a damaged one lacks; what it holds is kept."""
        if self.path.exists():
            with held(self._lock):
                if not self._whole():
                    (self.path / "HEAD").unlink(missing_ok=True)
                    run(self.path, *_INIT)
            return
        with beside(self.path) as (fresh, lock):
            run(fresh, *_INIT, held=(lock,))
            # Moving it in fails when another made it meanwhile: theirs is as good.
            with suppress(OSError):
                fresh.rename(self.path)

    def _tidy(self) -> None:
        """Put refs into one file, and objects into few packs, once they are many and nothing of ours is at work.

        A workspace is cut from packs at a tenth of what it costs to cut it from as many loose objects. Nothing is
        ever dropped. A crash in the middle leaves the old beside the new, and leftovers that are cleared as any are.
        What fails costs time alone, and is tried again after the next run.
        """
        loose = sum(1 for _ in self.path.glob(f"{_PRESERVED}/*"))
        packs = sum(1 for _ in self.path.glob("objects/pack/*.pack"))
        if loose < MANY_LOOSE and packs < MANY_PACKS:
            return
        with if_free(self._lock) as lock, suppress(WatchbillError):
            if lock is None:
                return
            self._clear_leftovers()
            if loose >= MANY_LOOSE:
                run(self.path, "pack-refs", "--all", held=(lock,))
            if packs >= MANY_PACKS:
                try:
                    run(self.path, "repack", "--quiet", "-d", "--geometric=2", held=(lock,))
                finally:
                    self._clear_leftovers()

    def _clear_leftovers(self) -> None:
        """Delete what killed processes left; the mirror's lock is held alone, so nothing of it is in use."""
        for pattern in _LEFTOVERS:
            for leftover in self.path.glob(pattern):
                leftover.unlink(missing_ok=True)


_LEFTOVERS = (
    "*.lock",
    "packed-refs.new",
    "refs/**/*.lock",
    *(f"objects/pack/{name}" for name in ("tmp_*", ".tmp-*", "*.keep")),
)
_PARTS = ("config", "objects", "refs")
_INIT = ("init", "--quiet", "--bare", "--template=", "--initial-branch=main")


_PRESERVED = "refs/watchbill"


def _preserved(task_id: str, run_id: str) -> str:
    return f"{_PRESERVED}/{task_id}/{run_id}"
