"""Parses patches: SPARQL 1.1 Update for a single document (X-30 to X-35), and below, N3 Patch.

Supported are DATA blocks, ``DELETE WHERE``, and ``DELETE``/``INSERT`` with a ``WHERE`` of triple
patterns, also with the ``WHERE`` first and a superfluous ``DATA`` after it, as old clients send it.
Operations that would read or write anything except the document (``LOAD``, ``GRAPH``, ``SERVICE``,
…), and conditions other than triple patterns, are refused by name.

The prologue and the blocks are rewritten as one TriG document with a named graph for each block:
except for variables, TriG and SPARQL have the same syntax between braces. Line numbers are
preserved, so that the parser's errors refer to the right line. Nothing is ever fetched.
"""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from podstead.core import vocab
from podstead.core.media_types import N3, SPARQL_UPDATE, TRIG
from podstead.rdf import lexing, patching
from podstead.rdf.codecs import Document, parse_blocks
from podstead.rdf.errors import MalformedRdf, PatchRefused
from podstead.rdf.graph import BlankNode, Graph, GraphName, Iri, Object, Subject
from podstead.rdf.limits import DEFAULT_LIMITS, RdfLimits

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
) -> patching.Patch:
    """Parse a SPARQL Update; relative IRIs are resolved against ``base_iri``, the target's URL.

    An update without operations is valid (section 19.8, rule 29). Raises MalformedRdf if it is not
    a SPARQL Update, PatchRefused for unsupported features, RdfTooLarge, RdfTooComplex.
    """
    text = lexing.decode(content, SPARQL_UPDATE, limits)
    # The memory for a match grows with the number of terms.
    if len(text) <= _MAX_PLAIN_CHARACTERS and _PLAIN_UPDATE.fullmatch(text) is not None:
        patch = _read_plain(text, base_iri, limits)
        if patch is not None:
            return patch
    placeholders = patching.VariablePlaceholders(text, SPARQL_UPDATE, limits)
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
    return patching.Patch(operations, patching.Semantics.ALL_SOLUTIONS, document.prefixes)


# An update that inserts and deletes data, without variables, brackets, escapes in names, and
# comments. Strings and IRIs are matched as the lexer does, so each brace that is matched is one.
_PLAIN_TEXT: Final = r"[^<>\"'{}()\[\]?$#\\]*"
_BLOCK: Final = (
    rf"\{{{_PLAIN_TEXT}(?:(?:{lexing.IRI_PATTERN}|{lexing.STRING_PATTERN}){_PLAIN_TEXT})*\}}"
)
_PREFIXES: Final = rf"\s*(?:PREFIX\s+[^\s<>\"'{{}}()\[\]?$#\\:]*:\s*{lexing.IRI_PATTERN}\s*)*"
_PLAIN_OPERATION: Final = re.compile(
    rf"({_PREFIXES})(INSERT|DELETE)\s+DATA\s*({_BLOCK})\s*;?",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)
_PLAIN_UPDATE: Final = re.compile(
    rf"(?:{_PREFIXES}(?:INSERT|DELETE)\s+DATA\s*{_BLOCK}\s*(?:;|\Z))+\s*",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)


def _read_plain(text: str, base_iri: str, limits: RdfLimits) -> patching.Patch | None:
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
            operations.append(patching.PatchOperation(inserts=triples))
        elif patching.blank_nodes_in(triples):
            return None
        else:
            operations.append(patching.PatchOperation(deletes=triples))
    if graphs or document.graph:
        return None
    return patching.Patch(tuple(operations), patching.Semantics.ALL_SOLUTIONS, document.prefixes)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block: the name of its graph, its keywords, and its opening brace."""

    graph_name: Iri
    keyword: str
    start: lexing.Token


_Parts = tuple[_Block | None, _Block | None, _Block | None]
"""The blocks of an operation's conditions, deletions and insertions."""


def _blocks(
    document: Document, request: "_Request", placeholders: patching.VariablePlaceholders
) -> dict[Iri, patching.Patterns]:
    """The patterns of each block, by the name of its graph."""
    graphs = document.dataset.named
    if document.graph or not graphs.keys() <= {block.graph_name for block in request.blocks}:
        raise MalformedRdf(SPARQL_UPDATE, "there is a triple outside of the blocks")
    blocks = {}
    for block in request.blocks:
        graph = graphs.get(block.graph_name)
        patterns = blocks[block.graph_name] = () if graph is None else placeholders.patterns(graph)
        # SPARQL 1.1 Query, section 19.8, note 7.
        if block.keyword.startswith("DELETE") and patching.blank_nodes_in(patterns):
            request.refuse(
                f"the {block.keyword} block has a blank node, and what is deleted must be named",
                block.start,
            )
    return blocks


