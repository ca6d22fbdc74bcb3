"""What the policy hook answers: whether a tool may be used, and what an agent is told on its way.

The policy file is a JSON object as runtimes.hooks writes it. Every refusal and every use of a tool is a
line in the run's `hook-events.jsonl`. Imports are few: this runs before and after every use of a tool.
"""

from __future__ import annotations

import os
import time

from domain.globs import matches_path, matches_text, path_pattern, text_pattern
from domain.shell_line import Unsplittable, commands_of, program
from runtimes.files import append_left, decode, encode, read_object
from runtimes.places import Places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from domain.shell_line import Command

    Policy = dict[str, Any]
    """`tools`, `commands`, `paths`: lists of patterns. `workspace`: the directory; `private`: other places
    that may be written below. `events`, `brief`, `result`, `stops`: files, of which `brief` and `result`
    are empty where there is no brief and no result is asked for."""

MAX_EVENTS = 1 << 20
"""Bytes of events that are kept; refusals find as much room again."""

MAX_STOPS = 2
"""How often an agent that would end without its result is sent back."""

MAX_CONTEXT = 9000
"""Characters of a brief that are put in front of an agent again: longer context is cut by the CLIs themselves."""

_LAST_WORDS = ("submit_result", "ask_person")
"""With either of our tools an agent has said what it had to say."""

_MAX_SHOWN, _MAX_SHOWN_USE = 500, 120
_WRITERS = frozenset({"write", "edit", "multiedit", "notebookedit"})
_PATCHERS = frozenset({"apply_patch", "applypatch", "patch"})
_PATCH_PROGRAMS = frozenset({"apply_patch", "applypatch"})
"""Codex takes these in a shell line for its tool of that name."""

_PATH_KEYS = ("file_path", "filePath", "notebook_path", "path")
_PATCH_KEYS = ("patchText", "patch", "input", "command")
_PATCH_LINES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def answer(cli: str, policy_file: str, question: bytes) -> bytes:
    """The answer to a CLI's question, empty where there is nothing to say.

    Raises whatever cannot be judged; to a question about a tool that is a refusal.
    """
    asked = decode(question)
    if asked is None:
        raise ValueError("the question is no JSON object")
    event = asked["hook_event_name"]
    policy = read_object(policy_file)
    if policy is None:
        if event == "PreToolUse":
            raise ValueError("the policy file cannot be read")
        # Without a policy there is no result to wait for, and an agent that may not end would never end.
        return b""
    made = _ANSWERS[event](Record(cli, policy), policy, asked)
    return encode(made) if made else b""


class Record:
    """The run's `hook-events.jsonl`."""

    def __init__(self, cli: str, policy: Policy) -> None:
        self.cli, self.file = cli, policy["events"]

    def add(self, event: str, **about: str) -> None:
        """Add a line, unless there are too many already. Refusals have room when uses no longer have.

        OSError where it cannot be written, or where no refusal would have room any more: nothing is allowed then
        whose refusal could not be told.
        """
        said = {name: text[:_MAX_SHOWN] for name, text in about.items()}
        line = encode({"at": time.time(), "cli": self.cli, "event": event, **said})
        refused = event == "refused"
        if append_left(self.file, line, MAX_EVENTS * (2 if refused else 1)):
            return
        if refused or os.lstat(self.file).st_size >= 2 * MAX_EVENTS:
            raise OSError(f"the record {self.file} is full")


def _before_tool(record: Record, policy: Policy, asked: dict[str, Any]) -> dict[str, Any] | None:
    tool, given = asked["tool_name"], asked["tool_input"]
    try:
        why = refusal(policy, tool, given, asked.get("cwd") or policy["workspace"])
    except (Unsplittable, ValueError, TypeError, AttributeError, KeyError) as error:
        why = f"This use of {tool} cannot be checked and is refused ({error}); write it more simply."
    if not why:
        record.add("used", tool=str(tool), what=_shown(given, _MAX_SHOWN_USE))
        return None
    record.add("refused", tool=str(tool), what=_shown(given, _MAX_SHOWN), why=why)
    decision = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": why,
    }
    return {"hookSpecificOutput": decision}


