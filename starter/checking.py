"""Looking for faults in a document, without any server and fast enough for an editor."""

from __future__ import annotations

from pathlib import Path

from domain import metering
from domain.document import inspect, parse
from domain.wording import counted
from starter.exits import Exit
from starter.names import read_bytes
from starter.output import say, say_json

_TOLD = ("ordinal", "title", "line", "done", "struck", "after")


def check(file: Path, *, json: bool) -> Exit:
    """Print every fault with its line, or how many tasks there are, and what whoever confirms it has to know."""
    text = read_bytes(file)
    tasks, faults = inspect(text, file.name)
    agents = "" if faults else parse(text, file_name=file.name).expected_metering
    if json:
        told = [{key: getattr(task, key) for key in _TOLD} for task in tasks]
        say_json({"tasks": told, "metering": agents, "faults": [vars(fault) for fault in faults]})
    elif faults:
        for fault in faults:
            say(f"{file}:{fault.line}: {fault.message}")
    else:
        done = sum(task.done for task in tasks)
        say(f"{file}: {counted(len(tasks), 'task')}" + (f", {done} of them done" if done else "") + ", no faults")
        if said := metering.sentence(agents):
            say(said)
    return Exit.FAULTS if faults else Exit.DONE
