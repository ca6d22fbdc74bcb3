"""Which commands take lines from their input, and what is said into it as far as its text says."""

from __future__ import annotations

from domain.shell_words import Budget, Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "su", "rbash"})
"""Programs that run the text behind an option with a `c` in it, and what they are fed."""

OPTIONS_WITH_VALUE = ("--rcfile", "--init-file")
"""Of a shell, beside those that end in an `o`."""

_READERS = frozenset({"su", "at", "batch", "parallel"})
SPEAKERS = frozenset({"echo", "printf", "print", "yes"})
"""Programs that print their words."""

_BEFORE_CONVERSION = "0123456789.-+#* '"


def program(word: str) -> str:
    """A program's name without its folder."""
    return word.rpartition("/")[2]


def reads_lines(words: list[str]) -> bool:
    """Whether a command may run what comes to it on its input or is put among its words."""
    name = program(words[0])
    if name in SHELLS and name not in _READERS:
        return _shell_reads(words)
    if name in (".", "source"):
        return len(words) > 1 and _may_be_input(words[1])
    if name == "eval":
        return any(_is_substituted(word) for word in words)
    return name in _READERS or _is_substituted(words[0])


def spoken_by(words: list[str], depth: int, budget: Budget) -> Iterator[str]:
    """The texts that one of the `SPEAKERS` may print."""
    said = words[1:]
    texts = [*(word for word in said if not word.isalnum()), " ".join(said)]
    if program(words[0]) == "printf":
        texts += _formatted(said, budget)
    for text in dict.fromkeys(texts):
        yield text
        if "\\" in text:
            reader = Words(text, depth, budget)
            reader.ansi_text("")
            yield "".join(reader.word or ())


def _shell_reads(words: list[str]) -> bool:
    """A shell that is given a script of its own leaves its input to it."""
    value = False
    for word in words[1:]:
        if value:
            value = False
        elif word[:1] in ("-", "+") and len(word) > 1:
            if not word.startswith("--") and ("c" in word.lower() or "s" in word):
                return True
            value = word[-1] in "oO" or word in OPTIONS_WITH_VALUE
        else:
            return _may_be_input(word)
    return True


def _may_be_input(word: str) -> bool:
    return word == "-" or word.startswith(("/dev/", "/proc/")) or "$" in word or "`" in word


def _is_substituted(word: str) -> bool:
    return "$(" in word or "`" in word


def _formatted(said: list[str], budget: Budget) -> Iterator[str]:
    """What `printf` makes of its words, by each of them that may be its format: options may come first."""
    for at, form in enumerate(said[:4]):
        first, *others = form.split("%")
        values = said[at + 1 :]
        text: list[str] = []
        taken = 0
        while not text or (others and taken < len(values)):
            budget.spend(len(form))
            text.append(first)
            for other in others:
                text += [*values[taken : taken + 1], other.lstrip(_BEFORE_CONVERSION)[1:]]
                taken += 1
        yield "".join(text)
