"""A lexer for patches: the tokens that N3 and SPARQL share with Turtle.

The RDF library parses triples but neither variables nor update operations. The lexer distinguishes
variables, braces and keywords from the same characters within strings, IRIs, names and comments.
Every character belongs to one token or is between two, and lexing takes linear time.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

from podstead.core.media_types import JSON_LD, RDF_XML, TRIG, TURTLE
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.graph import Dataset, Graph, Literal, Quad, TripleTerm
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


# Python before 3.11.5 gets possessive and atomic patterns wrong, so there are none. What a repeated
# group matches can be matched in one way only, so that time stays linear, and the group is repeated
# a bounded number of times, because each takes memory until the match ends.
_MAX_REPETITIONS: Final = 100
_REPEATED: Final = f"{{0,{_MAX_REPETITIONS}}}"

# A string with at most _MAX_REPETITIONS escapes and quotation marks in it.
STRING_PATTERN: Final = (
    rf'(?:"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*){_REPEATED}"""'
    rf"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*){_REPEATED}'''"
    rf'|"(?!"")[^"\\\n\r]*(?:\\.[^"\\\n\r]*){_REPEATED}"'
    rf"|'(?!'')[^'\\\n\r]*(?:\\.[^'\\\n\r]*){_REPEATED}')"
)
# What ends a string, and the escapes that hide it, by the quotation marks before the string.
_ENDS_OF_STRINGS: Final = {
    '"""': re.compile(r'\\.|"""', re.DOTALL),
    "'''": re.compile(r"\\.|'''", re.DOTALL),
    '"': re.compile(r'\\.|["\n\r]', re.DOTALL),
    "'": re.compile(r"\\.|['\n\r]", re.DOTALL),
}
IRI_PATTERN: Final = r'<[^<>"{}|^`\x00-\x20]*>'

_START_OF_NAME: Final = rf"(?:[{_BASE}_](?:[{_CHARS}.]*[{_CHARS}])?)?:"
_DOTTED: Final = rf"[{_CHARS}.:]*"
_UNTIL_LAST_DOTS: Final = rf"(?:{_DOTTED}[{_CHARS}:])?"
_ESCAPE: Final = r"(?:%[0-9A-Fa-f]{2}|\\.)"
_ESCAPE_IN_NAME: Final = rf"(?:(?:\.*{_ESCAPE}|\.+(?=[%\\])){_UNTIL_LAST_DOTS})"

_PATTERNS: Final = {
    TokenKind.COMMENT: r"\#[^\n\r]*",
    TokenKind.STRING: STRING_PATTERN,
    TokenKind.UNTERMINATED: r"[\"']",
    TokenKind.IRI: IRI_PATTERN,
    # Some clients turn the labels of blank nodes into variables, so unlike in SPARQL, hyphens are
    # allowed.
    TokenKind.VARIABLE: rf"[?$][{_BASE}_0-9][{_CHARS}]*",
    TokenKind.DIRECTIVE_OR_LANGUAGE: r"@[A-Za-z][A-Za-z0-9\-]*",
    # With at most _MAX_REPETITIONS escapes.
    TokenKind.NAME: _START_OF_NAME + _UNTIL_LAST_DOTS + _ESCAPE_IN_NAME + _REPEATED,
    # Includes dots, as in a name, so that a text with many dots is not scanned from each of them.
    TokenKind.WORD: rf"[{_BASE}_](?:[{_CHARS}.]*[{_CHARS}])?",
    TokenKind.NUMBER: r"[+\-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+\-]?[0-9]+)?",
    TokenKind.DATATYPE: r"\^\^",
    TokenKind.PUNCTUATION: r"[^\s]",
}
_KINDS: Final = tuple(_PATTERNS)
# Python 3.11 takes longer for an attribute of an enumeration than for all else about a token.
_COMMENT, _STRING, _UNTERMINATED, _NAME = (
    TokenKind.COMMENT,
    TokenKind.STRING,
    TokenKind.UNTERMINATED,
    TokenKind.NAME,
)
# With the whitespace before it, which would otherwise be compared with every pattern.
_TOKEN: Final = re.compile(
    r"\s*(?:{})".format("|".join(f"({pattern})" for pattern in _PATTERNS.values())), re.DOTALL
)

_ESCAPES_IN_NAME: Final = re.compile(_ESCAPE_IN_NAME + _REPEATED, re.DOTALL)

