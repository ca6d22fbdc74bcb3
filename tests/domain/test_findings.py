"""What in a change may not be published without a person's word."""

from __future__ import annotations

import pytest

from domain.findings import (
    ABSENT,
    FILE,
    LINK,
    MAX_DIFF_BYTES,
    MAX_FILE_BYTES,
    PROGRAM,
    SUBMODULE,
    Change,
    findings,
)
from domain.leaks import Leak, covered, leaks, struck


def said(*changes: Change, refuse: tuple[str, ...] = ()) -> list[str]:
    return list(findings(changes, refuse))


def test_an_ordinary_change_says_nothing() -> None:
    ordinary = [Change("a", FILE, FILE, 10), Change("run.sh", ABSENT, PROGRAM, 10), Change("b", FILE, ABSENT)]
    assert said(*ordinary, Change("docs/latest", ABSENT, LINK, 4, "../src/a"), refuse=("secret/**",)) == []


def test_refused_paths_are_named_and_the_rest_of_many_is_counted() -> None:
    changes = [Change(f".github/{number}", FILE, FILE) for number in range(7)]
    (sentence,) = said(*changes, refuse=(".github/**",))
    assert sentence.startswith("the policy refuses changes to .github/0, ")
    assert sentence.endswith(".github/4 and 2 more paths")
    (sentence,) = said(Change(".github/a", FILE, ABSENT), refuse=(".github/**",))
    assert sentence == "the policy refuses changes to .github/a"


@pytest.mark.parametrize(
    ("place", "target"),
    [
        ("link", "/etc/passwd"),
        ("link", "../x"),
        ("link", "a/../../x"),
        ("src/link", "../../x"),
        ("src/link", "./..//./../x"),
        ("src/link", "../.git/config"),
        # Where `s` is another link, to `../..` from `a/b`, these lead above the root and into `.git`.
        ("link", "a/b/s/../../../etc/passwd"),
        ("link", "a/b/s/.git/config"),
        ("link", "a/.GIT/config"),
    ],
)
def test_a_link_that_leads_out_of_the_repository_is_named(place: str, target: str) -> None:
    assert said(Change(place, ABSENT, LINK, 4, target)) == [
        f"{place} is a symbolic link that leads out of the repository"
    ]


@pytest.mark.parametrize("target", ["../../README.md", "../b/./c", "c//d", "..", ".gitignore"])
def test_a_link_that_stays_in_the_repository_is_none_to_name(target: str) -> None:
    assert said(Change("a/b/link", ABSENT, LINK, 4, target)) == []


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (FILE, LINK, "a has become a symbolic link"),
        (LINK, FILE, "a is no symbolic link any more"),
        (FILE, PROGRAM, "a has become executable"),
        (ABSENT, SUBMODULE, "a is a git repository of its own"),
        (FILE, SUBMODULE, "a is a git repository of its own"),
        (SUBMODULE, SUBMODULE, "a is a git repository of its own, and leads to another commit"),
        (SUBMODULE, ABSENT, "a is no git repository of its own any more"),
        (SUBMODULE, FILE, "a is no git repository of its own any more"),
    ],
)
def test_a_path_of_another_kind_is_named(before: str, after: str, sentence: str) -> None:
    assert said(Change("a", before, after, 1, "b")) == [sentence]


def test_the_list_of_submodules_is_not_an_agents_to_change() -> None:
    assert said(Change(".gitmodules", ABSENT, FILE, 1)) == [
        ".gitmodules says which other repositories belong to this one"
    ]


def test_what_is_too_large_to_be_reviewed_is_named() -> None:
    assert said(Change("a", FILE, FILE, MAX_FILE_BYTES)) == []
    assert said(Change("a", FILE, FILE, MAX_FILE_BYTES + 1)) == ["a has 10 MiB; more than 10 are no file to review"]
    many = [Change(str(number), FILE, FILE, MAX_FILE_BYTES) for number in range(6)]
    assert said(*many[:5]) == []
    assert MAX_DIFF_BYTES < 6 * MAX_FILE_BYTES
    assert said(*many) == ["the changed files have 60 MiB; more than 50 are no change to review"]


BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2

