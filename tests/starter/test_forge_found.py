"""What the doctor says of the forge: whose repositories a home works on."""

from __future__ import annotations

import pytest

from starter.copies import Copies
from starter.examining import Level, forge
from starter.settings import load


@pytest.mark.parametrize("begun", [False, True])
def test_a_home_that_was_begun_with_a_stand_in_wants_no_credentials(tmp_path, begun):
    settings = load({"WATCHBILL_HOME": str(tmp_path), "WATCHBILL_OWNER": "ada"})
    if begun:
        Copies(tmp_path).remember(["acme/shop"])
    (found,) = forge(settings)
    assert found.level is (Level.OK if begun else Level.WARN)
    assert ("stand-in" in found.found, "WATCHBILL_GITHUB_APP_ID" in found.mend) == (begun, not begun)
