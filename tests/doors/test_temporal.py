"""Where Temporal is, and how to be let in: one reading of it for the command and for every door."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.service import TLSConfig

from domain.errors import Misconfigured
from doors.temporal import DEFAULT_ADDRESS, connection

PROFILE = """
[profile.default]
address = "cloud.acme:7233"
namespace = "shop"
api_key = "made-up"

[profile.mutual]
address = "mutual.acme:7233"
[profile.mutual.tls]
server_name = "temporal.acme"
client_cert_path = "FOLDER/client.pem"
client_key_path = "FOLDER/client.key"
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment on a machine with two profiles."""
    for name in ("client.pem", "client.key"):
        (tmp_path / name).write_text(f"made up {name}")
    (tmp_path / "temporalio").mkdir()
    (tmp_path / "temporalio" / "temporal.toml").write_text(PROFILE.replace("FOLDER", str(tmp_path)))
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}


def test_without_a_word_it_is_where_the_dev_server_listens(tmp_path: Path) -> None:
    assert connection({"HOME": str(tmp_path)}) == {"target_host": DEFAULT_ADDRESS}
    assert connection({"HOME": str(tmp_path)}, "here:1", "shop") == {"target_host": "here:1", "namespace": "shop"}


def test_a_profile_brings_address_namespace_and_key(machine: dict[str, str]) -> None:
    assert connection(machine) == {
        "target_host": "cloud.acme:7233",
        "namespace": "shop",
        "api_key": "made-up",
        "tls": True,
    }
    assert connection(machine, namespace="mine")["namespace"] == "mine"


def test_a_profile_that_is_named_brings_its_certificates(machine: dict[str, str]) -> None:
    options = connection({**machine, "TEMPORAL_PROFILE": "mutual"})
    assert options == {
        "target_host": "mutual.acme:7233",
        "tls": TLSConfig(
            domain="temporal.acme",
            client_cert=b"made up client.pem",
            client_private_key=b"made up client.key",
        ),
    }


def test_variables_bring_tls_and_key_for_an_address_of_ours(tmp_path: Path) -> None:
    told = {"HOME": str(tmp_path), "TEMPORAL_API_KEY": "made-up", "TEMPORAL_ADDRESS": "cloud.acme:7233"}
    assert connection(told, "here:7233") == {"target_host": "here:7233", "api_key": "made-up", "tls": True}
    assert connection({"HOME": str(tmp_path), "TEMPORAL_TLS": "true"}, "here:7233")["tls"] == TLSConfig()


def test_the_file_of_another_temporals_keys_is_left_alone_where_an_address_is_named(machine: dict[str, str]) -> None:
    assert connection(machine, "here:7233") == {"target_host": "here:7233"}


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ({"TEMPORAL_ADDRESS": "http://cloud.acme"}, "TEMPORAL_ADDRESS is 'http://cloud.acme'; it should look like"),
        ({"TEMPORAL_PROFILE": "gone"}, "Profile 'gone' not found"),
        ({"TEMPORAL_TLS_CLIENT_CERT_PATH": "/nowhere/c.pem"}, "names /nowhere/c.pem: no such file or directory"),
        ({"TEMPORAL_CONFIG_FILE": "BROKEN"}, "cannot be read: .*line 3"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line_without_what_stands_in_it(
    tmp_path: Path, told: dict[str, str], fault: str
) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text('[profile.default]\naddress = "here:1"\napi_key = "hunter2\n')
    with pytest.raises(Misconfigured, match=fault) as refused:
        connection({name: value.replace("BROKEN", str(broken)) for name, value in told.items()})
    assert "\n" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_an_address_of_ours_that_is_none_is_refused_by_the_name_of_its_setting() -> None:
    with pytest.raises(Misconfigured, match="WATCHBILL_TEMPORAL_ADDRESS is 'foo:bar:baz'; it should look like HOST"):
        connection({}, "foo:bar:baz")
