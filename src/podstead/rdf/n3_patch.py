"""Parsing N3 Patch (Solid Protocol, section 5.3.1; X-2 to X-9).

A patch is a resource of the class ``solid:InsertDeletePatch`` with up to three formulas: conditions
that must hold in exactly one way, triples to delete, and triples to insert. A violation of N3's
grammar is MalformedRdf, a violation of the specification's rules PatchRefused.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

from podstead.core import vocab
from podstead.core.media_types import N3
from podstead.rdf import lexing
from podstead.rdf.codecs import Document, parse_blocks
from podstead.rdf.errors import MalformedRdf, PatchRefused
from podstead.rdf.graph import BlankNode, Graph, GraphName, Iri, Object, Subject
from podstead.rdf.limits import DEFAULT_LIMITS, RdfLimits
from podstead.rdf.patching import Patch, PatchOperation, Semantics
from podstead.rdf.patterns import Patterns, VariablePlaceholders, blank_nodes_in, variables_in

_TYPE: Final = Iri(vocab.RDF_TYPE)
_INSERT_DELETE_PATCH: Final = Iri(vocab.SOLID_INSERT_DELETE_PATCH)
_PATCH: Final = Iri(vocab.SOLID + "Patch")
_WHERE: Final = Iri(vocab.SOLID_WHERE)
_DELETES: Final = Iri(vocab.SOLID_DELETES)
_INSERTS: Final = Iri(vocab.SOLID_INSERTS)
_QUANTIFIERS: Final = frozenset({"@forAll", "@forSome"})
_CLAUSES: Final = {_WHERE: "solid:where", _DELETES: "solid:deletes", _INSERTS: "solid:inserts"}


def parse_n3_patch(content: bytes, *, base_iri: str, limits: RdfLimits = DEFAULT_LIMITS) -> Patch:
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
    placeholders = VariablePlaceholders(text, N3, limits)
    substituted = _with_placeholders(text, placeholders)
    try:
        document = parse_blocks(substituted.encode(), N3, base_iri=base_iri, limits=limits)
    except MalformedRdf as error:
        raise placeholders.renamed(error) from error
    placeholders.check(document)
    try:
        operation = _operation(document, placeholders)
    except PatchRefused:
        _check_statements(text)
        raise
    return _checked(operation, document)


# What a text contains if it has a variable, a quantifier, a rule, or a list or bracketed blank node
# that could lack a predicate.
_MARKS: Final = ("?", "=", ")", "]", "@for")


def _read_unchanged(text: str, base_iri: str, limits: RdfLimits) -> Patch | None:
    """The patch in a text that need not be rewritten; ``None`` if it is refused, or if a formula
    may be empty, which the parser does not distinguish from a blank node.

    Each formula that the parser returns has a brace of its own. So if there are as many of them as
    braces, none is empty.
    """
    try:
        document = parse_blocks(text.encode(), N3, base_iri=base_iri, limits=limits)
        if len(document.dataset.named) != text.count("{"):
            return None
        return _checked(_operation(document, None), document)
    except (MalformedRdf, PatchRefused):
        return None  # refused again, with the reason, when it is read with the lexer


def _checked(operation: PatchOperation, document: Document) -> Patch:
    _check_terms(operation, document.graph)
    return Patch((operation,), Semantics.ONE_SOLUTION, document.prefixes)


def _with_placeholders(text: str, placeholders: VariablePlaceholders) -> str:
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
    if formulas > len(_CLAUSES):
        reason = f"there are more formulas than one for each of {', '.join(_CLAUSES.values())}"
        raise PatchRefused(N3, reason, line=lexing.line_of(text, token.start))


def _check_no_rule(text: str, token: lexing.Token) -> None:
    """X-6: a rule is not a triple, even between two IRIs."""
    if text.startswith("<=", token.start) or text.endswith("=>", 0, token.end):
        raise PatchRefused(
            N3, "a formula cannot contain a rule", line=lexing.line_of(text, token.start)
        )


def _operation(document: Document, placeholders: VariablePlaceholders | None) -> PatchOperation:
    """The operation in a document with these placeholders, or without any."""
    subject = _patch_subject(document.graph)
    declared: frozenset[Iri] = frozenset()
    if placeholders is not None:
        declared = placeholders.declared(document.graph)
        if placeholders.is_variable(subject) or subject in declared:
            raise PatchRefused(N3, "the patch must be an IRI or a blank node, not a variable")
    graphs, description = document.dataset.named, document.graph.about(subject)
    formulas = {
        clause: _formula(description.get(clause, ()), graphs, clause) for clause in _CLAUSES
    }
    if len(graphs) > len([name for name in formulas.values() if name is not None]):
        names = ", ".join(_CLAUSES.values())
        raise PatchRefused(N3, f"formulas are accepted as objects of {names} only")

    def patterns(clause: Iri) -> Patterns:
        name = formulas[clause]
        if name is None:
            return ()
        formula = graphs[name]
        if placeholders is None:
            return tuple(formula)
        return placeholders.patterns(formula, declared | placeholders.declared(formula))

    return PatchOperation(
        where=patterns(_WHERE), deletes=patterns(_DELETES), inserts=patterns(_INSERTS)
    )


def _patch_subject(graph: Graph) -> Subject:
    """The only patch in the graph (X-3), which must have the right type (X-4)."""
    subjects = dict.fromkeys(
        subject
        for subject, predicate, object_ in graph
        if predicate in _CLAUSES
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
        raise PatchRefused(N3, f"{_CLAUSES[clause]} is stated more than once")
    name = objects[0]
    if isinstance(name, BlankNode) and name in graphs:
        return name
    raise PatchRefused(N3, f"the object of {_CLAUSES[clause]} is not a formula {{ … }}")


def _check_terms(operation: PatchOperation, around: Graph) -> None:
    """Check the variables (X-7) and blank nodes (X-8, X-9) in the formulas."""
    bound = variables_in(operation.where)
    for clause, patterns in ((_DELETES, operation.deletes), (_INSERTS, operation.inserts)):
        for variable in variables_in(patterns):
            if variable not in bound:
                raise PatchRefused(
                    N3, f"{variable} occurs in {_CLAUSES[clause]} but not in solid:where"
                )
    if blank_nodes_in(operation.deletes):
        raise PatchRefused(N3, "solid:deletes has a blank node, and what is deleted must be named")
    _check_labels(operation, around)


def _check_labels(operation: PatchOperation, around: Graph) -> None:
    """X-9: blank node labels are local to a formula, so none may occur in several."""
    conditions, inserts = blank_nodes_in(operation.where), blank_nodes_in(operation.inserts)
    if not conditions and not inserts:
        return
    outside = {term for subject, _, object_ in around for term in (subject, object_)}
    for node in [*conditions, *inserts]:
        if node in outside or (node in conditions and node in inserts):
            raise PatchRefused(N3, f"the blank node {node} is shared between parts of the patch")