def _operation(parts: _Parts, blocks: dict[Iri, patching.Patterns]) -> patching.PatchOperation:
    where, deletes, inserts = [() if block is None else blocks[block.graph_name] for block in parts]
    return patching.PatchOperation(where=where, deletes=deletes, inserts=inserts)


class _Request:
    """Parses the text by SPARQL's grammar of updates, and writes the TriG document.

    Where TriG allows less than SPARQL, the text is adapted: booleans become lower case, and a list
    that is a statement of its own gets a predicate and an object, which are removed again later.
    """

    def __init__(self, text: str, placeholders: patching.VariablePlaceholders) -> None:
        self._text = text
        self._placeholders = placeholders
        self._lexer = lexing.Lexer(text, SPARQL_UPDATE)
        self._next = self._lexer.next()
        self.trig = lexing.TextRewriter(text)
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

    def refuse(self, reason: str, token: lexing.Token) -> NoReturn:
        """Raise PatchRefused with the reason and the line of the token."""
        raise PatchRefused(SPARQL_UPDATE, reason, line=self._line(token))

    def _prologue(self) -> None:
        while self._peek() in ("PREFIX", "BASE"):
            start = self._take()
            self.trig.drop(start.start)
            if start.text.upper() == "PREFIX":
                self._expect_kind(lexing.TokenKind.NAME, "a prefix")
            self.trig.keep(self._expect_kind(lexing.TokenKind.IRI, "an IRI").end)

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

    def _check_operation(self, token: lexing.Token, keyword: str) -> None:
        if keyword in _OTHER_OPERATIONS:
            self.refuse(f"{keyword} is not supported", token)
        if keyword in _QUERIES:
            self._fail(f"{keyword} is a query, not an update", token)
        if keyword == "VERSION":
            self._fail(lexing.VERSIONS, token)
        if keyword not in _CLAUSES:
            self._fail(f"expected an operation, not {_quoted(token)}", token)

    def _modification(self, start: lexing.Token) -> None:
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
        incomplete = lexing.StatementsWithoutPredicate(self._lexer)
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

    def _read_term(self, token: lexing.Token, keyword: str) -> None:
        if token.kind is lexing.TokenKind.VARIABLE:
            if keyword.endswith("DATA"):
                self.refuse(f"{keyword} has the variable {token.text}", token)
            self.trig.replace(token, self._placeholders.iri(token.text[1:]))
        elif token.kind is lexing.TokenKind.WORD and token.text.upper() in _BOOLEANS:
            self.trig.replace(token, token.text.lower())
        elif token.kind is lexing.TokenKind.WORD and token.text.upper() in _OTHER_PATTERNS:
            self.refuse(f"{token.text.upper()} is not supported", token)
        elif token.kind is lexing.TokenKind.PUNCTUATION and token.text in _PATH_CHARACTERS:
            self.refuse(f"'{token.text}': property paths are not supported", token)

    def _peek(self) -> str:
        """The next keyword or character, in upper case; empty at the end."""
        return "" if self._next is None else self._next.text.upper()

    def _take(self, *, in_block: bool = False) -> lexing.Token:
        token = self._next
        if token is None:
            self._fail("the update ends too early", None)
        is_within = in_block and token.text != "}"
        self._next = self._lexer.next_notable() if is_within else self._lexer.next()
        return token

    def _expect(self, text: str) -> lexing.Token:
        token = self._take()
        if token.text != text:
            self._fail(f"expected '{text}', not {_quoted(token)}", token)
        return token

    def _expect_kind(self, kind: lexing.TokenKind, name: str) -> lexing.Token:
        token = self._take()
        if token.kind is not kind:
            self._fail(f"expected {name}, not {_quoted(token)}", token)
        return token

    def _fail(self, reason: str, token: lexing.Token | None) -> NoReturn:
        raise MalformedRdf(SPARQL_UPDATE, reason, line=self._line(token))

    def _line(self, token: lexing.Token | None) -> int:
        return lexing.line_of(self._text, len(self._text) if token is None else token.start)


def _quoted(token: lexing.Token) -> str:
    text = token.text
    return (
        f"'{text[:_MAX_QUOTED_CHARACTERS]}…'" if len(text) > _MAX_QUOTED_CHARACTERS else f"'{text}'"
    )


# Parsing N3 Patch (Solid Protocol, section 5.3.1; ).
#
# A patch is a resource of the class ``solid:InsertDeletePatch`` with up to three formulas:
# conditions that must hold in exactly one way, triples to delete, and triples to insert. A
# violation of N3's grammar is MalformedRdf, a violation of the specification's rules PatchRefused.

