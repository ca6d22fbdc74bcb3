"""A door whose settings cannot be read says which, in one sentence, and leaves with the code for it."""

from __future__ import annotations

import pytest

from telemetry import told
from webhooks.settings import WebhookSettings
from worker.settings import WorkerSettings


def test_every_setting_that_cannot_be_read_is_named_and_none_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WATCHBILL_INTERVAL", "hunter2")
    monkeypatch.setenv("WATCHBILL_SLOTS", "-1")
    with pytest.raises(SystemExit) as left:
        told.read(WorkerSettings)
    assert left.value.code == told.UNREADABLE
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "WATCHBILL_INTERVAL: input should be a valid number" in said
    assert "WATCHBILL_SLOTS: input should be greater than or equal to 1" in said
    assert "hunter2" not in said


def test_settings_that_can_be_read_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHBILL_WEBHOOK_SECRET_FILE", "/nowhere")
    monkeypatch.setenv("WATCHBILL_WEBHOOKS_PORT", "8299")
    assert told.read(WebhookSettings).webhooks_port == 8299
