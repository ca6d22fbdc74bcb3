"""How a shell splits a line: into simple commands, those in substitutions and subshells too.

Like domain.globs, this is read by a program that starts for every tool use, so it imports nothing but how
the parts of a word are read.
"""

from __future__ import annotations

from domain.shell_words import Budget, TooMuch, Unsplittable, Words

MAX_GROUPS = 64
"""How many subshells, lists and compound commands may be open at once."""

_SEPARATORS = ("&&", "||", ";;&", ";;", ";&", "|&", ";", "&", "|")
_GOES_ON = ("&&", "||", "|", "|&")
"""Behind these a line may be broken."""

_REDIRECTIONS = ("&>>", "<<<", "<<-", "&>", "<<", ">>", ">|", ">&", "<&", "<>", "<", ">")
_RESERVED = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "fi", "done", "esac"})
_OPENING = frozenset({"{", "if", "while", "until", "for", "select", "case"})
_CLOSING = {"}": ("{",), "fi": ("if",), "done": ("while", "until", "for", "select"), "esac": ("body", "pattern")}
_CONDITIONAL = frozenset({"if", "while", "until", "for", "select", "body"})
_SUBSHELLS = ("(", "$(", "array")
_PATTERNS = ("pattern", "(pattern")
_DECLARING = frozenset({"declare", "typeset", "local", "export", "readonly"})


class Scope:
    """A shell or a subshell: what one does to its folder is not seen by those that it was started by."""

    __slots__ = ("parent",)

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent


class Unit:
    """The commands that share what is fed or piped to one of them: a pipeline with all that stands within it.

    Its last command is the splitter's to say. What these commands have to say to each other is for whoever knows
    programs: whether one of them `reads` lines to run, the here-documents and words that it may be, and whether
    `exec` hands these to all commands that follow.
    """

    __slots__ = ("executes", "last", "reads", "speakers", "texts")

    def __init__(self) -> None:
        self.last: Command | None = None
        self.reads = self.executes = False
        self.texts: list[str] = []
        self.speakers: list[list[str]] = []


class Command:
    """A simple command: its words, without assignments and redirections.

    `fed` is the text of its here-documents and here-strings, `writes` the files that it is redirected
    to, as they stand in the line. `before` and `after` are the separators around it, and `conditional` says
    that it stands within an `if`, a loop or a `case`.
    """

    __slots__ = ("after", "before", "conditional", "fed", "scope", "unit", "words", "writes")

    def __init__(self, scope: Scope, unit: Unit, before: str = "") -> None:
        self.words: list[str] = []
        self.writes: list[str] = []
        self.fed = ""
        self.scope, self.unit = scope, unit
        self.before, self.after = before, ""
        self.conditional = False

    def like(self, words: list[str]) -> Command:
        """A command that this one may run, in its place and with nothing of its own."""
        other = Command(self.scope, self.unit)
        other.words, other.conditional, other.after = words, True, self.after
        return other


