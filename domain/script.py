"""The script in a task's text: what a run without a model does."""

from __future__ import annotations

from markdown_it import MarkdownIt

# What lies in paragraphs is of no interest here, and the inline rules are most of the parser's work.
_MARKDOWN = MarkdownIt("commonmark", {"maxNesting": 100}).disable("inline")
_INTERPRETERS = {"sh": "sh", "shell": "sh", "bash": "bash"}


def shell_block(body: str) -> tuple[str, str] | None:
    """The first fenced `sh`, `shell` or `bash` block as (interpreter, script), or None.

    The interpreter is `sh` or `bash`. CommonMark decides what a fence is. A block inside a quote is
    somebody else's words and a blank one is no work: neither counts.
    """
    quotes = 0
    for token in _MARKDOWN.parse(body):
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        if token.type == "fence" and not quotes and token.content.strip():
            language = (token.info.split() or [""])[0].lower()
            if language in _INTERPRETERS:
                return _INTERPRETERS[language], token.content
    return None
