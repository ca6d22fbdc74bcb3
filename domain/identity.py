"""Names that stay the same through any number of restarts.

A plan is its owner and slug; a task is its plan and ordinal; a run is its task, role and number.
Workflow ids, branches and pull requests are made from these and from nothing else, so whatever is
repeated meets what is already there.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
OWNER = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")

_TASK = re.compile(r"(?P<plan>[a-z0-9][a-z0-9-]*-[0-9a-f]{8})-(?P<ordinal>[1-9][0-9]{0,3})")
_BRANCH_PREFIX = "watchbill/"


def digest(text: str | bytes) -> str:
    """SHA-256 in hex: how Watchbill names any content."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def slugify(name: str) -> str:
    """A slug from a file's name: ASCII, lower case, at most 40 characters; empty when nothing is left."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name.lower()).strip("-")[:40].strip("-")


def plan_id(owner: str, slug: str) -> str:
    """`<slug>-<8 hex of owner and slug>`. The title has no part in it: titles get edited."""
    return f"{slug}-{digest(f'{owner}/{slug}')[:8]}"


def task_id(plan: str, ordinal: int) -> str:
    return f"{plan}-{ordinal}"


def run_id(task: str, role: str, number: int) -> str:
    return f"{task}-{role}-{number}"


def plan_of_task(task: str) -> str:
    return split_task(task)[0]


def split_task(task: str) -> tuple[str, int]:
    """`(plan id, ordinal)`; ValueError when this is no task id."""
    match = _TASK.fullmatch(task)
    if match is None:
        raise ValueError(f"{task!r} is not a task id")
    return match["plan"], int(match["ordinal"])


def branch_of(task: str) -> str:
    return _BRANCH_PREFIX + task


def task_of_branch(branch: str) -> str | None:
    """The task whose branch has exactly this name, or None: a look-alike owns nothing."""
    name = branch.removeprefix(_BRANCH_PREFIX)
    return name if name != branch and _TASK.fullmatch(name) else None


def plan_workflow_id(plan: str) -> str:
    return f"plan-{plan}"


def task_workflow_id(task: str) -> str:
    return f"task-{task}"


def heartbeat_workflow_id(owner: str) -> str:
    return f"heartbeat-{owner}"


def host_queue(host: str) -> str:
    """The task queue that only this host's worker polls: work on what lies on its disk."""
    return f"watchbill-host-{host}"


SWEEP_WORKFLOW_ID = "sweep"
TASK_QUEUE = "watchbill"
