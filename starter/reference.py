"""The reference page of the commands, made from the commands: `python -m starter.reference > FILE`."""

from __future__ import annotations

import sys
from typing import Any

import typer.main

from starter.app import COMMANDS, app
from starter.exits import MEANINGS

_INTRODUCTION = """# Commands

Made from the command line itself: `python -m starter.reference > docs/reference/commands.md`.

A plan is named by its document (a path, or a name that ends in `.md`), by its slug, or by its id. A task
is named as `PLAN#2`, or by its id. Where `--json` is there, it prints JSON for machines on standard output;
errors are then one JSON object on standard error: `error` (the exit code's name), `message`, and `faults`
where a document has some.
"""


def page() -> str:
    """The page as Markdown."""
    group: Any = typer.main.get_command(app)
    parts = [_INTRODUCTION, "## Exit codes\n", "| code | name | meaning |\n|---|---|---|"]
    parts += [f"| {int(code)} | {code.name.lower()} | {meaning} |" for code, meaning in MEANINGS.items()]
    for function, examples in COMMANDS.items():
        command = group.commands[function.__name__]
        parts += ["", f"## watchbill {command.name}\n", _prose(command.help), "", _usage(command), ""]
        parts += [line for parameter in command.params if (line := _parameter(parameter))]
        parts += ["", "```sh", *examples, "```"]
    return "\n".join(parts) + "\n"


def _prose(docstring: str) -> str:
    """A docstring's paragraphs, each on one line."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in docstring.split("\n\n"))


def _usage(command: Any) -> str:
    arguments = [
        each.metavar if each.required else f"[{each.metavar}]"
        for each in command.params
        if each.param_type_name == "argument"
    ]
    return "    " + " ".join(("watchbill", command.name, "[OPTIONS]", *arguments))


def _parameter(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"- `{parameter.metavar}`: {parameter.help}"
    value = "" if parameter.is_flag else f" {parameter.metavar}"
    default = "" if parameter.is_flag or parameter.default in (None, "") else f" Default: {parameter.default}."
    return f"- `{', '.join(parameter.opts)}{value}`: {parameter.help}{default}"


if __name__ == "__main__":
    sys.stdout.write(page())
