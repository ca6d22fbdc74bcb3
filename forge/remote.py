"""The forge's repository as git sees it, spoken to from a mirror and by explicit address."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from domain.errors import WatchbillError
from domain.pull import Push, PushKind
from forge.git import REMOTE_SECONDS, Auth, lines, push_refusal, refs, refuse_credentials, run

_ORIGIN = "refs/remotes/origin/"


@dataclass(frozen=True)
class Remote:
    """`lock` is the mirror's lock, which the caller holds."""

    mirror: Path
    lock: int
    url: str
    auth: Auth | None

    def heads(self, *branches: str) -> dict[str, str | None]:
        """Where each branch is at the remote now; None where it has no such branch."""
        names = [f"refs/heads/{branch}" for branch in branches]
        listed = self._git("ls-remote", "--", self.url, *names)
        found = {name: sha for sha, name in (line.split("\t", 1) for line in lines(listed))}
        return {branch: found.get(name) for branch, name in zip(branches, names, strict=True)}

    def bring(self, heads: dict[str, str | None]) -> dict[str, str | None]:
        """Fetch those of the remote's `heads` that are not here yet; answers where they are here now."""
        known = self._known(heads)
        missing = [branch for branch, sha in heads.items() if sha and known.get(_ORIGIN + branch) != sha]
        if not missing:
            return heads
        specs = [f"+refs/heads/{branch}:{_ORIGIN}{branch}" for branch in missing]
        fetch = ("fetch", "--quiet", "--no-write-fetch-head", "--", self.url, *specs)
        try:
            self._git(*fetch)
        except WatchbillError:
            if not self._make_room(missing):
                raise
            self._git(*fetch)
        known = self._known(heads)
        return {branch: sha and known[_ORIGIN + branch] for branch, sha in heads.items()}

    def _known(self, branches: Iterable[str]) -> dict[str, str]:
        """Where these branches are here, and no others: there may be thousands."""
        return refs(self.mirror, self.lock, *(_ORIGIN + branch for branch in branches))

    def push(self, branch: str, sha: str, expected: str) -> Push:
        """Set the branch to `sha` if it is at `expected`; an empty string stands for no branch.

        A branch that is at `sha` already is PUSHED (git looks for that before it looks at the lease).
        """
        ref = f"refs/heads/{branch}"
        lease = f"--force-with-lease={ref}:{expected}"
        printed = self._git("push", "--porcelain", lease, "--", self.url, f"{sha}:{ref}", accept=(0, 1))
        report = printed.decode("utf-8", "replace").splitlines()
        refusals = [line for line in report if line.startswith("!")]
        if "Done" in report and not refusals:
            return Push(PushKind.PUSHED, sha)
        # The reason is prose; where the branch stands now is a fact.
        heads = self.heads(branch)
        there = heads[branch] or ""
        if there == sha:
            return Push(PushKind.PUSHED, sha)
        if there != expected:
            self.bring(heads)
            return Push(PushKind.MOVED, there)
        raise push_refusal(branch, refusals)

    def _make_room(self, missing: list[str]) -> bool:
        """Delete what stands in the way of these branches; whether anything did.

        A branch `a` that the remote no longer has leaves no room here for its new branch `a/b`.
        """
        stale = [
            name
            for name in refs(self.mirror, self.lock, _ORIGIN)
            for wanted in (_ORIGIN + branch for branch in missing)
            if wanted.startswith(f"{name}/") or name.startswith(f"{wanted}/")
        ]
        if stale:
            deletions = "".join(f"delete {name}\n" for name in stale)
            run(self.mirror, "update-ref", "--stdin", input=deletions.encode(), held=(self.lock,))
        return bool(stale)

    def _git(self, *args: str, accept: tuple[int, ...] = (0,)) -> bytes:
        refuse_credentials(self.url)
        config = self.auth.config(self.url) if self.auth else {}
        return run(self.mirror, *args, config=config, timeout=REMOTE_SECONDS, held=(self.lock,), accept=accept)
