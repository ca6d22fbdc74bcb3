"""What the owner of an installation refuses in every plan: `policy.toml` in the home folder."""

from __future__ import annotations

import tomllib
from pathlib import Path

from domain.errors import Unavailable
from domain.rules import NOTHING_REFUSED, Policy, policy_of

OWNER_POLICY = "policy.toml"


def owner_policy(home: Path) -> Policy:
    """The owner's policy, which is on top of every plan's (domain.rules.both); nothing refused without a file.

    Unavailable while the file cannot be read or says what is no policy: nothing is run under a policy
    that is not known, and a mended file is read at the next attempt.
    """
    file = home / OWNER_POLICY
    try:
        return policy_of(tomllib.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return NOTHING_REFUSED
    except (OSError, ValueError) as error:
        raise Unavailable(f"the policy in {file} cannot be followed, so nothing is run: {error}") from error
