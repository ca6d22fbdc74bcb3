"""A person's word on its way out, and the reply on its way back."""

from __future__ import annotations

import os
import pwd

from domain.decision import Outcome, Reply
from starter.exits import Exit
from starter.output import note, say, say_json


def who() -> str:
    """`user@host`: who says so, as far as this machine knows."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return f"{user}@{os.uname().nodename}"


def tell(name: str, reply: Reply, json: bool) -> Exit:
    """Print a reply, on stderr when it is a refusal and no JSON; the command's exit code."""
    if json:
        say_json(reply)
    else:
        (note if reply.outcome is Outcome.REFUSED else say)(f"{name}: {reply.message}")
    if reply.outcome is Outcome.REFUSED:
        # Only of a plan that was never published there is no state to tell.
        return Exit.REFUSED if reply.state else Exit.NOT_FOUND
    return Exit.DONE
