"""Merging a pull request: the guards in GitHub's order, then real git, so that the base really moves."""

from __future__ import annotations

import json

from rehearsal import protection, pushes
from rehearsal.answers import Refused
from rehearsal.repositories import bare, by_id
from rehearsal.state import Row, State

_DOCUMENTATION = "https://docs.github.com/rest/pulls/pulls#merge-a-pull-request"
_NOT_ALLOWED = {
    "merge": "Merge commits are not allowed on this repository.",
    "squash": "Squash merges are not allowed on this repository.",
    "rebase": "Rebase merges are not allowed on this repository.",
}


def merge(
    state: State, repository: Row, pull: Row, actor: str, *, method: str, sha: str, title: str, message: str
) -> str:
    """Land the pull request and answer the sha of the commit that did.

    `sha` guards the head (empty: no guard); `title` and `message` replace GitHub's own when given.
    Raises Refused: 409 when the head is another, 405 for everything that forbids the merge.
    """
    _guard(state, repository, pull, method, sha)
    git = bare(state, repository)
    base = git.resolve(f"refs/heads/{pull['base_ref']}")
    landed = base and _made(state, pull, base, method, title, message)
    if not base or not landed:
        raise _refused("Pull Request is not mergeable")
    # Written down first: should we die after git moved the base, the next start finds out by it
    # that this pull request was merged.
    state.run("UPDATE pull SET landing = ? WHERE issue = ?", landed, pull["issue"])
    state.checkpoint()
    if not git.update(f"refs/heads/{pull['base_ref']}", landed, base):
        raise _refused("Base branch was modified. Review and try the merge again.")
    pushes.notice(state, repository["id"], actor)
    return landed


def _refused(message: str, status: int = 405) -> Refused:
    return Refused(status, message, documentation=_DOCUMENTATION)


def _guard(state: State, repository: Row, pull: Row, method: str, sha: str) -> None:
    if pull["state"] != "open":
        raise _refused("Pull Request is not mergeable")
    if sha and sha != pull["head_sha"]:
        raise _refused("Head branch was modified. Review and try the merge again.", 409)
    if pull["draft"]:
        raise _refused("Pull Request is still a draft")
    if method not in json.loads(repository["merge_methods"]):
        raise _refused(_NOT_ALLOWED.get(method, "This merge method is not allowed on this repository."))
    unmet = protection.unmet(state, pull)
    if unmet:
        raise _refused(unmet)


def _made(state: State, pull: Row, base: str, method: str, title: str, message: str) -> str | None:
    """The commit that lands the pull request on this base, made but on no branch; None on a conflict."""
    git, head = bare(state, pull["repository"]), pull["head_sha"]
    if method == "rebase":
        return git.rebased(base, head)
    tree = git.merge_tree(base, head)
    if tree is None:
        return None
    author = {
        "GIT_AUTHOR_NAME": pull["author"],
        "GIT_AUTHOR_EMAIL": f"{pull['author']}@users.noreply.github.com",
    }
    if method == "squash":
        first = title or f"{pull['title']} (#{pull['number']})"
        body = message or "\n\n".join(f"* {commit.message}" for commit in git.commits(base, head))
        return git.commit_tree(tree, [base], f"{first}\n\n{body}", author)
    source = by_id(state, pull["head_repository"])
    first = title or f"Merge pull request #{pull['number']} from {source['owner']}/{pull['head_ref']}"
    return git.commit_tree(tree, [base, head], f"{first}\n\n{message or pull['title']}", author)


def update_branch(state: State, repository: Row, pull: Row, actor: str, expected: str) -> None:
    """Merge the base into the pull request's branch. Raises Refused 422."""
    if expected and expected != pull["head_sha"]:
        raise Refused(422, "expected head sha didn\u2019t match current head ref.")
    source = by_id(state, pull["head_repository"])
    git = bare(state, source)
    git.fetch(bare(state, repository), f"+refs/heads/{pull['base_ref']}:refs/pull/base")
    base = git.resolve("refs/pull/base")
    tree = base and git.merge_tree(pull["head_sha"], base)
    if not base or not tree:
        raise Refused(422, "merge conflict between base and head")
    message = f"Merge branch '{pull['base_ref']}' into {pull['head_ref']}"
    merged = git.commit_tree(tree, [pull["head_sha"], base], message)
    if not git.update(f"refs/heads/{pull['head_ref']}", merged, pull["head_sha"]):
        raise Refused(422, "expected head sha didn\u2019t match current head ref.")
    pushes.notice(state, source["id"], actor)
