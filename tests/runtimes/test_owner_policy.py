"""What an installation's owner refuses in every plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import Unavailable
from domain.rules import NOTHING_REFUSED, Policy
from runtimes.owner_policy import OWNER_POLICY, owner_policy

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "hooks.md"


def test_without_a_file_nothing_is_refused(tmp_path: Path) -> None:
    assert owner_policy(tmp_path) == NOTHING_REFUSED


def test_the_example_in_the_reference_is_a_policy(tmp_path: Path) -> None:
    (tmp_path / OWNER_POLICY).write_text(PAGE.read_text().split("```toml\n")[1].split("```")[0])
    assert owner_policy(tmp_path) == Policy(
        ("WebFetch", "WebSearch"), ("git push*", "gh *", "rm -rf /*"), (".github/**", "**/*.pem")
    )


@pytest.mark.parametrize("content", [b"refuse_tools = [", b"refuse = []", b"refuse_paths = ['/etc']", b"\xff"])
def test_nothing_is_run_under_a_policy_that_cannot_be_followed(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / OWNER_POLICY
    file.write_bytes(content)
    with pytest.raises(Unavailable, match=r"policy\.toml cannot be followed"):
        owner_policy(tmp_path)
    file.write_text("refuse_tools = ['WebFetch']")
    assert owner_policy(tmp_path).tools == ("WebFetch",)
