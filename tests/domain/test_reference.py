"""The reference page and the tables say the same."""

from __future__ import annotations

from pathlib import Path

from domain.reference import LIFECYCLES, page
from store.subjects import SUBJECTS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "lifecycles.md"


def test_the_lifecycles_page_is_what_the_tables_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m domain.reference > docs/reference/lifecycles.md"


def test_every_kind_that_moves_is_on_the_page() -> None:
    """A reservation is proven by its sums, and makes no moves."""
    assert {lifecycle.name for lifecycle in LIFECYCLES} == {*SUBJECTS, "reservation"}
