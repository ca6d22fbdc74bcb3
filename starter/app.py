"""The `watchbill` command: every command with its examples, and what happens when one fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from starter.commands import context, deciding, doctor, documents, doors, keys, reading, watching
from starter.exits import CommandFailed, Exit
from starter.failing import guarded

Command = Callable[..., Exit]

COMMANDS: dict[Command, tuple[str, ...]] = {
    documents.check: ("watchbill check plan.md", "watchbill check plan.md --json"),
    documents.submit: ("watchbill submit plan.md", "watchbill submit plan.md --confirm"),
    documents.confirm: (
        "watchbill confirm plan.md",
        "watchbill confirm faster-cold-start",
        "watchbill confirm faster-cold-start --digest 1a2b3c4d5e6f",
    ),
    documents.revise: (
        "watchbill revise plan.md",
        "watchbill revise plan.md --yes --json",
        "watchbill revise faster-cold-start --withdraw",
    ),
    watching.status: (
        "watchbill status",
        "watchbill status faster-cold-start",
        "watchbill status faster-cold-start --wait --json",
    ),
    watching.watch: (
        "watchbill watch faster-cold-start",
        "watchbill watch faster-cold-start --until person",
        "watchbill watch faster-cold-start --since 40 --json",
        "watchbill watch faster-cold-start#2 --screen",
    ),
    deciding.pause: ("watchbill pause faster-cold-start", "watchbill pause faster-cold-start#2"),
    deciding.resume: (
        "watchbill resume faster-cold-start",
        'watchbill resume faster-cold-start#2 --note "the fixture is fixed now"',
    ),
    deciding.approve: (
        "watchbill approve faster-cold-start#2",
        "watchbill approve faster-cold-start#2 --sha 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
        'watchbill approve faster-cold-start#2 --budget "5 USD" --plan-budget "20 USD"',
    ),
    deciding.answer: ('watchbill answer faster-cold-start#2 "keep the old name as an alias"',),
    deciding.retry: ("watchbill retry faster-cold-start#2",),
    deciding.cancel: ("watchbill cancel faster-cold-start#2", "watchbill cancel faster-cold-start"),
    deciding.archive: ("watchbill archive faster-cold-start",),
    deciding.budget: (
        "watchbill budget",
        'watchbill budget --day "50 USD" --zone Europe/Berlin',
    ),
    context.context: (
        "watchbill context faster-cold-start",
        "watchbill context edit faster-cold-start",
        "watchbill context edit --repository acme/shop",
        "watchbill context edit faster-cold-start --file -",
    ),
    reading.costs: ("watchbill costs faster-cold-start", "watchbill costs faster-cold-start --json"),
    reading.show: ("watchbill show faster-cold-start", "watchbill show faster-cold-start --write plans"),
    reading.report: (
        "watchbill report",
        "watchbill report --since 12h --html morning.html",
        "watchbill report faster-cold-start",
        "watchbill report faster-cold-start --markdown",
    ),
    reading.receipts: (
        "watchbill receipts faster-cold-start --after 40",
        "watchbill receipts faster-cold-start --verify",
    ),
    reading.audit: (
        "watchbill audit",
        "watchbill audit faster-cold-start --json",
        "watchbill audit --seal body.md",
    ),
    keys.keys: ("watchbill keys", "watchbill keys --retire 1a2b3c4d"),
    doctor.doctor: ("watchbill doctor", "watchbill doctor --json"),
    doors.up: ("watchbill up", "watchbill up --stand-in acme/shop=../shop"),
    doors.worker: ("watchbill worker",),
    doors.webhooks: ("watchbill webhooks",),
    doors.relay: ("watchbill relay",),
    doors.rehearse: (
        "watchbill rehearse plan.md --repository .",
        "watchbill rehearse plan.md --repository ../shop --keep",
        "watchbill rehearse plan.md --repository . --runtime claude",
        "watchbill rehearse plan.md --repository . --html report.html",
    ),
    doors.migrate: ("watchbill migrate",),
    doors.rebuild: ("watchbill rebuild",),
}
"""Every command in the order in which `--help` lists it, with examples of what to type."""

app = typer.Typer(
    name="watchbill",
    # Rich's help costs a third of a second more than plain text.
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"watchbill {version('watchbill')}")
        raise typer.Exit


@app.callback()
def watchbill(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A plan in Markdown, confirmed once; every checkbox becomes one pull request.

    A PLAN is named by its file, slug or id; a TASK as PLAN#2.
    """


for _command, _examples in COMMANDS.items():
    app.command(epilog="\b\n" + "\n".join(("Examples:", *(f"  {example}" for example in _examples))))(_command)


def run_command(arguments: Sequence[str]) -> int:
    """Run one command to its exit code. What goes wrong is a sentence on stderr, or JSON with --json."""
    json = "--json" in arguments

    def command() -> int | None:
        try:
            code: int | None = app(list(arguments), prog_name="watchbill", standalone_mode=False)
        except TyperException as error:
            if not arguments:
                error.show()  # type: ignore[attr-defined]  # with nothing typed it shows the help
                return Exit.USAGE
            raise CommandFailed(Exit.USAGE, _mistyped(error, arguments[0])) from error
        return code

    return guarded(command, json=json)


def _mistyped(error: TyperException, typed: str) -> str:
    """What the parser found wrong, and where it says how it is typed, in one sentence."""
    # `Value error` is pydantic's word, which the parser asks about values.
    found = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    known = any(typed == command.__name__ for command in COMMANDS)
    command = f"watchbill {typed}" if known else "watchbill"
    return f"{found}{'' if found.endswith('?') else ';'} `{command} --help` says how"
