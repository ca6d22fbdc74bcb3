"""What a door is told: read whole, or refused in one sentence that names what to mend and shows no secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from domain.errors import Misconfigured
from doors import told
from relay.settings import RelaySettings
from webhooks.settings import WebhookSettings
from worker.settings import WorkerSettings


def test_every_setting_that_cannot_be_read_is_named_and_none_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHBILL_INTERVAL", "hunter2")
    monkeypatch.setenv("WATCHBILL_SLOTS", "-1")
    with pytest.raises(Misconfigured) as refused:
        told.read(WorkerSettings)
    said = str(refused.value)
    assert "\n" not in said
    assert "WATCHBILL_INTERVAL: input should be a valid number" in said
    assert "WATCHBILL_SLOTS: input should be greater than or equal to 1" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("address", ["foo:bar:baz", "http://x", "127.0.0.1:99999", "127.0.0.1", "a b:1", ":7233"])
@pytest.mark.parametrize("kind", [WorkerSettings, WebhookSettings])
def test_a_temporal_address_looks_like_a_host_and_a_port(
    monkeypatch: pytest.MonkeyPatch, kind: type[told.TemporalSettings], address: str
) -> None:
    monkeypatch.setenv("WATCHBILL_WEBHOOK_SECRET_FILE", "/nowhere")
    monkeypatch.setenv("WATCHBILL_TEMPORAL_ADDRESS", address)
    with pytest.raises(Misconfigured, match="WATCHBILL_TEMPORAL_ADDRESS: it should look like HOST:PORT, such as"):
        told.read(kind)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(WorkerSettings, "GITHUB_API"), (WorkerSettings, "RELAY"), (RelaySettings, "MODELS")],
)
@pytest.mark.parametrize("address", ["127.0.0.1:8271", "ftp://x", "http://x:99999", "http://", "http://a b/"])
def test_an_address_on_the_web_looks_like_one(
    monkeypatch: pytest.MonkeyPatch, kind: type[told.DoorSettings], name: str, address: str
) -> None:
    monkeypatch.setenv(f"WATCHBILL_{name}", address)
    with pytest.raises(Misconfigured, match=f"WATCHBILL_{name}: it should look like http://HOST:PORT"):
        told.read(kind)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8271", "https://api.github.com", "http://[::1]:8280/models", ""])
def test_an_address_that_is_one_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("WATCHBILL_MODELS", address)
    assert told.read(RelaySettings).models == address


def test_a_home_of_nobody_and_a_value_that_is_no_text_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHBILL_HOME", "~nobody-of-this-name/x")
    with pytest.raises(Misconfigured, match="WATCHBILL_HOME: nobody of that name has a home here"):
        told.read(RelaySettings)
    monkeypatch.setenv("WATCHBILL_HOME", os.fsdecode(b"/tmp/\xff"))
    with pytest.raises(Misconfigured, match="these settings are no UTF-8: WATCHBILL_HOME"):
        told.read(RelaySettings)


def test_a_secret_is_what_stands_in_its_file_and_where_it_cannot_be_read_the_setting_is_named(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    settings = WebhookSettings(webhook_secret_file=file)
    for content, fault in ((None, "no such file or directory"), (b" \n", "is empty"), (b"\xff", "is no text")):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(Misconfigured, match=f"WATCHBILL_WEBHOOK_SECRET_FILE names {file}.*{fault}"):
            told.secret(settings, "webhook_secret_file")
    file.write_bytes(b"hunter2\n")
    assert told.secret(settings, "webhook_secret_file") == "hunter2"


def test_settings_that_can_be_read_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHBILL_WEBHOOK_SECRET_FILE", "/nowhere")
    monkeypatch.setenv("WATCHBILL_WEBHOOKS_PORT", "8299")
    assert told.read(WebhookSettings).webhooks_port == 8299
