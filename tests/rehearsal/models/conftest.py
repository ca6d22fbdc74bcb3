"""A stand-in provider for the tests here: one a file, which knows nothing of earlier tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rehearsal.server import Rehearsal
from tests.rehearsal.models.provider import Provider


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with Rehearsal(tmp_path_factory.mktemp("standin") / "folder") as rehearsal:
        made = Provider(rehearsal)
        yield made
        made.http.close()


@pytest.fixture
def provider(served: Provider) -> Iterator[Provider]:
    yield served
    served.script()
    served.forget()
