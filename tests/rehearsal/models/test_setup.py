"""Setting up what the model says, and what is kept of what was asked."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import zlib
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from rehearsal.models import body, ledger
from tests.rehearsal.models.provider import PATHS, Provider, request

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@pytest.mark.parametrize(("method", "path"), [("POST", "script"), ("GET", "requests"), ("DELETE", "requests")])
def test_the_set_up_wants_the_set_up_token(provider: Provider, method: str, path: str) -> None:
    assert provider.http.request(method, f"{provider.url}/{path}", content=b"{}").status_code == 401


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ({"step": []}, "it has steps, faults and usage"),
        ({"steps": [{"say": "x"}]}, "a step is"),
        ({"faults": [{"kind": "meteor"}]}, "the kinds are status, drop"),
        ({"faults": [{"kind": "drop", "times": 1}]}, "a fault has no 'times'"),
        ({"faults": [{"kind": "drop", "from": "1"}]}, "a fault cannot have from '1'"),
        ({"faults": ["drop"]}, "a fault is an object"),
        ({"steps": ["drop"]}, "a step is an object"),
        ({"steps": [{"tools": ["Bash"]}]}, "a call is an object"),
        ({"faults": [{"kind": "status", "status": 418}]}, "status 418 is none of"),
        ({"usage": {"input": 1, "cached": 2}}, "a part of the input"),
        ({"usage": {"tokens": 2}}, "usage has the fields"),
    ],
)
def test_a_script_that_cannot_be_says_why(provider: Provider, script: dict[str, Any], words: str) -> None:
    answer = provider.http.post(f"{provider.url}/script", json=script, headers=provider.setup)
    assert answer.status_code == 422
    assert words in answer.json()["message"]


def test_a_script_is_for_one_token_or_for_all(provider: Provider) -> None:
    provider.script({"text": "everybody's"})
    provider.script({"text": "mine"}, token="mine")

    def said(**headers: str) -> str:
        answer = provider.http.post(
            f"{provider.url}/{PATHS['anthropic']}", json=request("anthropic"), headers=headers
        ).json()
        return str(answer["content"][0]["text"])

    assert said(Authorization="Bearer mine") == "mine"
    assert said(**{"x-api-key": "mine"}) == "mine"
    assert said(Authorization="Bearer other") == "everybody's"
    assert said(Authorization="") == "everybody's"


def test_what_was_asked_is_listed_without_the_token(provider: Provider) -> None:
    asked = request("chat", stream=True)
    provider.events("chat", asked)
    provider.ask("responses", request("responses", tools={}))
    listed = provider.http.get(f"{provider.url}/requests", headers=provider.setup)
    assert Provider.TOKEN not in listed.text
    chat, responses = listed.json()
    assert chat == {
        "api": "chat",
        "model": "rehearsal",
        "token": hashlib.sha256(Provider.TOKEN.encode()).hexdigest(),
        "main": True,
        "stream": True,
        "tools": ["bash", "watchbill_submit_result"],
        "status": 200,
        "faults": [],
        "messages": asked["messages"],
    }
    assert (responses["api"], responses["main"], responses["tools"]) == ("responses", False, [])
    provider.forget()
    assert provider.asked() == []


def test_a_refused_request_is_listed_with_its_status(provider: Provider) -> None:
    provider.fault("status", status=402)
    provider.ask("chat", request("chat"))
    [asked] = provider.asked()
    assert (asked["status"], asked["faults"]) == (402, ["status"])


def test_only_so_much_is_kept(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MOST_REQUESTS", 2)
    monkeypatch.setattr(ledger, "MOST_BYTES", 3000)
    for text in ("a", "b", "c"):
        provider.ask("chat", request("chat", text))
    assert [asked["messages"][0]["content"] for asked in provider.asked()] == ["b", "c"]
    provider.ask("chat", request("chat", "d" * 2950))
    assert len(provider.asked()) == 1


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", zstd.compress), ("identity", bytes)],
)
def test_a_request_may_be_compressed_and_come_in_pieces(
    provider: Provider, encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    raw = compress(json.dumps(request("responses")).encode())
    pieces = (raw[start : start + 7] for start in range(0, len(raw), 7))
    answer = provider.http.post(
        f"{provider.url}/{PATHS['responses']}", content=pieces, headers={"Content-Encoding": encoding}
    )
    assert answer.json()["output"][-1]["name"] == "bash"


@pytest.mark.parametrize(
    ("encoding", "raw", "status"),
    [
        ("gzip", b"no gzip", 400),
        ("gzip", gzip.compress(b"{}")[:-4], 400),
        ("zstd", zstd.compress(b"{}")[:-1], 400),
        ("zstd", b"no zstd", 400),
        ("br", b"{}", 415),
        ("", b"[]", 400),
        ("", b"{", 400),
        ("gzip", gzip.compress(b" " * (body.LARGEST + 1)), 413),
        ("zstd", zstd.compress(b" " * (body.LARGEST + 1)), 413),
        ("", b" " * (body.LARGEST + 1), 413),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(provider: Provider, encoding: str, raw: bytes, status: int) -> None:
    answer = provider.http.post(
        f"{provider.url}/{PATHS['chat']}", content=raw, headers={"Content-Encoding": encoding} if encoding else {}
    )
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_the_forge_beside_it_knows_nothing_of_it(provider: Provider) -> None:
    forge = provider.url.removesuffix("/models")
    assert httpx.get(f"{forge}/repos/models/shop", trust_env=False).status_code == 404
    provider.ask("chat", request("chat"))
    answer = httpx.get(f"{forge}/_rehearsal/requests", headers=provider.setup, trust_env=False)
    assert [seen["path"] for seen in answer.json()] == ["/repos/models/shop"]
