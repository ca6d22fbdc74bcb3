"""How a shell reads the parts of a word: what is quoted, escaped or substituted in it.

Like domain.globs, this is read by a program that starts for every tool use, so it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

MAX_DEPTH = 8
"""How deep commands may stand within commands."""

MAX_READ = 1 << 21
"""Characters that are looked through in all, of a line and of those within it: one text may be found in many ways."""

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_NUMBERED = {"x": (16, 2), "u": (16, 4), "U": (16, 8)}
"""Letters behind a backslash in `$'…'` that begin a number: its base, and how many digits it has at most."""

_DIGITS, _OCTAL = "0123456789abcdef", "01234567"


class Unsplittable(ValueError):
    """The text is no line that a shell would take, or too much to be looked through."""


class TooMuch(Unsplittable):
    """Whatever it is, it is too deep, too long or too manifold to be looked through."""


class Budget:
    """What is left to be read, of a line and of all that is found within it."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_READ

    def spend(self, characters: int) -> None:
        self.left -= characters
        if self.left < 0:
            raise TooMuch("what it would run is too much to be looked through")


class Words:
    """A place in a line, and the word that is being read there."""

    def __init__(self, line: str, depth: int, budget: Budget) -> None:
        self.line, self.at = line, 0
        self.budget = budget
        budget.spend(len(line))
        self.depth = depth
        self.go_deeper(0)
        self.word: list[str] | None = None
        self.unsure = False

    def nested(self) -> None:
        """The commands of a substitution, after which the word that it stands in goes on."""
        raise NotImplementedError

    def inner(self, text: str) -> Any:
        """Whoever reads a text that is substituted here."""
        raise NotImplementedError

    def go_deeper(self, levels: int) -> None:
        self.depth += levels
        if self.depth > MAX_DEPTH:
            raise TooMuch("commands stand too deep within each other")

    def ahead(self, characters: int = 1) -> str:
        """What follows the character that is being read."""
        return self.line[self.at + 1 : self.at + 1 + characters]

    def add(self, text: str) -> None:
        if self.word is None:
            self.word = []
        self.word.append(text)

    def either(self, *ways: Callable[[Self], None]) -> None:
        """Read on in the first of these ways, and in the others too unless that one was sure of itself.

        Nobody can tell which of them a shell takes, so all that do not fail have to come to the same end.
        What any of them finds is found.
        """
        ends = set()
        fault = None
        for way in ways:
            reader = type(self).__new__(type(self))
            reader.__dict__.update(self.__dict__)
            reader.word, reader.unsure = None, False
            try:
                way(reader)
                ends.add(reader.at)
            except TooMuch:
                raise
            except Unsplittable as error:
                fault = error
            self.budget.spend(max(0, reader.at - self.at))
            if ends and not reader.unsure:
                break
        if len(ends) != 1:
            raise Unsplittable("it can be read in more than one way") if ends else fault or Unsplittable("no way")
        self.at = ends.pop()
        self.add("$…")

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
        character = self.ahead()
        self.at += 2
        if character != "\n":
            self.add(character)

    def double_quoted(self) -> None:
        while self.at < len(self.line):
            character = self.line[self.at]
            if character == '"':
                self.at += 1
                return
            if character == "\\" and self.ahead() in ("$", "`", '"', "\\", "\n"):
                self.escaped()
            elif character == "`":
                self.backticks(quoted=True)
            elif character == "$":
                self.expansion(quoted=True)
            else:
                self.add(character)
                self.at += 1
        raise Unsplittable('a " is missing')

    def backticks(self, *, quoted: bool = False) -> None:
        self.at += 1
        taken = '$`\\"' if quoted else "$`\\"
        text = []
        while (character := self.line[self.at : self.at + 1]) != "`":
            if not character:
                raise Unsplittable("a ` is missing")
            if character == "\\" and self.ahead() and self.ahead() in taken:
                self.at += 1
                character = self.line[self.at]
            text.append(character)
            self.at += 1
        self.at += 1
        self.inner("".join(text)).split()
        self.add("`…`")

    def expansion(self, *, quoted: bool = False) -> None:
        """What begins with a dollar sign; a variable keeps its name, for nobody knows its value."""
        ahead = self.ahead(2)
        if ahead == "((":
            self.at += 1
            self.either(Words.arithmetic, Words.quoting_arithmetic, Words.substituted_commands)
        elif ahead[:1] == "(":
            self.at += 2
            self.nested()
        elif ahead[:1] == "{":
            self.at += 2
            # Whether a single quote means anything between double ones is not the same in all shells.
            ways = (Words.literal_braces, Words.quoting_braces) if quoted else (Words.braces,)
            self.either(*ways)
        elif ahead[:1] == "[":
            self.old_arithmetic()
        elif ahead[:1] == "'" and not quoted:
            self.at += 1
            self.ansi_quoted()
        else:
            # Before a double quote it asks for a translation and means nothing else.
            self.add("" if ahead[:1] == '"' and not quoted else "$")
            self.at += 1

    def old_arithmetic(self) -> None:
        """`$[…]`, where bash reads arithmetic and others do not: only what is the same to both can be judged."""
        end = self.line.find("]", self.at)
        if end < 0 or any(character in self.line[self.at + 2 : end] for character in "['\"`\\#;&|<>\n"):
            raise Unsplittable("$[ is read differently by different shells")
        self.add("$")
        self.at += 1

    def substituted_commands(self) -> None:
        """A substitution that begins with a subshell: `$((…) …)`, from its first parenthesis."""
        self.at += 1
        self.nested()

    def arithmetic(self) -> None:
        """From its first parenthesis; Unsplittable when its last two do not stand side by side."""
        self.at += 2
        self.balanced("(", ")", 2, quoted=True, literal=True)

    def quoting_arithmetic(self) -> None:
        self.at += 2
        self.balanced("(", ")", 2, quoted=True)
        self.unsure = True

    def braces(self) -> None:
        self.balanced("{", "}", 1)

    def brackets(self) -> None:
        self.balanced("[", "]", 1)

    def literal_braces(self) -> None:
        self.balanced("{", "}", 1, quoted=True, literal=True)

    def quoting_braces(self) -> None:
        self.balanced("{", "}", 1, quoted=True)

    def balanced(self, opening: str, closing: str, level: int, *, quoted: bool = False, literal: bool = False) -> None:
        """Arithmetic and `${…}`, where only what is substituted runs anything.

        `quoted` is what stands between double quotes, or as if it did. Quotes are read, single ones not where they
        are to be taken `literal`ly; whether that may have mattered says `unsure`.
        """
        self.go_deeper(1)
        word, two = self.word, level == 2
        unsure = False
        while level:
            character = self.line[self.at : self.at + 1]
            if not character:
                raise Unsplittable(f"a {closing} is missing")
            unsure = unsure or character == "'" or (two and character in '"\\')
            if character == "$" and self.ahead() == "'" and not literal:
                self.at += 1
                self.ansi_quoted()
            elif character == "$" and self.ahead() in ("(", "{"):
                self.expansion(quoted=quoted)
            elif character == "`":
                self.backticks(quoted=quoted)
            elif character == "\\":
                self.at += 2
            elif character == "'" and not literal:
                self.up_to("'")
            elif character == '"' and not (literal and two):
                self.at += 1
                self.double_quoted()
            else:
                level += (character == opening) - (character == closing)
                self.at += 1
                if two and level == 1 and character == closing and self.line[self.at : self.at + 1] != closing:
                    raise Unsplittable("this is no arithmetic")
        self.word, self.unsure = word, unsure
        self.go_deeper(-1)

    def ansi_quoted(self) -> None:
        self.at += 1
        self.ansi_text("'")
        if self.at >= len(self.line):
            raise Unsplittable("a ' is missing")
        self.at += 1

    def ansi_text(self, end: str) -> None:
        """Text with escapes, up to a character or to the end of it all."""
        over = False
        while self.at < len(self.line) and self.line[self.at] != end:
            character = self.line[self.at]
            self.at += 1
            if character == "\\":
                character = self.ansi_escape()
            # What stands behind a NUL is not part of a word; where it is printed it only goes lost itself.
            over = over or (character == "\0" and end != "")
            self.add("" if over or character == "\0" else character)

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
