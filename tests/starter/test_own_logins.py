"""What the doctor says of logins: of those that are there, and nothing of others."""

from __future__ import annotations

import pytest

from starter.examining import Level, logins
from tests.runtimes.test_launches import CLIS
from tests.runtimes.test_logins import KEY, with_key


def test_a_home_without_logins_is_told_nothing_of_them(tmp_path):
    (tmp_path / "logins").mkdir()
    assert logins(tmp_path, "") == logins(tmp_path / "none", "") == []


@pytest.mark.parametrize("cli", CLIS)
def test_a_login_is_named_and_never_shown(cli, tmp_path):
    folder = with_key(cli, tmp_path / "logins" / cli)
    folder.chmod(0o700)
    (finding,) = logins(tmp_path, "")
    assert (finding.what, finding.level) == (f"{cli}'s login", Level.OK)
    assert str(folder) in finding.found
    assert KEY not in str(finding)
    assert logins(tmp_path / "home", str(tmp_path / "logins")) == [finding]


def test_one_that_others_can_read_is_told_with_what_closes_it(tmp_path):
    folder = with_key("codex", tmp_path / "logins" / "codex")
    folder.chmod(0o755)
    (finding,) = logins(tmp_path, "")
    assert (finding.level, finding.mend) == (Level.WARN, f"chmod 700 {folder}")


@pytest.mark.parametrize("cli", CLIS)
def test_a_folder_in_which_nobody_logged_in_is_told_with_how_one_does(cli, tmp_path):
    (tmp_path / "logins" / cli).mkdir(parents=True)
    (finding,) = logins(tmp_path, "")
    assert finding.level is Level.WARN
    assert f"{tmp_path}/logins/{cli} " in finding.mend
