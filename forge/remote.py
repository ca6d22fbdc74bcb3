"""The forge's repository as git sees it, spoken to from a mirror and by explicit address."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from domain.errors import Unavailable, WatchbillError
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

    def fetch(self, base: str, *branches: str) -> dict[str, str | None]:
        """Bring the base, and those of the other branches that there are; where each of them is now.

        None stands for a branch that is not there. Without its base nothing is brought.
        """
        wanted = [_spec(base), *(_spec(_if_there(branch)) for branch in branches)]
        try:
            self._bring(wanted, base, *branches)
        except Unavailable as error:
            if "couldn't find remote ref" not in str(error) or self.heads(base)[base] is not None:
                raise
            return dict.fromkeys((base, *branches))
        known = self._known((base, *branches))
        return {branch: known.get(_ORIGIN + branch) for branch in (base, *branches)}

    def heads(self, *branches: str) -> dict[str, str | None]:
        """Where each branch is at the remote now; None where it has no such branch."""
        names = [f"refs/heads/{branch}" for branch in branches]
        listed = self._git("ls-remote", "--", self.url, *names)
        found = {name: sha for sha, name in (line.split("\t", 1) for line in lines(listed))}
        return {branch: found.get(name) for branch, name in zip(branches, names, strict=True)}

    def _bring(self, specs: list[str], *branches: str) -> None:
        """Fetch by these refspecs; `branches` are those that must find room here."""
        # Pruned is only what these refspecs speak of: a branch that the remote no longer has is not one here either.
        fetch = ("fetch", "--quiet", "--prune", "--no-write-fetch-head", "--", self.url, *specs)
        try:
            self._git(*fetch)
        except WatchbillError:
            if not self._make_room(branches):
                raise
            self._git(*fetch)

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
            if there:
                self._bring([_spec(branch)], branch)
            return Push(PushKind.MOVED, there)
        raise push_refusal(branch, refusals)

    def _make_room(self, wanted: Iterable[str]) -> bool:
        """Delete what stands in the way of these branches; whether anything did.

        A branch `a` that the remote no longer has leaves no room here for its new branch `a/b`.
        """
        stale = [
            name
            for name in refs(self.mirror, self.lock, _ORIGIN)
            for new in (_ORIGIN + branch for branch in wanted)
            if new.startswith(f"{name}/") or name.startswith(f"{new}/")
        ]
        if stale:
            deletions = "".join(f"delete {name}\n" for name in stale)
            run(self.mirror, "update-ref", "--stdin", input=deletions.encode(), held=(self.lock,))
        return bool(stale)

    def _git(self, *args: str, accept: tuple[int, ...] = (0,)) -> bytes:
        refuse_credentials(self.url)
        config = self.auth.config(self.url) if self.auth else {}
        return run(self.mirror, *args, config=config, timeout=REMOTE_SECONDS, held=(self.lock,), accept=accept)


def _spec(branch: str) -> str:
    return f"+refs/heads/{branch}:{_ORIGIN}{branch}"


def _if_there(branch: str) -> str:
    """The branch as a pattern that hardly another one matches: git does without what a pattern does not find.

    The star stands late, because the remote lists every branch that begins as the pattern does.
    """
    at = max(1, len(branch) - 6)
    return f"{branch[:at]}*{branch[at + 1 :]}"