# Put together here, so that nobody who looks for secrets finds one in this file.
SECRETS = {
    "a private key": f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{BODY}",
    "a GitHub token": "gh" + "p_" + "a1B2" * 9,
    "a GitLab token": "glpat" + "-" + "a1B2c" * 4,
    "an Anthropic key": "sk-" + "ant-api03-" + "a1B2" * 8,
    "an OpenAI key": "sk-" + "proj-" + "a1B2" * 5 + "T3Blbk" + "FJ" + "a1B2" * 5,
    "an AWS access key": "AK" + "IA" + "Q3EGRIJ5KW7MZT2A",
    "a Google API key": "AI" + "za" + "a1B2c" * 7,
    "a Slack token": "xox" + "b-" + "1234567890-" * 3,
    "a Stripe key": "sk_" + "live_" + "a1B2" * 6,
    "an npm token": "npm" + "_" + "a1B2" * 9,
    "a PyPI token": "pypi" + "-AgEIcHlwaS5vcmc" + "a1B2" * 10,
}


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_known_by_its_form(kind: str) -> None:
    content = f"first\ntoken = '{SECRETS[kind]}'\n".encode()
    assert list(leaks(content)) == [Leak(kind, 2)]
    assert SECRETS[kind] not in str(list(leaks(content)))


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        ("RSA {} KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n"),
        ("PGP {} KEY BLOCK", "Version: GnuPG v2.0.22 (GNU/Linux)\nComment: an example\n"),
    ],
)
@pytest.mark.parametrize("quoted", [False, True])
def test_a_private_key_with_headers_is_one(kind: str, headers: str, quoted: bool) -> None:
    key = f"-----BEGIN {kind.format('PRIVATE')}-----\n{headers}\n{BODY}"
    key = key.replace("\n", '\\n"\n    "') if quoted else key
    assert list(leaks(key.encode())) == [Leak("a private key", 1)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_known_in_wide_characters_too(kind: str, encoding: str) -> None:
    content = f"first\ntoken = '{SECRETS[kind]}'\n".encode(encoding)
    assert list(leaks(content)) == [Leak(kind, 2)]
    assert list(leaks(content, SECRETS[kind].encode(encoding))) == []


def test_a_secret_that_was_there_before_is_no_news() -> None:
    before = SECRETS["a GitHub token"].encode()
    assert list(leaks(b"moved\n" + before, before)) == []
    assert list(leaks(before + b"\n" + SECRETS["an npm token"].encode(), before)) == [Leak("an npm token", 2)]


@pytest.mark.parametrize(
    "text",
    [
        'if text.startswith("-----BEGIN PRIVATE KEY-----"):',
        "-----BEGIN PUBLIC KEY-----\n" + BODY,
        "AKIAIOSFODNN7EXAMPLE",
        "sk-learn and task-proj-names-that-go-on-and-on",
        "the prefix ghp_ of a token",
    ],
)
def test_what_only_speaks_of_secrets_is_none(text: str) -> None:
    assert list(leaks(text.encode())) == []


@pytest.mark.parametrize("kind", SECRETS)
def test_what_looks_like_a_secret_is_struck_from_a_text_or_covered_in_it(kind):
    text = f"before {SECRETS[kind]}\nafter"
    assert struck(text).startswith("before [redacted]")
    assert SECRETS[kind] not in covered(text)
    assert len(covered(text)) == len(text)


def test_a_key_is_struck_whole_and_prose_stays():
    key = f"-----BEGIN {'PRIVATE'} KEY-----\n{BODY}\n-----END {'PRIVATE'} KEY-----"
    capability = "ey" + "JhbGciOiJFZERTQSJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJlMTIz"
    assert struck(f"a {key} b") == "a [redacted] b"
    assert struck(f"a run's {capability} is one") == "a run's [redacted] is one"
    long = f"{capability.partition('.')[0]}.{'a' * 10_000}.{'b' * 10_000}"
    assert struck(f"a {long} b") == "a [redacted] b"
    prose = "Adds basic validation to https://example.org/a@b; the bearer functionality stays."
    assert struck(prose) == prose


@pytest.mark.parametrize("text", ["-eyJ" * 150_000, f"{'-eyJ' * 400}.{'a' * 100_000}.", "-eyJaaaaaaaaaa." * 30_000])
def test_what_seems_to_begin_as_a_token_again_and_again_is_looked_through_in_bounded_time(text: str) -> None:
    # Where each beginning is followed to the end of the text, this takes longer than a test may.
    assert len(covered(text)) == len(text)
