"""Patches against two SPARQL engines that are not ours, and against whatever else is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

import pyoxigraph
import pytest
import rdflib
from hypothesis import assume, example, given
from hypothesis import strategies as st

from podstead.core.errors import RequestRefused
from podstead.core.media_types import N_TRIPLES
from podstead.rdf.codecs import parse, serialize
from podstead.rdf.errors import MalformedRdf, PatchInapplicable, PatchRefused
from podstead.rdf.graph import BlankNode, Graph, Iri, Literal, Triple
from podstead.rdf.limits import RdfLimits
from podstead.rdf.patch_parsers import parse_n3_patch, parse_sparql_update
from podstead.rdf.patching import (
    Patch,
    PatchOperation,
    Pattern,
    Patterns,
    PatternTerm,
    Semantics,
    Variable,
    apply,
    blank_nodes_in,
    variables_in,
)
from tests.properties.patch_model import patched_by_n3, read_n3_patch
from tests.support.rdf_oracle import BASE, assert_same, read

pytestmark = pytest.mark.usefixtures("literals_as_written")

# Few terms, so that patterns meet triples.
IRIS = [Iri(f"urn:{name}") for name in "abc"]
PREDICATES = [Iri("urn:p"), Iri("urn:q")]
LITERALS = [
    Literal("1"),
    Literal("1", language="en"),
    Literal("1", datatype=Iri("http://www.w3.org/2001/XMLSchema#integer")),
]
NODES = [BlankNode(f"n{number}") for number in range(3)]
VARIABLES = [Variable(name) for name in "xyz"]
CONDITION_NODES = [BlankNode("u"), BlankNode("v")]
INSERTED_NODES = [BlankNode("i"), BlankNode("j")]
MAX_COMPARED_NODES = 8
MAX_SEARCHED_TRIPLES = 30  # three conditions have at most as many solutions as its cube


def triples_of(
    subjects: Iterable[PatternTerm],
    predicates: Iterable[PatternTerm],
    objects: Iterable[PatternTerm],
) -> st.SearchStrategy[Pattern]:
    return st.tuples(*(st.sampled_from(list(terms)) for terms in (subjects, predicates, objects)))


def several(patterns: st.SearchStrategy[Pattern], *, at_most: int) -> st.SearchStrategy[Patterns]:
    return st.lists(patterns, max_size=at_most).map(tuple)


stored: st.SearchStrategy[list[Triple]] = st.lists(
    st.tuples(
        st.sampled_from([*IRIS, *NODES]),
        st.sampled_from(PREDICATES),
        st.sampled_from([*IRIS, *NODES, *LITERALS]),
    ),
    max_size=12,
)
graphs = stored.map(Graph)
ground = triples_of(IRIS, PREDICATES, [*IRIS, *LITERALS])
conditions = triples_of(
    [*IRIS, *VARIABLES, *CONDITION_NODES],
    [*PREDICATES, *VARIABLES[:1]],
    [*IRIS, *LITERALS, *VARIABLES, *CONDITION_NODES],
)
deletions = triples_of(
    [*IRIS, *VARIABLES], [*PREDICATES, *VARIABLES[:1]], [*IRIS, *LITERALS, *VARIABLES]
)
insertions = triples_of(
    [*IRIS, *VARIABLES, *INSERTED_NODES],
    [*PREDICATES, *VARIABLES[:1]],
    [*IRIS, *LITERALS, *VARIABLES, *INSERTED_NODES],
)


@st.composite
def operations(draw: st.DrawFn) -> PatchOperation:
    """Conditions with templates of their variables, sometimes of others that are then unbound."""
    return PatchOperation(
        where=draw(several(conditions, at_most=3)),
        deletes=draw(several(deletions, at_most=3)),
        inserts=draw(several(insertions, at_most=3)),
    )


def block(patterns: Patterns) -> str:
    return " ".join(f"{s} {p} {o} ." for s, p, o in patterns)


def update_text(operation: PatchOperation) -> str:
    return (
        f"DELETE {{ {block(operation.deletes)} }}\n"
        f"INSERT {{ {block(operation.inserts)} }}\n"
        f"WHERE {{ {block(operation.where)} }}"
    )


def engine_with(graph: Graph) -> pyoxigraph.Store:
    engine = pyoxigraph.Store()
    engine.extend(pyoxigraph.Quad(*triple) for triple in graph)
    return engine


def content_of(engine: pyoxigraph.Store) -> Graph:
    found: list[Triple] = []
    for quad in engine:
        subject, object_ = quad.subject, quad.object
        assert not isinstance(subject, pyoxigraph.Triple)
        assert not isinstance(object_, pyoxigraph.Triple)
        found.append((subject, quad.predicate, object_))
    return Graph(found)


def known_to_rdflib(graph: Graph) -> rdflib.Graph:
    return read(serialize(graph, N_TRIPLES), N_TRIPLES)


def known_from_rdflib(graph: rdflib.Graph) -> Graph:
    return parse(graph.serialize(format="nt").encode(), N_TRIPLES, base_iri=BASE).graph


def assert_alike(actual: Graph, expected: Graph) -> None:
    """Assert that two graphs are the same but for the labels of their blank nodes.

    A product of solutions makes many nodes that are all alike, and telling whether two such graphs
    are the same takes exponential time; of those, what is said without labels is compared.
    """
    assert without_labels(actual) == without_labels(expected)
    if len(blank_nodes_in(actual)) <= MAX_COMPARED_NODES:
        assert_same(actual, expected)


def without_labels(graph: Graph) -> Counter[tuple[object, ...]]:
    return Counter(
        tuple(None if isinstance(term, BlankNode) else term for term in triple) for triple in graph
    )


def update(text: str) -> Patch:
    return parse_sparql_update(text.encode(), base_iri=BASE)


# --- SPARQL ------------------------------------------------------------------------------------


@given(graphs, st.lists(operations(), min_size=1, max_size=3))
def test_an_update_has_the_effect_that_a_sparql_engine_gives_it(
    graph: Graph, steps: list[PatchOperation]
) -> None:
    """X-31, X-33: read from text, with variables, blank nodes, unbound and illegal triples."""
    engine = engine_with(graph)
    patched = graph
    for step in steps:
        assume(len(patched) <= MAX_SEARCHED_TRIPLES)
        engine.update(update_text(step))
        patched = apply(update(update_text(step)), patched)
    assert_alike(patched, content_of(engine))


@given(graphs, st.lists(operations(), min_size=1, max_size=3))
def test_operations_of_one_update_are_those_of_several(
    graph: Graph, steps: list[PatchOperation]
) -> None:
    """X-33: also when written with or without a semicolon at the end."""
    # The same label in two operations is against SPARQL, and means two nodes here.
    patched = graph
    for step in steps:
        assume(len(patched) <= MAX_SEARCHED_TRIPLES)
        patched = apply(Patch((step,), Semantics.ALL_SOLUTIONS), patched)
    together = " ;\n".join(update_text(step) for step in steps)
    assert_alike(apply(update(together), graph), patched)
    assert_alike(apply(update(together + " ;"), graph), patched)


@given(graphs, several(ground, at_most=4), several(ground, at_most=4))
def test_data_blocks_have_the_effect_that_rdflib_gives_them(
    graph: Graph, deleted: Patterns, inserted: Patterns
) -> None:
    """X-30, X-35."""
    text = f"DELETE DATA {{ {block(deleted)} }} ; INSERT DATA {{ {block(inserted)} }}"
    judge = known_to_rdflib(graph)
    judge.update(text)
    assert_alike(apply(update(text), graph), known_from_rdflib(judge))


@given(graphs, several(deletions, at_most=3))
def test_delete_where_has_the_effect_that_rdflib_gives_it(graph: Graph, patterns: Patterns) -> None:
    """X-33: the long form for rdflib, which deletes while it still searches in the short one."""
    judge = known_to_rdflib(graph)
    judge.update(f"DELETE {{ {block(patterns)} }} WHERE {{ {block(patterns)} }}")
    assert_alike(
        apply(update(f"DELETE WHERE {{ {block(patterns)} }}"), graph), known_from_rdflib(judge)
    )


@given(graphs, operations())
def test_triples_that_stay_keep_their_order(graph: Graph, operation: PatchOperation) -> None:
    patched = apply(Patch((operation,), Semantics.ALL_SOLUTIONS), graph)
    assert [t for t in patched if t in graph] == [t for t in graph if t in patched]
    assert list(patched)[: len(patched & graph)] == list(patched & graph)


# --- N3 ----------------------------------------------------------------------------------------

N3_HEAD = "@prefix solid: <http://www.w3.org/ns/solid/terms#> .\n<#patch> "


def n3_text(operation: PatchOperation, order: list[int]) -> str:
    clauses = [
        f"solid:where {{ {block(operation.where)} }}",
        f"solid:deletes {{ {block(operation.deletes)} }}",
        f"solid:inserts {{ {block(operation.inserts)} }}",
        "a solid:InsertDeletePatch",
    ]
    return N3_HEAD + " ;\n".join(clauses[number] for number in order) + " ."


def solution_count(engine: pyoxigraph.Store, where: Patterns) -> int:
    """In how many ways the variables, and they alone, can be given terms."""
    if not variables_in(where):
        return 1 if engine.query(f"ASK {{ {block(where)} }}") else 0
    names = " ".join(str(variable) for variable in variables_in(where))
    return len(list(engine.query(f"SELECT DISTINCT {names} {{ {block(where)} }}")))  # type: ignore[arg-type]


@st.composite
def n3_operations(draw: st.DrawFn) -> PatchOperation:
    """Operations that keep X-7: variables of the templates are those of the conditions."""
    operation = draw(operations())
    bound = variables_in(operation.where)
    return PatchOperation(
        where=operation.where,
        deletes=tuple(p for p in operation.deletes if variables_in([p]).keys() <= bound.keys()),
        inserts=tuple(p for p in operation.inserts if variables_in([p]).keys() <= bound.keys()),
    )


@st.composite
def aimed_operations(draw: st.DrawFn) -> tuple[Graph, PatchOperation]:
    """A graph with conditions and deletions made of its triples, so that they hold: often in one
    way, often in several."""
    graph = draw(stored.filter(bool).map(Graph))

    def term(found: PatternTerm) -> PatternTerm:
        return draw(st.sampled_from([found, *VARIABLES[:2], VARIABLES[0]]))

    def pattern() -> Pattern:
        subject, predicate, object_ = draw(st.sampled_from(list(graph)))
        named = [VARIABLES[0] if isinstance(t, BlankNode) else t for t in (subject, object_)]
        return term(named[0]), predicate, term(named[1])

    where = tuple(pattern() for _ in range(draw(st.integers(1, 2))))
    ground_triples = [triple for triple in graph if not blank_nodes_in([triple])]
    deletes = draw(several(st.sampled_from([*where, *ground_triples]), at_most=2))
    bound = variables_in(where)
    inserts = draw(several(insertions, at_most=2))
    return graph, PatchOperation(
        where=where,
        deletes=deletes,
        inserts=tuple(p for p in inserts if variables_in([p]).keys() <= bound.keys()),
    )


n3_cases = st.one_of(st.tuples(graphs, n3_operations()), aimed_operations())


@given(n3_cases, st.permutations(range(4)))
def test_an_n3_patch_is_applied_when_a_sparql_engine_says_so(
    case: tuple[Graph, PatchOperation], order: list[int]
) -> None:
    """X-4, X-11 to X-14: the engine counts solutions, finds what is to be deleted, and patches."""
    graph, operation = case
    patch = parse_n3_patch(n3_text(operation, order).encode(), base_iri=BASE)
    engine = engine_with(graph)
    if solution_count(engine, operation.where) != 1:
        with pytest.raises(PatchInapplicable, match="conditions"):
            apply(patch, graph)
        return
    present = block(operation.where) + block(operation.deletes)
    if not engine.query(f"ASK {{ {present} }}"):
        with pytest.raises((PatchInapplicable, PatchRefused)):
            apply(patch, graph)
        return
    engine.update(update_text(operation))
    try:
        patched = apply(patch, graph)
    except PatchRefused as refusal:
        assert "is not a valid triple" in str(refusal)  # noqa: PT017 - what comes to no triple is told below
        assert any(variables_in([pattern]) for pattern in operation.inserts)
        return
    # N3 has one solution, however many ways there are for blank nodes of its conditions.
    if not (blank_nodes_in(operation.where) and blank_nodes_in(operation.inserts)):
        assert_alike(patched, content_of(engine))


@given(n3_cases, st.permutations(range(4)))
def test_an_n3_patch_has_the_effect_that_rdflib_gives_it(
    case: tuple[Graph, PatchOperation], order: list[int]
) -> None:
    """X-4, X-11 to X-14: read from text, and refused where rdflib finds no or several ways, or
    does not find what is to be deleted."""
    graph, operation = case
    text = n3_text(operation, order)
    judged = patched_by_n3(known_to_rdflib(graph), read_n3_patch(text, BASE))
    patch = parse_n3_patch(text.encode(), base_iri=BASE)
    if judged is None:
        with pytest.raises((PatchInapplicable, PatchRefused)):
            apply(patch, graph)
    else:
        assert_alike(apply(patch, graph), known_from_rdflib(judged))


@given(graphs, several(insertions, at_most=4))
def test_inserted_blank_nodes_never_meet_those_of_the_document(
    graph: Graph, inserts: Patterns
) -> None:
    """X-8."""
    inserts = tuple(pattern for pattern in inserts if not variables_in([pattern]))
    patched = apply(Patch((PatchOperation(inserts=inserts),), Semantics.ONE_SOLUTION), graph)
    judge = known_to_rdflib(graph)
    judge.update(f"INSERT {{ {block(inserts)} }} WHERE {{ }}")
    assert_alike(patched, known_from_rdflib(judge))


# --- Whatever else is sent ---------------------------------------------------------------------

STORED = Graph(
    [
        (IRIS[0], PREDICATES[0], LITERALS[0]),
        (IRIS[0], PREDICATES[1], NODES[0]),
        (NODES[0], PREDICATES[0], LITERALS[2]),
    ]
)
N3_SEEDS = [
    N3_HEAD + "a solid:InsertDeletePatch ; solid:where { ?x <urn:p> ?y . [] <urn:q> ?x } ;\n"
    "solid:deletes { ?x <urn:p> ?y } ; solid:inserts { ?x <urn:q> 'it?', [ <urn:p> (1 ?y) ] } .",
    N3_HEAD + 'solid:inserts { <urn:a> <urn:q> """?x {"""@en , 1.5 . } ; # { ?\n'
    "a solid:InsertDeletePatch .",
]
SPARQL_SEEDS = [
    "PREFIX e: <urn:> DELETE DATA { e:a e:p '1' } ; INSERT DATA { e:a e:q _:b . _:b e:p 1.5 } ;",
    "PREFIX e: <urn:> INSERT { (1 TRUE) . e:a e:q ?x } WHERE { e:a e:p ?x . e:a e:q [ e:p ?y ] }",
    'BASE <urn:a> DELETE { ?x ?p ?y } INSERT { ?y <urn:q> "{" } WHERE { ?x ?p ?y . # }\n }',
    "DELETE WHERE { <urn:a> <urn:p> ?x ; <urn:q> ?z }",
]
PIECES = (
    *"{}<>()[].;,?$:@#'\"\\^/|*+-!=_ \n\r\0a1\u00e9\u0301\ufeff\U0001f600",
    *("'''", '"""', "?x", "_:b", "e:p", "<urn:a>", "<<", ">>", "<<(", "=>", "^^", "@en", "%7B"),
    *("\\u007B", "@prefix", "@base", "@forAll", "PREFIX e: <urn:>", "FILTER", "LOAD", "INSERT"),
    *("DELETE", "WHERE", "DATA", "GRAPH", "a", "true", "1e5", "solid:where", "{ }", "; ;"),
    *("TRUE", "(1 2) .", "[ e:p 1 ] .", "=>", "@forAll e:p .", "@forSome <urn:a>, e:b ."),
)