_TYPE: Final = Iri(vocab.RDF_TYPE)
_INSERT_DELETE_PATCH: Final = Iri(vocab.SOLID_INSERT_DELETE_PATCH)
_PATCH: Final = Iri(vocab.SOLID + "Patch")
_WHERE: Final = Iri(vocab.SOLID_WHERE)
_DELETES: Final = Iri(vocab.SOLID_DELETES)
_INSERTS: Final = Iri(vocab.SOLID_INSERTS)
_QUANTIFIERS: Final = frozenset({"@forAll", "@forSome"})
_FORMULAS: Final = {_WHERE: "solid:where", _DELETES: "solid:deletes", _INSERTS: "solid:inserts"}


def parse_n3_patch(
    content: bytes, *, base_iri: str, limits: RdfLimits = DEFAULT_LIMITS
) -> patching.Patch:
    """Parse an N3 Patch; relative IRIs are resolved against ``base_iri``, the URL of the target.

    Raises MalformedRdf if it is empty or not N3, PatchRefused if it breaks a rule of N3 Patch (X-3
    to X-9), RdfTooLarge and RdfTooComplex.
    """
    text = lexing.decode(content, N3, limits)
    # Short enough that the limit of triples allows all that the text can contain, and those that
    # the rewriting would add.
    if len(text) <= limits.max_triples and not any(mark in text for mark in _MARKS):
        patch = _read_unchanged(text, base_iri, limits)
        if patch is not None:
            return patch
    placeholders = patching.VariablePlaceholders(text, N3, limits)
    substituted = _with_placeholders(text, placeholders)
    try:
        document = parse_blocks(substituted.encode(), N3, base_iri=base_iri, limits=limits)
    except MalformedRdf as error:
        raise placeholders.renamed(error) from error
    placeholders.check(document)
    try:
        operation = _n3_operation(document, placeholders)
    except PatchRefused:
        _check_statements(text)
        raise
    return _checked(operation, document)


# What a text contains if it has a variable, a quantifier, a rule, or a list or bracketed blank node
# that could lack a predicate.
_MARKS: Final = ("?", "=", ")", "]", "@for")


def _read_unchanged(text: str, base_iri: str, limits: RdfLimits) -> patching.Patch | None:
    """The patch in a text that need not be rewritten; ``None`` if it is refused, or if a formula
    may be empty, which the parser does not distinguish from a blank node.

    Each formula that the parser returns has a brace of its own. So if there are as many of them as
    braces, none is empty.
    """
    try:
        document = parse_blocks(text.encode(), N3, base_iri=base_iri, limits=limits)
        if len(document.dataset.named) != text.count("{"):
            return None
        return _checked(_n3_operation(document, None), document)
    except (MalformedRdf, PatchRefused):
        return None  # refused again, with the reason, when it is read with the lexer


def _checked(operation: patching.PatchOperation, document: Document) -> patching.Patch:
    _check_terms(operation, document.graph)
    return patching.Patch((operation,), patching.Semantics.ONE_SOLUTION, document.prefixes)


def _with_placeholders(text: str, placeholders: patching.VariablePlaceholders) -> str:
    """Replace variables with IRIs, and add a triple to each formula, so that none is empty."""
    lexer = lexing.Lexer(text, N3)
    token = lexer.next()
    if token is None:
        raise MalformedRdf(N3, "it is empty")
    rewriter = lexing.TextRewriter(text)
    incomplete = lexing.StatementsWithoutPredicate(lexer)
    filler = placeholders.iri("")
    open_formulas = formulas = 0
    while token is not None:
        if incomplete.ends_bracketed_subject(token):
            rewriter.insert(f"{filler}{filler}", token.start)
        if token.kind is lexing.TokenKind.VARIABLE and token.text[0] == "?":
            rewriter.replace(token, placeholders.iri(token.text[1:]))
        elif token.text in _QUANTIFIERS:
            rewriter.replace(token, placeholders.declaration())
        elif token.text == "{":
            open_formulas += 1
            formulas += 1
            _check_formula(text, token, open_formulas, formulas)
            rewriter.insert(f"{filler}{filler}{filler}.", token.end)
        elif token.text == "}":
            open_formulas -= 1
        elif open_formulas and token.kind is lexing.TokenKind.PUNCTUATION:
            _check_no_rule(text, token)
        token = lexer.next_notable()
    return rewriter.result()


def _check_statements(text: str) -> None:
    """Refuse a formula with a statement of a single term (MalformedRdf).

    The library accepts it and takes the term for the subject of the surrounding statement, which
    would lead to a misleading error.
    """
    lexer = lexing.Lexer(text, N3)
    incomplete = lexing.StatementsWithoutPredicate(lexer)
    while (token := lexer.next()) is not None:
        if incomplete.ends_single_term(token):
            line = lexing.line_of(text, token.start)
            raise MalformedRdf(N3, "a statement has too few terms", line=line)