def _after_tool(record: Record, policy: Policy, asked: dict[str, Any]) -> None:
    tool = str(asked["tool_name"])
    record.add("ended", tool=tool)
    # The door that takes results may be on another machine than this folder.
    if policy["result"] and tool.endswith(_LAST_WORDS) and not _failed(asked.get("tool_response")):
        append_left(policy["result"], b".", 1)


def _failed(response: Any) -> bool:
    """Whether a tool over MCP answered with an error."""
    return isinstance(response, dict) and bool(response.get("isError") or response.get("is_error"))


def _session_started(record: Record, policy: Policy, asked: dict[str, Any]) -> dict[str, Any] | None:
    source = str(asked.get("source", ""))
    record.add("session", what=source)
    # A fresh session begins with the brief as its prompt. What was resumed or compacted may have lost it.
    if source == "startup" or not policy["brief"]:
        return None
    with open(policy["brief"], encoding="utf-8") as file:
        brief = file.read(MAX_CONTEXT + 1)
    if len(brief) > MAX_CONTEXT:
        brief = f"{brief[:MAX_CONTEXT]}\n… (the whole of it: {policy['brief']})"
    context = f"This is the brief of the task that you are at work on:\n\n{brief}"
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": context}}


def _stopping(record: Record, policy: Policy, _: dict[str, Any]) -> dict[str, Any] | None:
    stops = policy["stops"]
    sent_back = os.lstat(stops).st_size if os.path.lexists(stops) else 0
    if not policy["result"] or os.path.exists(policy["result"]) or sent_back >= MAX_STOPS:
        record.add("stopped")
        return None
    append_left(stops, b".", MAX_STOPS)
    why = (
        "Your result is missing, and without it your work counts as not done: call the tool submit_result before "
        "you end, or ask_person if you cannot go on without an answer."
    )
    record.add("sent_back", why=why)
    return {"decision": "block", "reason": why}


_ANSWERS = {
    "PreToolUse": _before_tool,
    "PostToolUse": _after_tool,
    "SessionStart": _session_started,
    "Stop": _stopping,
}


def refusal(policy: Policy, tool: str, given: dict[str, Any], cwd: str) -> str:
    """Why this use of a tool is refused, in a sentence for the model; empty when it is allowed.

    `given` is the tool's input, `cwd` the directory that its paths are relative to. Raises ValueError,
    TypeError or KeyError for what cannot be judged.
    """
    name = tool.lower()
    for pattern in policy["tools"]:
        # The CLIs spell the same tool differently: WebFetch, webfetch.
        if matches_text(text_pattern(pattern.lower()), name):
            return f"The tool {tool} is not allowed here (refused: {pattern}); do it another way, or do without."
    if name in _PATCHERS:
        patches = [given[key] for key in _PATCH_KEYS if key in given]
        return _paths_refusal(policy, [path for patch in patches for path in _patched(patch)], tool, cwd)
    if name in _WRITERS:
        return _paths_refusal(policy, [given[key] for key in _PATH_KEYS if key in given], tool, cwd)
    line = given.get("command", given.get("cmd"))
    return "" if line is None else _line_refusal(policy, _as_line(line), cwd)


def _line_refusal(policy: Policy, line: str, cwd: str) -> str:
    patterns = [(pattern, text_pattern(pattern)) for pattern in policy["commands"]]
    if not patterns and not policy["paths"] and "apply" not in line:
        return ""
    places = Places(cwd)
    for command in commands_of(line):
        words = command.words
        # A program is the same by whatever path it is called.
        texts = {" ".join(words), " ".join((program(words[0]), *words[1:]))} if words else set()
        for pattern, parsed in patterns:
            if any(matches_text(parsed, text) for text in texts):
                return f"{' '.join(words)[:200]!r} is not allowed here (refused: {pattern}); go on without it."
        if why := _writes_refusal(policy, command, places):
            return why
        places.follow(command)
    return ""