@st.composite
def mutated(draw: st.DrawFn, seeds: list[str]) -> str:
    """A text of which stretches are replaced by pieces or by other stretches of it."""
    text = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        other = draw(st.integers(0, len(text)))
        copied = text[other : other + draw(st.integers(0, 20))]
        text = text[:start] + draw(st.sampled_from([copied, *PIECES])) + text[end:]
    return text


@given(mutated(N3_SEEDS))
@example(
    N3_HEAD + "a solid:InsertDeletePatch; solid:where { ?x ?x ?x }; solid:inserts { ?x ?x 1 }."
)
def test_n3_is_read_and_applied_or_refused_by_name(text: str) -> None:
    with suppress(RequestRefused):
        apply(parse_n3_patch(text.encode(), base_iri=BASE), STORED)


@given(mutated(SPARQL_SEEDS))
@example("INSERT DATA { <urn:a> <urn:b> 'x'^^<urn:c> } ; DELETE WHERE { ?x ?y ?z }")
def test_sparql_is_read_as_an_engine_reads_it_or_refused_by_name(text: str) -> None:
    """X-35: what is accepted has the effect that an engine gives it, if that accepts it as well.

    The engine never sees what is not accepted: it would follow a ``LOAD``.
    """
    try:
        patched = apply(parse_sparql_update(text.encode(), base_iri=BASE), STORED)
    except RequestRefused:
        return
    engine = engine_with(STORED)
    try:
        engine.update(text, base_iri=BASE)
    except SyntaxError:
        return
    assert_alike(patched, content_of(engine))


@given(st.binary(max_size=60))
def test_bytes_are_read_or_refused_by_name(content: bytes) -> None:
    for read_patch in (parse_n3_patch, parse_sparql_update):
        with suppress(MalformedRdf, PatchRefused):
            read_patch(content, base_iri=BASE, limits=RdfLimits())


@given(st.sampled_from(SPARQL_SEEDS), st.data())
def test_an_update_that_is_cut_off_is_refused_or_a_part_of_itself(
    text: str, data: st.DataObject
) -> None:
    """No text is read as more than it says: its operations are the first of the whole."""
    cut = text[: data.draw(st.integers(0, len(text)))]
    try:
        part = update(cut).operations
    except RequestRefused:
        return
    whole = update(text).operations
    assert len(part) <= len(whole)
    assert [len(o.where) for o in part] == [len(o.where) for o in whole][: len(part)]


def test_rdflib_is_the_judge_that_keeps_lexical_forms() -> None:
    """The comparison above would be worth less if 1 and 01 were one literal to it."""
    assert rdflib.Literal("01", datatype=rdflib.XSD.integer) != rdflib.Literal(1)
