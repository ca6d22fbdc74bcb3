"""What the doctor says of confinement: what holds here, why not, and what mends it."""

from __future__ import annotations

import pytest

from runtimes.sandbox import SHUT, Sandbox, find_sandbox
from starter.examining import Level, sandbox
from tests.runtimes.celled import NO_SANDBOX, needs_sandbox

HERE = Sandbox("/usr/bin/bwrap", "0.8.0")


@pytest.mark.parametrize(
    ("wish", "found", "level", "says"),
    [
        ("", HERE, Level.OK, "bubblewrap 0.8.0 at /usr/bin/bwrap: runs are confined"),
        ("required", HERE, Level.OK, "bubblewrap 0.8.0 at /usr/bin/bwrap: runs are confined"),
        ("off", HERE, Level.WARN, "WATCHBILL_CONFINE=off: runs are unconfined"),
        ("auto", NO_SANDBOX, Level.WARN, "bubblewrap is not installed: runs are unconfined"),
        ("required", NO_SANDBOX, Level.MISSING, "bubblewrap is not installed: runs are refused"),
    ],
)
def test_the_doctor_says_how_runs_are_confined_here(wish, found, level, says):
    finding = sandbox(wish, lambda: found)
    assert (finding.level, finding.found) == (level, says)
    assert bool(finding.mend) is (level is not Level.OK)


@needs_sandbox
def test_what_is_found_was_tried():
    assert sandbox("").found.startswith(f"bubblewrap {find_sandbox().version} at /")


def test_a_program_that_is_there_and_does_not_work_is_none(monkeypatch, tmp_path):
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_sandbox().missing == "bubblewrap does not work here: bwrap: setting up uid map: Permission denied"


@pytest.fixture
def bwrap(monkeypatch, tmp_path):
    """Stands in for bubblewrap: it does what the file beside it says."""
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n. {tmp_path}/does\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "does"


def test_what_is_said_beside_a_cell_that_works_is_no_failure(bwrap):
    bwrap.write_text("echo 'a warning' >&2; exit 0\n")
    assert find_sandbox().missing == ""


def test_what_worked_once_and_is_denied_later_is_found_out(bwrap, monkeypatch):
    bwrap.write_text("exit 0\n")
    assert find_sandbox().missing == ""
    bwrap.write_text("echo denied >&2; exit 1\n")
    assert find_sandbox().missing == ""
    monkeypatch.setattr("runtimes.sandbox._KNOWN_SECONDS", -1)
    assert find_sandbox().missing == "bubblewrap does not work here: denied"


def test_an_older_bubblewrap_makes_cells_as_well_as_it_can(bwrap):
    bwrap.write_text('for each; do [ "$each" = --disable-userns ] && echo unknown && exit 1; done; exit 0\n')
    assert (find_sandbox().missing, find_sandbox().shut) == ("", SHUT)
