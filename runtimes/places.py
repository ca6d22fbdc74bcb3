"""Where in the tree the commands of a shell line are run, as far as its `cd`s say.

Like runtimes.gate, which asks this, it is read for every use of a tool and imports little.
"""

from __future__ import annotations

import os

from domain.shell_line import Unsplittable, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from domain.shell_line import Command, Scope

MAX_FOLDERS = 64
"""Folders of which each may be the one that a command is run in."""

_UNKNOWN = "$`*?[{~"
"""Characters that may stand for others in a word; the word is then not the folder's name."""


class _Place:
    """Where a shell may be: in one of `here`, or, once the chain of `&&` ends, in one of `left` as well.

    `lost` says that it may be anywhere else.
    """

    __slots__ = ("here", "left", "lost")

    def __init__(self, here: frozenset[str], lost: bool) -> None:
        self.here, self.left, self.lost = here, frozenset[str](), lost


class Places:
    """The folders of a line's shells and subshells, while its commands are gone through in their order."""

    def __init__(self, cwd: str) -> None:
        self.first = _Place(frozenset({cwd}), lost=False)
        self.known: dict[Scope, _Place] = {}

    def of(self, command: Command) -> _Place:
        return self._in(command.scope)

    def _in(self, scope: Scope | None) -> _Place:
        if scope is None:
            return self.first
        if scope not in self.known:
            outer = self._in(scope.parent)
            self.known[scope] = _Place(outer.here, outer.lost)
        return self.known[scope]

    def follow(self, command: Command) -> None:
        """Go where a command leads those behind it; Unsplittable when that may be too many folders."""
        place = self.of(command)
        name = program(command.words[0]) if command.words else ""
        if name in ("cd", "chdir", "pushd", "popd"):
            self._change(place, command, _target(command.words))
        if command.after != "&&" and place.left:
            place.here, place.left = place.here | place.left, frozenset()
        if len(place.here) > MAX_FOLDERS:
            raise Unsplittable(f"it goes to more than {MAX_FOLDERS} folders")

    def _change(self, place: _Place, command: Command, target: str) -> None:
        if not target:
            place.lost = True
            return
        there = frozenset(os.path.normpath(os.path.join(folder, target)) for folder in place.here)
        if os.path.isabs(target) and not command.conditional and command.before != "&&":
            place.lost = False
        doubtful = command.conditional or command.before in ("&&", "||", "|", "|&") or command.after in ("|", "|&", "&")
        if doubtful or not all(map(os.path.isdir, there)):
            place.left |= place.here
        place.here = there


def _target(words: list[str]) -> str:
    """The folder that `cd` names, empty where it names none that can be known."""
    names = [word for word in words[1:] if word == "-" or not word.startswith("-")]
    known = len(names) == 1 and names[0] not in ("", "-") and not any(mark in names[0] for mark in _UNKNOWN)
    return names[0] if known and not (names[0].startswith("+") or words[0] == "popd") else ""
