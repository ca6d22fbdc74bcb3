"""What `watchbill up` is to run, made from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from doors.temporal import own_variables
from starter.exits import CommandFailed, Exit
from starter.local.installation import GitHub, Installation
from starter.local.service import module
from starter.settings import Settings
from starter.standin import environment_for_stand_in, stand_in

WORKER = module("worker")
WEBHOOKS = module("webhooks")
RELAY = module("relay")
"""The doors as processes."""


def installation(settings: Settings, copies: Mapping[str, Path]) -> Installation:
    """With a stand-in GitHub where there are copies of repositories for it, else with the real one.

    CommandFailed when the real one is meant and there are no credentials for it.
    """
    # What leads to another Temporal, with its TLS and keys, does not lead to the one that is started here.
    elsewhere = own_variables(settings.environment)
    told = {name: value for name, value in settings.environment.items() if name not in elsewhere}
    return Installation(
        home=settings.home,
        owner=settings.owner,
        github=stand_in(settings.home, copies) if copies else _github(settings),
        environment=environment_for_stand_in(told) if copies else told,
        store_url=told.get("WATCHBILL_STORE_URL", ""),
        worker=WORKER,
        webhooks=WEBHOOKS,
        relay=RELAY,
    )


def credentials(settings: Settings) -> GitHub | None:
    """GitHub as the settings name it; None when they name no credentials for it."""
    told = settings.environment
    github = GitHub(
        api=told.get("WATCHBILL_GITHUB_API", "https://api.github.com"),
        app_id=told.get("WATCHBILL_GITHUB_APP_ID", ""),
        app_key_file=told.get("WATCHBILL_GITHUB_APP_KEY_FILE", ""),
        token_file=told.get("WATCHBILL_GITHUB_TOKEN_FILE", ""),
        webhook_secret_file=told.get("WATCHBILL_WEBHOOK_SECRET_FILE", ""),
    )
    return github if (github.app_id and github.app_key_file) or github.token_file else None


def _github(settings: Settings) -> GitHub:
    github = credentials(settings)
    if github is None:
        raise CommandFailed(
            Exit.USAGE,
            "there are no credentials for GitHub; set WATCHBILL_GITHUB_APP_ID and "
            "WATCHBILL_GITHUB_APP_KEY_FILE, or WATCHBILL_GITHUB_TOKEN_FILE; or try it without: "
            "watchbill up --stand-in acme/shop=PATH",
        )
    return github
