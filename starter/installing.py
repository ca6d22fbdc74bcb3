"""What `watchbill up` is to run, made from the settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from starter.exits import CommandFailed, Exit
from starter.local.installation import GitHub, Installation, StandIn
from starter.settings import Settings
from starter.sources import copy_of
from starter.standin import environment_for_stand_in, stand_in

WORKER = (sys.executable, "-P", "-m", "worker")
WEBHOOKS = (sys.executable, "-P", "-m", "webhooks")
"""The doors as processes. `-P`: a folder called `worker` in the current directory is not what is meant."""


def installation(settings: Settings, repositories: Mapping[str, Path]) -> Installation:
    """With the stand-in GitHub where repositories are given for it, else with the real one."""
    told = settings.environment
    return Installation(
        home=settings.home,
        owner=settings.owner,
        github=_stand_in(settings.home, repositories) if repositories else _github(settings),
        environment=environment_for_stand_in(told) if repositories else told,
        store_url=told.get("WATCHBILL_STORE_URL", ""),
        worker=WORKER,
        webhooks=WEBHOOKS,
    )


def _stand_in(home: Path, repositories: Mapping[str, Path]) -> StandIn:
    copies = home / "stand-in-sources"
    copies.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = {}
    for name, source in repositories.items():
        copy = copies / f"{name.replace('/', '+')}.git"
        # What the stand-in has already stays as it is, and so does the copy that it was made from.
        found[name] = copy if copy.exists() else copy_of(source, copy)
    return stand_in(home, found)


def _github(settings: Settings) -> GitHub:
    told = settings.environment
    github = GitHub(
        api=told.get("WATCHBILL_GITHUB_API", "https://api.github.com"),
        app_id=told.get("WATCHBILL_GITHUB_APP_ID", ""),
        app_key_file=told.get("WATCHBILL_GITHUB_APP_KEY_FILE", ""),
        token_file=told.get("WATCHBILL_GITHUB_TOKEN_FILE", ""),
        webhook_secret_file=told.get("WATCHBILL_WEBHOOK_SECRET_FILE", ""),
    )
    if not (github.app_id and github.app_key_file) and not github.token_file:
        raise CommandFailed(
            Exit.USAGE,
            "there are no credentials for GitHub; set WATCHBILL_GITHUB_APP_ID and "
            "WATCHBILL_GITHUB_APP_KEY_FILE, or WATCHBILL_GITHUB_TOKEN_FILE; or try it without: "
            "watchbill up --stand-in acme/shop=PATH",
        )
    return github
