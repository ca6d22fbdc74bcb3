"""How a shell splits a line: into simple commands, those in substitutions and subshells too.

Like domain.globs, this is read by a program that starts for every tool use, so it imports nothing.
"""

from __future__ import annotations

MAX_DEPTH = 8
"""How deep commands may stand within commands."""

_RESERVED = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "fi", "done", "esac"})
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_NUMBERED = {"x": (16, 2), "u": (16, 4), "U": (16, 8)}
"""Letters behind a backslash in `$'…'` that begin a number: its base, and how many digits it has at most."""

_DIGITS, _OCTAL = "0123456789abcdef", "01234567"


class Unsplittable(ValueError):
    """The text is no line that a shell would take, or too much to be looked through."""


class TooMuch(Unsplittable):
    """Whatever it is, it is too deep, too long or too manifold to be looked through."""


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


class Splitter:
    """One pass over a line, with the command and the word that are being read."""

    def __init__(self, line: str, depth: int) -> None:
        self.line, self.at = line, 0
        self.depth = depth
        self.go_deeper(0)
        self.found: list[Command] = []
        self.command = Command()
        self.word: list[str] | None = None
        self.redirection = ""
        self.quoted = False
        self.documents: list[tuple[Command, str, bool, bool]] = []

    def split(self) -> list[Command]:
        self.read("")
        return self.found

    def go_deeper(self, levels: int) -> None:
        self.depth += levels
        if self.depth > MAX_DEPTH:
            raise TooMuch("commands stand too deep within each other")

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
        self.quoted |= character in "'\"\\" or (character == "$" and self.line[self.at + 1 : self.at + 2] in ("'", '"'))
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
        self.found += Splitter(inner, self.depth + 1).split()
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
        over = False
        while self.at < len(self.line) and self.line[self.at] != "'":
            character = self.line[self.at]
            self.at += 1
            if character == "\\":
                character = self.ansi_escape()
            # What stands behind a NUL is not part of the word.
            over = over or character == "\0"
            self.add("" if over else character)
        if self.at >= len(self.line):
            raise Unsplittable("a ' is missing")
        self.at += 1

    def ansi_escape(self) -> str:
        """The character that is meant by what stands behind a backslash in `$'…'`."""
        character = self.line[self.at : self.at + 1]
        self.at += 1
        if character == "c":
            character = self.line[self.at : self.at + 1]
            self.at += 1
            return chr(ord(character) & 0x1F) if character else ""
        if character in _ESCAPES:
            return _ESCAPES[character]
        base, most = _NUMBERED.get(character, (0, 0))
        if character in _OCTAL and character:
            self.at -= 1
            base, most = 8, 3
        number = self.number(base, most)
        if number is None:
            return character
        try:
            return chr(number & 0xFF if base == 8 else number)
        except (ValueError, OverflowError):
            raise Unsplittable("a number stands for no character") from None

    def number(self, base: int, most: int) -> int | None:
        start = self.at
        while self.at < min(start + most, len(self.line)) and self.line[self.at].lower() in _DIGITS[:base]:
            self.at += 1
        return int(self.line[start : self.at], base) if self.at > start else None

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
        outer = self.command, self.word, self.redirection, self.quoted
        self.command, self.word, self.redirection, self.quoted = Command(), None, "", False
        self.read(closing)
        self.command, self.word, self.redirection, self.quoted = outer
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
        word, redirection, quoted = "".join(self.word), self.redirection, self.quoted
        self.word, self.redirection, self.quoted = None, "", False
        if redirection == "<<<":
            self.command.fed += word + "\n"
        elif redirection in ("<<", "<<-"):
            self.documents.append((self.command, word, redirection == "<<-", quoted))
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
                self.found += Splitter(fed, self.depth + 1).substituted()
        self.documents = []

    def substituted(self) -> list[Command]:
        """The commands of the substitutions in a here-document, in which quotes mean nothing."""
        while self.at < len(self.line):
            character = self.line[self.at]
            if character == "\\":
                self.at += 2
            elif character == "`":
                self.backticks()
            elif character == "$":
                self.expansion(quoted=True)
            else:
                self.at += 1
        return self.found


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.rstrip("+").isidentifier()
