"""A lexer for patches: the tokens that N3 and SPARQL share with Turtle.

The RDF library parses triples but neither variables nor update operations. The lexer distinguishes
variables, braces and keywords from the same characters within strings, IRIs, names and comments.
Every character belongs to one token or is between two, and lexing takes linear time.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from podstead.rdf.errors import MalformedRdf
from podstead.rdf.limits import RdfLimits, check_size

_BYTE_ORDER_MARK: Final = "\ufeff"

# SPARQL 1.1 Query, section 19.8: PN_CHARS_BASE, and what PN_CHARS and VARNAME add to it.
_BASE: Final = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_CHARS: Final = rf"{_BASE}_0-9\-\u00b7\u0300-\u036f\u203f\u2040"


class TokenKind(Enum):
    """The kind of a token. A WORD is a name without a colon, PUNCTUATION any other character."""

    COMMENT = auto()
    STRING = auto()
    UNTERMINATED = auto()
    IRI = auto()
    VARIABLE = auto()
    DIRECTIVE_OR_LANGUAGE = auto()
    NAME = auto()
    WORD = auto()
    NUMBER = auto()
    DATATYPE = auto()
    PUNCTUATION = auto()


class Token(NamedTuple):
    """A token and its start offset in characters."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


STRING_PATTERN: Final = (
    r'(?:"""(?:[^"\\]++|\\.|"(?!""))*+"""'
    r"|'''(?:[^'\\]++|\\.|'(?!''))*+'''"
    r'|"(?!"")(?:[^"\\\n\r]++|\\.)*+"'
    r"|'(?!'')(?:[^'\\\n\r]++|\\.)*+')"
)
IRI_PATTERN: Final = r'<[^<>"{}|^`\x00-\x20]*>'

_PATTERNS: Final = {
    TokenKind.COMMENT: r"\#[^\n\r]*",
    TokenKind.STRING: STRING_PATTERN,
    TokenKind.UNTERMINATED: r"[\"']",
    TokenKind.IRI: IRI_PATTERN,
    # Some clients turn the labels of blank nodes into variables, so unlike in SPARQL, hyphens are
    # allowed.
    TokenKind.VARIABLE: rf"[?$][{_BASE}_0-9][{_CHARS}]*",
    TokenKind.DIRECTIVE_OR_LANGUAGE: r"@[A-Za-z][A-Za-z0-9\-]*",
    TokenKind.NAME: (
        rf"(?:[{_BASE}_](?:[{_CHARS}.]*[{_CHARS}])?)?"
        rf":(?:[{_CHARS}:]++|%[0-9A-Fa-f]{{2}}|\\.|\.+(?=[{_CHARS}:%\\]))*+"
    ),
    # Includes dots, as in a name, so that a text with many dots is not scanned from each of them.
    TokenKind.WORD: rf"[{_BASE}_](?:[{_CHARS}.]*[{_CHARS}])?",
    TokenKind.NUMBER: r"[+\-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+\-]?[0-9]+)?",
    TokenKind.DATATYPE: r"\^\^",
    TokenKind.PUNCTUATION: r"[^\s]",
}
_KINDS: Final = tuple(_PATTERNS)
# With the whitespace before it, which would otherwise be compared with every pattern.
_TOKEN: Final = re.compile(
    r"\s*+(?:{})".format("|".join(f"({pattern})" for pattern in _PATTERNS.values())), re.DOTALL
)

# The bulk of a patch, terms and punctuation between them, which is skipped in one match.
_PLAIN: Final = re.compile(
    "(?:{})*+".format(
        "|".join(
            (
                r"[\s\[\](),.;=]++",
                _PATTERNS[TokenKind.IRI],
                STRING_PATTERN,
                _PATTERNS[TokenKind.NAME],
                r"a(?=\s)",
                _PATTERNS[TokenKind.NUMBER],
                _PATTERNS[TokenKind.COMMENT],
                rf"(?!@for){_PATTERNS[TokenKind.DIRECTIVE_OR_LANGUAGE]}",
                _PATTERNS[TokenKind.DATATYPE],
            )
        )
    ),
    re.DOTALL,
)


def decode(content: bytes, media_type: str, limits: RdfLimits) -> str:
    """Decode the text of a patch. Raises RdfTooLarge, and MalformedRdf if it is not UTF-8."""
    check_size(content, limits)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MalformedRdf(media_type, "it is not UTF-8", line=line) from error
    return text.removeprefix(_BYTE_ORDER_MARK)


def line_of(text: str, offset: int) -> int:
    """The line of a character, starting at 1. Takes linear time; meant for error messages."""
    return text.count("\n", 0, offset) + 1


class Lexer:
    """Splits a text into tokens, skipping comments."""

    __slots__ = ("_media_type", "_position", "_text", "has_brackets")

    def __init__(self, text: str, media_type: str) -> None:
        self._text = text
        self._media_type = media_type
        self._position = 0
        self.has_brackets = ")" in text or "]" in text

    def next(self) -> Token | None:
        """The next token; ``None`` at the end. Raises MalformedRdf for an unterminated string."""
        while (match := _TOKEN.match(self._text, self._position)) is not None:
            self._position = match.end()
            group = match.lastindex or 0
            kind = _KINDS[group - 1]
            if kind is TokenKind.UNTERMINATED:
                line = line_of(self._text, match.start(group))
                raise MalformedRdf(self._media_type, "a string is not terminated", line=line)
            if kind is not TokenKind.COMMENT:
                return Token(kind, match[group], match.start(group))
        return None

    def next_notable(self) -> Token | None:
        """As ``next``, but skips terms, numbers and the punctuation between them.

        Returns variables, braces, words (except ``a``), quantifiers, and characters that cannot
        occur in triples. In a text with brackets nothing is skipped, because brackets can contain a
        whole statement (``statements_without_predicate``).
        """
        if self.has_brackets:
            return self.next()
        plain = _PLAIN.match(self._text, self._position)
        if plain is not None:
            self._position = plain.end()
        return self.next()


class TextRewriter:
    """Replaces parts of a text, from its start to its end."""

    __slots__ = ("_pieces", "_text", "_written_until")

    def __init__(self, text: str) -> None:
        self._text = text
        self._pieces: list[str] = []
        self._written_until = 0

    def keep(self, until: int) -> None:
        """Copy the text up to an offset."""
        self._pieces.append(self._text[self._written_until : until])
        self._written_until = until

    def insert(self, addition: str, offset: int) -> None:
        """Copy the text up to an offset, then add ``addition``."""
        self.keep(offset)
        self._pieces.append(addition)

    def replace(self, token: Token, replacement: str) -> None:
        """Copy the text up to a token, and replace the token."""
        self.insert(replacement, token.start)
        self._written_until = token.end

    def drop(self, until: int) -> None:
        """Omit the text before an offset, but keep its line breaks."""
        skipped = self._text.count("\n", self._written_until, until)
        self._pieces.append("\n" * skipped + " ")
        self._written_until = until

    def result(self) -> str:
        """The rewritten text, followed by the unchanged rest."""
        return "".join([*self._pieces, self._text[self._written_until :]])
