"""What whoever ends an installation is told of what goes on without it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runtimes.folder import Live, RunFolder
from runtimes.port import Launch
from starter.doors import _tell_runs


def test_who_ends_an_installation_is_told_of_runs_that_go_on(tmp_path, capsys):
    _tell_runs(tmp_path)
    assert capsys.readouterr() == ("", "")
    folder = RunFolder(tmp_path / "runs" / "faster-0a1b2c3d-1-author-1")
    launch = Launch("faster-0a1b2c3d-1-author-1", ("/bin/sleep", "600"), tmp_path, {"PATH": "/bin"}, 600.0)
    folder.spawn(launch, datetime.now(UTC) + timedelta(seconds=100))
    try:
        _tell_runs(tmp_path)
        assert capsys.readouterr().err.startswith("1 run still at work: the next `watchbill up` goes on with what is")
    finally:
        folder.stop("the test is over")
        while isinstance(folder.status(), Live):
            pass
    _tell_runs(tmp_path)
    assert capsys.readouterr() == ("", "")
