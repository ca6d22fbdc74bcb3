"""The command line itself: help, versions, usage, exit codes, and what it costs to start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from starter.app import COMMANDS
from starter.exits import MEANINGS, Exit
from tests.starter.conftest import plan

NAMES = [command.__name__ for command in COMMANDS]


def test_the_version_is_the_packages(watchbill):
    done = watchbill("--version")
    assert (done.returncode, done.stdout) == (0, f"watchbill {version('watchbill')}\n")


def test_without_a_command_the_help_is_shown_as_a_usage_error(watchbill):
    done = watchbill()
    assert done.returncode == 2
    assert "Commands:" in done.stdout + done.stderr


def test_help_lists_every_command_in_whole_sentences(watchbill):
    done = watchbill("--help")
    assert done.returncode == 0
    listed = done.stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == NAMES
    assert not [line for line in listed if line.endswith("...")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["confrim"], "No such command 'confrim'. Did you mean 'confirm'? `watchbill --help` says how"),
        (["check"], "Missing argument 'FILE'; `watchbill check --help` says how"),
        (["check", "a", "b"], "Got unexpected extra argument(s) (b); `watchbill check --help` says how"),
        (["status", "--nope"], "No such option: --nope; `watchbill status --help` says how"),
        (["pause", "a", "--note"], "Option '--note' requires an argument; `watchbill pause --help` says how"),
        (
            ["watch", "a", "--until", "x"],
            "Invalid value for '--until': 'x' is not one of 'ended', 'person'; `watchbill watch --help` says how",
        ),
    ],
)
def test_what_is_typed_wrongly_is_told_in_one_sentence_and_exits_with_2(watchbill, arguments, sentence):
    done = watchbill(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (Exit.USAGE, "", f"{sentence}\n")
    told = watchbill(*arguments[:1], "--json", *arguments[1:])
    assert (told.returncode, json.loads(told.stderr)) == (Exit.USAGE, {"error": "usage", "message": sentence})


def test_errors_are_json_where_json_is_asked_for(watchbill, write):
    done = watchbill("status", "--json", "--nope")
    assert (done.returncode, json.loads(done.stderr)["error"]) == (2, "usage")
    done = watchbill("submit", write("faster.md", plan("faster", slug="Nope")), "--json")
    said = json.loads(done.stderr)
    assert (done.returncode, said["error"]) == (1, "faults")
    assert said["faults"][0]["line"] == 3


def test_faults_stop_a_submission_before_anything_far_away_is_asked(watchbill, write):
    done = watchbill("submit", write("faster.md", plan("faster", slug="Nope")))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "faster.md:3: slug: 'Nope'" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["status", "faster"],
        ["watch", "faster"],
        ["confirm", "faster"],
        ["pause", "faster"],
        ["approve", "faster#1"],
        ["report", "faster"],
        ["receipts", "faster"],
        ["audit"],
        ["rebuild"],
    ],
)
def test_what_cannot_be_reached_is_one_clear_sentence_and_exit_5(watchbill, arguments):
    done = watchbill(*arguments)
    assert done.returncode == Exit.UNREACHABLE, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "watchbill up" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["status", "Not A Slug"], "no plan's file, slug or id"),
        (["approve", "faster"], "name one task of it, such as faster#1"),
        (["confirm", "faster", "--digest", "xyz"], "is no digest"),
        (["approve", "faster#1", "--sha", "xyz"], "is no commit"),
        (["approve", "faster#1", "--sha", "0a1b2c3", "--question", "q1"], "give one of them"),
        (["status", "--wait"], "needs a PLAN"),
        (["up", "--stand-in", "acme/shop"], "is not of the form acme/shop=PATH"),
        (["up"], "there are no credentials for GitHub"),
    ],
)
def test_names_and_settings_that_make_no_sense_are_refused_as_usage(watchbill, arguments, sentence):
    done = watchbill(*arguments)
    assert (done.returncode, done.stderr.count("\n")) == (Exit.USAGE, 1)
    assert sentence in done.stderr


def test_an_owner_that_could_be_no_owner_is_refused(watchbill):
    done = watchbill("status", "faster", WATCHBILL_OWNER="Ada Lovelace")
    assert done.returncode == Exit.USAGE
    assert "WATCHBILL_OWNER" in done.stderr


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"WATCHBILL_TEMPORAL_ADDRESS": "foo:bar:baz"}, "WATCHBILL_TEMPORAL_ADDRESS is 'foo:bar:baz'; it should look"),
        ({"WATCHBILL_TEMPORAL_ADDRESS": "", "TEMPORAL_ADDRESS": "http://x"}, "TEMPORAL_ADDRESS is 'http://x'; it sh"),
        ({"TEMPORAL_PROFILE": "gone"}, "Temporal's own configuration cannot be read: Profile 'gone' not found"),
        ({"WATCHBILL_HOME": "~nobody-of-this-name/x"}, "nobody of that name has a home here"),
        ({"WATCHBILL_HOME": os.fsdecode(b"/tmp/\xff")}, "these settings are no UTF-8: WATCHBILL_HOME"),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_sentence_with_its_name(watchbill, setting, sentence):
    for arguments in (["status"], ["pause", "faster"]):
        done = watchbill(*arguments, **setting)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (Exit.USAGE, "", 1)
        assert sentence in done.stderr


def test_a_store_that_is_none_is_one_sentence_that_shows_no_password(watchbill):
    for arguments in (["report", "faster"], ["migrate"]):
        done = watchbill(*arguments, WATCHBILL_STORE_URL="postgresql://ada:hunter2@db:port/shop")
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (Exit.USAGE, "", 1)
        assert done.stderr.startswith("WATCHBILL_STORE_URL is no address of a store; it should look like")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["check", b"/tmp/\xff.md"], r"/tmp/\xff.md"),
        (["answer", "faster#1", b"caf\xe9"], r"caf\xe9"),
        (["up", "--stand-in", b"acme/shop=\xff"], r"acme/shop=\xff"),
    ],
)
def test_an_argument_that_is_no_utf8_is_one_sentence(watchbill, arguments, named):
    typed = [os.fsdecode(each) for each in arguments]
    sentence = f"the argument '{named}' is no UTF-8; write it in UTF-8, or rename the file"
    done = watchbill(*typed)
    assert (done.returncode, done.stdout, done.stderr) == (Exit.USAGE, "", f"{sentence}\n")
    assert json.loads(watchbill(*typed, "--json").stderr) == {"error": "usage", "message": sentence}


def test_a_home_that_cannot_be_made_is_one_sentence(watchbill, write):
    home = write("file", "") / "below"
    for arguments in (["migrate"], ["relay"], ["worker"], ["up", "--stand-in", f"acme/shop={watchbill.folder}"]):
        done = watchbill(*arguments, WATCHBILL_HOME=str(home))
        assert done.returncode in {Exit.UNREACHABLE, 1}
        assert done.stderr.count("\n") == 1
        assert "not a directory" in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-", "> /dev/full"])
def test_an_output_that_is_closed_or_full_is_no_fault_of_ours(watchbill, write, closed):
    path = write("faster.md", plan("faster"))
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -P -m starter check "$1" {closed}', sys.executable, str(path)],
        capture_output=True, text=True, env=watchbill.environment, check=False,
    )  # fmt: skip
    full = closed == "> /dev/full"
    assert done.returncode == (Exit.UNREACHABLE if full else Exit.DONE)
    assert done.stderr == ("no space left on device\n" if full else "")


def test_a_traceback_is_shown_only_to_who_asks_for_it(watchbill):
    assert "Traceback" not in watchbill("audit").stderr
    assert "Traceback" in watchbill("audit", WATCHBILL_DEBUG="1").stderr


def test_a_reader_that_leaves_is_no_error(watchbill, write):
    path = write("faster.md", plan("faster", *(f"Task {n}" for n in range(200)), slug="Nope"))
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "starter", "check", str(path), "--json"],
        stdout=writing, stderr=subprocess.PIPE, env=watchbill.environment, check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "forbidden"),
    [
        (["--version"], {"typer", "domain", "asyncio", "temporalio", "sqlalchemy", "rich"}),
        (["--help"], {"asyncio", "pydantic", "temporalio", "sqlalchemy", "rich", "markdown_it"}),
        (["check", "plan.md"], {"typer", "asyncio", "pydantic", "temporalio", "sqlalchemy", "rich"}),
        (["status", "faster"], {"typer", "pydantic", "workflows", "activities", "markdown_it", "rich"}),
        (["report", "faster"], {"typer", "pydantic", "temporalio", "workflows", "jinja2", "rich", "alembic"}),
        (["audit"], {"temporalio", "workflows", "activities", "alembic"}),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(watchbill, write, arguments, forbidden):
    write("plan.md", plan("faster"))
    script = (
        "import json, sys\n"
        "from starter.__main__ import run\n"
        "run(sys.argv[1:])\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *arguments],
        capture_output=True, text=True, env=watchbill.environment, cwd=watchbill.folder, check=True,
    )  # fmt: skip
    assert forbidden.isdisjoint(json.loads(done.stderr.splitlines()[-1]))


def test_every_exit_code_has_a_meaning():
    assert set(MEANINGS) == set(Exit)


def test_a_revision_is_of_a_file_and_is_confirmed_or_taken_back(watchbill):
    for arguments, told in (
        (("faster",), "'faster' is no file; name the plan's Markdown file"),
        (("faster.md", "--withdraw", "--yes"), "choose"),
    ):
        done = watchbill("revise", *arguments)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert watchbill("revise", "nowhere.md").returncode == 4
