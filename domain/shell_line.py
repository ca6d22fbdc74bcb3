"""What commands a line of shell would run, as far as its text says.

A line is split the way a shell does, into simple commands; what stands in `$(…)`, backticks and
subshells, behind `sudo`, `env` or `xargs`, and in the text that `sh -c`, `eval` or a here-document hands
to another shell is looked into as well. What only a running shell knows is not: variables, aliases,
scripts in files. Like domain.globs, this is read by a program that starts for every tool use, so it
imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_LINE = 1 << 18
"""Characters of a line that is looked through."""

MAX_DEPTH = 8
"""How deep commands may stand within commands."""

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
_RESERVED = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "fi", "done", "esac"})
_GIT_OPTIONS_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"}
)
_MAX_STARTS = 64


class Unsplittable(ValueError):
    """The text is no line that a shell would take, or too deep or too long to be looked through."""


class Command:
    """A simple command: its words, without assignments and redirections.

    `fed` is the text of its here-documents and here-strings, `writes` the files that it is redirected
    to, as they stand in the line.
    """

    __slots__ = ("fed", "words", "writes")

    def __init__(self) -> None:
        self.words: list[str] = []
        self.writes: list[str] = []
        self.fed = ""


def commands_of(line: str, depth: int = 0) -> Iterator[Command]:
    """Every command that the line would run, those within others too; Unsplittable."""
    if len(line) > MAX_LINE:
        raise Unsplittable(f"it is longer than {MAX_LINE} characters")
    for command in _Splitter(line, depth).split():
        yield command
        yield from _within(command, depth + 1)


def _within(command: Command, depth: int) -> Iterator[Command]:
    """What a simple command makes other programs run."""
    words = command.words
    wrapper = bool(words) and program(words[0]) in WRAPPERS
    for start in range(min(len(words), _MAX_STARTS) if wrapper else min(len(words), 1)):
        rest = words[start:]
        if start:
            yield _command(rest)
        name = program(rest[0])
        if name == "git" and len(rest) > 1 and rest[1].startswith("-"):
            yield _command(["git", *_without_git_options(rest[1:])])
        elif name == "eval":
            yield from commands_of(" ".join(rest[1:]), depth)
        elif name in SHELLS:
            for line in (*_lines_for_shell(rest), command.fed):
                yield from commands_of(line, depth)
        elif name in _LINE_TAKERS:
            for word in rest[1:]:
                if " " in word:
                    yield from _if_a_line(word, depth)


def program(word: str) -> str:
    """A program's name without its folder."""
    return word.rpartition("/")[2]


def _command(words: list[str]) -> Command:
    command = Command()
    command.words = words
    return command


def _lines_for_shell(words: list[str]) -> list[str]:
    """The words behind options such as -c, -lc and -ec."""
    options = zip(words[1:], words[2:], strict=False)  # noqa: RUF007 - itertools would be an import
    return [word for option, word in options if option[:1] in "-+" and option[1:2] != "-" and "c" in option]


def _if_a_line(word: str, depth: int) -> Iterator[Command]:
    """What a word would run if it were a line; it may well be none."""
    try:
        yield from commands_of(word, depth)
    except Unsplittable:
        return