def _check_formula(text: str, token: lexing.Token, open_formulas: int, formulas: int) -> None:
    """X-6: formulas are not nested, and there are at most as many as clauses."""
    if open_formulas > 1:
        reason = "formulas cannot be nested"
        raise PatchRefused(N3, reason, line=lexing.line_of(text, token.start))
    if formulas > len(_FORMULAS):
        reason = f"there are more formulas than one for each of {', '.join(_FORMULAS.values())}"
        raise PatchRefused(N3, reason, line=lexing.line_of(text, token.start))


def _check_no_rule(text: str, token: lexing.Token) -> None:
    """X-6: a rule is not a triple, even between two IRIs."""
    if text.startswith("<=", token.start) or text.endswith("=>", 0, token.end):
        raise PatchRefused(
            N3, "a formula cannot contain a rule", line=lexing.line_of(text, token.start)
        )


def _n3_operation(
    document: Document, placeholders: patching.VariablePlaceholders | None
) -> patching.PatchOperation:
    """The operation in a document with these placeholders, or without any."""
    subject = _patch_subject(document.graph)
    declared: frozenset[Iri] = frozenset()
    if placeholders is not None:
        declared = placeholders.declared(document.graph)
        if placeholders.is_variable(subject) or subject in declared:
            raise PatchRefused(N3, "the patch must be an IRI or a blank node, not a variable")
    graphs, description = document.dataset.named, document.graph.about(subject)
    formulas = {
        clause: _formula(description.get(clause, ()), graphs, clause) for clause in _FORMULAS
    }
    if len(graphs) > len([name for name in formulas.values() if name is not None]):
        names = ", ".join(_FORMULAS.values())
        raise PatchRefused(N3, f"formulas are accepted as objects of {names} only")

    def patterns(clause: Iri) -> patching.Patterns:
        name = formulas[clause]
        if name is None:
            return ()
        formula = graphs[name]
        if placeholders is None:
            return tuple(formula)
        return placeholders.patterns(formula, declared | placeholders.declared(formula))

    return patching.PatchOperation(
        where=patterns(_WHERE), deletes=patterns(_DELETES), inserts=patterns(_INSERTS)
    )


def _patch_subject(graph: Graph) -> Subject:
    """The only patch in the graph (X-3), which must have the right type (X-4)."""
    subjects = dict.fromkeys(
        subject
        for subject, predicate, object_ in graph
        if predicate in _FORMULAS
        or (predicate == _TYPE and object_ in (_INSERT_DELETE_PATCH, _PATCH))
    )
    if not subjects:
        raise PatchRefused(N3, "it contains no solid:InsertDeletePatch")
    if len(subjects) > 1:
        described = ", ".join(str(subject) for subject in list(subjects)[:2])
        raise PatchRefused(N3, f"it contains more than one patch: {described}")
    [subject] = subjects
    if _INSERT_DELETE_PATCH not in graph.objects(subject, _TYPE):
        raise PatchRefused(N3, f"{subject} does not have the type solid:InsertDeletePatch")
    return subject


def _formula(
    objects: Sequence[Object], graphs: Container[GraphName], clause: Iri
) -> BlankNode | None:
    """The name of the formula of a clause, if there is one (X-5, X-6)."""
    if not objects:
        return None
    if len(objects) > 1:
        raise PatchRefused(N3, f"{_FORMULAS[clause]} is stated more than once")
    name = objects[0]
    if isinstance(name, BlankNode) and name in graphs:
        return name
    raise PatchRefused(N3, f"the object of {_FORMULAS[clause]} is not a formula {{ … }}")


def _check_terms(operation: patching.PatchOperation, around: Graph) -> None:
    """Check the variables (X-7) and blank nodes (X-8, X-9) in the formulas."""
    bound = patching.variables_in(operation.where)
    for clause, patterns in ((_DELETES, operation.deletes), (_INSERTS, operation.inserts)):
        for variable in patching.variables_in(patterns):
            if variable not in bound:
                raise PatchRefused(
                    N3, f"{variable} occurs in {_FORMULAS[clause]} but not in solid:where"
                )
    if patching.blank_nodes_in(operation.deletes):
        raise PatchRefused(N3, "solid:deletes has a blank node, and what is deleted must be named")
    _check_labels(operation, around)


def _check_labels(operation: patching.PatchOperation, around: Graph) -> None:
    """X-9: blank node labels are local to a formula, so none may occur in several."""
    conditions, inserts = (
        patching.blank_nodes_in(operation.where),
        patching.blank_nodes_in(operation.inserts),
    )
    if not conditions and not inserts:
        return
    outside = {term for subject, _, object_ in around for term in (subject, object_)}
    for node in [*conditions, *inserts]:
        if node in outside or (node in conditions and node in inserts):
            raise PatchRefused(N3, f"the blank node {node} is shared between parts of the patch")
