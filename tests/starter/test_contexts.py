"""What is known, as a person reads and edits it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from starter.exits import Exit


@pytest.fixture
def reading(watchbill, published_graph):
    """The command beside a store in which `faster` is published, and no Temporal."""

    def run(*arguments, **settings):
        return watchbill(*arguments, WATCHBILL_STORE_URL=published_graph, **settings)

    return run


def test_a_plans_context_is_a_document_and_json(reading):
    shown = reading("context", "faster")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("# Context of faster\n\n<!-- shown: -->\n")
    assert "## Decisions\n\n## Operating knowledge\n" in shown.stdout
    found = json.loads(reading("context", "faster", "--json").stdout)
    assert (found["name"], found["repository"], found["notes"]) == ("faster", "acme/shop", [])
    assert reading("context", "--repository", "acme/shop").stdout.startswith("# Context of acme/shop\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nobody"], Exit.NOT_FOUND, "has no plan nobody"),
        ([], Exit.USAGE, "name a PLAN, or a repository"),
        (["faster", "--repository", "acme/shop"], Exit.USAGE, "one of them"),
        (["edit"], Exit.NOT_FOUND, "has no plan edit"),
        (["show", "faster"], Exit.USAGE, "'show' is nothing that can be done"),
        (["faster", "--file", "x.md"], Exit.USAGE, "write `context edit`"),
        (["edit", "--repository", "shop"], Exit.USAGE, "is no repository such as acme/shop"),
        (["edit", "faster", "--file", "none.md"], Exit.NOT_FOUND, "none.md cannot be read"),
        (["edit", "nobody", "--file", "bad.md"], Exit.NOT_FOUND, "has no plan nobody"),
        (["edit", "faster", "--file", "bad.md"], Exit.FAULTS, "line 1: this belongs to no note"),
    ],
)
def test_what_cannot_be_meant_is_told(reading, write, arguments, code, said):
    write("bad.md", "no note\n")
    done = reading("context", *arguments)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_an_editor_that_changes_nothing_asks_nobody(reading):
    done = reading("context", "edit", "faster", EDITOR="true")
    assert (done.returncode, done.stdout) == (0, "faster: nothing is changed by this\n")


def test_what_was_written_is_kept_where_it_could_not_be_handed_over(reading, write):
    editor = write("editor", "#!/bin/sh\nprintf '### Use tabs\\n\\nIn the Makefile.\\n' >> \"$1\"\n")
    editor.chmod(0o755)
    done = reading("context", "edit", "faster", EDITOR=str(editor))
    assert done.returncode == Exit.UNREACHABLE
    kept = Path(done.stderr.split("what you wrote is kept in ")[1].splitlines()[0])
    try:
        assert "Use tabs" in kept.read_text()
        assert kept.stat().st_mode & 0o077 == 0
    finally:
        kept.unlink()


def test_an_editor_that_is_not_there_or_fails_is_told(reading):
    assert "does not start" in reading("context", "edit", "faster", EDITOR="/nonexistent/vi").stderr
    failed = reading("context", "edit", "faster", EDITOR="false")
    assert (failed.returncode, "ended with 1" in failed.stderr) == (Exit.USAGE, True)
    Path(failed.stderr.split("is kept in ")[1].strip()).unlink()


def test_where_there_is_no_terminal_no_editor_is_started_that_nobody_named(reading):
    done = reading("context", "edit", "faster", EDITOR="", VISUAL="")
    assert (done.returncode, "no terminal for an editor" in done.stderr) == (Exit.USAGE, True)
    assert "is kept in" not in done.stderr
