"""Plans for the shop, and agents that wait where a test wants them to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from tests.end_to_end.rig import Rig

REPOSITORY = "acme/shop"

PROVEN = {"checks": '["test -e README.md"]', "merge": "when-proven"}
"""Front matter of a plan whose pull requests are merged as soon as a check has passed."""


@dataclass(frozen=True)
class Box:
    """One checkbox of a plan: its title, what its shell block does, its attributes, what its agent has to ask, and
    what its reviewer runs to come to a verdict.
    """

    title: str
    script: str = "true"
    attributes: str = ""
    ask: str = ""
    review: str = ""


def document(slug: str, *boxes: Box | str, **front: str) -> str:
    """A plan for the shop; a box that is a text is a title, whose task writes a file of its own."""
    values = {"title": slug.replace("-", " "), "slug": slug, "repository": REPOSITORY, **front}
    lines = ["---", *(f"{key}: {value}" for key, value in values.items()), "---", "", "## Tasks", ""]
    for ordinal, given in enumerate(boxes, 1):
        box = given if isinstance(given, Box) else Box(given, f"echo done > {slug}-{ordinal}.txt")
        lines += [f"- [ ] {box.title}{f' {{{box.attributes}}}' if box.attributes else ''}", ""]
        lines += ["  ```ask", f"  {box.ask}", "  ```", ""] if box.ask else []
        lines += ["  ```review", *(f"  {line}" for line in box.review.splitlines()), "  ```", ""] if box.review else []
        lines += ["  ```sh"]
        lines += [f"  {line}" if line else "" for line in box.script.splitlines()] + ["  ```", ""]
    return "\n".join(lines)


class Gate:
    """Holds agents up until it is opened. Each tells its pid, outside its workspace, as it begins."""

    def __init__(self, folder: Path) -> None:
        self._opened, self._pids = folder / "opened", folder / "pids"

    def script(self, file: str, *, before: str = "") -> str:
        """Begin `file`, wait at the gate, and end it. What an earlier run wrote into it is kept."""
        return "\n".join(
            (
                f"echo $$ >> {self._pids}",
                before,
                f"echo begun by $$ >> {file}",
                "echo a last word",
                waits_for(self._opened),
                f"echo ended >> {file}",
            )
        )

    def agents(self) -> list[int]:
        """The pids of all agents that ever came here."""
        return [int(pid) for pid in self._pids.read_text().split()] if self._pids.exists() else []

    def agent(self, rig: Rig, number: int = 1) -> psutil.Process:
        """The agent that came as the first, second and so on, once it has."""
        rig.until(lambda: len(self.agents()) >= number, f"agent {number} begins")
        return psutil.Process(self.agents()[number - 1])

    def open(self) -> None:
        self._opened.touch()


def waits_for(file: Path) -> str:
    """A line of shell that ends once the file is there."""
    return f"while [ ! -e {file} ]; do sleep 0.05; done"
