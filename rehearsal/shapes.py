"""Accounts, repositories, commits, Apps and installations in the shapes of GitHub's OpenAPI description."""

from __future__ import annotations

import json
from typing import Any

from rehearsal.git import Commit
from rehearsal.repositories import by_id, full_name
from rehearsal.state import Row, State

Shape = dict[str, Any]

_USER_PATHS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}

_REPOSITORY_PATHS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}

_REPOSITORY_CONSTANTS: Shape = {
    "description": None,
    "homepage": None,
    "language": None,
    "mirror_url": None,
    "license": None,
    "archived": False,
    "disabled": False,
    "has_issues": True,
    "has_projects": False,
    "has_downloads": True,
    "has_wiki": False,
    "has_pages": False,
    "has_discussions": False,
    "forks": 0,
    "forks_count": 0,
    "network_count": 0,
    "open_issues": 0,
    "open_issues_count": 0,
    "size": 0,
    "stargazers_count": 0,
    "subscribers_count": 0,
    "watchers": 0,
    "watchers_count": 0,
    "visibility": "public",
    "allow_auto_merge": False,
    "delete_branch_on_merge": False,
}


def node(kind: str, number: int) -> str:
    """A `node_id`: opaque to clients, so ours may be readable."""
    return f"{kind}_{number}"


def user(state: State, login: str) -> Shape:
    row = state.one("SELECT * FROM account WHERE login = ?", login)
    number, kind = (row["id"], row["type"]) if row else (0, "User")
    here = f"{state.address}users/{login}"
    return {
        "login": row["login"] if row else login,
        "id": number,
        "node_id": node("U", number),
        "avatar_url": f"{state.address}avatars/{number}",
        "gravatar_id": "",
        "url": here,
        "html_url": f"{state.address}{login}",
        "type": kind,
        "site_admin": False,
        **{name: here + path for name, path in _USER_PATHS.items()},
    }


def users(state: State, logins: str) -> list[Shape]:
    """The accounts in a JSON list of logins."""
    return [user(state, login) for login in json.loads(logins)]


def repository_url(state: State, repository: Row) -> str:
    return f"{state.address}repos/{full_name(repository)}"


def repository(state: State, row: Row) -> Shape:
    here, page = repository_url(state, row), f"{state.address}{full_name(row)}"
    methods = json.loads(row["merge_methods"])
    return {
        **_REPOSITORY_CONSTANTS,
        **{name: here + path for name, path in _REPOSITORY_PATHS.items()},
        "allow_merge_commit": "merge" in methods,
        "allow_squash_merge": "squash" in methods,
        "allow_rebase_merge": "rebase" in methods,
        "id": row["id"],
        "node_id": node("R", row["id"]),
        "name": row["name"],
        "full_name": full_name(row),
        "owner": user(state, row["owner"]),
        "private": bool(row["private"]),
        "visibility": "private" if row["private"] else "public",
        "fork": row["parent"] is not None,
        "default_branch": row["default_branch"],
        "url": here,
        "html_url": page,
        "clone_url": f"{page}.git",
        "git_url": f"{page}.git",
        "ssh_url": f"{page}.git",
        "svn_url": page,
        "created_at": row["created_at"],
        "updated_at": row["pushed_at"],
        "pushed_at": row["pushed_at"],
    }


def full_repository(state: State, row: Row, permissions: Shape) -> Shape:
    """What reading one repository answers: also its parent, and what the caller may do there."""
    shape = repository(state, row) | {"permissions": permissions}
    if row["parent"] is not None:
        parent = repository(state, by_id(state, row["parent"]))
        shape |= {"parent": parent, "source": parent}
    return shape


def commit(state: State, row: Row, found: Commit) -> Shape:
    here = repository_url(state, row)
    signature = {"name": found.author, "email": found.email, "date": found.date}
    return {
        "sha": found.sha,
        "node_id": f"C_{found.sha}",
        "url": f"{here}/commits/{found.sha}",
        "html_url": f"{state.address}{full_name(row)}/commit/{found.sha}",
        "comments_url": f"{here}/commits/{found.sha}/comments",
        "commit": {
            "url": f"{here}/git/commits/{found.sha}",
            "author": signature,
            "committer": signature,
            "message": found.message,
            "tree": {"sha": found.tree, "url": f"{here}/git/trees/{found.tree}"},
            "comment_count": 0,
        },
        # GitHub names an account only where the e-mail address is known to belong to one.
        "author": None,
        "committer": None,
        "parents": [
            {
                "sha": sha,
                "url": f"{here}/commits/{sha}",
                "html_url": f"{state.address}{full_name(row)}/commit/{sha}",
            }
            for sha in found.parents
        ],
    }


def app(state: State, row: Row) -> Shape:
    return {
        "id": row["id"],
        "node_id": node("A", row["id"]),
        "slug": row["slug"],
        "client_id": row["client_id"],
        "owner": user(state, row["owner"]),
        "name": row["slug"],
        "description": None,
        "external_url": f"{state.address}apps/{row['slug']}",
        "html_url": f"{state.address}apps/{row['slug']}",
        "created_at": row["created_at"],
        "updated_at": row["created_at"],
        "permissions": json.loads(row["permissions"]),
        "events": json.loads(row["events"]),
    }


def installation(state: State, row: Row) -> Shape:
    owner = state.one("SELECT * FROM app WHERE id = ?", row["app"])
    target = user(state, row["account"])
    here = f"{state.address}app/installations/{row['id']}"
    return {
        "id": row["id"],
        "account": target,
        "app_id": row["app"],
        "app_slug": owner["slug"] if owner else "",
        "target_id": target["id"],
        "target_type": target["type"],
        "repository_selection": "selected",
        "access_tokens_url": f"{here}/access_tokens",
        "repositories_url": f"{state.address}installation/repositories",
        "html_url": f"{state.address}settings/installations/{row['id']}",
        "permissions": json.loads(owner["permissions"]) if owner else {},
        "events": json.loads(owner["events"]) if owner else [],
        "created_at": row["created_at"],
        "updated_at": row["created_at"],
        "single_file_name": None,
        "suspended_by": user(state, row["account"]) if row["suspended_at"] else None,
        "suspended_at": row["suspended_at"],
    }
