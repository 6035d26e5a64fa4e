"""Parsing SPARQL 1.1 Update for a single document (X-30 to X-35).

Supported are DATA blocks, ``DELETE WHERE``, and ``DELETE``/``INSERT`` with a ``WHERE`` of triple
patterns, also with the ``WHERE`` first and a superfluous ``DATA`` after it, as old clients send it.
Operations that would read or write anything except the document (``LOAD``, ``GRAPH``, ``SERVICE``,
…), and conditions other than triple patterns, are refused by name.

The prologue and the blocks are rewritten as one TriG document with a named graph for each block:
except for variables, TriG and SPARQL have the same syntax between braces. Line numbers are
preserved, so that the parser's errors refer to the right line. Nothing is ever fetched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NoReturn

from podstead.core.media_types import SPARQL_UPDATE, TRIG
from podstead.rdf import lexing
from podstead.rdf.codecs import Document, parse_blocks
from podstead.rdf.errors import MalformedRdf, PatchRefused
from podstead.rdf.graph import Iri
from podstead.rdf.lexing import (
    IRI_PATTERN,
    STRING_PATTERN,
    Lexer,
    StatementsWithoutPredicate,
    TextRewriter,
    Token,
    TokenKind,
    decode,
    line_of,
)
from podstead.rdf.limits import DEFAULT_LIMITS, RdfLimits
from podstead.rdf.patching import Patch, PatchOperation, Semantics
from podstead.rdf.patterns import Patterns, VariablePlaceholders, blank_nodes_in

_OTHER_OPERATIONS: Final = frozenset(
    {"LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH", "USING"}
)
_CLAUSES: Final = frozenset({"INSERT", "DELETE", "WHERE"})
_QUERIES: Final = frozenset({"SELECT", "CONSTRUCT", "ASK", "DESCRIBE"})
_OTHER_PATTERNS: Final = frozenset(
    {"FILTER", "OPTIONAL", "UNION", "MINUS", "BIND", "VALUES", "GRAPH", "SERVICE", "SELECT"}
)
_BOOLEANS: Final = frozenset({"TRUE", "FALSE"})
_PATH_CHARACTERS: Final = frozenset("/|^*+!?")
_MAX_QUOTED_CHARACTERS: Final = 40
_MAX_PLAIN_CHARACTERS: Final = 100_000
_BLOCK_NAME: Final = "urn:block:"


def parse_sparql_update(
    content: bytes, *, base_iri: str, limits: RdfLimits = DEFAULT_LIMITS
) -> Patch:
    """Parse a SPARQL Update; relative IRIs are resolved against ``base_iri``, the target's URL.

    An update without operations is valid (section 19.8, rule 29). Raises MalformedRdf if it is not
    a SPARQL Update, PatchRefused for unsupported features, RdfTooLarge, RdfTooComplex.
    """
    text = decode(content, SPARQL_UPDATE, limits)
    # The memory for a match grows with the number of terms.
    if len(text) <= _MAX_PLAIN_CHARACTERS and _PLAIN_UPDATE.fullmatch(text) is not None:
        patch = _read_plain(text, base_iri, limits)
        if patch is not None:
            return patch
    placeholders = VariablePlaceholders(text, SPARQL_UPDATE, limits)
    request = _Request(text, placeholders)
    request.read()
    try:
        document = parse_blocks(
            request.trig.result().encode(), TRIG, base_iri=base_iri, limits=limits
        )
    except MalformedRdf as error:
        raise placeholders.renamed(error) from error
    placeholders.check(document)
    blocks = _blocks(document, request, placeholders)
    operations = tuple([_operation(parts, blocks) for parts in request.operations])
    return Patch(operations, Semantics.ALL_SOLUTIONS, document.prefixes)


# An update that inserts and deletes data, without variables, brackets, escapes in names, and
# comments. Strings and IRIs are matched as the lexer does, so each brace that is matched is one.
_PLAIN_TEXT: Final = r"[^<>\"'{}()\[\]?$#\\]*"
_BLOCK: Final = rf"\{{{_PLAIN_TEXT}(?:(?:{IRI_PATTERN}|{STRING_PATTERN}){_PLAIN_TEXT})*\}}"
_PREFIXES: Final = rf"\s*(?:PREFIX\s+[^\s<>\"'{{}}()\[\]?$#\\:]*:\s*{IRI_PATTERN}\s*)*"
_PLAIN_OPERATION: Final = re.compile(
    rf"({_PREFIXES})(INSERT|DELETE)\s+DATA\s*({_BLOCK})\s*;?",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)
_PLAIN_UPDATE: Final = re.compile(
    rf"(?:{_PREFIXES}(?:INSERT|DELETE)\s+DATA\s*{_BLOCK}\s*(?:;|\Z))+\s*",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)


def _read_plain(text: str, base_iri: str, limits: RdfLimits) -> Patch | None:
    """The patch in a text that matches _PLAIN_UPDATE; ``None`` if it is refused."""
    trig = []
    keywords = []
    for number, (prefixes, keyword, block) in enumerate(_PLAIN_OPERATION.findall(text)):
        trig.append(f"{prefixes}<{_BLOCK_NAME}{number}> {block}")
        keywords.append(keyword.upper())
    try:
        document = parse_blocks("\n".join(trig).encode(), TRIG, base_iri=base_iri, limits=limits)
    except MalformedRdf:
        return None  # refused again, with the reason, when it is read with the lexer
    graphs = {name.value: tuple(graph) for name, graph in document.dataset.named.items()}
    operations = []
    for number, keyword in enumerate(keywords):
        triples = graphs.pop(f"{_BLOCK_NAME}{number}", ())
        if keyword == "INSERT":
            operations.append(PatchOperation(inserts=triples))
        elif blank_nodes_in(triples):
            return None
        else:
            operations.append(PatchOperation(deletes=triples))
    if graphs or document.graph:
        return None
    return Patch(tuple(operations), Semantics.ALL_SOLUTIONS, document.prefixes)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block: the name of its graph, its keywords, and its opening brace."""

    graph_name: Iri
    keyword: str
    start: Token


