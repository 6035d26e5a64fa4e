"""Graphs and datasets as values."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

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