# The bulk of a patch, terms and punctuation between them, which is skipped in a few matches.
_PLAIN: Final = re.compile(
    "(?:{}){}".format(
        "|".join(
            (
                r"[\s\[\](),.;=]+",
                _PATTERNS[TokenKind.IRI],
                STRING_PATTERN,
                # A name, with the dots after it.
                rf"{_START_OF_NAME}{_DOTTED}(?:{_ESCAPE}{_DOTTED}){_REPEATED}(?![{_CHARS}.:%\\])",
                r"a(?=\s)",
                _PATTERNS[TokenKind.NUMBER],
                _PATTERNS[TokenKind.COMMENT],
                rf"(?!@for){_PATTERNS[TokenKind.DIRECTIVE_OR_LANGUAGE]}",
                _PATTERNS[TokenKind.DATATYPE],
            )
        ),
        _REPEATED,
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
            group = match.lastindex or 0
            kind, start, end = _KINDS[group - 1], match.start(group), match.end()
            if kind is _UNTERMINATED:
                kind, end = _STRING, self._end_of_string(start)
            elif kind is _NAME and end - start > _MAX_REPETITIONS:
                end = self._end_of_name(end)
            self._position = end
            if kind is not _COMMENT:
                return Token(kind, self._text[start:end], start)
        return None

    def next_notable(self) -> Token | None:
        """As ``next``, but skips terms, numbers and the punctuation between them.

        Returns variables, braces, words (except ``a``), quantifiers, and characters that cannot
        occur in triples. In a text with brackets nothing is skipped, because brackets can contain a
        whole statement.
        """
        if self.has_brackets:
            return self.next()
        while True:
            start = self._position
            plain = _PLAIN.match(self._text, start)
            if plain is not None:
                self._position = plain.end()
                if self._position - start >= _MAX_REPETITIONS:
                    continue
            token = self.next()
            # The two kinds that _PLAIN does not match if they have many escapes.
            if token is None or (token.kind is not _STRING and token.kind is not _NAME):
                return token

    def _end_of_string(self, start: int) -> int:
        """The end of a string with many escapes. Raises MalformedRdf if there is none."""
        opening = self._text[start : start + 3]
        if opening not in _ENDS_OF_STRINGS:
            opening = opening[0]
        for match in _ENDS_OF_STRINGS[opening].finditer(self._text, start + len(opening)):
            if match[0] == opening:
                return match.end()
            if match[0] in "\n\r":
                break
        line = line_of(self._text, start)
        raise MalformedRdf(self._media_type, "a string is not terminated", line=line)

    def _end_of_name(self, end: int) -> int:
        """The end of a name whose escapes may continue at ``end``."""
        while (match := _ESCAPES_IN_NAME.match(self._text, end)) and match.end() > end:
            end = match.end()
        return end


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


# Features of RDF 1.2 that the RDF library supports but parsers for RDF 1.1 do not.
#
# One is the base direction of literals. JSON-LD 1.1 has it, but the other syntaxes only in drafts,
# and one such literal makes an entire Turtle document invalid for an RDF 1.1 parser. Therefore
# directions are accepted and written in JSON-LD only, and omitted in other formats, as JSON-LD
# itself does by default (JSON-LD 1.1 API, section 8.2.2). In other syntaxes they are refused, and
# so is the directive that declares a document to be RDF 1.2.

TRIPLE_TERMS: Final = "RDF 1.2 triple terms are not supported"
DIRECTIONS: Final = "RDF 1.2 base directions are accepted in JSON-LD only"
VERSIONS: Final = "RDF 1.2 version directives are not supported"

# What every document with a triple term contains, in the Turtle family: the term itself, or one of
# the abbreviations for statements about a triple.
_MARKS_OF_TRIPLE_TERMS: Final = (b"<<", b"{|", b"~")
# What every document with a direction contains, in the Turtle family and in RDF/XML.
_MARKS_OF_DIRECTIONS: Final = (b"--lt", b"--rt", b"dir")
# Searched in lower case. May have false positives, which the lexer rejects, but misses nothing.
_MAYBE_VERSION: Final = re.compile(rb"version\s*[\"'#]")
_VERSION_LINE: Final = re.compile(rb"\s*@?version\s*[\"']", re.IGNORECASE)
_ABOUT_DIRECTIONS: Final = re.compile(r"dirLangString|base direction")


def check_read(content: bytes, media_type: str, quads: Iterable[Quad]) -> None:
    """Refuse RDF 1.2 features in a parsed document; ``quads`` are those of ``content``.

    Searches the bytes first, which takes a few thousandths of the time for parsing them. JSON-LD
    has no triple terms. Raises MalformedRdf.
    """
    if media_type == JSON_LD:
        return
    if media_type == RDF_XML or _has_any(_MARKS_OF_TRIPLE_TERMS, content):
        _check_no_triple_terms(media_type, quads)
    if _has_any(_MARKS_OF_DIRECTIONS, content) and any(_is_directed(each.object) for each in quads):
        raise MalformedRdf(media_type, DIRECTIONS)
    if media_type in (TURTLE, TRIG):
        lowered = content.lower()
        # Most documents lack even the word, whose search is much faster than the expression's.
        if b"version" in lowered and _MAYBE_VERSION.search(lowered):
            _check_version(content.decode(), media_type)


def _has_any(marks: tuple[bytes, bytes, bytes], content: bytes) -> bool:
    # Three searches take a fraction of the time of one for a regular expression.
    one, two, three = marks
    return one in content or two in content or three in content


def _check_no_triple_terms(media_type: str, quads: Iterable[Quad]) -> None:
    for quad in quads:
        if isinstance(quad.subject, TripleTerm) or isinstance(quad.object, TripleTerm):
            raise MalformedRdf(media_type, TRIPLE_TERMS)


def _check_version(text: str, media_type: str) -> None:
    lexer = Lexer(text, media_type)
    before, token = None, lexer.next()
    while token is not None:
        if (
            before is not None
            and before.text.lower() in ("version", "@version")
            and token.kind is TokenKind.STRING
        ):
            raise MalformedRdf(media_type, VERSIONS, line=line_of(text, before.start))
        before, token = token, lexer.next()


def reason_of(reason: str, content: bytes, line: int | None) -> str:
    """The reason why parsing failed: that of the parser, unless the cause is RDF 1.2."""
    if _ABOUT_DIRECTIONS.search(reason):
        return DIRECTIONS
    lines = content.split(b"\n", line)[line - 1 : line] if line else []
    return VERSIONS if lines and _VERSION_LINE.match(lines[0]) else reason


def without_directions(dataset: Dataset) -> Dataset:
    """Remove the base directions of literals, which keep their languages."""
    named = {name: _undirected(graph) for name, graph in dataset.named.items()}
    return Dataset(_undirected(dataset.default), MappingProxyType(named))


def _undirected(graph: Graph) -> Graph:
    if not any(_is_directed(object_) for _, _, object_ in graph):
        return graph
    return Graph(
        (
            subject,
            predicate,
            Literal(object_.value, language=object_.language)
            if isinstance(object_, Literal) and object_.direction is not None
            else object_,
        )
        for subject, predicate, object_ in graph
    )


def _is_directed(term: object) -> bool:
    return isinstance(term, Literal) and term.direction is not None


# Finding statements that consist only of a list or a bracketed blank node.
#
# N3 and SPARQL allow a list or a bracketed blank node without a predicate, as in ``(1 2) .``. The
# RDF library does not: its TriG parser refuses a list without a predicate, and its N3 parser
# attaches it to the surrounding statement. Such statements are found here, so that callers can
# complete them.


@dataclass(slots=True)
class _Statement:
    """The state of a statement: its open brackets, its terms, and the terms within brackets."""

    depth: int = 0
    terms: int = 0
    enclosed: int = 0

    def has_term(self) -> None:
        if self.depth:
            self.enclosed += 1
        else:
            self.terms += 1

    @property
    def is_bracketed_subject(self) -> bool:
        """Whether the statement is one non-empty list or bracketed blank node."""
        return self.depth == 0 and self.terms == 1 and self.enclosed > 0

    @property
    def is_single_term(self) -> bool:
        """Whether the statement is a single term or empty brackets, which is invalid."""
        return self.depth == 0 and self.terms == 1 and self.enclosed == 0


class StatementsWithoutPredicate:
    """Follows the tokens of one text to find statements without a predicate."""

    __slots__ = ("_around", "_is_watching", "_statement")

    def __init__(self, lexer: Lexer) -> None:
        self._is_watching = lexer.has_brackets
        self._statement = _Statement()
        self._around: list[_Statement] = []

    def ends_bracketed_subject(self, token: Token) -> bool:
        """Whether the token is the ``.`` or ``}`` after a list or bracketed node without
        predicate."""
        if not self._is_watching:
            return False
        ended = self._ended_by(token)
        return ended is not None and ended.is_bracketed_subject

    def ends_single_term(self, token: Token) -> bool:
        """Whether the token is the ``.`` or ``}`` after a single term, within braces.

        Must be called for every token of a text, even if it has no brackets.
        """
        is_within = bool(self._around)
        ended = self._ended_by(token)
        return is_within and ended is not None and ended.is_single_term

    def _ended_by(self, token: Token) -> _Statement | None:
        statement = self._statement
        if token.kind is not TokenKind.PUNCTUATION:
            statement.has_term()
            return None
        match token.text:
            case "(" | "[":
                statement.has_term()
                statement.depth += 1
            case ")" | "]":
                statement.depth -= 1
            case "{":
                statement.has_term()
                self._around.append(statement)
                self._statement = _Statement()
            case "}":
                self._statement = self._around.pop() if self._around else _Statement()
                return statement
            case "." if statement.depth == 0:
                self._statement = _Statement()
                return statement
        return None
