"""What a patch makes of a graph, and when it makes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podstead.core import vocab
from podstead.core.errors import Conflict, Unprocessable
from podstead.core.media_types import TURTLE
from podstead.rdf.codecs import parse
from podstead.rdf.errors import PatchInapplicable, PatchRefused, PatchTooCostly
from podstead.rdf.graph import EMPTY_GRAPH, BlankNode, Graph, Iri, Literal, Triple
from podstead.rdf.listing import ListedMember, container_statements, member_statements
from podstead.rdf.patching import (
    IndexedTriples,
    Patch,
    PatchOperation,
    Pattern,
    Patterns,
    Semantics,
    StepBudget,
    Variable,
    apply,
    apply_to_container,
    solutions,
)
from tests.support.rdf_oracle import BASE, assert_same

A, B, C = Iri("urn:a"), Iri("urn:b"), Iri("urn:c")
P, Q = Iri("urn:p"), Iri("urn:q")
ONE, TWO = Literal("1"), Literal("2")
X, Y, Z = Variable("x"), Variable("y"), Variable("z")
U, V = BlankNode("u"), BlankNode("v")
Make = Callable[..., Patch]
GRAPH = Graph([(A, P, ONE), (A, P, TWO), (B, P, ONE), (B, Q, A)])


def n3(*, where: Patterns = (), deletes: Patterns = (), inserts: Patterns = ()) -> Patch:
    return Patch((PatchOperation(where, deletes, inserts),), Semantics.ONE_SOLUTION)


def sparql(*, where: Patterns = (), deletes: Patterns = (), inserts: Patterns = ()) -> Patch:
    return Patch((PatchOperation(where, deletes, inserts),), Semantics.ALL_SOLUTIONS)


def turtle(text: str) -> Graph:
    return parse(text.encode(), TURTLE, base_iri=BASE).graph


# --- Both semantics ----------------------------------------------------------------------------


@pytest.mark.parametrize("patch", [n3(), sparql(), Patch((), Semantics.ALL_SOLUTIONS)])
def test_a_patch_without_clauses_changes_nothing(patch: Patch) -> None:
    """X-5, X-17."""
    assert list(apply(patch, GRAPH)) == list(GRAPH)


@pytest.mark.parametrize("make", [n3, sparql])
def test_ground_triples_are_deleted_and_inserted(make: Make) -> None:
    """X-1: also into nothing."""
    patch = make(deletes=((A, P, ONE),), inserts=((C, Q, ONE), (A, Q, B)))
    assert list(apply(patch, GRAPH)) == [
        (A, P, TWO),
        (B, P, ONE),
        (B, Q, A),
        (C, Q, ONE),
        (A, Q, B),
    ]
    assert list(apply(make(inserts=((C, Q, ONE),)), EMPTY_GRAPH)) == [(C, Q, ONE)]


@pytest.mark.parametrize("make", [n3, sparql])
def test_a_triple_deleted_and_inserted_stays_where_it_is(make: Make) -> None:
    """X-13."""
    patch = make(deletes=((A, P, ONE), (A, P, TWO)), inserts=((A, P, ONE),))
    assert list(apply(patch, GRAPH)) == [(A, P, ONE), (B, P, ONE), (B, Q, A)]


@pytest.mark.parametrize("make", [n3, sparql])
def test_inserting_what_is_there_changes_nothing(make: Make) -> None:
    assert list(apply(make(inserts=((A, P, TWO),)), GRAPH)) == list(GRAPH)


@pytest.mark.parametrize("make", [n3, sparql])
def test_variables_carry_terms_from_the_conditions(make: Make) -> None:
    patch = make(
        where=((X, Q, Y), (Y, P, TWO)), deletes=((X, Q, Y),), inserts=((Y, Q, X), (X, P, TWO))
    )
    assert apply(patch, GRAPH) == (GRAPH - Graph([(B, Q, A)])) | Graph([(A, Q, B), (B, P, TWO)])


@pytest.mark.parametrize("make", [n3, sparql])
def test_a_variable_may_be_a_predicate_or_repeat(make: Make) -> None:
    graph = Graph([(A, P, B), (A, Q, A)])
    assert list(apply(make(where=((X, Y, X),), inserts=((X, P, Y),)), graph)) == [
        (A, P, B),
        (A, Q, A),
        (A, P, Q),
    ]


@pytest.mark.parametrize("make", [n3, sparql])
def test_blank_nodes_of_conditions_match_terms(make: Make) -> None:
    """X-11: two ways for ``_:u`` are one solution for ``?x``."""
    patch = make(where=((X, Q, V), (V, P, U)), inserts=((X, Q, ONE),))
    assert apply(patch, GRAPH) == GRAPH | Graph([(B, Q, ONE)])


@pytest.mark.parametrize("make", [n3, sparql])
def test_a_variable_can_be_a_blank_node_of_the_document(make: Make) -> None:
    """This is how clients change what a blank node says."""
    graph = turtle("<#me> <urn:p> [ <urn:q> 1, 2 ] .")
    [node] = [object_ for _, predicate, object_ in graph if predicate == P]
    [one, two] = [o for s, _, o in graph if s == node]
    patch = make(where=((Iri(f"{BASE}#me"), P, X),), deletes=((X, Q, one),), inserts=((X, P, two),))
    assert_same(apply(patch, graph), turtle("<#me> <urn:p> [ <urn:q> 2 ; <urn:p> 2 ] ."))


@pytest.mark.parametrize("make", [n3, sparql])
def test_inserted_blank_nodes_are_new_ones(make: Make) -> None:
    """X-8: whatever labels the document has, in this graph or in another."""
    graph = Graph([(BlankNode(f"n{number}"), P, ONE) for number in range(0, 10, 2)] + [(U, P, ONE)])
    elsewhere = Graph([(A, P, BlankNode("n1"))])
    patch = make(inserts=((U, Q, V), (V, Q, U)))
    patched = apply(patch, graph, other_graphs=[elsewhere])
    [(first, _, second), (third, _, fourth)] = patched - graph
    assert first == fourth != second == third
    known = {term for triple in [*graph, *elsewhere] for term in triple}
    assert not {first, second} & known


@pytest.mark.parametrize("make", [n3, sparql])
def test_patching_twice_gives_two_blank_nodes(make: Make) -> None:
    patch = make(inserts=((U, Q, ONE),))
    assert len(apply(patch, apply(patch, GRAPH))) == len(GRAPH) + 2


@pytest.mark.parametrize("make", [n3, sparql])
def test_patching_gives_the_same_every_time(make: Make) -> None:
    patch = make(where=((X, Q, A),), inserts=((U, Q, X), (V, Q, U)))
    assert list(apply(patch, GRAPH)) == list(apply(patch, GRAPH))


# --- N3 Patch ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        (((A, P, Literal("3")),), "do not hold"),
        (((X, P, Literal("3")),), "do not hold"),
        (((X, P, ONE), (X, Q, B)), "do not hold"),
        (((X, P, TWO), (Y, P, Literal("3"))), "do not hold"),
        (((X, P, ONE),), "more than one way"),
        (((X, P, TWO), (X, P, Y)), "more than one way"),
        (((X, P, U),), "more than one way"),
    ],
)
def test_conditions_must_hold_in_exactly_one_way(where: Patterns, reason: str) -> None:
    """X-11: 409."""
    with pytest.raises(PatchInapplicable, match=reason) as caught:
        apply(n3(where=where, inserts=((C, P, C),)), GRAPH)
    assert isinstance(caught.value, Conflict)


@pytest.mark.parametrize(
    "where",
    [
        ((A, P, ONE),),
        ((A, P, ONE), (A, P, TWO)),
        ((U, P, ONE),),
        ((U, P, V),),
        ((X, P, TWO),),
        ((X, Q, U), (U, P, V)),
        ((X, Y, A),),
    ],
)
def test_conditions_with_one_solution_apply_the_patch(where: Patterns) -> None:
    """X-11: blank nodes stand for something, and only variables are counted."""
    assert (C, P, C) in apply(n3(where=where, inserts=((C, P, C),)), GRAPH)


@pytest.mark.parametrize(
    "deletes",
    [((C, P, ONE),), ((A, P, ONE), (A, P, Literal("1", language="en")))],
)
def test_every_deleted_triple_must_be_there(deletes: Patterns) -> None:
    """X-12: 409; the message repeats nothing of the patch (P-16)."""
    with pytest.raises(PatchInapplicable, match=r"does not exist$") as caught:
        apply(n3(deletes=deletes), GRAPH)
    assert isinstance(caught.value, Conflict)


def test_what_a_patch_inserts_is_not_there_to_be_deleted() -> None:
    """X-12, X-13: deletions come first."""
    with pytest.raises(PatchInapplicable):
        apply(n3(deletes=((C, P, ONE),), inserts=((C, P, ONE),)), GRAPH)


@pytest.mark.parametrize(
    ("deletes", "inserts"),
    [
        ((), ((Y, Q, A),)),
        ((), ((A, Y, A),)),
        ((), ((A, U, A),)),
        ((), ((ONE, Q, A),)),
        (((Y, Q, A),), ()),
    ],
)
def test_a_literal_or_blank_node_out_of_place_is_refused(
    deletes: Patterns, inserts: Patterns
) -> None:
    """X-14: 422."""
    patch = n3(
        where=((X, P, Y), (X, P, TWO), (X, P, ONE), (A, Q, Y)), deletes=deletes, inserts=inserts
    )
    graph = Graph([(A, P, ONE), (A, P, TWO), (A, Q, ONE)])
    with pytest.raises(PatchRefused, match="is not a valid triple") as caught:
        apply(patch, graph)
    assert isinstance(caught.value, Unprocessable)


# --- SPARQL Update -----------------------------------------------------------------------------


def test_every_solution_is_acted_upon() -> None:
    """X-31."""
    patch = sparql(where=((X, P, Y),), deletes=((X, P, Y),), inserts=((X, Q, Y),))
    assert list(apply(patch, GRAPH)) == [(B, Q, A), (A, Q, ONE), (A, Q, TWO), (B, Q, ONE)]


def test_without_a_solution_nothing_changes() -> None:
    """X-31: success, unlike with N3."""
    patch = sparql(where=((X, P, C),), deletes=((A, P, ONE),), inserts=((A, Q, A),))
    assert apply(patch, GRAPH) == GRAPH


def test_deleting_what_is_not_there_changes_nothing() -> None:
    """X-35."""
    assert apply(sparql(deletes=((C, P, ONE), (A, P, ONE))), GRAPH) == GRAPH - Graph([(A, P, ONE)])


def test_illegal_and_unbound_triples_are_passed_over() -> None:
    """SPARQL 1.1 Update, section 4.1.3 of the formal model: the rest is done."""
    patch = sparql(
        where=((A, P, Y),),
        deletes=((Y, P, A), (A, P, Y)),
        inserts=((Y, Q, A), (A, Y, A), (A, Q, Z), (C, Q, Y)),
    )
    assert apply(patch, GRAPH) == Graph([(B, P, ONE), (B, Q, A), (C, Q, ONE), (C, Q, TWO)])


def test_each_solution_has_blank_nodes_of_its_own() -> None:
    """X-33."""
    patch = sparql(where=((A, P, Y),), inserts=((U, Q, Y), (U, P, A)))
    patched = apply(patch, GRAPH)
    assert_same(
        patched - GRAPH,
        turtle("[] <urn:q> '1'; <urn:p> <urn:a> . [] <urn:q> '2'; <urn:p> <urn:a> ."),
    )


def test_operations_see_what_those_before_them_did() -> None:
    """X-33: also where the conditions were already evaluated once."""
    patch = Patch(
        (
            PatchOperation(where=((X, P, ONE),), deletes=((X, P, ONE),), inserts=((X, Q, C),)),
            PatchOperation(where=((X, Q, C), (X, Q, A)), deletes=((X, Q, C),)),
            PatchOperation(where=((X, P, ONE),), inserts=((C, P, C),)),
            PatchOperation(inserts=((C, Q, C),)),
        ),
        Semantics.ALL_SOLUTIONS,
    )
    assert list(apply(patch, GRAPH)) == [(A, P, TWO), (B, Q, A), (A, Q, C), (C, Q, C)]


# --- Containers --------------------------------------------------------------------------------

CONTAINER = "http://example.org/folder/"
HERE, MEMBER = Iri(CONTAINER), Iri(CONTAINER + "document")
CONTAINS, TYPE = Iri(vocab.LDP_CONTAINS), Iri(vocab.RDF_TYPE)
NAME, THING = Iri("urn:name"), Iri("urn:Thing")
MANAGED = container_statements(CONTAINER, is_storage=False, modified_ms=0) | member_statements(
    CONTAINER, [ListedMember("document", False, "text/turtle", 3, 0)]
)
OWN = Graph([(HERE, NAME, ONE), (HERE, TYPE, THING)])
[MEMBER_SIZE] = [triple for triple in MANAGED if triple[1] == Iri(vocab.STAT_SIZE)]
[MODIFIED] = [t for t in MANAGED if t[0] == HERE and t[1] == Iri(vocab.DCTERMS_MODIFIED)]


def patched_container(patch: Patch) -> Graph:
    return apply_to_container(patch, OWN, managed=MANAGED, container_url=CONTAINER)


@pytest.mark.parametrize("make", [n3, sparql])
def test_the_owner_of_a_container_changes_what_is_theirs(make: Make) -> None:
    """X-30, C-13."""
    patch = make(
        where=((HERE, NAME, X),),
        deletes=((HERE, NAME, X),),
        inserts=((HERE, NAME, TWO), (MEMBER, NAME, X)),
    )
    assert list(patched_container(patch)) == [
        (HERE, TYPE, THING),
        (HERE, NAME, TWO),
        (MEMBER, NAME, ONE),
    ]


def test_conditions_of_n3_see_what_the_server_states() -> None:
    """C-13."""
    patch = n3(where=((HERE, CONTAINS, X),), inserts=((X, NAME, ONE),))
    assert patch.reads_managed
    assert list(patched_container(patch)) == [*OWN, (MEMBER, NAME, ONE)]


def test_conditions_of_sparql_do_not_see_what_the_server_states() -> None:
    """C-13, X-32: so a variable never stands for one of the server's triples."""
    everything = sparql(where=((X, TYPE, Y),), deletes=((X, TYPE, Y),), inserts=((X, NAME, TWO),))
    assert not everything.reads_managed
    assert list(patched_container(everything)) == [(HERE, NAME, ONE), (HERE, NAME, TWO)]
    members = sparql(where=((HERE, CONTAINS, X),), inserts=((X, NAME, ONE),))
    assert patched_container(members) == OWN


