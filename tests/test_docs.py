"""The documents promise nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from domain.document import parse

ROOT = Path(__file__).parents[1]
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
PAGES = sorted([*(ROOT / name for name in TOP), *(ROOT / "docs").rglob("*.md")])
NAMED = re.compile(r"(?:^|[`\s/])watchbill ([a-z]+)\b", re.MULTILINE)


def _commands() -> set[str]:
    from starter.app import COMMANDS

    return {command.__name__.removesuffix("_") for command in COMMANDS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_named_exists(page: Path) -> None:
    code = "\n".join(re.findall(r"`+[^`]*`+", page.read_text(encoding="utf-8")))
    named = set(NAMED.findall(code))
    assert named <= _commands(), f"{page.name} names {named - _commands()}"


def test_the_plan_in_the_readme_is_a_plan() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"````markdown\n(.*?)````", readme, re.DOTALL)
    assert example is not None
    assert [task.after for task in parse(example[1], file_name="plan.md").tasks] == [(), (1,)]


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert all(page.name in index for page in folder.glob("0*.md"))
