"""Looking at a plan from somewhere that may be up later than the look began."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from domain.view import PlanView
from starter import looking
from starter.client import Temporal
from starter.looking import Lookout
from starter.settings import Settings, load
from tests.starter.test_following import at

DOWN = "Nothing is up in this home"


class Workflows:
    async def view(self, _plan: str) -> PlanView:
        return at(7)


async def test_what_was_down_at_the_first_look_is_found_at_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = load({"WATCHBILL_HOME": str(tmp_path), "WATCHBILL_OWNER": "ada"})
    settings = replace(here, down=DOWN, temporal_address="")
    found = [settings, replace(here, down="", temporal_address="temporal.example:7233")]

    async def connect(settings: Settings) -> Workflows:
        assert settings.temporal_address == "temporal.example:7233"
        return Workflows()

    monkeypatch.setattr(looking, "load", lambda _: found.pop(0))
    monkeypatch.setattr(looking.graph, "view_of", lambda *_: at(3))
    monkeypatch.setattr(Temporal, "connect", connect)
    lookout = Lookout(settings, "faster-1a2b3c4d")
    assert ((await lookout.look()).seq, lookout.trouble) == (3, DOWN)
    assert ((await lookout.look()).seq, lookout.trouble) == (7, "")
