"""GitHub as a forge."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from domain.errors import NotFound, Unauthorized, Unavailable, WatchbillError
from domain.pull import Merge, MergeKind, Opened, OpenKind, PullRequest, Repository
from forge import text
from forge.git import Auth
from forge.github_api import GRAPHQL, GitHubApi
from forge.github_auth import Credentials
from forge.github_errors import Refused, graphql_error
from forge.port import owner_of

_PAGE = 100

_MARK_READY = """
mutation($pull: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $pull}) { pullRequest { isDraft } } }
"""


class GitHub:
    """The port `forge.port.Forge` over GitHub's REST API; see there for what the methods promise.

    `merge_method` is `merge`, `squash` or `rebase`; the repository has to allow it.
    """

    def __init__(self, api: GitHubApi, credentials: Credentials, *, merge_method: str = "squash") -> None:
        self._api, self._credentials, self._merge_method = api, credentials, merge_method

    async def repository(self, name: str) -> Repository:
        try:
            found = await self._ask(name, "GET")
        except NotFound as error:
            raise NotFound(f"{name} is not there, or our credentials do not reach it ({error})") from None
        if found["archived"]:
            raise Unauthorized(f"{name} is archived, so nothing can be pushed to it")
        return Repository(found["full_name"], found["default_branch"], found["clone_url"])

    async def installation(self, name: str) -> int:
        number = await self._credentials.installation(name)
        if not number:
            # A person's token has no installation to ask about: what it reaches is all that can be known.
            await self.repository(name)
        return number

    async def branch_head(self, name: str, branch: str) -> str | None:
        try:
            return str((await self._ask(name, "GET", f"/git/ref/heads/{quote(branch)}"))["object"]["sha"])
        except NotFound:
            return None

    async def push_auth(self, name: str) -> Auth:
        return Auth.with_token(await self._credentials.token(name))

    async def renew_auth(self, name: str) -> bool:
        before = await self._credentials.token(name)
        self._credentials.forget(name)
        return await self._credentials.token(name) != before

    async def open_pull_request(
        self, name: str, *, branch: str, base: str, title: str, body: str, draft: bool = False, renew: bool = False
    ) -> Opened:
        found = await self._standing(name, branch, base)
        if found and found.open and found.draft:
            found = await self._renew_draft(name, found.number, text.title(title), body, ready=not draft)
        elif found and found.open and renew:
            now = {"title": text.title(title), "body": body}
            found = _pull(await self._ask(name, "PATCH", f"/pulls/{found.number}", json=now))
        if found:
            return Opened(OpenKind.FOUND, found)
        wanted = {"title": text.title(title), "body": body, "head": branch, "base": base, "draft": draft}
        try:
            return Opened(OpenKind.OPENED, _pull(await self._ask(name, "POST", "/pulls", json=wanted)))
        except Refused as refused:
            if refused.says("No commits between"):
                return Opened(OpenKind.EMPTY)
            if refused.says("Draft pull requests are not supported"):
                return Opened(OpenKind.NO_DRAFTS)
            if refused.says("A pull request already exists"):
                return Opened(OpenKind.FOUND, await self._listed_at_last(name, branch, base))
            for field, wrong in (("head", branch), ("base", base)):
                if field in refused.fields:
                    raise await self._missing(name, wrong) from None
            raise

    async def find_pull_request(self, name: str, *, branch: str, base: str) -> PullRequest | None:
        return next(iter(await self._pulls(name, branch, base)), None)

    async def read_pull_request(self, name: str, number: int) -> PullRequest:
        return _pull(await self._ask(name, "GET", f"/pulls/{number}"))

    async def merge_pull_request(self, name: str, number: int, *, sha: str, title: str, message: str = "") -> Merge:
        wanted = {
            "sha": sha,
            "commit_title": f"{text.title(title)} (#{number})",
            "merge_method": self._merge_method,
        }
        if message:
            wanted["commit_message"] = text.neutral(message)
        try:
            answer = await self._ask(name, "PUT", f"/pulls/{number}/merge", json=wanted)
        except Refused as refused:
            return await self._not_merged(name, number, refused)
        return Merge(MergeKind.MERGED, answer["sha"])

    async def close_pull_request(self, name: str, number: int) -> None:
        if (await self.read_pull_request(name, number)).open:
            await self._ask(name, "PATCH", f"/pulls/{number}", json={"state": "closed"})

    async def comment(self, name: str, number: int, marker: str, body: str) -> None:
        line = text.marker("comment", marker)
        wanted = {"body": f"{line}\n{body}"}
        ours = await self._comment(name, number, line)
        if ours is None:
            await self._ask(name, "POST", f"/issues/{number}/comments", json=wanted)
        elif ours["body"] != wanted["body"]:
            await self._ask(name, "PATCH", f"/issues/comments/{ours['id']}", json=wanted)

    async def _standing(self, name: str, branch: str, base: str) -> PullRequest | None:
        """The open pull request, or one that has ended with the branch as it is now or gone."""
        pulls = await self._pulls(name, branch, base)
        opened = next((pull for pull in pulls if pull.open), None)
        if opened or not pulls:
            return opened
        head = await self.branch_head(name, branch)
        return next((pull for pull in pulls if head in (None, pull.head_sha)), None)

    async def _renew_draft(self, name: str, number: int, title: str, body: str, *, ready: bool) -> PullRequest:
        """Say of a draft what is to be said now, and let it be merged once it is ready; only GraphQL can do that."""
        found = await self._ask(name, "PATCH", f"/pulls/{number}", json={"title": title, "body": body})
        if not ready:
            return _pull(found)
        asked = {"query": _MARK_READY, "variables": {"pull": found["node_id"]}}
        answer = await self._send(name, "POST", GRAPHQL, json=asked)
        pull = await self.read_pull_request(name, number)
        if pull.draft and pull.open and answer.get("errors"):
            raise graphql_error(f"mark {name}#{number} as ready", answer["errors"])
        return pull

    async def _listed_at_last(self, name: str, branch: str, base: str) -> PullRequest:
        pull = next((pull for pull in await self._pulls(name, branch, base) if pull.open), None)
        if pull is None:
            raise Unavailable(f"{name} has a pull request from {branch} that its list does not show yet")
        return pull

    async def _pulls(self, name: str, branch: str, base: str) -> list[PullRequest]:
        """Pull requests from our branch to this base, newest first.

        The filter needs the owner: GitHub ignores a bare branch and lists everything. A fork may have a
        branch of the same name, and the repository of a head may be gone.
        """
        wanted = {"head": f"{owner_of(name)}:{branch}", "base": base, "state": "all"}
        order: dict[str, str | int] = {"sort": "created", "direction": "desc", "per_page": _PAGE}
        listed = await self._ask(name, "GET", "/pulls", params=wanted | order)
        return [
            _pull(pull)
            for pull in listed
            if pull["head"]["ref"] == branch
            and (pull["head"]["repo"] or {}).get("id") == pull["base"]["repo"]["id"]
            and pull["base"]["ref"] == base
        ]

    async def _missing(self, name: str, branch: str) -> WatchbillError:
        if await self.branch_head(name, branch) is None:
            return NotFound(f"{name} has no branch {branch!r}")
        return Unavailable(f"{name} does not know its new branch {branch!r} everywhere yet")

    async def _not_merged(self, name: str, number: int, refused: Refused) -> Merge:
        """What a refusal to merge comes down to. GitHub says 405 for nearly everything, so we look."""
        reason = "; ".join(refused.reasons)
        pull = await self.read_pull_request(name, number)
        if pull.merged:
            return Merge(MergeKind.MERGED, pull.merged_sha)
        if refused.status == 409:
            return Merge(MergeKind.HEAD_MOVED, reason=reason)
        if refused.status != 405:
            raise refused
        if refused.says("Base branch was modified"):
            raise Unavailable(f"the base of {name}#{number} moved while it was being merged")
        if not pull.open:
            return Merge(MergeKind.BLOCKED, reason=f"pull request {number} is closed")
        if pull.mergeable is False:
            return Merge(MergeKind.CONFLICT, reason=reason)
        if pull.mergeable is None:
            raise Unavailable(f"GitHub has not worked out yet whether {name}#{number} can be merged")
        return Merge(MergeKind.BLOCKED, reason=reason)

    async def _comment(self, name: str, number: int, line: str) -> dict[str, Any] | None:
        """Our own comment that begins with this line; anybody may have copied the line."""
        login = await self._credentials.login()
        page = 0
        while True:
            page += 1
            asked: dict[str, str | int] = {"per_page": _PAGE, "page": page}
            comments = await self._ask(name, "GET", f"/issues/{number}/comments", params=asked)
            for comment in comments:
                if (comment["user"] or {}).get("login") == login and comment["body"].startswith(line):
                    return dict(comment)
            if len(comments) < _PAGE:
                return None

    async def _ask(self, name: str, method: str, path: str = "", **about: Any) -> Any:
        owner_of(name)
        return await self._send(name, method, f"/repos/{name}{path}", **about)

    async def _send(self, name: str, method: str, path: str, **about: Any) -> Any:
        token = await self._credentials.token(name)
        try:
            return await self._api.ask(f"Bearer {token}", method, path, **about)
        except Unauthorized:
            # A 401 has done nothing, and the token may have been revoked: by a new installation, say.
            if not await self.renew_auth(name):
                raise
            token = await self._credentials.token(name)
            return await self._api.ask(f"Bearer {token}", method, path, **about)


def _pull(found: dict[str, Any]) -> PullRequest:
    """A pull request as GitHub reads it; in lists it does not say `mergeable` and `merged_by`."""
    merged = bool(found["merged_at"])
    return PullRequest(
        number=found["number"],
        url=found["html_url"],
        open=found["state"] == "open",
        merged=merged,
        head_ref=found["head"]["ref"],
        head_sha=found["head"]["sha"],
        base_ref=found["base"]["ref"],
        # Before the merge it is the commit of a merge that was only tried.
        merged_sha=(found.get("merge_commit_sha") or "") if merged else "",
        mergeable=found.get("mergeable"),
        closed_at=found["closed_at"] or "",
        merged_by=(found.get("merged_by") or {}).get("login") or "",
        draft=bool(found.get("draft")),
    )
