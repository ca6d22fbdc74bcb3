"""The page of the commands cannot lie: it is made from them, and what it shows can be typed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from starter.app import COMMANDS, app
from starter.reference import page

EXAMPLES = [example for examples in COMMANDS.values() for example in examples]


def test_the_page_is_what_the_commands_say():
    committed = Path(__file__).parents[2] / "docs/reference/commands.md"
    assert committed.read_text() == page(), "make it anew: python -m starter.reference > docs/reference/commands.md"


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_accepted_as_it_is_typed(example):
    program, name, *arguments = shlex.split(example)
    assert program == "watchbill"
    group: Any = typer.main.get_command(app)
    command = group.commands[name]
    # Reads the arguments and runs nothing.
    command.make_context(name, arguments)


def test_every_command_says_in_its_help_what_to_type(watchbill):
    for command, examples in list(COMMANDS.items())[:2]:
        done = watchbill(command.__name__, "--help")
        assert all(f"    {example}\n" in done.stdout for example in examples)
    assert all(COMMANDS.values())


def test_what_may_be_left_out_is_in_brackets_and_its_default_is_said(watchbill):
    assert watchbill("status", "--help").stdout.startswith("Usage: watchbill status [OPTIONS] [PLAN]\n")
    assert "    watchbill status [OPTIONS] [PLAN]\n" in page()
    assert "    watchbill watch [OPTIONS] PLAN|TASK\n" in page()
    assert "when a person is needed. Default: ended.\n" in page()
    assert "`--wait`: First wait until it has ended or a person is needed.\n" in page()


MACHINES_READ = (
    "check", "submit", "confirm", "revise", "status", "watch", "pause", "resume", "approve", "answer", "retry",
    "cancel", "archive", "show", "report", "costs", "receipts", "audit", "doctor",
)  # fmt: skip


@pytest.mark.parametrize("name", MACHINES_READ)
def test_what_machines_read_has_json(name):
    group: Any = typer.main.get_command(app)
    assert "--json" in [option for each in group.commands[name].params for option in each.opts]
