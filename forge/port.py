"""What Watchbill needs of a forge. GitHub is behind it, or anything that speaks as GitHub does."""

from __future__ import annotations

import re
from typing import Protocol

from domain.errors import NotFound
from domain.pull import Merge, Opened, PullRequest, Repository
from forge.git import Auth


def owner_of(name: str) -> str:
    """The owner in `owner/name`; NotFound for what is no repository's name."""
    if not re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name, re.ASCII) or name.endswith(("/.", "/..")):
        raise NotFound(f"{name!r} is not the name of a repository: write owner/name")
    return name.split("/", 1)[0]


class Forge(Protocol):
    """The forge's API. Repositories are named `owner/name`.

    Every method raises Unauthorized when the credentials are not accepted or do not reach this far,
    RateLimited (with `retry_after`) and Unavailable when trying again helps, NotFound when the repository
    is not there for us, and WatchbillError for what the forge refuses. All of them may be repeated.
    """

    async def repository(self, name: str) -> Repository:
        """The repository as the forge spells it, with the branch it calls its default."""
        ...

    async def installation(self, name: str) -> int:
        """Check that we may work there, or say what to do; the App's installation, 0 where there is none."""
        ...

    async def branch_head(self, name: str, branch: str) -> str | None:
        """The commit that a branch is at, or None where there is no such branch."""
        ...

    async def push_auth(self, name: str) -> Auth:
        """Credentials for git, good for this repository and for at least five minutes."""
        ...

    async def renew_auth(self, name: str) -> bool:
        """Get new credentials for a repository that did not take ours; False when there are no others."""
        ...

    async def open_pull_request(
        self, name: str, *, branch: str, base: str, title: str, body: str, draft: bool = False, renew: bool = False
    ) -> Opened:
        """Open the pull request from `branch` to `base`, or find the one that there is.

        A draft that is found gets this title and body, and is made ready unless a `draft` is what is wanted;
        NO_DRAFTS where the forge has none for this repository. One that is ready stays so, and as it is unless
        `renew` wants this title and body for it: what was asked for is something else by now.
        FOUND also for one that was merged or closed with the branch as it is now, or gone: what a person
        closed is not opened again. EMPTY when the forge sees nothing to merge. Raises NotFound when branch
        or base is not there.
        """
        ...

    async def find_pull_request(self, name: str, *, branch: str, base: str) -> PullRequest | None:
        """The newest pull request from our branch to this base in any state; never one of a fork's branch."""
        ...

    async def read_pull_request(self, name: str, number: int) -> PullRequest:
        """The pull request as it is now."""
        ...

    async def merge_pull_request(self, name: str, number: int, *, sha: str, title: str, message: str = "") -> Merge:
        """Merge it if its head is still `sha`; MERGED also when it has been merged meanwhile, by whomever.

        `title` and `message` are for the commit on the base, where they close and mention nothing; without
        a message the forge makes one.
        """
        ...

    async def close_pull_request(self, name: str, number: int) -> None:
        """Close it without merging; one that is closed or merged stays as it is."""
        ...

    async def comment(self, name: str, number: int, marker: str, body: str) -> None:
        """Write our comment of this marker on a pull request, or bring the one that is there up to date."""
        ...