class Splitter(Words):
    """One pass over a line, with the command and the word that are being read.

    `groups` are what is open around it: subshells, substitutions, lists in braces, and compound commands. A
    `case` goes through the stages `case`, `in`, `pattern` (`(pattern` with a parenthesis) and `body`.
    """

    def __init__(self, line: str, depth: int, budget: Budget, scope: Scope, unit: Unit | None = None) -> None:
        super().__init__(line, depth, budget)
        self.scope = scope
        # What is read for somebody else belongs to his unit from its beginning to its end.
        self.groups: list[str] = [] if unit is None else ["inner"]
        self.unit = Unit() if unit is None else unit
        self.found: list[Command] = []
        self.command = Command(self.scope, self.unit)
        self.redirection = ""
        self.quoted = False
        self.documents: list[tuple[Command, str, bool, bool]] = []

    def inner(self, text: str) -> Splitter:
        reader = Splitter(text, self.depth + 1, self.budget, Scope(self.scope), self.unit)
        reader.found = self.found
        return reader

    def split(self) -> list[Command]:
        while self.at < len(self.line):
            self.step(self.line[self.at])
        self.end_command("")
        return self.found

    def step(self, character: str) -> None:
        if character == "\n":
            self.at += 1
            self.end_command("\n")
            self.read_documents()
        elif character == "\\" and self.ahead() == "\n":
            self.at += 2
        elif character in " \t\r":
            self.at += 1
            self.end_word()
        elif character == "#" and self.word is None:
            end = self.line.find("\n", self.at)
            self.at = len(self.line) if end < 0 else end
        elif character in "<>" and self.ahead() == "(":
            self.at += 2
            self.nested()
        elif character in "<>" or (character == "&" and self.ahead() == ">"):
            self.redirect()
        elif character in ";&|":
            self.separate()
        elif character == "(":
            self.open()
        elif character == ")":
            self.at += 1
            self.end_command(")")
            self.close()
        elif character == "[" and self.is_subscript():
            self.subscript()
        else:
            self.quoted |= character in "'\"\\" or (character == "$" and self.ahead() in ("'", '"'))
            self.read_part(character)

    def separate(self) -> None:
        separator = next(found for found in _SEPARATORS if self.line.startswith(found, self.at))
        self.at += len(separator)
        self.end_command(separator)
        if separator in (";;", ";&", ";;&") and self.groups[-1:] == ["body"]:
            self.groups[-1] = "pattern"

    def open(self) -> None:
        """A parenthesis: of a subshell, an array, a function, arithmetic, or before a pattern of `case`."""
        words, word = self.command.words, self.word
        if self.groups[-1:] == ["pattern"] and word is None and not (words and words[0] != "case"):
            self.at += 1
            self.groups[-1] = "(pattern"
        elif self.ahead() == "(" and word is None and (self.begins() or words == ["for"]):
            # Not every shell knows arithmetic here, and none does unless its end looks like it.
            self.either(Splitter.perhaps_arithmetic, Words.quoting_arithmetic, Words.substituted_commands)
            self.word = None
        else:
            self.at += 1
            array = bool(word) and word is not None and word[-1].endswith("=")
            self.end_command("(")
            self.opened("array" if array else "(")
            self.scope = Scope(self.scope)
            self.command = Command(self.scope, self.unit)

    def perhaps_arithmetic(self) -> None:
        self.arithmetic()
        self.unsure = True

    def opened(self, group: str) -> None:
        if len(self.groups) >= MAX_GROUPS:
            raise TooMuch(f"more than {MAX_GROUPS} groups of commands are open in it at once")
        self.groups.append(group)

    def close(self) -> None:
        """Behind a closing parenthesis; one that nothing was opened for closes nothing."""
        if self.groups[-1:] and self.groups[-1] in _PATTERNS:
            self.groups[-1] = "body"
            return
        at = len(self.groups)
        while at and self.groups[at - 1] not in _SUBSHELLS:
            at -= 1
        if at:
            array = self.groups[at - 1] == "array"
            del self.groups[at - 1 :]
            self.scope = self.scope.parent or self.scope
            self.command = Command(self.scope, self.unit, ")")
            # What stands right behind an array belongs to the assignment.
            self.word = ["_="] if array else None

    def nested(self) -> None:
        self.go_deeper(1)
        outer = self.command, self.word, self.redirection, self.quoted, self.documents
        level = len(self.groups)
        self.groups = [*self.groups, "$("]
        self.scope = Scope(self.scope)
        self.command, self.word, self.redirection, self.quoted = Command(self.scope, self.unit), None, "", False
        self.documents = []
        while len(self.groups) > level:
            if self.at >= len(self.line):
                raise Unsplittable("a ) is missing")
            self.step(self.line[self.at])
        if self.documents:
            raise Unsplittable("a here-document is not in the substitution that announces it")
        self.command, self.word, self.redirection, self.quoted, self.documents = outer
        self.add("$(…)")
        self.go_deeper(-1)

    def is_subscript(self) -> bool:
        """Whether a bracket is that of an assignment, in which blanks and comments mean nothing."""
        if self.word is None:
            return self.groups[-1:] == ["array"]
        words = self.command.words
        return (not words or words[0] in _DECLARING) and "".join(self.word).isidentifier()

    def subscript(self) -> None:
        end = self.line.find("]", self.at)
        if any(mark in self.line[self.at : end] for mark in ("<", ";", "&", "|", "\n", " #", "\t#")):
            raise Unsplittable("a [ is read differently by different shells")
        self.at += 1
        self.add("[")
        self.either(Words.brackets)
        self.add("]")

    def redirect(self) -> None:
        if self.word is not None and "".join(self.word).isdigit():
            self.word = None
        word = "".join(self.word or ())
        self.end_word()
        self.redirection = next(found for found in _REDIRECTIONS if self.line.startswith(found, self.at))
        self.at += len(self.redirection)
        if self.redirection in ("<<", "<<-") and word.count("[") > word.count("]"):
            raise Unsplittable("a << behind a [ is read differently by different shells")

    def end_word(self) -> None:
        if self.word is None:
            return
        word, redirection, quoted = "".join(self.word), self.redirection, self.quoted
        self.word, self.redirection, self.quoted = None, "", False
        if redirection == "<<<":
            self.command.fed += word + "\n"
        elif redirection in ("<<", "<<-"):
            self.documents.append((self.command, word, redirection == "<<-", quoted))
        elif redirection:
            if ">" in redirection and not word.isdigit() and word != "-":
                self.command.writes.append(word)
        else:
            if not quoted:
                self.follow_groups(word)
            elif self.groups[-1:] == ["case"]:
                self.groups[-1] = "in"
            if self.command.words or not (word in _RESERVED or _is_assignment(word)):
                self.command.words.append(word)

    def begins(self) -> bool:
        """Whether a command begins here, so that a reserved word is one."""
        words = self.command.words
        if not words or (words[0] == "time" and all(word in ("-p", "--") for word in words[1:])):
            return True
        return words[0] in ("coproc", "function") and len(words) <= 2

    def follow_groups(self, word: str) -> None:
        """What an unquoted word opens or closes."""
        stage = self.groups[-1] if self.groups else ""
        if stage == "case":
            self.groups[-1] = "in"
        elif stage == "in":
            self.groups[-1:] = ["pattern"] if word == "in" else []
        elif stage in _PATTERNS:
            if word == "esac" and stage == "pattern" and self.command.words[:1] in ([], ["case"]):
                self.groups.pop()
        elif self.begins() and word in _OPENING:
            self.opened(word)
        elif self.begins() and word in _CLOSING and stage in _CLOSING[word]:
            self.groups.pop()

    def end_command(self, separator: str) -> None:
        self.end_word()
        self.redirection = ""
        command = self.command
        if command.words[:1] == ["function"]:
            command.words = command.words[3:]
        command.after = separator
        command.conditional = any(group in _CONDITIONAL for group in self.groups)
        empty = not (command.words or command.writes or command.fed)
        if not empty or (self.documents and self.documents[-1][0] is command):
            self.found.append(command)
            self.unit.last = command
        goes_on = separator in _GOES_ON[2:] or (separator == "\n" and empty and command.before in _GOES_ON)
        if not (self.groups or goes_on or separator in ("(", ")")):
            self.unit = Unit()
        before = command.before if separator == "\n" and empty else separator
        self.command = Command(self.scope, self.unit, before)

    def read_documents(self) -> None:
        """The here-documents that the line before has announced."""
        for command, delimiter, tabs, quoted in self.documents:
            text = []
            joined = False
            while self.at < len(self.line):
                end = self.line.find("\n", self.at)
                end = len(self.line) if end < 0 else end
                row = self.line[self.at : end]
                self.at = end + 1
                if not joined and (row.lstrip("\t") if tabs else row) == delimiter:
                    break
                text.append(row + "\n")
                joined = not quoted and (len(row) - len(row.rstrip("\\"))) % 2 == 1
            fed = "".join(text)
            command.fed += fed
            if not quoted:
                reader = Splitter(fed, self.depth + 1, self.budget, Scope(command.scope), command.unit)
                self.found += reader.substituted()
        self.documents = []

    def substituted(self) -> list[Command]:
        """The commands of the substitutions in a here-document, in which quotes mean nothing."""
        while self.at < len(self.line):
            character = self.line[self.at]
            if character == "\\":
                self.at += 2
            elif character == "`":
                self.backticks(quoted=True)
            elif character == "$":
                self.expansion(quoted=True)
            else:
                self.at += 1
        return self.found


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    name = name.rstrip("+")
    return bool(equals) and (name.partition("[")[0] if name.endswith("]") else name).isidentifier()