@pytest.mark.parametrize("make", [n3, sparql])
@pytest.mark.parametrize(
    "triple",
    [(HERE, CONTAINS, MEMBER), (HERE, CONTAINS, Iri(CONTAINER + "new")), MEMBER_SIZE, MODIFIED],
)
def test_triples_of_the_server_are_neither_inserted_nor_deleted(make: Make, triple: Triple) -> None:
    """C-13: 409, also where nothing would change, and whether they are there or not."""
    for patch in (make(inserts=(triple,)), make(deletes=(triple,))):
        with pytest.raises(Conflict, match="that the server maintains"):
            patched_container(patch)


@pytest.mark.parametrize(
    ("deletes", "inserts"),
    [
        (((HERE, CONTAINS, X),), ()),
        (((X, Y, Z),), ()),
        ((), ((HERE, CONTAINS, X),)),
    ],
)
def test_n3_results_that_are_the_servers_are_conflicts(
    deletes: Patterns, inserts: Patterns
) -> None:
    """C-13."""
    where: Patterns = (
        (HERE, CONTAINS, X),
        (X, Y, Z),
        (X, Y, Literal("3", datatype=Iri(vocab.XSD_INTEGER))),
    )
    with pytest.raises(Conflict, match="that the server maintains"):
        patched_container(n3(where=where, deletes=deletes, inserts=inserts))


