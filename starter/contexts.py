"""What is known of a plan or a repository: shown as Markdown, and edited as the same document."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from sqlalchemy import Connection

from domain.contextspace import Contextspace, changes, read, to_markdown
from domain.decision import Outcome, Reply
from domain.errors import NotFound
from domain.front_matter import is_repository
from domain.notes import EditContext, NoteChange
from starter import graph
from starter import settings as settings_
from starter.exits import CommandFailed, Exit
from starter.looking import no_such_plan
from starter.names import plan_named
from starter.output import note, say, say_json
from starter.replies import tell, who
from starter.settings import Settings
from store import notes
from store.plans import load_plan

_HELP = """\
<!--
A line `### Title` begins a note, and what follows is its text. Notes stand below `## Decisions` or
`## Operating knowledge`; a new one has no number. Take a note out to remove it. Leave the numbers as they are:
they tell which version you have read. Everything else in here is for reading only.
-->

"""


def show(plan: str, repository: str, *, json: bool) -> Exit:
    """Print the contextspace of a plan, with its repository's, or of a repository alone."""
    settings = settings_.load()
    with graph.opened(settings) as store, store.read() as connection:
        space = _space(connection, settings, *_named(settings, plan, repository))
    if json:
        say_json(space)
    else:
        say(to_markdown(space).rstrip("\n"))
    return Exit.DONE


def edit(plan: str, repository: str, file: Path | None, *, json: bool) -> Exit:
    """Hand over what differs in the edited document, from a file or from the person's editor."""
    settings = settings_.load()
    plan_id, repository = _named(settings, plan, repository)
    if file is not None:
        return _hand_over(settings, plan_id, repository, _text_in(file), json)
    editor = _editor(settings)
    with graph.opened(settings) as store, store.read() as connection:
        shown = _HELP + to_markdown(_space(connection, settings, plan_id, repository))
    handle, name = tempfile.mkstemp(prefix="watchbill-context-", suffix=".md")
    draft = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(shown)
    _let_edit(editor, draft)
    text = draft.read_text(encoding="utf-8", errors="replace")
    try:
        code = _hand_over(settings, plan_id, repository, text, json)
    except Exception:
        note(f"what you wrote is kept in {draft}")
        raise
    if code is Exit.DONE:
        draft.unlink()
    else:
        note(f"what you wrote is kept in {draft}")
    return code


def _named(settings: Settings, plan: str, repository: str) -> tuple[str, str]:
    """`(plan id, "")` or `("", repository)`."""
    if plan:
        return plan_named(plan, settings.owner), ""
    if not is_repository(repository):
        raise CommandFailed(Exit.USAGE, f"{repository!r} is no repository such as acme/shop")
    return "", repository


def _space(connection: Connection, settings: Settings, plan_id: str, repository: str) -> Contextspace:
    if repository:
        return notes.of_repository(connection, settings.owner, repository)
    try:
        return notes.of_plan(connection, load_plan(connection, plan_id))
    except NotFound:
        raise no_such_plan(settings, plan_id) from None


def _hand_over(settings: Settings, plan_id: str, repository: str, text: str, json: bool) -> Exit:
    """CommandFailed with everything that is wrong with the document."""
    wanted = _wanted(settings, plan_id, repository, text)
    order = EditContext(settings.owner, plan_id, repository, wanted, who())
    name = plan_id.rpartition("-")[0] or repository
    if not wanted:
        return tell(name, Reply(Outcome.ALREADY, "nothing is changed by this", "current", plan_id), json)

    async def hand_over() -> Reply:
        from starter.client import Temporal

        temporal = await Temporal.connect(settings)
        return await temporal.edit_context(order)

    return tell(name, asyncio.run(hand_over()), json)


def _wanted(settings: Settings, plan_id: str, repository: str, text: str) -> tuple[NoteChange, ...]:
    with graph.opened(settings) as store, store.read() as connection:
        if plan_id:
            _space(connection, settings, plan_id, "")
        chain = plan_id or f"owner:{settings.owner}"
        stood = notes.versions(connection, chain, repository)
    wanted, faults = changes(stood, read(text))
    if faults:
        raise CommandFailed(Exit.FAULTS, "\n".join(faults), faults=list(faults))
    return wanted


def _text_in(file: Path) -> str:
    if str(file) == "-":
        return sys.stdin.buffer.read().decode(errors="replace") if sys.stdin else ""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise NotFound(f"{file} cannot be read: {(error.strerror or str(error)).lower()}") from error


def _editor(settings: Settings) -> str:
    """The person's editor. CommandFailed where none is named and there is no terminal for the usual one."""
    named = settings.environment.get("VISUAL") or settings.environment.get("EDITOR")
    if not named and not (sys.stdin and sys.stdin.isatty()):
        raise CommandFailed(Exit.USAGE, "there is no terminal for an editor here; bring the text with --file")
    return named or "vi"


def _let_edit(editor: str, draft: Path) -> None:
    """Wait until the person's editor has ended. CommandFailed where there is none, or it failed."""
    try:
        done = subprocess.run([*shlex.split(editor), str(draft)], check=False)
    except (OSError, ValueError) as error:
        draft.unlink()
        raise CommandFailed(
            Exit.USAGE, f"the editor {editor!r} does not start: {error}; set EDITOR, or bring the text with --file"
        ) from None
    if done.returncode:
        raise CommandFailed(
            Exit.USAGE, f"the editor {editor!r} ended with {done.returncode}; what you wrote is kept in {draft}"
        )
