"""Repositories, branches, refs, commits, and who may do what."""

from __future__ import annotations

from dataclasses import replace

from rehearsal import pushes, shapes
from rehearsal.answers import Answer, Refused, custom, not_found
from rehearsal.auth import at_least, may, role
from rehearsal.call import Call, Endpoint
from rehearsal.git import ZERO
from rehearsal.repositories import branch_sha
from rehearsal.shapes import Shape


def read_user(call: Call) -> Answer:
    if call.actor.installation is not None or call.actor.app is not None:
        raise Refused(403, "Resource not accessible by integration")
    if not call.actor.login:
        raise Refused(401, "Requires authentication")
    return Answer(shapes.user(call.state, call.actor.login) | _PROFILE)


_PROFILE: Shape = {
    "name": None,
    "company": None,
    "blog": None,
    "location": None,
    "email": None,
    "hireable": None,
    "bio": None,
    "public_repos": 0,
    "public_gists": 0,
    "followers": 0,
    "following": 0,
    "created_at": "2008-01-14T04:33:35Z",
    "updated_at": "2008-01-14T04:33:35Z",
}


def read_repository(call: Call) -> Answer:
    permissions = {
        "admin": call.actor.installation is None and _reaches(call, "admin"),
        "push": _reaches(call, "write"),
        "pull": True,
    }
    return Answer(shapes.full_repository(call.state, call.repository, permissions))


def _reaches(call: Call, level: str) -> bool:
    return may(call.state, call.actor, call.repository, "contents", level)


def read_branch(call: Call) -> Answer:
    name = call.path["branch"]
    sha = branch_sha(call.state, call.repository["id"], name)
    if sha is None:
        raise Refused(404, "Branch not found")
    rule = call.state.one("SELECT 1 FROM protection WHERE repository = ? AND branch = ?", call.repository["id"], name)
    here = f"{call.repository_url}/branches/{name}"
    return Answer(
        {
            "name": name,
            "commit": shapes.commit(call.state, call.repository, call.git.commit(sha)),
            "_links": {"self": here, "html": here},
            "protected": rule is not None,
            "protection": {"enabled": rule is not None},
            "protection_url": f"{here}/protection",
        }
    )


def list_branches(call: Call) -> Answer:
    rows = call.state.all("SELECT * FROM branch WHERE repository = ? ORDER BY name", call.repository["id"])
    return call.page(
        [
            {
                "name": row["name"],
                "commit": {"sha": row["sha"], "url": f"{call.repository_url}/commits/{row['sha']}"},
                "protected": False,
            }
            for row in rows
        ]
    )


def read_ref(call: Call) -> Answer:
    name = f"refs/{call.path['ref']}"
    sha = call.git.resolve(name)
    if sha is None:
        raise not_found()
    return Answer(_ref(call, name, sha))


def create_ref(call: Call) -> Answer:
    name, sha = call.text("ref"), call.text("sha")
    if not name.startswith("refs/heads/"):
        raise Refused(422, "Reference name must start with 'refs/heads/'")
    if call.git.resolve(sha) is None:
        raise Refused(422, "Object does not exist")
    if not call.git.update(name, sha, ZERO):
        raise Refused(422, "Reference already exists")
    pushes.notice(call.state, call.repository["id"], call.actor.login)
    return Answer(_ref(call, name, sha), 201)


def delete_ref(call: Call) -> Answer:
    name = f"refs/{call.path['ref']}"
    if call.git.resolve(name) is None or not name.startswith("refs/heads/"):
        raise Refused(422, "Reference does not exist")
    if name == f"refs/heads/{call.repository['default_branch']}":
        raise Refused(422, "Cannot delete the default branch")
    call.git.delete(name)
    pushes.notice(call.state, call.repository["id"], call.actor.login)
    return Answer(status=204)


def _ref(call: Call, name: str, sha: str) -> Shape:
    return {
        "ref": name,
        "node_id": f"REF_{name}",
        "url": f"{call.repository_url}/git/{name}",
        "object": {"type": "commit", "sha": sha, "url": f"{call.repository_url}/git/commits/{sha}"},
    }


def rename_branch(call: Call) -> Answer:
    """Rename a branch; open pull requests into it follow, and those from it close, as on GitHub."""
    old, new = call.path["branch"], call.text("new_name")
    number = call.repository["id"]
    sha = branch_sha(call.state, number, old)
    if sha is None:
        raise not_found()
    if not call.git.update(f"refs/heads/{new}", sha, ZERO):
        raise custom("Branch", f"Branch {new} already exists.")
    call.git.delete(f"refs/heads/{old}")
    call.state.run(
        "UPDATE pull SET base_ref = ? WHERE base_ref = ? AND issue IN"
        " (SELECT id FROM issue WHERE repository = ? AND state = 'open')",
        new, old, number,
    )  # fmt: skip
    if old == call.repository["default_branch"]:
        call.state.run("UPDATE repository SET default_branch = ? WHERE id = ?", new, number)
        call.git.point_head_at(new)
    pushes.notice(call.state, number, call.actor.login)
    renamed = replace(call, path={**call.path, "branch": new})
    return replace(read_branch(renamed), status=201)


def read_commit(call: Call) -> Answer:
    sha = call.commit(call.path["ref"])
    body = shapes.commit(call.state, call.repository, call.git.commit(sha))
    return Answer(body | {"stats": {}, "files": []})


# What GitHub's five roles come to in the three that there are here.
_ROLES = {"pull": "read", "triage": "write", "push": "write", "maintain": "admin", "admin": "admin"}


def read_permission(call: Call) -> Answer:
    login = call.path["login"]
    if call.state.one("SELECT 1 FROM account WHERE login = ?", login) is None:
        raise not_found()
    level = role(call.state, login, call.repository)
    allowed = {name: at_least(level, wanted) for name, wanted in _ROLES.items()}
    person = shapes.user(call.state, login) | {"permissions": allowed, "role_name": level}
    return Answer({"permission": level, "role_name": level, "user": person})


ENDPOINTS = (
    Endpoint("GET", "/user", read_user),
    Endpoint("GET", "/repos/{owner}/{repo}", read_repository, "metadata:read"),
    Endpoint("GET", "/repos/{owner}/{repo}/branches", list_branches, "contents:read"),
    Endpoint("GET", "/repos/{owner}/{repo}/branches/{branch:path}", read_branch, "contents:read"),
    Endpoint("POST", "/repos/{owner}/{repo}/branches/{branch:path}/rename", rename_branch, "contents:write"),
    Endpoint("GET", "/repos/{owner}/{repo}/git/ref/{ref:path}", read_ref, "contents:read"),
    Endpoint("POST", "/repos/{owner}/{repo}/git/refs", create_ref, "contents:write"),
    Endpoint("DELETE", "/repos/{owner}/{repo}/git/refs/{ref:path}", delete_ref, "contents:write"),
    Endpoint("GET", "/repos/{owner}/{repo}/collaborators/{login}/permission", read_permission, "metadata:read"),
)
LAST_ENDPOINTS = (Endpoint("GET", "/repos/{owner}/{repo}/commits/{ref:path}", read_commit, "contents:read"),)
"""Those whose path would swallow longer ones: to be matched after all others."""
