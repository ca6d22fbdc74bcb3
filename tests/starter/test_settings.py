"""Where the command looks for things, and whose word counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic_core import PydanticUndefined

from domain.errors import Misconfigured, Unavailable
from doors.temporal import DEFAULT_ADDRESS
from relay.settings import RelaySettings
from starter.local.addresses import Addresses, Claim
from starter.settings import load
from webhooks.settings import WebhookSettings
from worker.settings import WorkerSettings

DOORS = (WorkerSettings, WebhookSettings, RelaySettings)
NAME = re.compile(r"\"(WATCHBILL_[A-Z_]*[A-Z])\"")
ROOT = Path(__file__).parents[2]
UP = Addresses("127.0.0.1:5555", "http://127.0.0.1:5556", "http://127.0.0.1:5557", None, 1)


def test_without_a_word_everything_is_at_its_usual_place():
    settings = load({"HOME": "/home/ada"})
    assert settings.home == Path("~/.watchbill").expanduser()
    assert (settings.owner, settings.temporal_address) == ("local", DEFAULT_ADDRESS)
    assert settings.store_url == f"sqlite:///{settings.home}/graph.db"


def test_what_is_up_in_the_home_is_found(tmp_path):
    claim = Claim(tmp_path)
    claim.write(UP)
    environment = {"WATCHBILL_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    assert (load(environment).temporal_address, load(environment).down) == (UP.temporal, "")
    claim.release()


def test_a_home_that_never_had_an_installation_is_served_by_whoever_is_at_the_usual_address(tmp_path):
    settings = load({"WATCHBILL_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)})
    assert (settings.temporal_address, settings.down) == (DEFAULT_ADDRESS, "")


def test_a_home_whose_installation_is_down_has_nothing_to_do_with_whoever_is_at_the_usual_address(tmp_path):
    environment = {"WATCHBILL_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    claim = Claim(tmp_path)
    assert "just starting or ending" in load(environment).down
    claim.write(UP)
    crashed = (tmp_path / "up.json").read_text()
    claim.release()
    for _ in ("ended", "crashed"):
        settings = load(environment)
        assert settings.temporal_address == ""
        assert f"Nothing is up in this home ({tmp_path})" in settings.down
        (tmp_path / "up.json").write_text(crashed)
    named = load({**environment, "WATCHBILL_TEMPORAL_ADDRESS": DEFAULT_ADDRESS})
    assert (named.temporal_address, named.down) == (DEFAULT_ADDRESS, "")


def test_a_profile_that_names_an_address_counts_before_a_home_that_is_down(tmp_path):
    from starter.client import _options

    Claim(tmp_path).release()
    environment = {"WATCHBILL_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    assert _options(load({**environment, "TEMPORAL_ADDRESS": "cloud.acme:7233"}))["target_host"] == "cloud.acme:7233"
    with pytest.raises(Unavailable, match="Nothing is up in this home"):
        _options(load({**environment, "TEMPORAL_NAMESPACE": "shop"}))


def test_the_environments_word_counts_before_what_is_up(tmp_path):
    claim = Claim(tmp_path)
    claim.write(UP)
    environment = {"WATCHBILL_HOME": str(tmp_path), "WATCHBILL_TEMPORAL_ADDRESS": "temporal.acme:7233"}
    assert load(environment).temporal_address == "temporal.acme:7233"
    claim.release()


def test_temporals_own_variables_bring_address_and_keys(tmp_path):
    settings = load({"WATCHBILL_HOME": str(tmp_path), "TEMPORAL_ADDRESS": "cloud.acme:7233"})
    assert settings.profile
    assert settings.temporal_address == ""

    from starter.client import _options

    told = {"TEMPORAL_ADDRESS": "cloud.acme:7233", "TEMPORAL_NAMESPACE": "shop", "TEMPORAL_API_KEY": "made-up"}
    options = _options(load({"WATCHBILL_HOME": str(tmp_path), **told}))
    assert (options["target_host"], options["namespace"], options["tls"]) == ("cloud.acme:7233", "shop", True)
    options = _options(load({"WATCHBILL_TEMPORAL_ADDRESS": "here:7233", **told}))
    assert (options["target_host"], options["api_key"]) == ("here:7233", "made-up")


def test_a_password_is_in_no_representation(tmp_path):
    settings = load({"WATCHBILL_HOME": str(tmp_path), "WATCHBILL_STORE_URL": "postgresql://ada:hunter2@db/shop"})
    assert "hunter2" not in repr(settings)


@pytest.mark.parametrize("owner", ["Ada", "a b", "-", "x" * 41])
def test_an_owner_is_spelt_like_a_slug(owner):
    with pytest.raises(Misconfigured):
        load({"WATCHBILL_OWNER": owner})


def test_a_door_is_told_what_was_found_out(tmp_path):
    told = load({"WATCHBILL_HOME": str(tmp_path), "WATCHBILL_SLOTS": "9", "XDG_CONFIG_HOME": str(tmp_path)})
    environment = told.door_environment
    assert environment["WATCHBILL_SLOTS"] == "9"
    assert environment["WATCHBILL_TEMPORAL_ADDRESS"] == DEFAULT_ADDRESS
    assert environment["WATCHBILL_STORE_URL"] == told.store_url


def test_the_doors_of_an_installation_are_not_led_to_another_temporal(tmp_path):
    from starter.installing import installation

    told = {"TEMPORAL_ADDRESS": "cloud.acme:7233", "TEMPORAL_API_KEY": "made-up", "WATCHBILL_SLOTS": "9"}
    inherited = installation(load({"WATCHBILL_HOME": str(tmp_path), **told}), {"acme/shop": tmp_path}).environment
    assert "WATCHBILL_SLOTS" in inherited
    assert not [name for name in inherited if name.startswith("TEMPORAL_")]


def test_every_setting_of_every_door_is_on_the_settings_page_and_nothing_else():
    named = {name for path in (ROOT / "starter").rglob("*.py") for name in NAME.findall(path.read_text())}
    fields = {f"WATCHBILL_{field.upper()}" for door in DOORS for field in door.model_fields}
    assert set(documented()) == named | fields


def test_the_settings_page_knows_every_default():
    page = documented()
    for door in DOORS:
        for name, field in door.model_fields.items():
            if field.default in (None, "", PydanticUndefined):
                continue
            assert f"| `{field.default}` |" in page[f"WATCHBILL_{name.upper()}"]


def documented() -> dict[str, str]:
    """The rows of the page's table by the setting's name."""
    page = (ROOT / "docs/reference/settings.md").read_text()
    return {row[1]: row[0] for row in re.finditer(r"^\| `(WATCHBILL_[A-Z_]+)`.*$", page, re.MULTILINE)}
