"""Which block of a task's text is the script."""

from __future__ import annotations

import pytest

from domain.script import shell_block


def test_the_first_shell_block_is_the_script():
    body = "Why.\n\n```python\nprint()\n```\n\n```sh\necho one\n```\n\n```sh\necho two\n```\n"
    assert shell_block(body) == ("sh", "echo one\n")


@pytest.mark.parametrize(
    ("info", "interpreter"),
    [("sh", "sh"), ("shell", "sh"), ("bash", "bash"), ("Bash", "bash"), ("sh title=x", "sh")],
)
def test_the_language_names_the_interpreter(info, interpreter):
    assert shell_block(f"~~~{info}\ntrue\n~~~\n") == (interpreter, "true\n")


def test_a_block_inside_a_list_is_dedented():
    assert shell_block("- do\n\n  ```sh\n  if true\n  then\n    echo\n  fi\n  ```\n") == (
        "sh",
        "if true\nthen\n  echo\nfi\n",
    )


@pytest.mark.parametrize(
    "body",
    [
        "",
        "Only words about `sh`.",
        "```\ntrue\n```\n",
        "```zsh\ntrue\n```\n",
        "    ```sh\n    true\n    ```\n",
        "> ```sh\n> true\n> ```\n",
        "<!--\n```sh\ntrue\n```\n-->\n",
        "````\n```sh\ntrue\n```\n````\n",
        "```sh\n\n   \n```\n",
    ],
    ids=["empty", "words", "plain", "zsh", "indented", "quoted", "comment", "nested", "blank"],
)
def test_what_only_looks_like_a_script_is_none(body):
    assert shell_block(body) is None


def test_crlf_does_not_reach_the_script():
    assert shell_block("```sh\r\necho one\r\n```\r\n") == ("sh", "echo one\n")