_Parts = tuple[_Block | None, _Block | None, _Block | None]
"""The blocks of an operation's conditions, deletions and insertions."""


def _blocks(
    document: Document, request: _Request, placeholders: VariablePlaceholders
) -> dict[Iri, Patterns]:
    """The patterns of each block, by the name of its graph."""
    graphs = document.dataset.named
    if document.graph or not graphs.keys() <= {block.graph_name for block in request.blocks}:
        raise MalformedRdf(SPARQL_UPDATE, "there is a triple outside of the blocks")
    blocks = {}
    for block in request.blocks:
        graph = graphs.get(block.graph_name)
        patterns = blocks[block.graph_name] = () if graph is None else placeholders.patterns(graph)
        # SPARQL 1.1 Query, section 19.8, note 7.
        if block.keyword.startswith("DELETE") and blank_nodes_in(patterns):
            request.refuse(
                f"the {block.keyword} block has a blank node, and what is deleted must be named",
                block.start,
            )
    return blocks


def _operation(parts: _Parts, blocks: dict[Iri, Patterns]) -> PatchOperation:
    where, deletes, inserts = [() if block is None else blocks[block.graph_name] for block in parts]
    return PatchOperation(where=where, deletes=deletes, inserts=inserts)


class _Request:
    """Parses the text by SPARQL's grammar of updates, and writes the TriG document.

    Where TriG allows less than SPARQL, the text is adapted: booleans become lower case, and a list
    that is a statement of its own gets a predicate and an object, which are removed again later.
    """

    def __init__(self, text: str, placeholders: VariablePlaceholders) -> None:
        self._text = text
        self._placeholders = placeholders
        self._lexer = Lexer(text, SPARQL_UPDATE)
        self._next = self._lexer.next()
        self.trig = TextRewriter(text)
        self.blocks: list[_Block] = []
        self.operations: list[_Parts] = []

    def read(self) -> None:
        """Rules 29 and 30: a prologue before each operation, and semicolons between operations."""
        self._prologue()
        while self._peek():
            self._read_operation()
            if self._peek():
                self._expect(";")
                self._prologue()
        self.trig.drop(len(self._text))

    def refuse(self, reason: str, token: Token) -> NoReturn:
        """Raise PatchRefused with the reason and the line of the token."""
        raise PatchRefused(SPARQL_UPDATE, reason, line=self._line(token))

    def _prologue(self) -> None:
        while self._peek() in ("PREFIX", "BASE"):
            start = self._take()
            self.trig.drop(start.start)
            if start.text.upper() == "PREFIX":
                self._expect_kind(TokenKind.NAME, "a prefix")
            self.trig.keep(self._expect_kind(TokenKind.IRI, "an IRI").end)

    def _read_operation(self) -> None:
        start = self._take()
        keyword = start.text.upper()
        self._check_operation(start, keyword)
        following = self._peek()
        if following == "DATA" and keyword != "WHERE":
            self._take()
            block = self._block(f"{keyword} DATA")
            self.operations.append(
                (None, None, block) if keyword == "INSERT" else (None, block, None)
            )
        elif keyword == "DELETE" and following == "WHERE":
            self._take()
            block = self._block("DELETE WHERE")
            self.operations.append((block, block, None))
        else:
            self._modification(start)

    def _check_operation(self, token: Token, keyword: str) -> None:
        if keyword in _OTHER_OPERATIONS:
            self.refuse(f"{keyword} is not supported", token)
        if keyword in _QUERIES:
            self._fail(f"{keyword} is a query, not an update", token)
        if keyword == "VERSION":
            self._fail(lexing.VERSIONS, token)
        if keyword not in _CLAUSES:
            self._fail(f"expected an operation, not {_quoted(token)}", token)

    def _modification(self, start: Token) -> None:
        """Rule 41, with the clauses in any order."""
        keyword = start.text.upper()
        clauses = {keyword: self._block(keyword)}
        while (keyword := self._peek()) in _CLAUSES or keyword == "USING":
            token = self._take()
            self._check_operation(token, keyword)
            if keyword in clauses:
                self._fail(f"there is a second {keyword} before the next ';'", token)
            # rdflib.js sends WHERE { … } DELETE DATA { … }, with variables in both.
            if start.text.upper() == "WHERE" and self._peek() == "DATA":
                self._take()
            clauses[keyword] = self._block(keyword)
        if "WHERE" not in clauses or len(clauses) == 1:
            self._fail("INSERT and DELETE need a WHERE, and WHERE one of them", start)
        self.operations.append((clauses["WHERE"], clauses.get("DELETE"), clauses.get("INSERT")))

    def _block(self, keyword: str) -> _Block:
        """Parse a block, and write it as a graph."""
        start = self._expect("{")
        block = _Block(Iri(f"{_BLOCK_NAME}{len(self.blocks)}"), keyword, start)
        self.blocks.append(block)
        self.trig.drop(start.start)
        self.trig.insert(f"{block.graph_name} ", start.start)
        end, nested, depth = start, None, 1
        incomplete = StatementsWithoutPredicate(self._lexer)
        while depth:
            end = self._take(in_block=True)
            if incomplete.ends_bracketed_subject(end):
                self.trig.insert(self._placeholders.iri("") * 2, end.start)
            if end.text == "{":
                depth += 1
                nested = nested or end
            elif end.text == "}":
                depth -= 1
            else:
                self._read_term(end, keyword)
        # Reported last, because a keyword such as UNION or SELECT gives a better message.
        if nested is not None:
            self.refuse("a group within a block is not supported", nested)
        self.trig.keep(end.end)
        return block

    def _read_term(self, token: Token, keyword: str) -> None:
        if token.kind is TokenKind.VARIABLE:
            if keyword.endswith("DATA"):
                self.refuse(f"{keyword} has the variable {token.text}", token)
            self.trig.replace(token, self._placeholders.iri(token.text[1:]))
        elif token.kind is TokenKind.WORD and token.text.upper() in _BOOLEANS:
            self.trig.replace(token, token.text.lower())
        elif token.kind is TokenKind.WORD and token.text.upper() in _OTHER_PATTERNS:
            self.refuse(f"{token.text.upper()} is not supported", token)
        elif token.kind is TokenKind.PUNCTUATION and token.text in _PATH_CHARACTERS:
            self.refuse(f"'{token.text}': property paths are not supported", token)

    def _peek(self) -> str:
        """The next keyword or character, in upper case; empty at the end."""
        return "" if self._next is None else self._next.text.upper()

    def _take(self, *, in_block: bool = False) -> Token:
        token = self._next
        if token is None:
            self._fail("the update ends too early", None)
        is_within = in_block and token.text != "}"
        self._next = self._lexer.next_notable() if is_within else self._lexer.next()
        return token

    def _expect(self, text: str) -> Token:
        token = self._take()
        if token.text != text:
            self._fail(f"expected '{text}', not {_quoted(token)}", token)
        return token

    def _expect_kind(self, kind: TokenKind, name: str) -> Token:
        token = self._take()
        if token.kind is not kind:
            self._fail(f"expected {name}, not {_quoted(token)}", token)
        return token

    def _fail(self, reason: str, token: Token | None) -> NoReturn:
        raise MalformedRdf(SPARQL_UPDATE, reason, line=self._line(token))

    def _line(self, token: Token | None) -> int:
        return line_of(self._text, len(self._text) if token is None else token.start)


def _quoted(token: Token) -> str:
    text = token.text
    return (
        f"'{text[:_MAX_QUOTED_CHARACTERS]}…'" if len(text) > _MAX_QUOTED_CHARACTERS else f"'{text}'"
    )
