"""Handing artifacts of earlier tasks on to a run: by hash, byte for byte, and past every model."""

from __future__ import annotations

from temporalio import activity

from domain.errors import Damaged, NotFound
from runtimes.folder import RunFolder
from runtimes.port import GIVEN
from store import briefing
from store.database import Store
from store.evidence import content

SUMS = "SHA256SUMS"
"""The names and hashes of all that is given, in the form that `sha256sum --check` reads."""


def hand_over(store: Store, folder: RunFolder, task_id: str) -> None:
    """Lay what the task is given into the run's folder, if that is anything.

    What is no longer what it was is left out, and stands in the list all the same: who relies on it finds it
    missing. A repeat lays the same.
    """
    with store.read() as connection:
        artifacts = briefing.artifacts_for(connection, task_id)
        found = {}
        for artifact in artifacts:
            try:
                found[artifact.name] = content(connection, artifact.digest)
            except (NotFound, Damaged) as error:
                activity.logger.warning("an artifact is not given on", extra={"task": task_id, "reason": str(error)})
    if not artifacts:
        return
    given = folder.path / GIVEN
    folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    given.mkdir(mode=0o700, exist_ok=True)
    for name, bytes_ in found.items():
        file = given / name
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_bytes(bytes_)
    sums = "".join(f"{artifact.digest}  {artifact.name}\n" for artifact in artifacts)
    (given / SUMS).write_text(sums, encoding="utf-8")