def _writes_refusal(policy: Policy, command: Command, places: Places) -> str:
    """Why a command of a line may not write what it is redirected to, or patch what its patch names."""
    place, words = places.of(command), command.words
    if words and program(words[0]) in _PATCH_PROGRAMS:
        paths = list(_patched("\n".join((*words[1:], command.fed))))
        if place.lost and not all(map(os.path.isabs, paths)):
            raise ValueError("nobody can tell which folder its patch is for")
        for folder in place.here:
            if why := _paths_refusal(policy, paths, "apply_patch", folder):
                return why
    for target in command.writes:
        # What only the shell knows is found in what the run left behind.
        if any(character in target for character in "$`*?[~"):
            continue
        refused = (_refused_path(policy, os.path.join(folder, target)) for folder in place.here)
        pattern = next(filter(None, refused), "")
        if place.lost and not pattern and not os.path.isabs(target):
            pattern = _refused_anywhere(policy, os.path.normpath(target))
        if pattern:
            return _no_writing(target, pattern)
    return ""


def _paths_refusal(policy: Policy, paths: list[str], tool: str, cwd: str) -> str:
    """Why a tool may not write these files; one that names none cannot be judged."""
    if not paths:
        raise ValueError("it names no file")
    for path in paths:
        real = os.path.realpath(os.path.join(cwd, path))
        places = (policy["workspace"], *policy["private"])
        if not any(_below(os.path.realpath(place), real) for place in places):
            return (
                f"{path} lies outside of the workspace, where {tool} may not write; write below {policy['workspace']}."
            )
        if pattern := _refused_path(policy, os.path.join(cwd, path)):
            return _no_writing(path, pattern)
    return ""


def _refused_path(policy: Policy, path: str) -> str:
    """The pattern that refuses a path, as it is called or as symbolic links lead on; empty if none does."""
    workspace = policy["workspace"]
    names = {
        _below(root, named)
        for root in (workspace, os.path.realpath(workspace))
        for named in (os.path.normpath(path), os.path.realpath(path))
    }
    for pattern in policy["paths"]:
        parsed = path_pattern(pattern)
        if any(name and matches_path(parsed, name) for name in names):
            return str(pattern)
    return ""


def _refused_anywhere(policy: Policy, path: str) -> str:
    """The pattern that may refuse a path below a folder that nobody knows; empty if none does.

    A pattern is looked for wherever it may begin, and by its last part alone where that says anything.
    """
    # Whoever climbs out of an unknown folder is in one.
    while path.startswith("../"):
        path = path[3:]
    for pattern in policy["paths"]:
        last = pattern.rpartition("/")[2]
        named = (pattern, last) if last.strip("*") else (pattern,)
        if any(matches_path(path_pattern(f"**/{part}"), path) for part in named):
            return str(pattern)
    return ""


def _no_writing(path: str, pattern: str) -> str:
    return f"{path} may not be changed in this task (refused: {pattern}); leave it as it is."


def _below(root: str, path: str) -> str:
    """The path from a root to what lies below it; empty for what does not."""
    start = root.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) else ""


def _patched(patch: str) -> Iterator[str]:
    """The files that a patch in the form of apply_patch names."""
    for line in patch.splitlines():
        for start in _PATCH_LINES:
            if line.strip().startswith(start):
                yield line.strip()[len(start) :].strip()


def _as_line(command: Any) -> str:
    """A command as a line: it comes as one, or as a list of words."""
    if isinstance(command, str):
        return command
    if not isinstance(command, list):
        raise TypeError("its command is no text")
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)


def _shown(given: Any, limit: int) -> str:
    """What a use of a tool is about."""
    about = given if isinstance(given, dict) else {}
    found = (about[key] for key in ("command", "cmd", *_PATH_KEYS, *_PATCH_KEYS, "url") if key in about)
    return str(next(found, ""))[:limit]
