"""What a plan document says, and everything that can be wrong with one."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from domain.document import MAX_BYTES, MAX_FAULTS, MAX_TASKS, inspect, parse
from domain.errors import Fault, InvalidPlan
from domain.front_matter import FrontMatter
from domain.plan import MergePolicy, PlanSpec
from domain.script import shell_block

ROOT = Path(__file__).parents[2]
FRONT = "---\nrepository: acme/shop\nslug: shop\n---\n"
TASKS_LINE = FRONT.count("\n") + 1
"""The line of the heading in `under_tasks`."""


def under_tasks(boxes: str, front: str = "") -> str:
    """A document with these boxes. They are checked where a test is not about scripts."""
    return FRONT.replace("---\n", "---\n" + front, 1) + "# Tasks\n" + boxes


def with_front(front: str) -> str:
    return f"---\n{front}\n---\n- [x] one\n"


def titles(text: str | bytes) -> list[str]:
    return [task.title for task in parse(text).tasks]


def faults(text: str | bytes, file_name: str = "plan.md") -> list[Fault]:
    with pytest.raises(InvalidPlan) as refusal:
        parse(text, file_name=file_name)
    return list(refusal.value.faults)


def fault(text: str | bytes, file_name: str = "plan.md") -> Fault:
    (only,) = faults(text, file_name)
    return only


# What is a task.


@pytest.mark.parametrize(
    "hidden",
    [
        "```\n- [ ] in a fence\n```",
        "~~~markdown\n- [ ] in a fence\n~~~",
        "> - [ ] in a quote",
        "> > 1. [ ] in a quote in a quote",
        "<!--\n- [ ] in a comment\n-->",
        "<!-- - [ ] in a comment -->",
        "    - [ ] in indented code",
        "\t- [ ] in indented code",
        "<div>\n- [ ] in HTML\n</div>",
        "text\n2. [ ] an ordered list that starts at 2 is part of the paragraph",
    ],
)
def test_boxes_that_commonmark_does_not_see_as_list_items_are_no_tasks(hidden: str) -> None:
    assert titles(under_tasks(f"- [x] before\n\n{hidden}\n\n- [x] after\n")) == ["before", "after"]


@pytest.mark.parametrize(
    "hidden",
    [
        "  - [ ] nested",
        "    - [ ] nested deeper",
        "\t- [ ] nested by a tab",
        "  1) [ ] nested and ordered",
        "  > - [ ] in a quote",
        "  ```\n  - [ ] in a fence\n  ```",
        "  text\n  - [ ] after text",
    ],
)
def test_boxes_inside_a_task_are_its_body(hidden: str) -> None:
    plan = parse(under_tasks(f"- [x] before\n{hidden}\n- [x] after\n"))
    assert [task.title for task in plan.tasks] == ["before", "after"]
    assert "[ ]" in plan.tasks[0].body


@pytest.mark.parametrize(
    ("line", "done", "title"),
    [
        ("- [ ] support [x] flag syntax", False, "support [x] flag syntax"),
        ("- [x] support [ ] flag syntax", True, "support [ ] flag syntax"),
        ("- [X] capital", True, "capital"),
        ("- [ ] [x] twice", False, "[x] twice"),
        ("- [x]\ttab", True, "tab"),
        ("- [ ] `code`, **bold** and __init__", False, "`code`, **bold** and __init__"),
        ("- [ ]   spaces around   ", False, "spaces around"),
        ("- [ ] Größe, 日本語 and 🚢", False, "Größe, 日本語 and 🚢"),
    ],
)
def test_only_the_marker_says_whether_a_box_is_checked(line: str, done: bool, title: str) -> None:
    (task,) = parse(under_tasks(f"{line}\n  ```sh\n  true\n  ```\n")).tasks
    assert (task.done, task.title) == (done, title)


@pytest.mark.parametrize("marker", ["-", "*", "+", "1.", "1)", "7.", "123456789)"])
@pytest.mark.parametrize("indent", ["", " ", "  ", "   "])
@pytest.mark.parametrize("gap", [" ", "  ", "   ", "    ", "\t"])
def test_every_bullet_and_indentation_makes_a_task(marker: str, indent: str, gap: str) -> None:
    assert titles(under_tasks(f"{indent}{marker}{gap}[x] one\n")) == ["one"]


@pytest.mark.parametrize(
    "boxes",
    [
        "- [x] one\n- [x] two\n- [x] three\n",
        "- [x] one\n\n- [x] two\n\n\n- [x] three\n",
        "- [x] one\n* [x] two\n+ [x] three\n",
        "1. [x] one\n2) [x] two\n- [x] three\n",
        "- [x] one\n\nSome words.\n\n- [x] two\n<!-- a comment -->\n- [x] three\n",
        "- [x] one\n### A part of it\n- [x] two\n### Another\n- [x] three\n",
        " - [x] one\n  - [x] two\n   - [x] three\n",
        "- [x] one\nlazy\n- [x] two\n- [x] three",
    ],
)
def test_tasks_are_numbered_through_the_whole_section(boxes: str) -> None:
    tasks = parse(under_tasks(boxes)).tasks
    assert [(task.ordinal, task.title) for task in tasks] == [(1, "one"), (2, "two"), (3, "three")]


def test_checked_boxes_keep_their_numbers_and_may_be_all_there_is() -> None:
    plan = parse(under_tasks("- [x] one\n- [X] two {after=1}\n"))
    assert [(task.ordinal, task.done, task.after) for task in plan.tasks] == [(1, True, ()), (2, True, (1,))]


# Which section holds the tasks.


def test_a_second_checklist_outside_the_tasks_section_is_prose() -> None:
    plan = parse(FRONT + "# Why\n\n## Tasks\n- [x] one\n\n## Success criteria\n- [ ] fast\n- plain\n")
    assert [task.title for task in plan.tasks] == ["one"]
    assert plan.spec == "# Why\n\n## Success criteria\n- [ ] fast\n- plain"


@pytest.mark.parametrize("heading", ["# Tasks", "###### tasks ##", "## **TASKS**", "Tasks\n-----", "## Tasks:"])
def test_the_heading_tasks_is_known_at_any_level(heading: str) -> None:
    assert titles(f"{FRONT}- [ ] not this\n\n{heading}\n- [x] one\n") == ["one"]


def test_a_section_ends_at_the_next_heading_of_its_level_or_higher() -> None:
    text = FRONT + "## Tasks\n- [x] one\n### Part\n- [x] two\n# Else\n- [ ] no\n"
    assert titles(text) == ["one", "two"]


def test_headings_in_quotes_and_items_do_not_end_a_section() -> None:
    assert titles(under_tasks("- [x] one\n\n  # inside\n\n> # quoted\n\n- [x] two\n")) == ["one", "two"]


def test_without_the_heading_the_only_section_with_boxes_is_taken() -> None:
    plan = parse(FRONT + "# Shop\n- a note\n\nWhy.\n\n## Steps\n\n- [x] one\n\n- [x] two\n\n## Notes\n- a note\n")
    assert [task.title for task in plan.tasks] == ["one", "two"]
    assert plan.spec == "# Shop\n- a note\n\nWhy.\n\n## Steps\n\n## Notes\n- a note"


def test_without_the_heading_two_sections_with_boxes_are_refused_by_name() -> None:
    found = fault(FRONT + "- [ ] zero\n## Steps\n- [ ] one\n## Success criteria\n- [ ] fast\n")
    assert found.line == 7
    assert 'the top of the document (line 5) and "Steps" (line 7) and "Success criteria" (line 9)' in found.message
    assert 'heading "Tasks"' in found.message


def test_a_second_tasks_section_with_boxes_is_refused_rather_than_lost() -> None:
    found = fault(FRONT + "# Tasks\n- [x] one\n# Tasks\n- [x] two\n")
    assert (found.line, "second" in found.message) == (7, True)


def test_a_top_level_item_without_a_box_is_refused() -> None:
    found = faults(under_tasks("- [x] one\n- two\n- [x]three\n- [-] four\n-     [x] code\n- > [x] quote\n-\n"))
    assert [each.line for each in found] == [TASKS_LINE + offset for offset in (2, 3, 4, 5, 6, 7)]
    assert all("checkbox" in each.message for each in found)


@pytest.mark.parametrize(
    ("body", "line"), [("", 1), ("words\n", 1), ("> - [ ] quoted\n", 1), ("# Why\n\n# Tasks\nnone\n", 7)]
)
def test_a_plan_without_a_task_is_refused(body: str, line: int) -> None:
    found = fault(FRONT + body)
    assert (found.line, "there is no task" in found.message) == (line, True)


def test_more_tasks_than_a_plan_may_have_are_refused_at_the_first_too_many() -> None:
    assert len(parse(under_tasks("- [x] a\n" * MAX_TASKS)).tasks) == MAX_TASKS
    assert fault(under_tasks("- [x] a\n" * (MAX_TASKS + 1))).line == TASKS_LINE + MAX_TASKS + 1


def test_nesting_past_the_limit_is_refused_because_tasks_could_get_lost() -> None:
    nested = "".join("  " * depth + "- [x] a\n" for depth in range(60))
    assert "nested" in fault(under_tasks(nested + "- [x] lost\n")).message
    shallow = "".join("  " * depth + "- [x] a\n" for depth in range(40))
    assert titles(under_tasks(shallow + "- [x] kept\n")) == ["a", "kept"]


# Titles and bodies.


@pytest.mark.parametrize(
    ("item", "body"),
    [
        ("- [x] t\n  one\n  two\n", "one\ntwo"),
        ("- [x] t\n\n  one\n\n    two\n\n\n", "one\n\n  two"),
        ("- [x] t\n      deep\n", "    deep"),
        ("- [x] t\nlazy\n", "lazy"),
        ("- [x] t\n\tone\n", "  one"),
        ("- [x] t\n  ```make\n  all:\n  \tmake it\n\n  ```\n", "```make\nall:\n\tmake it\n\n```"),
        ("- [x] t\n\t```sh\n\t\tone\n\t```\n", "  ```sh\n  \tone\n  ```"),
        ("10. [x] t\n    one\n\ttwo\n", "one\ntwo"),
        ("-   [x] t\n\n\tone\n\t\ttwo\n", "one\n\ttwo"),
        ("   -   [x] t\n\n       one\n", "one"),
        ("- [x] t\n  - [ ] n\n    - deeper\n", "- [ ] n\n  - deeper"),
    ],
)
def test_a_body_is_the_items_source_without_its_indentation(item: str, body: str) -> None:
    assert parse(under_tasks(item)).tasks[0].body == body


def test_a_script_in_a_body_is_byte_for_byte_what_the_document_has() -> None:
    script = "cat > Makefile <<'END'\nall:\n\tcc -o a a.c\n\n  # two spaces\nEND\n"
    fenced = "".join(f"  {line}\n" if line else "\n" for line in f"```sh\n{script}```".split("\n"))
    (task,) = parse(under_tasks(f"- [ ] t\n\n{fenced}")).tasks
    found = shell_block(task.body)
    assert found is not None
    assert found[1] == script


@pytest.mark.parametrize("line", ["- [ ]", "- [x]   ", "- [x] {after=1}", "- [x]\n  below"])
def test_a_box_needs_a_title_on_its_line(line: str) -> None:
    found = faults(under_tasks(f"- [x] one\n{line}\n"))
    assert any(each.line == TASKS_LINE + 2 and "title" in each.message for each in found)


def test_a_title_has_at_most_200_characters() -> None:
    assert titles(under_tasks(f"- [x] {'a' * 200}\n")) == ["a" * 200]
    assert "longer than 200" in fault(under_tasks(f"- [x] {'a' * 201}\n")).message


def test_an_open_shell_task_needs_a_script_and_a_checked_one_does_not() -> None:
    found = fault(under_tasks("- [x] done\n- [ ] open\n\n  Words.\n"))
    assert (found.line, "sh block" in found.message) == (TASKS_LINE + 2, True)
    assert titles(under_tasks("- [ ] open\n\n  ```sh\n  true\n  ```\n")) == ["open"]


def test_a_script_beside_its_box_is_not_in_it() -> None:
    assert "indent" in fault(under_tasks("- [ ] open\n```sh\ntrue\n```\n")).message


# Attributes.


def test_attributes_say_what_is_different_for_one_task() -> None:
    front = "budget: 12.00 USD\nmodel: large\ntimeout: 2h\n"
    third = "{after=2,1,2 budget=\"2.50 USD\" runtime=codex model='small' timeout=1h30m}"
    boxes = f"- [x] one\n- [x] two\n- [x] three  {third}\n"
    one, _, three = parse(under_tasks(boxes, front)).tasks
    assert (three.title, three.after, three.budget_nano_usd) == ("three", (1, 2), 2_500_000_000)
    assert (three.runtime, three.model, three.timeout) == ("codex", "small", 5400)
    assert (one.after, one.budget_nano_usd, one.model, one.timeout) == ((), 12_000_000_000, "", 7200)


@pytest.mark.parametrize(
    "title",
    [
        "use {braces}",
        "use `{after=1}`",
        "use {after=1} here",
        "use {}",
        "use {a, b}",
        r"use \{after=1}",
        "set {x: 1}",
        "say ${HOME}",
        'a "{" alone',
    ],
)
def test_braces_that_are_no_attributes_are_text(title: str) -> None:
    assert titles(under_tasks(f"- [x] {title}\n")) == [title]


def test_attributes_follow_code_that_looks_like_them() -> None:
    (task,) = parse(under_tasks("- [x] explain `{after=9}` {timeout=5m}\n")).tasks
    assert (task.title, task.timeout) == ("explain `{after=9}`", 300)


def test_a_quoted_value_may_hold_braces() -> None:
    found = fault(under_tasks('- [x] t {model="a{b}"}\n'))
    assert found.message.startswith("model:")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("{owner=me}", "unknown attribute `owner`; a box knows after, budget, runtime, model, timeout"),
        ("{after=1 after=2}", "stands twice"),
        ("{after=1, 2}", "cannot read {after=1, 2}"),
        ("{after: 1}", "cannot read {after: 1}"),
        ("{after=}", "cannot read {after=}"),
        ("{budget=2.50 USD}", "cannot read {budget=2.50 USD}"),
        ("{after=one}", "after: 'one' is not a list of task numbers"),
        ("{after=0}", "after: '0' is not a list of task numbers"),
        ("{after=1,,2}", "after: '1,,2' is not a list of task numbers"),
        ('{budget="much"}', "budget: 'much' is not an amount of money"),
        ("{budget=0}", "budget: '0' is not an amount of money"),
        ("{timeout=5}", "timeout: '5' is not a time"),
        ("{timeout=0m}", "timeout: '0m' is not a time"),
        ("{timeout=25h}", "timeout: '25h' is not a time"),
        ("{runtime=gemini}", "runtime: this version cannot run 'gemini'; it runs shell, claude, codex, opencode"),
        ("{model=large}", "model: a shell script uses none; name a runtime that does"),
        ('{model="two words"}', "model: 'two words' is not a name of one word"),
        ("{after=2}", "after: task 2 cannot wait for itself"),
        ("{after=7}", "after: there is no task 7; the last is 2"),
    ],
)
def test_a_wrong_attribute_is_a_fault_at_its_box(attributes: str, message: str) -> None:
    found = fault(under_tasks(f"- [x] one\n\n- [x] two {attributes}\n"))
    assert found.line == TASKS_LINE + 3
    assert message in found.message


def test_a_task_may_only_say_less_than_the_plan() -> None:
    boxes = "- [x] one {budget=2}\n- [x] two {budget=3.01}\n"
    found = fault(under_tasks(boxes, "budget: 3.00\n"))
    assert (found.line, "more than the plan's 3.00 USD" in found.message) == (TASKS_LINE + 3, True)


def test_every_circle_of_waiting_tasks_is_named_once() -> None:
    boxes = "".join(f"- [x] t {{after={after}}}\n" for after in ("3", "1", "2", "5", "4", "5"))
    first, second = faults(under_tasks(boxes))
    assert first.line == TASKS_LINE + 1
    assert "task 1 waits for task 3 waits for task 2 waits for task 1" in first.message
    assert second.line == TASKS_LINE + 4
    assert "task 4 waits for task 5 waits for task 4" in second.message


def test_a_task_may_wait_for_a_later_one() -> None:
    assert parse(under_tasks("- [x] one {after=2}\n- [x] two\n")).tasks[0].after == (2,)


# Front matter.


def test_every_key_of_the_front_matter_is_read() -> None:
    plan = parse(
        with_front(
            "title: Faster cold start\nslug: faster\nrepository: acme/shop\nbase: release/2.x\n"
            "runtime: claude\nmodel: large\nbudget: 12.10 USD  # in all\nconcurrency: 2\nattempts: 3\n"
            'checks: ["make test", make lint]\npaths:\n  - "src/**"\n  - docs/\n'
            "merge: when-proven\ntimeout: 45m"
        )
    )
    assert plan == PlanSpec(
        slug="faster",
        title="Faster cold start",
        repository="acme/shop",
        digest=plan.digest,
        tasks=plan.tasks,
        base="release/2.x",
        budget_nano_usd=12_100_000_000,
        concurrency=2,
        attempts=3,
        checks=("make test", "make lint"),
        paths=("src/**", "docs/"),
        merge=MergePolicy.WHEN_PROVEN,
    )
    assert (plan.tasks[0].runtime, plan.tasks[0].model, plan.tasks[0].timeout) == ("claude", "large", 2700)


@pytest.mark.parametrize(
    ("line", "attribute", "value"),
    [
        ("title: 12", "title", "12"),
        ("title: 2024-01-01", "title", "2024-01-01"),
        ("title: yes", "title", "yes"),
        ("base: on", "base", "on"),
        ("base: 1.10", "base", "1.10"),
        ("base: 0x10", "base", "0x10"),
        ("budget: 12.10", "budget_nano_usd", 12_100_000_000),
        ("budget: 0.000000001", "budget_nano_usd", 1),
        ("budget: 123456789.123456789", "budget_nano_usd", 123_456_789_123_456_789),
        ("budget: 12.00 USD", "budget_nano_usd", 12_000_000_000),
        ("budget: $5", "budget_nano_usd", 5_000_000_000),
        ("checks: make test", "checks", ("make test",)),
        ("checks: [1, true]", "checks", ("1", "true")),
        ("checks: |\n  set -e\n  make\n", "checks", ("set -e\nmake",)),
        ("paths: docs/", "paths", ("docs/",)),
        ("concurrency: '3'", "concurrency", 3),
    ],
)
def test_values_are_what_the_file_says_whatever_yaml_makes_of_them(line: str, attribute: str, value: object) -> None:
    plan = parse(with_front(f"repository: acme/shop\nslug: s\n{line}"))
    assert getattr(plan, attribute) == value


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("budgte: 5", "unknown key `budgte`; did you mean `budget`?"),
        ("colour: red", "unknown key `colour`; a plan knows title, slug, repository"),
        ("repository: other/one", "`repository` stands on line 2 already"),
        ("title:", "title: there is no value"),
        ("title: ~", "title: there is no value"),
        ("title: ''", "title: there is no value"),
        ("title: [a]", "title: one text is needed here, not a list"),
        ("title: {a: b}", "title: a text or a list of texts is needed here, and nothing nested"),
        ("title: [[a]]", "nothing nested"),
        ('title: "a\\nb"', "title: one line of visible text"),
        ('title: "a\\0b"', "title: one line of visible text"),
        (f"title: {'a' * 201}", "title: longer than 200 characters"),
        ("base: a..b", "base: 'a..b' is not a name that git allows"),
        ("runtime: gemini", "runtime: this version cannot run 'gemini'; it runs shell, claude, codex, opencode"),
        ("runtime: two words", "runtime: 'two words' is not a name of one word"),
        ("reviewers: [nobody]", "reviewers: 'nobody' is no agent that could review"),
        ("budget: a lot", "budget: 'a lot' is not an amount of money"),
        ("budget: -1", "budget: '-1' is not"),
        ("budget: 0", "budget: '0' is not"),
        ("budget: .inf", "budget: '.inf' is not"),
        ("budget: 1e3", "budget: '1e3' is not"),
        ("concurrency: 0", "concurrency: '0' is not a whole number from 1 to 64"),
        ("concurrency: 65", "concurrency: '65' is not"),
        ("concurrency: 2.0", "concurrency: '2.0' is not"),
        ("concurrency: true", "concurrency: 'true' is not"),
        ("attempts: 21", "attempts: '21' is not a whole number from 1 to 20"),
        ("checks: []", "checks: there is no value"),
        ("checks: ['']", "checks: a text here is empty"),
        ("checks: [[make]]", "checks: a text or a list of texts"),
        ('checks: ["a\\u202eb"]', "invisible"),
        ("paths: [../x]", "paths: '../x' is not a path below the repository's root"),
        ("paths: /etc", "paths: '/etc' is not a path below"),
        ("merge: always", "merge: 'always' is not one of by-hand, when-proven"),
        ("merge: when-proven", "merge: when-proven needs `checks`"),
        ("timeout: 90", "timeout: '90' is not a time such as 45m, 1h30m or 90s"),
        ("timeout: 1:30", "timeout: '1:30' is not a time"),
        ("timeout: 30m1h", "timeout: '30m1h' is not a time"),
    ],
)
def test_a_wrong_value_is_a_fault_at_its_key(line: str, message: str) -> None:
    found = fault(with_front(f"repository: acme/shop\n\n# a comment\n{line}"))
    assert found.line == 5
    assert message in found.message


@pytest.mark.parametrize(
    ("front", "line", "message"),
    [
        ("title: a: b", 2, "not YAML"),
        ("slug: s\nrepository: [acme/shop", 3, "not YAML"),
        ("slug: s\nchecks: 'make\ntitle: t", 3, "not YAML"),
        ("paths: [*.md]", 2, "not YAML"),
        ("paths: *all", 2, "*all is a YAML alias"),
        ("paths: &all [a]", 2, "&all is a YAML anchor"),
        ("slug: s\ntitle: !!python/name:os.system x", 3, "is a YAML tag"),
        ("- a\n- b", 2, "lines such as `key: value`"),
        ("only words", 2, "lines such as `key: value`"),
        ("? [a]\n: b", 2, "lines such as `key: value`"),
        ("slug: s\n...\nslug: t", 4, "not YAML"),
        ("\tslug: s", 2, "not YAML"),
        ("a: " + "[" * 5000, 2, "not YAML"),
    ],
)
def test_yaml_that_is_more_or_less_than_texts_is_refused(front: str, line: int, message: str) -> None:
    found = fault(with_front(front))
    assert (found.line, message in found.message) == (line, True), found


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\n"
    assert fault(with_front(bomb)) == Fault(2, "&a is a YAML anchor; put the value in quotes")


def test_front_matter_must_be_there_and_must_end() -> None:
    assert fault("- [x] one\n").message.startswith("there is no front matter")
    assert fault("\n---\nrepository: acme/shop\n---\n- [x] one\n").line == 1
    assert "not closed" in fault("---\nrepository: acme/shop\n\n- [x] one\n").message


def test_a_repository_is_needed() -> None:
    assert "`repository`" in fault(with_front("slug: s")).message
    assert "`repository`" in fault(with_front("")).message


@pytest.mark.parametrize("name", ["acme/shop", "a/b", "some_company/x.y-z_1", "A-1/.github"])
def test_a_repository_is_owner_and_name(name: str) -> None:
    assert parse(with_front(f"slug: s\nrepository: {name}")).repository == name


@pytest.mark.parametrize(
    "name", ["shop", "a/b/c", "/b", "a/", "-a/b", "a/..", "a/b.git", "a b/c", "https://x/y", "ä/b"]
)
def test_anything_else_is_no_repository(name: str) -> None:
    assert "is not a repository" in fault(with_front(f"slug: s\nrepository: {name}")).message


@pytest.mark.parametrize(
    "name",
    [
        "main", "release/2.x", "feature/ä", "a-b", "a.b", "x@y", "a{b", "refs/x", "@x", "a]",
        "-a", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", "a\\b", "/a", "a/", "a//b", ".a", "a/.b",
        "a.lock", "a.lock/b", "a.", "a@{b", "HEAD",
    ],
)  # fmt: skip
def test_a_base_is_legal_when_git_says_so(name: str) -> None:
    allowed = subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True, check=False)
    quoted = name.replace("'", "''")
    _, found = inspect(with_front(f"slug: s\nrepository: a/b\nbase: '{quoted}'"))
    assert (not found) == (allowed.returncode == 0)


def test_a_base_that_git_reads_as_the_current_commit_is_refused() -> None:
    assert fault(with_front("slug: s\nrepository: a/b\nbase: '@'")).message.startswith("base:")


@pytest.mark.parametrize(
    ("file_name", "slug"),
    [
        ("plan.md", "plan"),
        ("docs/plans/Faster cold start.md", "faster-cold-start"),
        ("C:\\plans\\Café Ω.MD", "cafe"),
        ("no-suffix", "no-suffix"),
        ("two.dots.md", "two-dots"),
        (".md", "md"),
    ],
)
def test_the_files_name_lends_the_slug(file_name: str, slug: str) -> None:
    text = with_front("repository: acme/shop")
    assert parse(text, file_name=file_name).slug == slug


@pytest.mark.parametrize("file_name", ["", "日本.md", "---.md"])
def test_a_plan_without_any_slug_is_refused(file_name: str) -> None:
    assert "`slug`" in fault(with_front("repository: acme/shop"), file_name).message


@pytest.mark.parametrize("slug", ["A", "a_b", "-a", "a-", "a" * 41, "a b", "ä"])
def test_a_slug_is_made_of_few_characters(slug: str) -> None:
    assert fault(with_front(f"repository: acme/shop\nslug: {slug}")).message.startswith("slug:")


@pytest.mark.parametrize(
    ("front", "body", "title"),
    [
        ("title: Given", "# Heading\n", "Given"),
        ("", "# Heading\n", "Heading"),
        ("", "words\n\nUnderlined\n===\n", "Underlined"),
        ("", "## Tasks\n", "s"),
        ("", "", "s"),
    ],
)
def test_a_title_comes_from_the_front_matter_the_first_heading_or_the_slug(front: str, body: str, title: str) -> None:
    text = f"---\nslug: s\nrepository: a/b\n{front}\n---\n{body}\n- [x] one\n"
    assert parse(text).title == title


# The file.


def test_the_same_plan_is_the_same_digest_however_its_lines_end() -> None:
    text = under_tasks("- [x] Größe\n\n  body\n")
    windows = text.replace("\n", "\r\n")
    same: list[str | bytes] = [
        text,
        text.encode(),
        windows,
        windows.encode(),
        "\ufeff" + text,
        ("\ufeff" + windows).encode(),
    ]
    assert len({parse(each).digest for each in same}) == 1
    assert len({parse(each).tasks for each in same}) == 1
    assert parse(text + "more\n").digest != parse(text).digest


@pytest.mark.parametrize(
    "character", ["\0", "\x07", "\x1b", "\r", "\x0c", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\ud800"]
)
def test_invisible_characters_are_refused_at_their_line(character: str) -> None:
    found = fault(under_tasks(f"- [x] one\n\n  a{character}b\n"))
    assert (found.line, f"U+{ord(character):04X}" in found.message) == (TASKS_LINE + 3, True)


def test_bytes_that_are_not_utf8_are_refused_at_their_line() -> None:
    assert fault(b"---\nslug: s\ntitle: \xff\n---\n") == Fault(3, "the document is not UTF-8; save it as UTF-8")
    assert "UTF-8" in fault("---\n".encode("utf-16")).message


def test_a_document_has_a_size_limit() -> None:
    text = under_tasks("- [x] one\n") + "\n"
    assert parse(text + "a" * (MAX_BYTES - len(text))).tasks
    assert "bytes" in fault(text + "a" * (MAX_BYTES - len(text) + 1)).message
    assert "bytes" in fault(text + "ä" * (MAX_BYTES // 2)).message


def test_everything_wrong_is_reported_at_once_in_line_order() -> None:
    text = (
        "---\nslug: A b\nbudget: lots\nbudget: 5\ncolour: red\nmerge: when-proven\nruntime: gemini\n---\n"
        "# Tasks\n- [x] one {after=1}\n- two\n- [x] three {owner=me timeout=5}\n- [ ]\n"
    )
    found = faults(text)
    assert found == sorted(found)
    assert [each.line for each in found] == [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 12, 13]


def test_a_flood_of_faults_is_cut_short_and_counted() -> None:
    found = faults(under_tasks("- [x] one\n" + "- no\n" * 250))
    assert len(found) == MAX_FAULTS + 1
    assert found[-1].message == "and 150 more faults from here on"


def test_what_can_be_read_of_a_faulty_plan_is_shown() -> None:
    tasks, found = inspect("no front matter\n\n- [ ] one\n- two\n- [x] three {after=1 owner=me}\n", "plan.md")
    assert [(task.ordinal, task.title, task.line, task.done, task.after) for task in tasks] == [
        (1, "one", 3, False, ()),
        (2, "three", 5, True, (1,)),
    ]
    assert [each.line for each in found] == [1, 3, 4, 5]


# Documents at random.

FRAGMENTS = [
    "---\n", "\n", "\r\n", "# Tasks\n", "## B\n", "- [ ] a", "- [x] b {after=1}", "* [X] c", "1) [ ] d",
    "- e", "{after=2,3}", '{budget="1"}', "{", "}", "```sh\n", "```\n", "> ", "  ", "\t", "<!--", "-->",
    "repository: a/b\n", "slug: s\n", "title: x\n", "budget: 1.5\n", "merge: when-proven\n",
    "checks: [a, 'b']\n", "paths: ['**']\n", ": ", "&a ", "*a", "!t ", "[", "]", "'", '"', "|\n",
    "\ufeff", "\0", "\u2028", "\ud800", "日本", "===\n", "[x]: /u\n",
]  # fmt: skip


@given(
    st.text()
    | st.text(st.characters())
    | st.binary()
    | st.lists(st.sampled_from(FRAGMENTS)).map("".join)
    | st.lists(st.sampled_from(FRAGMENTS)).map(lambda parts: with_front("".join(parts)))
    | st.lists(st.sampled_from(FRAGMENTS)).map(lambda parts: under_tasks("".join(parts)))
)
def test_any_text_is_a_plan_or_a_list_of_faults(text: str | bytes) -> None:
    tasks, found = inspect(text, "plan.md")
    lines = (text if isinstance(text, str) else text.decode("utf-8", "replace")).split("\n")
    assert [task.ordinal for task in tasks] == list(range(1, len(tasks) + 1))
    assert all(re.search(r"\[[ xX]\]", lines[task.line - 1]) for task in tasks)
    assert all(1 <= each.line <= len(lines) and each.message for each in found)
    if found:
        assert faults(text) == list(found)
    else:
        assert parse(text, file_name="plan.md").tasks == tasks


WORDS = st.text("abc xyzäß[](){}*_`\"'#&<>!|\\:;,.-+0123🚢", min_size=1, max_size=30)
TITLES = WORDS.map(lambda text: f"t {text}".strip()).filter(lambda text: not text.endswith("}"))
CODE_LINES = st.text("ab \t#$-[]x", max_size=12).map(str.rstrip)
BLOCKS = st.one_of(
    st.text("abc ", min_size=1, max_size=20).map(lambda text: [f"w{text}".strip()]),
    st.just(["- [ ] nested", "  - [x] deeper"]),
    st.just(["> - [ ] quoted"]),
    st.lists(CODE_LINES, max_size=4).map(lambda lines: ["~~~text", *lines, "~~~"]),
)


@dataclass
class Box:
    title: str
    done: bool
    marker: str
    gap: int
    blocks: list[list[str]] = field(default_factory=list)

    @property
    def body(self) -> list[str]:
        script = ["```sh", "true", "```"]
        return "\n\n".join("\n".join(block) for block in [*self.blocks, script]).split("\n")

    def lines(self, indent: int) -> list[str]:
        width = indent + len(self.marker) + self.gap
        first = f"{' ' * indent}{self.marker}{' ' * self.gap}[{'x' if self.done else ' '}] {self.title}"
        return [first, "", *(" " * width + line if line else "" for line in self.body), ""]


BOXES = st.builds(
    Box,
    title=TITLES,
    done=st.booleans(),
    marker=st.sampled_from(["-", "*", "+", "1.", "1)", "42."]),
    gap=st.integers(1, 4),
    blocks=st.lists(BLOCKS, max_size=3),
)


@given(
    boxes=st.lists(BOXES, min_size=1, max_size=6),
    indent=st.integers(0, 2),
    before=st.lists(st.sampled_from(["", "words", "> quote"]), max_size=4),
    newline=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_a_rendered_plan_reads_back_as_it_was(
    boxes: list[Box], indent: int, before: list[str], newline: str, mark: str
) -> None:
    lines = [*FRONT.rstrip("\n").split("\n"), *before, "", "## Tasks", ""]
    starts = []
    for box in boxes:
        starts.append(len(lines) + 1)
        lines += box.lines(indent)
    plan = parse(mark + newline.join(lines))
    assert [(task.ordinal, task.title, task.done, task.line, task.body) for task in plan.tasks] == [
        (ordinal, box.title, box.done, start, "\n".join(box.body))
        for ordinal, (box, start) in enumerate(zip(boxes, starts, strict=True), 1)
    ]


@given(
    marker=st.sampled_from(["- ", "-   ", "-\t", "10. ", "  * "]),
    indent=st.sampled_from(["  ", "   ", "    ", "\t", " \t", "\t ", "     ", "      "]),
    lines=st.lists(st.text("a \t", max_size=8), max_size=5),
)
def test_a_script_is_what_commonmark_sees_whatever_indents_it(marker: str, indent: str, lines: list[str]) -> None:
    script = ["```sh", "first", *lines, "```"]
    text = f"{marker}[x] one\n\n" + "\n".join(indent + line for line in script) + "\n"
    seen = [token for token in MarkdownIt("commonmark").parse(text) if token.type == "fence" and token.level]
    (task,) = parse(under_tasks(text)).tasks
    assert shell_block(task.body) == (("sh", seen[0].content) if seen else None)


@given(
    before=st.lists(
        st.sampled_from(["", "# comment", "attempts: 2", "checks:\n  - a\n  - b", "paths: [a,\n  b]"]),
        unique=True,
    ),
    wrong=st.sampled_from(["budget: x", "colour: red", "timeout: 5", "base: a..b"]),
    newline=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_a_fault_is_at_the_line_of_the_file_as_written(before: list[str], wrong: str, newline: str, mark: str) -> None:
    text = "\n".join(["---", "repository: a/b", *before, wrong, "slug: s", "---", "", "- [x] one", "- two"])
    lines = text.split("\n")
    found = faults(mark + text.replace("\n", newline))
    assert [each.line for each in found] == [lines.index(wrong) + 1, len(lines)]


# The documents that show it.


def test_the_example_plan_is_one() -> None:
    path = ROOT / "docs/examples/plan.md"
    plan = parse(path.read_bytes(), file_name=path.name)
    assert [task.after for task in plan.tasks] == [(), (1,), ()]
    assert plan.merge is MergePolicy.WHEN_PROVEN


def test_the_reference_shows_a_plan_that_is_one() -> None:
    page = (ROOT / "docs/reference/plan-documents.md").read_text()
    shown = re.search(r"^```markdown\n(.*?)^```\n\n## The file", page, re.DOTALL | re.MULTILINE)
    assert shown is not None
    plan = parse(shown[1], file_name="faster-cold-start.md")
    assert [(task.done, task.after) for task in plan.tasks] == [(True, ()), (False, ()), (False, (2,))]


def test_the_reference_has_every_key_and_no_other() -> None:
    page = (ROOT / "docs/reference/plan-documents.md").read_text()
    section = page.split("## Front matter")[1].split("### Patterns")[0]
    keys = re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE)
    assert keys == [key for key in FrontMatter.__dataclass_fields__ if key not in ("lines", "complete")]


# Boxes that are struck out.


@pytest.mark.parametrize(
    ("line", "title", "struck"),
    [
        ("~~Warm the cache~~", "Warm the cache", True),
        ("~~ Warm the cache ~~ {after=1}", "Warm the cache", True),
        ("~~Warm~~ the ~~cache~~", "~~Warm~~ the ~~cache~~", False),
        ("Warm ~~the cache~~", "Warm ~~the cache~~", False),
        ("~Warm the cache~", "~Warm the cache~", False),
    ],
)
def test_a_box_is_struck_out_where_all_of_its_title_is(line: str, title: str, struck: bool) -> None:
    task = parse(under_tasks(f"- [x] one\n- [x] {line}\n")).tasks[1]
    assert (task.title, task.struck) == (title, struck)


def test_a_box_that_is_struck_out_needs_no_script_and_no_model() -> None:
    tasks = parse(under_tasks("- [ ] ~~one~~\n- [ ] ~~two~~ {runtime=opencode}\n- [x] three\n")).tasks
    assert [(task.struck, task.starts_nothing) for task in tasks] == [(True, True), (True, True), (False, True)]


def test_strokes_over_nothing_are_no_title() -> None:
    assert "this box has no title" in fault(under_tasks("- [ ] ~~ ~~\n")).message


def test_what_a_box_says_for_itself_is_told_from_the_plans_defaults() -> None:
    text = under_tasks('- [x] one {timeout=5m}\n- [x] two {runtime=claude budget="1 USD"}\n- [x] three\n')
    assert [task.own for task in parse(text).tasks] == [
        ("timeout",),
        ("budget_nano_usd", "runtime"),
        (),
    ]
