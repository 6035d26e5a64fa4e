"""Graphs and datasets as values."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urljoin

import pytest
from hypothesis import given

from podstead.core.media_types import TRIG
from podstead.rdf.codecs import parse
from podstead.rdf.graph import (
    EMPTY_GRAPH,
    BlankNode,
    Dataset,
    Graph,
    GraphName,
    Iri,
    Literal,
    Quad,
    Triple,
)
from podstead.rdf.jsonld_rewriter import datasets_equivalent
from podstead.rdf.turtle_writer import PrefixTable, RelativeReferences, relative_name
from tests.support.rdf_oracle import BASE
from tests.support.rdf_strategies import datasets

A, B, C = Iri("http://example.org/a"), Iri("http://example.org/b"), Iri("http://example.org/c")
P, Q = Iri("http://example.org/p"), Iri("http://example.org/q")
X, Y = Literal("x"), Literal("y")


def test_a_triple_given_twice_is_held_once_in_its_first_place() -> None:
    graph = Graph([(B, P, X), (A, P, X), (B, P, X)])
    assert list(graph) == [(B, P, X), (A, P, X)]
    assert len(graph) == 2


def test_graphs_are_equal_whatever_the_order() -> None:
    one, other = Graph([(A, P, X), (B, P, Y)]), Graph([(B, P, Y), (A, P, X)])
    assert one == other
    assert hash(one) == hash(other)
    assert one != Graph([(A, P, X)])


def test_equal_terms_made_apart_are_one() -> None:
    assert (Iri("http://example.org/a"), Iri("http://example.org/p"), Literal("x")) in Graph(
        [(A, P, X)]
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Literal("x"), Literal("x", language="en")),
        (Literal("1"), Literal("1", datatype=Iri("http://www.w3.org/2001/XMLSchema#integer"))),
        (Iri("urn:x"), Literal("urn:x")),
        (BlankNode("x"), Literal("x")),
    ],
)
def test_terms_of_different_kinds_differ(one: Literal, other: Literal) -> None:
    assert (A, P, one) not in Graph([(A, P, other)])


def test_objects_come_in_order_and_without_others() -> None:
    graph = Graph([(A, P, Y), (A, Q, C), (A, P, X), (B, P, C), (A, P, B)])
    assert graph.objects(A, P) == (Y, X, B)
    assert graph.objects(B, P) == (C,)
    assert graph.objects(C, P) == ()
    assert graph.objects(A, A) == ()


def test_subjects_match_predicate_and_object() -> None:
    graph = Graph([(A, P, X), (B, P, X), (B, P, Y), (C, Q, X)])
    assert graph.subjects(P, X) == [A, B]
    assert graph.subjects(P) == [A, B]
    assert graph.subjects(object_=X) == [A, B, C]
    assert graph.subjects() == [A, B, C]
    assert graph.subjects(Q, Y) == []


def test_grouping_keeps_the_order_of_first_appearance() -> None:
    graph = Graph([(B, Q, X), (A, P, X), (B, P, Y), (B, Q, Y)])
    grouped = {s: dict(about) for s, about in graph.by_subject().items()}
    assert list(grouped) == [B, A]
    assert list(grouped[B].items()) == [(Q, (X, Y)), (P, (Y,))]
    assert graph.about(C) == {}


def test_union_difference_and_intersection_are_those_of_sets() -> None:
    left, right = Graph([(A, P, X), (A, P, Y)]), Graph([(A, P, Y), (B, P, Y)])
    assert list(left | right) == [(A, P, X), (A, P, Y), (B, P, Y)]
    assert list(left - right) == [(A, P, X)]
    assert list(left & right) == [(A, P, Y)]
    assert left - left == EMPTY_GRAPH
    assert len(left) == 2, "operations give new graphs"


def test_an_iterator_is_taken_in_once_and_whole() -> None:
    triples: list[Triple] = [(A, P, X), (B, P, X)]
    graph = Graph(iter(triples))
    assert list(graph) == list(graph) == triples


def test_the_size_of_a_dataset_includes_all_its_graphs() -> None:
    named: Mapping[GraphName, Graph] = {A: Graph([(A, P, X)])}
    assert len(Dataset(Graph([(A, P, X), (A, P, Y)]), named)) == 3
    assert len(Dataset(EMPTY_GRAPH)) == 0


def test_graphs_do_not_share_what_they_were_made_from_or_gave_away() -> None:
    triples = dict.fromkeys([(A, P, X), (B, P, X)])
    graph = Graph(triples)
    del triples[A, P, X]
    given = graph.to_dict()
    given.clear()
    assert list(graph) == [(A, P, X), (B, P, X)]


def test_quads_are_the_graphs_that_they_name() -> None:
    quads = [Quad(A, P, X), Quad(B, P, X, C), Quad(A, P, Y), Quad(B, P, X, C), Quad(A, P, X, B)]
    named: Mapping[GraphName, Graph] = {C: Graph([(B, P, X)]), B: Graph([(A, P, X)])}
    for _ in range(2):
        dataset = Dataset.of(quads)
        assert dataset == Dataset(Graph([(A, P, X), (A, P, Y)]), named)
        assert dataset.with_default(EMPTY_GRAPH) == Dataset(EMPTY_GRAPH, named)
        assert list(dataset.named) == [C, B]
    assert Dataset.of([]) == Dataset(EMPTY_GRAPH) != Dataset.of(quads)


# --- Datasets are compared without a search for matching blank nodes ---------------------------


def same(left: str, right: str, *known: str) -> bool:
    labels = {BlankNode(label): label for label in known}
    return datasets_equivalent(read(left), read(right), left_labels=labels, right_labels=labels)


def read(trig: str) -> Dataset:
    return parse(f"PREFIX : <#> {trig}".encode(), TRIG, base_iri=BASE).dataset


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (":a :p [ :q 1 ; :r ( 1 [] ) ] .", "_:x :q 1 ; :r ( 1 [] ) . :a :p _:x ."),
        (":a :p [ :q 1 ], [ :q 2 ] .", ":a :p [ :q 2 ], [ :q 1 ] ."),
        ("[] :p 1 . [] :p 1 .", "_:x :p 1 . _:y :p 1 ."),
        ("_:k :p _:k . :a :p _:k .", "_:k :p _:k . :a :p _:k ."),
        (":g { _:k :p [ :q 1 ] } :a :p _:k .", ":a :p _:k . :g { _:k :p [ :q 1 ] }"),
        (":a :p [] . :g {}", ":a :p [] ."),
    ],
)
def test_what_only_differs_in_labels_is_the_same(left: str, right: str) -> None:
    assert same(left, right, "k")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (":a :p [ :q 1 ] .", ":a :p [ :q 2 ] ."),
        (":a :p [ :q 1 ], [ :q 1 ] .", ":a :p [ :q 1 ] ."),
        ("[] :p 1 . [] :p 1 .", "[] :p 1 ."),
        (":a :p [ :q [] ] .", ":a :p [] . [] :q [] ."),
        (":a :p _:k .", ":a :p [] ."),
        (":a :p _:k . _:k :q 1 .", ":a :p [ :q 1 ] ."),
        (":g { :a :p 1 }", ":h { :a :p 1 }"),
        (":g { :a :p 1 }", ":a :p 1 ."),
        (":a :p ( 1 2 ) .", ":a :p ( 2 1 ) ."),
    ],
)
def test_what_says_something_else_is_not(left: str, right: str) -> None:
    assert not same(left, right, "k")
    assert not same(right, left, "k")


@pytest.mark.parametrize(
    "unknown", ["_:x :p _:x .", ":a :p _:x . :b :p _:x .", ":g { :a :p _:x } :a :p _:x ."]
)
def test_a_blank_node_that_is_in_no_tree_is_never_the_same(unknown: str) -> None:
    assert not same(unknown, unknown)


def test_lists_may_be_long() -> None:
    items = " ".join(map(str, range(20_000)))
    assert same(f":a :p ( {items} ) .", f":a :p ( {items} ) .")
    assert not same(f":a :p ( {items} ) .", f":a :p ( {items} 1 ) .")


@given(dataset=datasets(), other=datasets())
def test_with_all_labels_known_it_is_equality(dataset: Dataset, other: Dataset) -> None:
    labels = {BlankNode(label): label for label in [*"abcde", *(f"cell{n}" for n in range(4))]}
    assert datasets_equivalent(dataset, dataset, left_labels=labels, right_labels=labels)
    said = datasets_equivalent(dataset, other, left_labels=labels, right_labels=labels)
    assert said == (dataset == other)


# --- iris --------------------------------------------------------------------------------------
#
# Short forms of IRIs; urllib's resolver, which knows nothing of ours, reads them back.


DOCUMENT = "http://example.org/folder/document"
CONTAINER = "http://example.org/folder/"


@pytest.mark.parametrize(
    ("base", "iri", "reference"),
    [
        (DOCUMENT, DOCUMENT, ""),
        (DOCUMENT, DOCUMENT + "#me", "#me"),
        (DOCUMENT, DOCUMENT + "#", "#"),
        (DOCUMENT, CONTAINER + "other", "other"),
        (DOCUMENT, CONTAINER + "other/deep#x", "other/deep#x"),
        (DOCUMENT, CONTAINER, "./"),
        (DOCUMENT, DOCUMENT + "2", "document2"),
        (DOCUMENT, CONTAINER + "a:b", "./a:b"),
        (DOCUMENT, CONTAINER + "a/b:c", "a/b:c"),
        (DOCUMENT, CONTAINER + "x?a:b", "x?a:b"),
        (CONTAINER, CONTAINER, ""),
        (CONTAINER, CONTAINER + "#me", "#me"),
        (CONTAINER, CONTAINER + "card", "card"),
        (CONTAINER, CONTAINER + "@x", "@x"),
    ],
)
def test_within_its_container_an_iri_is_relative(base: str, iri: str, reference: str) -> None:
    assert RelativeReferences(base).reference(iri) == reference
    assert urljoin(base, reference).rstrip("#") == iri.rstrip("#")


@pytest.mark.parametrize(
    "iri",
    [
        "http://example.org/other",
        "http://example.org/folder",
        "https://example.org/folder/x",
        "http://other.example/folder/x",
        CONTAINER + "/double",
        CONTAINER + "../up",
        CONTAINER + "./here",
        CONTAINER + "a/../b",
        CONTAINER + "a/..",
        CONTAINER + "..",
        CONTAINER + "?query",
        "urn:x:y",
    ],
)
def test_what_no_reference_says_without_doubt_stays_whole(iri: str) -> None:
    assert RelativeReferences(DOCUMENT).reference(iri) == iri


def test_without_a_base_every_iri_stays_whole() -> None:
    assert RelativeReferences(None).reference(DOCUMENT) == DOCUMENT


def test_a_query_of_a_container_is_not_one_of_its_document() -> None:
    assert relative_name("?query") is None


def test_prefixes_of_the_document_come_before_the_customary_ones() -> None:
    table = PrefixTable({"f": "http://xmlns.com/foaf/0.1/", "ldp": "http://example.org/ldp#"})
    assert table.compact("http://xmlns.com/foaf/0.1/name") == "f:name"
    assert table.compact("http://example.org/ldp#x") == "ldp:x"
    assert table.compact("http://www.w3.org/ns/ldp#contains") is None, "ldp is taken"
    assert table.compact("http://www.w3.org/ns/auth/acl#Read") == "acl:Read"
    assert table.used == {
        "f": "http://xmlns.com/foaf/0.1/",
        "ldp": "http://example.org/ldp#",
        "acl": "http://www.w3.org/ns/auth/acl#",
    }


@pytest.mark.parametrize(
    "local", ["a.", ".a", "a/b", "a%20b", "a(b)", "ä", "a:b", "-a", "a b", "a,b"]
)
def test_only_plain_local_names_are_compacted(local: str) -> None:
    assert (
        PrefixTable({"p": "http://example.org/ns#"}).compact(f"http://example.org/ns#{local}")
        is None
    )


@pytest.mark.parametrize("local", ["", "a", "A1", "_x", "a.b", "a-b", "2024", "a-"])
def test_plain_local_names_are_compacted(local: str) -> None:
    table = PrefixTable({"p": "http://example.org/ns#"})
    assert table.compact(f"http://example.org/ns#{local}") == f"p:{local}"


def test_odd_prefixes_are_not_used() -> None:
    prefixes = {"": "http://example.org/e#", "ä": "http://example.org/a#", "1": "http://x.example/"}
    table = PrefixTable(prefixes)
    for namespace in prefixes.values():
        assert table.compact(f"{namespace}name") is None
    assert PrefixTable(prefixes, empty=True).compact("http://example.org/e#name") == ":name"


def test_a_prefix_can_be_barred() -> None:
    table = PrefixTable({"did": "http://example.org/did#"}, without={"did"})
    assert table.compact("http://example.org/did#x") is None


def test_a_namespace_with_a_barred_prefix_gets_no_other() -> None:
    table = PrefixTable({"f": "http://xmlns.com/foaf/0.1/"}, without={"f"})
    assert table.compact("http://xmlns.com/foaf/0.1/name") is None
    assert PrefixTable({}, without={"foaf"}).compact("http://xmlns.com/foaf/0.1/name") is None


def test_what_two_documents_call_a_namespace_is_kept_apart() -> None:
    """Although names are split only once for all documents."""
    iri = "http://example.org/shared#name"
    for prefix in ("a", "b"):
        table = PrefixTable({prefix: "http://example.org/shared#"})
        assert table.compact(iri) == f"{prefix}:name"
        assert table.used == {prefix: "http://example.org/shared#"}
    assert PrefixTable({}).compact(iri) is None


def test_a_long_name_is_compacted_too() -> None:
    table = PrefixTable({"p": "http://example.org/ns#"})
    assert table.compact("http://example.org/ns#" + "a" * 2000) == "p:" + "a" * 2000
