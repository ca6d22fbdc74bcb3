"""What commands a line of shell would run, as far as its text says.

A line is split the way a shell does, into simple commands; what stands in `$(…)`, backticks and
subshells, behind `sudo`, `env` or `xargs`, and in the text that `sh -c`, `eval` or a here-document hands
to another shell is looked into as well. What only a running shell knows is not: variables, aliases,
scripts in files. Like domain.globs, this is read by a program that starts for every tool use, so it
imports nothing but how a line is split.
"""

from __future__ import annotations

from domain.shell_split import Command, Splitter, TooMuch, Unsplittable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE = 1 << 18
"""Characters of a line that is looked through."""

MAX_READ = 8 * MAX_LINE
"""Characters that are looked through in all, of a line and of those within it: one text may be found in many ways."""

MAX_COMMANDS = 4096
"""Commands that one line may come to."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "su", "rbash"})
"""Programs that run the text behind an option with a `c` in it, and what they are fed."""

WRAPPERS = frozenset(
    {
        *("sudo", "doas", "env", "xargs", "nohup", "nice", "ionice", "time", "timeout", "stdbuf", "setsid", "chrt"),
        *("command", "exec", "builtin", "find", "fd", "watch", "script", "flock", "unshare", "nsenter", "chroot"),
        *("strace", "ltrace", "parallel", "busybox", "toybox", "systemd-run", "taskset", "setarch", "coproc"),
    }
)
"""Programs that run what stands among their arguments: at whichever of these a command may begin."""

_LINE_TAKERS = frozenset({"env", "watch", "script", "flock", "parallel"})
_TAKE_ATTACHED = frozenset({"su", "fish"})
"""Shells whose `-c` may have its line in the same word."""

_LONG_OPTIONS = ("--command", "--session-command", "--init-command")
_GIT_OPTIONS_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"}
)
_MAX_STARTS = 64


__all__ = ["MAX_LINE", "Command", "Unsplittable", "commands_of", "program"]


def commands_of(line: str) -> Iterator[Command]:
    """Every command that the line would run, those within others too; Unsplittable."""
    if len(line) > MAX_LINE:
        raise TooMuch(f"it is longer than {MAX_LINE} characters")
    return _Search().through(line, 0)


class _Search:
    """The search through one line, with what has been read and found so far."""

    def __init__(self) -> None:
        self.read, self.found = 0, 0

    def through(self, line: str, depth: int) -> Iterator[Command]:
        self.read += len(line)
        if self.read > MAX_READ:
            raise TooMuch("what it would run is too much to be looked through")
        for command in Splitter(line, depth).split():
            yield self.counted(command)
            yield from self.within(command, depth + 1)

    def counted(self, command: Command) -> Command:
        self.found += 1
        if self.found > MAX_COMMANDS:
            raise TooMuch(f"it would run more than {MAX_COMMANDS} commands")
        return command

    def within(self, command: Command, depth: int) -> Iterator[Command]:
        """What a simple command makes other programs run."""
        words = command.words
        wrapper = bool(words) and program(words[0]) in WRAPPERS
        for start in range(min(len(words), _MAX_STARTS) if wrapper else min(len(words), 1)):
            rest = words[start:]
            if start:
                yield self.counted(_command(rest))
            name = program(rest[0])
            if name == "git" and len(rest) > 1 and rest[1].startswith("-"):
                yield self.counted(_command(["git", *_without_git_options(rest[1:])]))
            elif name == "eval":
                yield from self.through(" ".join(rest[1:]), depth)
            elif name in SHELLS:
                lines, others = _lines_for_shell(rest)
                for line in (*lines, command.fed):
                    yield from self.through(line, depth)
                for word in others:
                    yield from self.if_a_line(word, depth)
            elif name in _LINE_TAKERS:
                for line in _lines_among(rest):
                    yield from self.if_a_line(line, depth)

    def if_a_line(self, word: str, depth: int) -> Iterator[Command]:
        """What a word would run if it were a line; it may well be none."""
        try:
            yield from self.through(word, depth)
        except TooMuch:
            raise
        except Unsplittable:
            return


def program(word: str) -> str:
    """A program's name without its folder."""
    return word.rpartition("/")[2]


def _command(words: list[str]) -> Command:
    command = Command()
    command.words = words
    return command


def _lines_for_shell(words: list[str]) -> tuple[list[str], list[str]]:
    """The lines that options such as -c, -lc and --command ask for, and words behind them that may be lines too.

    A shell reads its options to their end before it takes its line: `sh -c -x -- 'line'`.
    """
    attached = program(words[0]) in _TAKE_ATTACHED
    lines: list[str] = []
    others: list[str] = []
    wanted = asked = value = False
    for word in words[1:]:
        if word[:1] in ("-", "+") and len(word) > 1:
            name, equals, text = word.partition("=")
            if word.startswith("--"):
                asks = len(name) > 2 and any(option.startswith(name) for option in _LONG_OPTIONS)
            else:
                asks, equals, text = "c" in word.lower(), "", word[word.lower().find("c") + 1 :]
            if asks and (equals or (attached and text)):
                lines.append(text)
            elif asks:
                wanted = asked = True
            value = word[-1] in "oO" or word in ("--rcfile", "--init-file")
        elif asked:
            (lines if wanted and not value else others).append(word)
            wanted, value = wanted and value, False
    return lines, others


def _lines_among(words: list[str]) -> Iterator[str]:
    """What programs such as env, watch and flock may take for a line: a word with spaces, or a part of one."""
    for at, word in enumerate(words[1:], 1):
        if " " in word or "\t" in word or "\n" in word:
            yield word
            if word.startswith("--"):
                yield word.partition("=")[2]
            elif word.startswith("-c"):
                yield word[2:]
        # What is behind it belongs to the same command; and `env` has a way of its own to write a space.
        long = word.startswith("--s") and "=" in word
        if program(words[0]) == "env" and (long or (word[:1] == "-" and word[1:2] != "-" and "S" in word)):
            text = word.partition("=" if long else "S")[2].replace("\\_", " ")
            yield " ".join((text, *("'" + other.replace("'", "'\\''") + "'" for other in words[at + 1 :])))


def _without_git_options(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_OPTIONS_WITH_VALUE else 1
    return words[at:]
