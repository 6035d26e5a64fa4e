"""Datasets are compared without a search for matching blank nodes."""

from __future__ import annotations

import pytest
from hypothesis import given

from podstead.core.media_types import TRIG
from podstead.rdf.codecs import parse
from podstead.rdf.graph import BlankNode, Dataset
from podstead.rdf.jsonld_rewriter import datasets_equivalent
from tests.support.rdf_oracle import BASE
from tests.support.rdf_strategies import datasets


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
