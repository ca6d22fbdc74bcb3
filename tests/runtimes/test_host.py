"""The host's name."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from domain.errors import WatchbillError
from runtimes.host import boot_id, host_id


def test_a_host_keeps_its_id(tmp_path):
    made = host_id(tmp_path / "home")
    assert re.fullmatch("[0-9a-f]{12}", made)
    assert host_id(tmp_path / "home") == made
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["host"]


def test_all_who_ask_first_at_once_get_one_id(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: host_id(tmp_path), range(64)))) == 1


def test_two_hosts_have_two_ids(tmp_path):
    assert host_id(tmp_path / "one") != host_id(tmp_path / "two")


def test_a_spoiled_id_is_refused_and_not_replaced(tmp_path):
    (tmp_path / "host").write_text("")
    with pytest.raises(WatchbillError, match="host id"):
        host_id(tmp_path)


def test_the_boot_id_is_the_kernels():
    assert boot_id() == boot_id() != ""
