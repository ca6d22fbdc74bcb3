"""One table of keys: what is kept out of commits is also taken out of logs and of messages, whole."""

from __future__ import annotations

import pytest

from domain.leaks import leaks
from domain.tokens import TOKENS
from forge.redact import redact
from telemetry.secrets import without_secrets

MADE_UP = {
    "gh[pousr]_": "ghp_" + "a1B2" * 9,
    "github_pat_": "github_pat_" + "1aB_" * 18,
    "glpat-": "glpat-" + "a1B2_" * 5,
    "sk-ant-": "sk-ant-api03-" + "a1B2-" * 18,
    "sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20}T3BlbkFJ": "sk-proj-" + "a1B2_" * 4 + "T3BlbkFJ" + "a1B2_" * 12,
    "(?:AKIA|ASIA)": "AKIA" + "A2B3" * 4,
    "AIza": "AIza" + "a1B2_" * 7,
    "xox[abeprs]-": "xoxb-" + "1234-" * 8,
    "[rs]k_live_": "sk_live_" + "a1B2" * 9,
    "npm_": "npm_" + "a1B2" * 9,
    "pypi-AgEIcHlwaS5vcmc": "pypi-AgEIcHlwaS5vcmc" + "a1B2_" * 20,
}


def test_there_is_an_example_of_every_form() -> None:
    assert MADE_UP.keys() == {form.head for form in TOKENS}


@pytest.mark.parametrize("head", MADE_UP)
def test_every_key_is_found_in_a_file_and_taken_whole_out_of_what_is_logged_or_said(head: str) -> None:
    key = MADE_UP[head]
    (leak,) = leaks(f"first\nuse {key}\n".encode())
    assert (leak.kind, leak.line) == (next(form.kind for form in TOKENS if form.head == head), 2)
    assert without_secrets(f'{{"said": "{key}"}}') == '{"said": "[redacted]"}'
    assert redact(f"it said {key}, twice") == "it said [redacted], twice"


def test_what_only_begins_like_a_key_stays() -> None:
    for said in ("sk-ant-colony", "npm_config_cache", "AKIA", "task-force-and-risk-assessment", "glpat-x"):
        assert redact(said) == without_secrets(said) == said
        assert not list(leaks(said.encode()))
