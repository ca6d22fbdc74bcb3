"""Which providers there are is told by settings; their keys are in files, and in nothing that is shown."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
import uvicorn
from pydantic import ValidationError

from domain.errors import WatchbillError
from relay.metrics import Metrics, shown
from relay.settings import RelaySettings
from relay.upstreams import session


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "key"
    file.write_text("sk-secret\n")
    return file


def settings(**told: object) -> RelaySettings:
    return RelaySettings.model_validate(told)


def test_without_a_key_no_provider_is_asked() -> None:
    assert settings().upstreams == {}


def test_a_key_is_enough_for_a_providers_own_address(key: Path) -> None:
    found = settings(anthropic_key_file=key, openai_key_file=key, gemini_key_file=key)
    assert {name: (each.url, each.header, each.key) for name, each in found.upstreams.items()} == {
        "anthropic": ("https://api.anthropic.com", "x-api-key", "sk-secret"),
        "openai": ("https://api.openai.com", "authorization", "Bearer sk-secret"),
        "gemini": ("https://generativelanguage.googleapis.com", "x-goog-api-key", "sk-secret"),
    }
    assert "sk-secret" not in repr(found) + repr(found.upstreams)


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_a_server_in_the_house_needs_no_key(path: str) -> None:
    found = settings(openai_url=f"http://127.0.0.1:11434{path}").upstreams
    assert {name: (each.url, each.key) for name, each in found.items()} == {"openai": ("http://127.0.0.1:11434", "")}


def test_a_rehearsal_reaches_no_provider_whatever_is_set(key: Path) -> None:
    models = "http://127.0.0.1:8280/models"
    found = settings(models=models, anthropic_key_file=key, openai_url="http://10.0.0.1").upstreams
    assert {name: (each.url, each.key) for name, each in found.items()} == {
        name: (f"{models}/{name}", "") for name in ("anthropic", "openai", "gemini")
    }


@pytest.mark.parametrize("content", ["", "\n", "two words", "one\ntwo", "schlüssel", "a\x00b"])
def test_a_file_that_holds_no_key_is_told_without_what_it_holds(tmp_path: Path, content: str) -> None:
    file = tmp_path / "key"
    file.write_text(content)
    with pytest.raises(WatchbillError, match="anthropic") as told:
        _ = settings(anthropic_key_file=file).upstreams
    assert not content.strip() or content not in str(told.value)
    with pytest.raises(WatchbillError, match="FileNotFoundError"):
        _ = settings(anthropic_key_file=tmp_path / "nothing").upstreams


@pytest.mark.parametrize("address", ["9000", "host:", ":9000", "host:port", "host:99999"])
def test_where_metrics_are_shown_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ValidationError, match="HOST:PORT"):
        settings(relay_metrics=address)


async def test_metrics_are_shown_as_prometheus_reads_them() -> None:
    metrics = Metrics()
    metrics.call('a"da', "m", "openai.chat", "whole", 1.5)
    metrics.used("ada", "m", 7, {"input": 3, "output": 0})
    async with shown(metrics, "127.0.0.1", 0) as port, httpx.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{port}/metrics")
        assert (await client.get(f"http://127.0.0.1:{port}/else")).status_code == 404
        # Whoever says nothing, or too much, keeps nobody else out.
        _, silent = await asyncio.open_connection("127.0.0.1", port)
        silent.write(b"x" * 100_000)
        assert (await client.get(f"http://127.0.0.1:{port}/metrics")).status_code == 200
        silent.close()
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'watchbill_relay_calls_total{owner="a\\"da",model="m",endpoint="openai.chat",outcome="whole"} 1' in lines
    assert 'watchbill_relay_tokens_total{owner="ada",model="m",kind="input"} 3' in lines
    assert not [line for line in lines if 'kind="output"' in line]
    assert 'watchbill_relay_nano_usd_total{owner="ada",model="m"} 7' in lines


async def test_idle_connections_are_given_up_before_the_usual_servers_close_them() -> None:
    """A call that is sent in that moment would be lost, and nobody could tell whether it cost anything."""
    async with session() as opened:
        kept: float = vars(opened.connector)["_keepalive_timeout"]
    assert kept < uvicorn.Config("an app").timeout_keep_alive
