"""`watchbill check`: for a person, an editor and a commit hook."""

from __future__ import annotations

import json

from tests.starter.conftest import plan


def test_a_sound_document_is_told_in_one_line(watchbill, write):
    done = watchbill("check", write("faster.md", plan("faster", "One", "Two")))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("faster.md: 2 tasks, no faults\n")


def test_every_fault_is_told_with_its_line_as_editors_read_it(watchbill, write):
    text = plan("faster", "One").replace("slug: faster", "slug: Faster").replace("acme/shop", "shop")
    done = watchbill("check", write("faster.md", text))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert [line.partition("faster.md:")[2].split(":")[0] for line in lines] == ["3", "4"]


def test_machines_get_tasks_and_faults_in_one_object(watchbill, write):
    text = plan("faster", "One", "Two {after=1}").replace("- [ ] One", "- [x] One")
    done = watchbill("check", write("faster.md", text), "--json")
    told = json.loads(done.stdout)
    assert told == {
        "tasks": [
            {"ordinal": 1, "title": "One", "line": 9, "done": True, "struck": False, "after": []},
            {"ordinal": 2, "title": "Two", "line": 15, "done": False, "struck": False, "after": [1]},
        ],
        "metering": "",
        "faults": [],
    }
    assert done.returncode == 0


def test_a_plan_whose_agents_are_unmetered_is_told_to_be_such_a_one(watchbill, write):
    front = {"runtime": "claude", "network": "open", "metering": "off"}
    path = write("faster.md", plan("faster", "One", **front))
    said = watchbill("check", path).stdout.splitlines()
    assert said[0].endswith("1 task, no faults")
    assert said[1:] == [
        "Agents are unmetered: they call their models on logins of their own, and what that costs is not known."
    ]
    assert json.loads(watchbill("check", path, "--json").stdout)["metering"] == "unmetered"
    metered = write("metered.md", plan("metered", "One", runtime="claude"))
    assert json.loads(watchbill("check", metered, "--json").stdout)["metering"] == "metered"
    assert len(watchbill("check", metered).stdout.splitlines()) == 1


def test_faults_for_machines_have_a_line_and_a_message(watchbill, write):
    done = watchbill("check", "--json", write("faster.md", "no front matter\n"))
    faults = json.loads(done.stdout)["faults"]
    assert done.returncode == 1
    assert [sorted(fault) for fault in faults] == [["line", "message"]] * len(faults)
    assert faults[0]["line"] == 1


def test_both_ways_into_check_say_the_same(watchbill, write):
    """The quick way round the command line's parser, and the parser's own, which `--` forces."""
    for text in (plan("faster"), plan("faster", slug="Nope")):
        path = write("faster.md", text)
        quick, parsed = watchbill("check", path), watchbill("check", "--", path)
        assert (quick.returncode, quick.stdout) == (parsed.returncode, parsed.stdout)
        quick, parsed = watchbill("check", path, "--json"), watchbill("check", "--json", "--", path)
        assert (quick.returncode, quick.stdout) == (parsed.returncode, parsed.stdout)


def test_a_document_that_is_not_there_is_one_sentence_and_its_own_code(watchbill, tmp_path):
    done = watchbill("check", tmp_path / "nope.md")
    assert done.returncode == 4
    assert done.stderr == f"{tmp_path}/nope.md cannot be read: no such file or directory\n"
    assert watchbill("check", tmp_path).returncode == 4


def test_somebodys_control_characters_never_reach_the_terminal(watchbill, write):
    text = plan("faster").replace("slug: faster", "slug: \x1b[31mred")
    done = watchbill("check", write("faster.md", text))
    assert done.returncode == 1
    assert "\x1b" not in done.stdout + done.stderr


def test_a_terminal_that_cannot_show_a_character_is_no_failure(watchbill, write):
    done = watchbill("check", write("größe.md", plan("faster", "Größe → Maß")), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 task, no faults" in done.stdout