def test_sparql_results_that_are_the_servers_are_conflicts_when_inserted() -> None:
    """C-13: nothing of the server's kinds gets into what is the owner's."""
    patch = sparql(where=((X, NAME, Y),), inserts=((X, CONTAINS, X), (X, CONTAINS, MEMBER)))
    with pytest.raises(Conflict, match="that the server maintains"):
        patched_container(patch)


def test_sparql_results_that_are_the_servers_are_not_there_to_be_deleted() -> None:
    """X-32: immune from the update, and no conflict."""
    patch = sparql(where=((X, NAME, Y),), deletes=((X, TYPE, Iri(vocab.LDP_CONTAINER)),))
    assert patched_container(patch) == OWN


def test_absent_triples_of_the_owner_are_treated_as_in_documents() -> None:
    """X-12, X-35."""
    assert patched_container(sparql(deletes=((HERE, NAME, TWO),))) == OWN
    with pytest.raises(PatchInapplicable):
        patched_container(n3(deletes=((HERE, NAME, TWO),)))


# --- Cost --------------------------------------------------------------------------------------

MANY = Graph((Iri(f"urn:s{number}"), P, Literal(str(number))) for number in range(300))


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (sparql, ((X, P, U), (Y, P, V), (Z, P, BlankNode("w")))),
        (n3, ((X, P, Literal("0")), (U, P, V), (BlankNode("w"), P, BlankNode("x")))),
        (n3, tuple((Variable(f"s{n}"), P, Variable(f"o{n}")) for n in range(5000))),
    ],
    ids=["a product", "ways that do not matter", "many patterns"],
)
def test_conditions_that_take_too_long_are_given_up(make: Make, where: Patterns) -> None:
    """X-34: 27 million combinations end after as many steps as the budget has."""
    graph = MANY | Graph((subject, Q, subject) for subject, _, _ in MANY)
    with pytest.raises(PatchTooCostly) as caught:
        apply(make(where=where, inserts=((A, P, TWO),)), graph, budget_steps=20_000)
    assert isinstance(caught.value, Unprocessable)


