"""Setting the scene: who and what is there when a rehearsal begins.

Everything here may be done again: what is there already stays, and is answered.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from rehearsal import auth, faults, limits, repositories
from rehearsal.events import EVENTS, announce_installation
from rehearsal.faults import Fault
from rehearsal.repositories import Unsuitable, full_name
from rehearsal.state import Row, State, now

PERMISSIONS: Mapping[str, str] = {
    "checks": "write",
    "contents": "write",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "write",
    "statuses": "write",
}
"""What an App may do when it does not say otherwise."""


@dataclass(frozen=True)
class App:
    """A registered App. `private_key` (PEM) is empty when the caller brought the public key."""

    id: int
    slug: str
    client_id: str
    private_key: str = ""


@dataclass(frozen=True)
class Request:
    """A request that was received. Status 0: the connection was dropped; `fault` says what struck."""

    method: str
    path: str
    status: int
    fault: str | None


class Scene:
    """`changed` is called after whatever may have queued a webhook."""

    def __init__(self, state: State, changed: Callable[[], None] = lambda: None) -> None:
        self._state = state
        self._changed = changed

    def account(self, login: str, kind: str = "User") -> None:
        """A person (`User`) or an `Organization`."""
        repositories.account(self._state, login, kind)

    def repository(
        self,
        name: str,
        *,
        source: Path | None = None,
        files: Mapping[str, str] | None = None,
        private: bool = False,
        default_branch: str = "",
        merge_methods: Iterable[str] = (),
    ) -> int:
        """The id of `owner/name`: a copy of the local repository `source`, or one commit of `files`.

        The default branch is the one checked out in `source`, or `main`. `merge_methods` are those that
        it allows, out of merge, squash and rebase; all of them when none is named. Raises Unsuitable.
        """
        with self._state.transaction():
            row = repositories.create(
                self._state, name, source=source, files=files, private=private, default_branch=default_branch
            )
            if merge_methods:
                allowed = json.dumps(list(merge_methods))
                self._state.run("UPDATE repository SET merge_methods = ? WHERE id = ?", allowed, row["id"])
        return int(row["id"])

    def fork(self, name: str, owner: str) -> str:
        """Fork `name` for `owner`; the full name of the fork."""
        parent = self._found(name)
        path = repositories.bare(self._state, parent).path
        row = repositories.create(
            self._state,
            f"{owner}/{parent['name']}",
            source=path,
            private=bool(parent["private"]),
            parent=parent,
        )
        return full_name(row)

    def collaborator(self, name: str, login: str, permission: str = "write") -> None:
        """Give a person `read`, `write` or `admin` in a repository."""
        repository = self._found(name)
        repositories.account(self._state, login)
        self._state.run("INSERT OR REPLACE INTO collaborator VALUES (?, ?, ?)", repository["id"], login, permission)

    def protect(self, name: str, branch: str, *, checks: Iterable[str] = (), reviews: int = 0) -> None:
        """Let a merge into `branch` ask for these checks to have succeeded, and so many approvals."""
        self._state.run(
            "INSERT OR REPLACE INTO protection VALUES (?, ?, ?, ?)",
            self._found(name)["id"], branch, json.dumps(list(checks)), reviews,
        )  # fmt: skip

    def personal_token(self, login: str) -> str:
        """A new personal token of this person. It is shown once and kept nowhere."""
        repositories.account(self._state, login)
        return auth.issue_personal_token(self._state, login)

    def app(
        self,
        slug: str,
        *,
        owner: str = "watchbill",
        public_key: str = "",
        permissions: Mapping[str, str] = PERMISSIONS,
        events: Iterable[str] = EVENTS,
    ) -> App:
        """Register an App, or give a registered one this key, these permissions and events.

        Without a public key (PEM) a key pair is made, and the private key is answered this once.
        """
        private_key = ""
        if not public_key:
            private_key, public_key = _key_pair()
        with self._state.transaction():
            repositories.account(self._state, owner)
            repositories.account(self._state, f"{slug}[bot]", "Bot")
            self._state.run(
                "INSERT INTO app (slug, client_id, owner, public_key, permissions, events, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (slug) DO UPDATE SET public_key ="
                " excluded.public_key, permissions = excluded.permissions, events = excluded.events",
                slug, f"Iv1.{secrets.token_hex(8)}", owner, public_key, json.dumps(dict(permissions)),
                json.dumps(list(events)), now(),
            )  # fmt: skip
            row = self._state.one("SELECT * FROM app WHERE slug = ?", slug)
        assert row is not None
        return App(row["id"], slug, row["client_id"], private_key)

    def install(self, slug: str, *names: str) -> int:
        """Install an App on exactly these repositories of one owner; the id of the installation."""
        app = self._found_app(slug)
        found = [self._found(name) for name in names]
        owners = {row["owner"].lower() for row in found}
        if len(owners) != 1:
            raise Unsuitable("an installation belongs to one owner; install once for each")
        with self._state.transaction():
            self._state.run(
                "INSERT OR IGNORE INTO installation (app, account, created_at) VALUES (?, ?, ?)",
                app["id"], found[0]["owner"], now(),
            )  # fmt: skip
            row = self._state.one(
                "SELECT * FROM installation WHERE app = ? AND account = ?", app["id"], found[0]["owner"]
            )
            assert row is not None
            self._state.run("DELETE FROM installed WHERE installation = ?", row["id"])
            for repository in found:
                self._state.run("INSERT INTO installed VALUES (?, ?)", row["id"], repository["id"])
            self._tell("installation", row, "created")
        self._changed()
        return int(row["id"])

    def suspend(self, installation: int, *, suspended: bool = True) -> None:
        """Suspend an installation, or lift that: its tokens stop working while it lasts."""
        with self._state.transaction():
            self._state.run(
                "UPDATE installation SET suspended_at = ? WHERE id = ?",
                now() if suspended else None,
                installation,
            )
            self._tell(
                "installation",
                self._found_installation(installation),
                "suspend" if suspended else "unsuspend",
            )
        self._changed()

    def uninstall(self, installation: int) -> None:
        """Remove an installation: its tokens stop working, and its repositories are out of reach."""
        with self._state.transaction():
            row = self._found_installation(installation)
            self._tell("installation", row, "deleted")
            self._state.run("DELETE FROM installation WHERE id = ?", installation)
        self._changed()

    def app_webhook(self, slug: str, url: str, secret: str) -> None:
        """Where an App's events go; an App has one webhook."""
        self._state.run(
            "INSERT INTO hook (app, url, secret) VALUES (?, ?, ?)"
            " ON CONFLICT (app) DO UPDATE SET url = excluded.url, secret = excluded.secret",
            self._found_app(slug)["id"], url, secret,
        )  # fmt: skip

    def webhook(self, url: str, secret: str, name: str = "") -> None:
        """A plain webhook of one repository, or (without a name) of all of them."""
        number = self._found(name)["id"] if name else None
        with self._state.transaction():
            # Kept where it stands: deliveries refer to it, and may be sent again.
            there = self._state.all(
                "SELECT id FROM hook WHERE app IS NULL AND url = ? AND repository IS ?", url, number
            )
            for row in there:
                self._state.run("UPDATE hook SET secret = ? WHERE id = ?", secret, row["id"])
            if not there:
                self._state.run("INSERT INTO hook (repository, url, secret) VALUES (?, ?, ?)", number, url, secret)

    def expire_tokens(self) -> None:
        """Let every installation token be as if its hour were over."""
        self._state.run("UPDATE token SET expires_at = 0 WHERE installation IS NOT NULL")

    def limits(self, *, enforced: bool) -> None:
        """Count and enforce GitHub's primary and secondary rate limits, or stop doing so."""
        limits.enforce(self._state, enforced=enforced)

    def fault(self, kind: str, method: str = "*", path: str = "*", times: int = 1, **options: Any) -> Fault:
        """Lay a fault; see `rehearsal.faults.FaultKind` for the kinds and their options."""
        return faults.add(self._state, kind, method, path, times, options)

    def faults(self) -> list[Fault]:
        return faults.every(self._state)

    def clear_faults(self) -> None:
        faults.clear(self._state)

    def requests(self) -> list[Request]:
        """Every request that was received, oldest first; those of the set-up are not counted."""
        rows = self._state.all("SELECT method, path, status, fault FROM request ORDER BY id")
        return [Request(*row) for row in rows]

    def _tell(self, event: str, installation: Row, action: str) -> None:
        announce_installation(self._state, event, installation, installation["account"], {"action": action})

    def _found(self, name: str) -> Row:
        row = repositories.find(self._state, *repositories.split(name))
        if row is None:
            raise Unsuitable(f"there is no repository {name}; create it first")
        return row

    def _found_app(self, slug: str) -> Row:
        row = self._state.one("SELECT * FROM app WHERE slug = ?", slug)
        if row is None:
            raise Unsuitable(f"there is no App {slug!r}; register it first")
        return row

    def _found_installation(self, installation: int) -> Row:
        row = self._state.one("SELECT * FROM installation WHERE id = ?", installation)
        if row is None:
            raise Unsuitable(f"there is no installation {installation}")
        return row


def _key_pair() -> tuple[str, str]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()
