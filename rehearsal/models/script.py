"""What a test has the model say, and the faults that it is to show.

A script as JSON; `token` is the bearer token or API key that it is for, and without one it is for all:

    {"token": "…", "steps": [{"text": "I look.", "tool": "Bash", "input": {"command": "ls"}}, {"text": "Done."}],
     "faults": [{"kind": "status", "status": 402, "from": 1}], "usage": {"input": 900, "output": 50}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from rehearsal.models.conversation import Conversation, Reply, Tool, ToolCall
from rehearsal.models.usage import Usage


class FaultKind(StrEnum):
    STATUS = "status"
    """Answers `status` with the provider's body for it and does nothing. Also `message` and `retry_after`
    (what the header says: seconds, or an HTTP date)."""
    DROP = "drop"
    """Cuts the connection after `after` events; a reply that is not streamed is lost whole."""
    ERROR_EVENT = "error-event"
    """Tells of an error, with `message`, after `after` events, and ends the stream; 500 where there is none."""
    HANG = "hang"
    """Says nothing for `seconds` after `after` events, then cuts the connection."""
    DELAY = "delay"
    """Waits `seconds` before each event, or before the whole of a reply that is not streamed."""
    NO_USAGE = "no-usage"
    """Leaves out what was used."""


_FAULT: Mapping[str, Any] = {
    "kind": str,
    "from": int,
    "count": int | None,
    "status": int,
    "message": str,
    "retry_after": int | str,
    "after": int,
    "seconds": int | float,
}

STATUSES = frozenset({400, 401, 402, 403, 404, 413, 429, 500, 503, 529})


@dataclass(frozen=True)
class Fault:
    """A fault that strikes main requests: `count` of them (None: all) from number `first` on, counted from 0.

    Requests are counted for the script that the fault is a part of. In JSON `first` is called `from`.
    """

    kind: FaultKind
    first: int = 0
    count: int | None = None
    status: int = 500
    message: str = "This was asked of the stand-in for a model provider."
    retry_after: str = ""
    after: int = 0
    seconds: float = 60.0

    @classmethod
    def scripted(cls, given: Mapping[str, Any]) -> Self:
        """Raises ValueError for a fault that there is not."""
        given = _object("a fault", given)
        unknown = sorted(given.keys() - _FAULT.keys())
        if unknown:
            raise ValueError(f"a fault has no {unknown[0]!r}; it has {', '.join(sorted(_FAULT))}")
        for name, value in given.items():
            if not isinstance(value, _FAULT[name]) or isinstance(value, bool):
                raise ValueError(f"a fault cannot have {name} {value!r}")
        if given.get("kind") not in list(FaultKind):
            raise ValueError(f"there is no fault {given.get('kind')!r}; the kinds are {', '.join(FaultKind)}")
        values = {"first" if name == "from" else name: value for name, value in given.items()}
        made = cls(**{**values, "kind": FaultKind(given["kind"]), "retry_after": str(given.get("retry_after", ""))})
        if made.status not in STATUSES:
            raise ValueError(f"status {made.status!r} is none of {', '.join(map(str, sorted(STATUSES)))}")
        return made

    def strikes(self, number: int) -> bool:
        return self.first <= number and (self.count is None or number < self.first + self.count)


@dataclass(frozen=True)
class Step:
    """One reply of a script: the names of tools, as the CLI offers them, with their inputs."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def scripted(cls, given: Mapping[str, Any]) -> Self:
        """Raises ValueError for a step of another form."""
        given = _object("a step", given)
        calls = [_object("a call", call) for call in given.get("tools", [given] if "tool" in given else [])]
        if not given.keys() <= {"text", "tool", "input", "tools"} or not (calls or given.get("text")):
            raise ValueError('a step is {"text": …}, {"tool": …, "input": …} or {"tools": […]}')
        return cls(str(given.get("text", "")), tuple((str(call["tool"]), call.get("input", {})) for call in calls))

    def reply(self, conversation: Conversation) -> Reply:
        """A tool that is not offered is called all the same, as models do."""
        offered = {tool.name: tool for tool in conversation.tools}
        return Reply(self.text, tuple(ToolCall(offered.get(name, Tool(name)), given) for name, given in self.calls))


def _object(what: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise ValueError(f"{what} is an object, not {given!r}")
    return given


class Script:
    """What the model says to the main requests of one token, or of all.

    Which of `steps` is next is told by the conversation: one is taken for each time that the model has
    spoken since a person did, and the last one for ever. Without steps the model acts as it always does.
    """

    def __init__(self, steps: Sequence[Step] = (), faults: Sequence[Fault] = (), usage: Usage | None = None) -> None:
        self.steps = tuple(steps)
        self.faults = tuple(faults)
        self.usage = usage
        self._requests = 0

    @classmethod
    def scripted(cls, given: Mapping[str, Any]) -> Self:
        """Raises ValueError, TypeError or KeyError for a script of another form."""
        unknown = sorted(given.keys() - {"steps", "faults", "usage"})
        if unknown:
            raise ValueError(f"a script has no {unknown[0]!r}; it has steps, faults and usage")
        usage = given.get("usage")
        return cls(
            [Step.scripted(step) for step in given.get("steps", ())],
            [Fault.scripted(fault) for fault in given.get("faults", ())],
            None if usage is None else Usage.scripted(usage),
        )

    def strike(self) -> dict[FaultKind, Fault]:
        """Count one main request, and answer the faults that strike it, the first of each kind."""
        number, self._requests = self._requests, self._requests + 1
        return {fault.kind: fault for fault in reversed(self.faults) if fault.strikes(number)}

    def reply(self, conversation: Conversation) -> Reply | None:
        """The scripted reply, if there is one."""
        if not self.steps or not conversation.main:
            return None
        return self.steps[min(conversation.rounds, len(self.steps) - 1)].reply(conversation)
