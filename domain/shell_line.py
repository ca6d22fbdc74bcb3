"""What commands a line of shell would run, as far as its text says.

A line is split the way a shell does, into simple commands; what stands in `$(…)`, backticks and
subshells, behind `sudo`, `env` or `xargs`, and in the text that `sh -c`, `eval`, a here-document or `echo` hands
to another shell is looked into as well. What only a running shell knows is not: variables, aliases,
scripts in files. Like domain.globs, this is read by a program that starts for every tool use, so it
imports nothing but how a line is split.
"""

from __future__ import annotations

from domain.shell_fed import OPTIONS_WITH_VALUE, SHELLS, SPEAKERS, program, reads_lines, spoken_by
from domain.shell_split import Command, Scope, Splitter, Unit
from domain.shell_words import Budget, TooMuch, Unsplittable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE = 1 << 18
"""Characters of a line that is looked through."""

MAX_COMMANDS = 4096
"""Commands that one line may come to."""

_MAX_DERIVED = 64 * MAX_LINE
"""Characters of the commands that programs such as `env` may run: each of these is most of the one before."""

WRAPPERS = frozenset(
    {
        *("sudo", "doas", "env", "xargs", "nohup", "nice", "ionice", "time", "timeout", "stdbuf", "setsid", "chrt"),
        *("command", "exec", "builtin", "find", "fd", "watch", "script", "flock", "unshare", "nsenter", "chroot"),
        *("strace", "ltrace", "parallel", "busybox", "toybox", "systemd-run", "taskset", "setarch", "coproc"),
    }
)
"""Programs that run what stands among their arguments: at whichever of these a command may begin."""

_REACH = 64
"""How many words that are neither options nor assignments may stand between these and a command."""

_LINE_TAKERS = frozenset({"env", "watch", "script", "flock", "parallel"})
_TAKE_ATTACHED = frozenset({"su", "fish"})
"""Shells whose `-c` may have its line in the same word."""

_LONG_OPTIONS = ("--command", "--session-command", "--init-command")
_GIT_OPTIONS_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"}
)


__all__ = ["MAX_LINE", "Command", "Scope", "Unsplittable", "commands_of", "program"]


def commands_of(line: str) -> Iterator[Command]:
    """Every command that the line would run, those within others too; Unsplittable."""
    if len(line) > MAX_LINE:
        raise TooMuch(f"it is longer than {MAX_LINE} characters")
    return _Search().through(line, 0, Scope())


class _Search:
    """The search through one line, with what has been found so far and what may yet be read.

    `handed` are texts that `exec` gave to the shell itself, whose later commands all may read them.
    """

    def __init__(self) -> None:
        self.budget, self.found, self.derived = Budget(), 0, 0
        self.handed: list[str] = []

    def through(self, line: str, depth: int, scope: Scope) -> Iterator[Command]:
        """Unsplittable only after whatever stands before the fault: a shell may have run that by then."""
        splitter = Splitter(line, depth, self.budget, scope)
        fault = None
        try:
            splitter.split()
        except TooMuch:
            raise
        except Unsplittable as error:
            fault = error
        for command in splitter.found:
            yield self.counted(command)
            yield from self.within(command, depth + 1)
            if command is command.unit.last:
                yield from self.fed(command.unit, depth + 1, command.scope)
        if fault is not None:
            raise fault

    def counted(self, command: Command) -> Command:
        self.found += 1
        if self.found > MAX_COMMANDS:
            raise TooMuch(f"it would run more than {MAX_COMMANDS} commands")
        return command

    def within(self, command: Command, depth: int) -> Iterator[Command]:
        """What a simple command makes other programs run."""
        unit, inner = command.unit, Scope(command.scope)
        fed = [command.fed] if command.fed else []
        unit.executes = unit.executes or command.words == ["exec"]
        for rest in self.forms(command.words):
            if rest is not command.words:
                yield self.counted(command.like(rest))
            unit.reads = unit.reads or reads_lines(rest)
            name = program(rest[0])
            if name == "git" and len(rest) > 1 and rest[1].startswith("-"):
                yield self.counted(command.like(["git", *_without_git_options(rest[1:])]))
            elif name in SPEAKERS:
                unit.speakers.append(rest)
            elif name == "eval":
                yield from self.through(" ".join(rest[1:]), depth, command.scope)
            elif name == "trap":
                yield from self.through(_trapped(rest), depth, inner)
            elif name in SHELLS:
                lines, others = _lines_for_shell(rest)
                for line in (*lines, *fed):
                    yield from self.through(line, depth, inner)
                for word in others:
                    yield from self.if_a_line(word, depth, inner)
                fed = []
            elif name in _LINE_TAKERS:
                for line in _lines_among(rest):
                    yield from self.if_a_line(line, depth, inner)
        unit.texts += fed

    def forms(self, words: list[str]) -> Iterator[list[str]]:
        """The words of a command, and those of each that it may run, to their end."""
        if not words:
            return
        yield words
        if program(words[0]) not in WRAPPERS:
            return
        left, mark = sum(map(len, words)) + len(words), 0
        for at, word in enumerate(words):
            if at and at - mark <= _REACH:
                self.derived += left
                if self.derived > _MAX_DERIVED:
                    raise TooMuch("it may run too many commands to be looked through")
                yield words[at:]
            if not word[:1].isalnum() or "=" in word or program(word) in WRAPPERS:
                mark = at
            left -= len(word) + 1

    def fed(self, unit: Unit, depth: int, scope: Scope) -> Iterator[Command]:
        """What shells run that comes to them from a here-document or from others in their pipeline."""
        if not (unit.reads or unit.executes):
            return
        spoken = [text for words in unit.speakers for text in spoken_by(words, depth, self.budget)]
        for text in (*self.handed, *unit.texts):
            yield from self.through(text, depth, Scope(scope))
        for text in spoken:
            yield from self.if_a_line(text, depth, Scope(scope))
        if unit.executes:
            self.handed += [*unit.texts, *spoken]

    def if_a_line(self, word: str, depth: int, scope: Scope) -> Iterator[Command]:
        """What a word would run if it were a line; it may well be none."""
        try:
            yield from self.through(word, depth, scope)
        except TooMuch:
            raise
        except Unsplittable:
            return


def _trapped(words: list[str]) -> str:
    """The line that `trap` is to run later; empty where it only takes one back, or lists them."""
    line = next((word for word in words[1:] if word == "-" or not word.startswith("-")), "-")
    return "" if line == "-" else line


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
            value = word[-1] in "oO" or word in OPTIONS_WITH_VALUE
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
