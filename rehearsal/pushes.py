"""What a push means: after git has moved a branch, everything that hangs on it follows.

Nothing is told by git; the branches are compared with those last seen. So a push that was received
just before the process died is found and announced after the next start.
"""

from __future__ import annotations

from rehearsal import pulls, shapes
from rehearsal.events import announce
from rehearsal.git import ZERO, Bare
from rehearsal.repositories import bare, by_id, full_name
from rehearsal.state import Row, State, now


def notice(state: State, repository: int, actor: str) -> None:
    """Find the branches that moved and let pull requests, events and later reads follow them."""
    with state.transaction():
        seen = {row["name"]: row["sha"] for row in state.all("SELECT * FROM branch WHERE repository = ?", repository)}
        held = bare(state, repository).branches()
        for name in sorted(seen.keys() | held.keys()):
            before, after = seen.get(name, ZERO), held.get(name, ZERO)
            if before != after:
                _moved(state, by_id(state, repository), name, before, after, actor)


def notice_all(state: State) -> None:
    """What happened to any repository since its branches were last looked at."""
    for row in state.all("SELECT id, owner FROM repository"):
        notice(state, row["id"], row["owner"])


def _moved(state: State, repository: Row, name: str, before: str, after: str, actor: str) -> None:
    number = repository["id"]
    state.run("UPDATE repository SET pushed_at = ? WHERE id = ?", now(), number)
    if after == ZERO:
        state.run("DELETE FROM branch WHERE repository = ? AND name = ?", number, name)
    else:
        state.run("INSERT OR REPLACE INTO branch VALUES (?, ?, ?)", number, name, after)
    _announce_push(state, repository, name, before, after, actor)
    for pull in pulls.open_from(state, number, name):
        _head_moved(state, pull, before, after, actor)
    into = pulls.open_into(state, number, name)
    if into:
        _base_moved(state, into, bare(state, number), after, actor)


def _head_moved(state: State, pull: Row, before: str, after: str, actor: str) -> None:
    if after == ZERO:
        pulls.close(state, pull, actor)
        return
    pulls.follow_head(state, pull, after)
    followed = pulls.again(state, pull)
    pulls.tell(state, followed, "synchronize", actor, before=before, after=after)
    if pulls.compare(state, followed).commits == 0:
        # GitHub closes a pull request whose branch was reset onto its base.
        pulls.close(state, followed, actor)


def _base_moved(state: State, into: list[Row], git: Bare, after: str, actor: str) -> None:
    contained = git.pulls_within(after, [pull["number"] for pull in into]) if after != ZERO else set()
    for pull in into:
        if after == ZERO:
            pulls.close(state, pull, actor)
        elif pull["landing"] and git.contains(after, pull["landing"]):
            pulls.mark_merged(state, pull, pull["landing"], actor)
        elif pull["number"] in contained:
            pulls.mark_merged(state, pull, after, actor)


def _announce_push(state: State, repository: Row, name: str, before: str, after: str, actor: str) -> None:
    git = bare(state, repository)
    created, deleted = before == ZERO, after == ZERO
    forced = not created and not deleted and not git.contains(after, before)
    since = state.one(
        "SELECT sha FROM branch WHERE repository = ? AND name = ?",
        repository["id"],
        repository["default_branch"],
    )
    known = (since["sha"] if since else ZERO) if created or forced else before
    commits = [] if deleted else [_commit(state, repository, sha.sha, sha.message) for sha in
                                  git.commits(known, after, limit=20)]  # fmt: skip
    page = f"{state.address}{full_name(repository)}"
    payload = {
        "ref": f"refs/heads/{name}",
        "before": before,
        "after": after,
        "created": created,
        "deleted": deleted,
        "forced": forced,
        "base_ref": None,
        "compare": f"{page}/compare/{before[:12]}...{after[:12]}",
        "commits": commits,
        "head_commit": commits[-1] if commits else None,
        "pusher": {"name": actor, "email": f"{actor}@users.noreply.github.com"},
    }
    announce(state, "push", repository, actor, payload)


def _commit(state: State, repository: Row, sha: str, message: str) -> shapes.Shape:
    return {"id": sha, "message": message, "url": f"{state.address}{full_name(repository)}/commit/{sha}"}