def _without_git_options(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_OPTIONS_WITH_VALUE else 1
    return words[at:]


class _Splitter:
    """One pass over a line, with the command and the word that are being read."""

    def __init__(self, line: str, depth: int) -> None:
        self.line, self.at = line, 0
        self.depth = depth
        self.go_deeper(0)
        self.found: list[Command] = []
        self.command = Command()
        self.word: list[str] | None = None
        self.redirection = ""
        self.documents: list[tuple[Command, str, bool]] = []

    def split(self) -> list[Command]:
        self.read("")
        return self.found

    def go_deeper(self, levels: int) -> None:
        self.depth += levels
        if self.depth > MAX_DEPTH:
            raise Unsplittable("commands stand too deep within each other")

    def read(self, closing: str) -> None:
        """Read on to the character that closes what was opened, or to the end of the line."""
        while self.at < len(self.line):
            character = self.line[self.at]
            if character == closing:
                self.at += 1
                self.end_command()
                return
            self.step(character)
        if closing:
            raise Unsplittable(f"a {closing} is missing")
        self.end_command()

    def step(self, character: str) -> None:
        ahead = self.line[self.at + 1 : self.at + 2]
        if character == "\n":
            self.at += 1
            self.end_command()
            self.read_documents()
        elif character == "\\" and ahead == "\n":
            self.at += 2
        elif character in " \t\r":
            self.at += 1
            self.end_word()
        elif character == "#" and self.word is None:
            end = self.line.find("\n", self.at)
            self.at = len(self.line) if end < 0 else end
        elif character in "<>" and ahead == "(":
            self.at += 2
            self.nested(")")
        elif character in "<>" or (character == "&" and ahead == ">"):
            self.redirect(character)
        elif character in ";&|()":
            self.at += 1
            self.end_command()
        else:
            self.read_part(character)

    def read_part(self, character: str) -> None:
        """A part of a word: quoted, substituted or plain."""
        self.word = [] if self.word is None else self.word
        if character == "'":
            self.word.append(self.up_to("'"))
        elif character == '"':
            self.at += 1
            self.double_quoted()
        elif character == "\\":
            self.escaped()
        elif character == "`":
            self.backticks()
        elif character == "$":
            self.expansion()
        else:
            self.word.append(character)
            self.at += 1

    def up_to(self, quote: str) -> str:
        """The text between a quote and the next one of its kind."""
        end = self.line.find(quote, self.at + 1)
        if end < 0:
            raise Unsplittable(f"a {quote} is missing")
        text = self.line[self.at + 1 : end]
        self.at = end + 1
        return text

    def escaped(self) -> None:
        character = self.line[self.at + 1 : self.at + 2]
        self.at += 2
        if character != "\n":
            self.add(character)

    def double_quoted(self) -> None:
        while self.at < len(self.line):
            character = self.line[self.at]
            if character == '"':
                self.at += 1
                return
            if character == "\\" and self.line[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                self.escaped()
            elif character == "`":
                self.backticks()
            elif character == "$":
                self.expansion(quoted=True)
            else:
                self.add(character)
                self.at += 1
        raise Unsplittable('a " is missing')

    def backticks(self) -> None:
        end = self.at + 1
        while end < len(self.line) and self.line[end] != "`":
            end += 2 if self.line[end] == "\\" else 1
        if end >= len(self.line):
            raise Unsplittable("a ` is missing")
        inner = self.line[self.at + 1 : end].replace("\\`", "`").replace("\\\\", "\\")
        self.at = end + 1
        self.found += _Splitter(inner, self.depth + 1).split()
        self.add("`…`")

    def expansion(self, *, quoted: bool = False) -> None:
        """What begins with a dollar sign; a variable keeps its name, for nobody knows its value."""
        ahead = self.line[self.at + 1 : self.at + 3]
        if ahead == "((":
            self.at += 3
            self.balanced("(", ")", 2)
        elif ahead[:1] == "(":
            self.at += 2
            self.nested(")")
        elif ahead[:1] == "{":
            self.at += 2
            self.balanced("{", "}", 1)
        elif ahead[:1] == "'" and not quoted:
            self.at += 1
            self.ansi_quoted()
        else:
            # Before a double quote it asks for a translation and means nothing else.
            self.add("" if ahead[:1] == '"' and not quoted else "$")
            self.at += 1

    def ansi_quoted(self) -> None:
        self.at += 1
        while self.at < len(self.line) and self.line[self.at] != "'":
            character = self.line[self.at]
            if character == "\\":
                self.at += 1
                character = self.line[self.at : self.at + 1]
                character = {"n": "\n", "t": "\t"}.get(character, character)
            self.add(character)
            self.at += 1
        if self.at >= len(self.line):
            raise Unsplittable("a ' is missing")
        self.at += 1

    def balanced(self, opening: str, closing: str, level: int) -> None:
        """Arithmetic and `${…}`, where only what is substituted runs anything."""
        self.go_deeper(1)
        self.add("$…")
        while level:
            character = self.line[self.at : self.at + 1]
            if not character:
                raise Unsplittable(f"a {closing} is missing")
            if character == "$" and self.line[self.at + 1 : self.at + 2] in ("(", "{"):
                self.expansion()
            elif character == "`":
                self.backticks()
            elif character == "\\":
                self.at += 2
            else:
                level += (character == opening) - (character == closing)
                self.at += 1
        self.go_deeper(-1)

    def nested(self, closing: str) -> None:
        """The commands of a substitution, after which the word that it stands in goes on."""
        self.go_deeper(1)
        outer = self.command, self.word, self.redirection
        self.command, self.word, self.redirection = Command(), None, ""
        self.read(closing)
        self.command, self.word, self.redirection = outer
        self.add("$(…)")
        self.go_deeper(-1)

    def add(self, text: str) -> None:
        if self.word is None:
            self.word = []
        self.word.append(text)

    def redirect(self, character: str) -> None:
        if self.word is not None and "".join(self.word).isdigit():
            self.word = None
        self.end_word()
        operators = ("&>>", "<<<", "<<-", "&>", "<<", ">>", ">|", ">&", "<&", "<>", "<", ">")
        self.redirection = next(found for found in operators if self.line.startswith(found, self.at))
        self.at += len(self.redirection)

    def end_word(self) -> None:
        if self.word is None:
            return
        word, redirection = "".join(self.word), self.redirection
        self.word, self.redirection = None, ""
        if redirection == "<<<":
            self.command.fed += word + "\n"
        elif redirection in ("<<", "<<-"):
            self.documents.append((self.command, word, redirection == "<<-"))
        elif redirection:
            if ">" in redirection and not word.isdigit() and word != "-":
                self.command.writes.append(word)
        elif self.command.words or not (word in _RESERVED or _is_assignment(word)):
            self.command.words.append(word)

    def end_command(self) -> None:
        self.end_word()
        self.redirection = ""
        if self.command.words[:1] == ["function"]:
            self.command.words = self.command.words[3:]
        if self.command.words or self.command.writes:
            self.found.append(self.command)
        self.command = Command()

    def read_documents(self) -> None:
        """The here-documents that the line before has announced."""
        for command, delimiter, tabs in self.documents:
            text = []
            while self.at < len(self.line):
                end = self.line.find("\n", self.at)
                end = len(self.line) if end < 0 else end
                row = self.line[self.at : end]
                self.at = end + 1
                if (row.lstrip("\t") if tabs else row) == delimiter:
                    break
                text.append(row + "\n")
            command.fed += "".join(text)
        self.documents = []


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.rstrip("+").isidentifier()