def test_what_comes_of_solutions_counts_as_well() -> None:
    """For each: the operation, the candidates, and per solution two variables and 100 triples."""
    inserts: Patterns = tuple((X, Q, Literal(str(number))) for number in range(100))
    patch = sparql(where=((X, P, Y),), inserts=inserts)
    apply(patch, MANY, budget_steps=1 + 300 + 300 * (2 + 100))
    with pytest.raises(PatchTooCostly):
        apply(patch, MANY, budget_steps=300 + 300 * (2 + 100))


def test_every_operation_is_counted() -> None:
    patch = Patch((PatchOperation(),) * 11, Semantics.ALL_SOLUTIONS)
    apply(patch, GRAPH, budget_steps=11)
    with pytest.raises(PatchTooCostly):
        apply(patch, GRAPH, budget_steps=10)


def test_a_long_chain_of_conditions_is_followed_without_a_detour() -> None:
    """More patterns than Python has stack for."""
    length = 3000
    nodes = [Iri(f"urn:s{number}") for number in range(length)]
    graph = Graph((nodes[n], P, nodes[n + 1]) for n in range(length - 1))
    unknown: list[Iri | Variable] = [
        nodes[0],
        *(Variable(str(number)) for number in range(1, length)),
    ]
    chain: list[Pattern] = [(unknown[n], P, unknown[n + 1]) for n in range(length - 1)]
    patch = n3(where=tuple(chain), inserts=((unknown[-1], Q, ONE),))
    assert list(apply(patch, graph))[-1] == (nodes[-1], Q, ONE)


def test_selective_conditions_are_tried_first() -> None:
    """A condition that one triple meets keeps a product from being made."""
    where: Patterns = ((X, P, Y), (Z, P, Variable("w")), (Z, Q, X), (A, Q, Z))
    graph = MANY | Graph([(A, Q, Iri("urn:s3")), (Iri("urn:s3"), Q, Iri("urn:s7"))])
    patch = sparql(where=where, inserts=((X, Q, ONE),))
    assert apply(patch, graph, budget_steps=20) == graph | Graph([(Iri("urn:s7"), Q, ONE)])


def test_solutions_of_no_conditions_are_one_empty_solution() -> None:
    assert list(solutions((), IndexedTriples(EMPTY_GRAPH), StepBudget(0))) == [{}]
