"""Who states what about a container (C-12, C-13, C-25)."""

from __future__ import annotations

import pytest

from podstead.core.media_types import TURTLE
from podstead.rdf.codecs import parse
from podstead.rdf.graph import EMPTY_GRAPH, Graph
from podstead.rdf.listing import (
    ListedMember,
    NotContained,
    claimed_members,
    container_statements,
    member_statements,
    own_triples,
    server_managed,
)

CONTAINER = "https://pod.example/alice/"
MODIFIED_MS = 1_700_000_000_000
MEMBERS = [
    ListedMember("a.ttl", False, "text/turtle", 12, MODIFIED_MS),
    ListedMember("b/", True, "", 0, MODIFIED_MS),
]
PREFIXES = """
    @prefix dcterms: <http://purl.org/dc/terms/> .
    @prefix foaf: <http://xmlns.com/foaf/0.1/> .
    @prefix ldp: <http://www.w3.org/ns/ldp#> .
    @prefix pim: <http://www.w3.org/ns/pim/space#> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    @prefix stat: <http://www.w3.org/ns/posix/stat#> .
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    """


def said(content: str) -> Graph:
    return parse((PREFIXES + content).encode(), TURTLE, base_iri=CONTAINER).graph


def truth() -> Graph:
    return container_statements(
        CONTAINER, is_storage=True, modified_ms=MODIFIED_MS
    ) | member_statements(CONTAINER, MEMBERS)


@pytest.mark.parametrize(
    "statement",
    [
        "<> ldp:contains <a.ttl> .",
        "<> ldp:contains <http://other.example/> .",
        "<> ldp:contains 'text' .",
        "<> a ldp:BasicContainer .",
        "<> a ldp:DirectContainer .",
        "<> a pim:Storage .",
        "<> dcterms:modified '2020-01-01' .",
        "<> stat:mtime 1 .",
        "<> stat:size 1 .",
        "<> stat:anything 1 .",
        "<a.ttl> stat:size 1 .",
        "<a.ttl> dcterms:modified '2020-01-01' .",
        "<b/> a ldp:Container .",
        "<a.ttl> a <http://www.w3.org/ns/iana/media-types/text/turtle#Resource> .",
        "<not-there> a ldp:Resource .",
    ],
)
def test_these_are_the_servers_to_state(statement: str) -> None:
    graph = said(statement)
    assert server_managed(graph, container_url=CONTAINER) == graph
    assert own_triples(graph, container_url=CONTAINER) == EMPTY_GRAPH


@pytest.mark.parametrize(
    "statement",
    [
        "<> dcterms:title 'Mine' .",
        "<> a foaf:PersonalProfileDocument .",
        "<> a 'text' .",
        "<#me> a foaf:Person ; pim:storage <> ; ldp:inbox <inbox/> .",
        "<#me> dcterms:modified '2020-01-01' .",
        "<#me> ldp:contains <a.ttl> .",
        "<a.ttl> rdfs:label 'First' .",
        "<a.ttl#x> dcterms:modified '2020-01-01' .",
        "<b/c.ttl> a ldp:Resource .",
        "<b/#x> a ldp:Resource .",
        "<a?b> stat:size 1 .",
        "<settings/prefs.ttl> a pim:ConfigurationFile .",
        "<https://pod.example/> a ldp:Container .",
        "<https://pod.example/alice> a ldp:Container .",
        "[] a ldp:Container ; stat:size 1 .",
    ],
)
def test_these_are_the_owners_to_state(statement: str) -> None:
    graph = said(statement)
    assert own_triples(graph, container_url=CONTAINER) == graph
    assert server_managed(graph, container_url=CONTAINER) == EMPTY_GRAPH


def test_what_the_server_states_is_told_from_what_the_owner_does() -> None:
    """C-13: a client sends back the representation it read, with a triple of its own changed."""
    sent = truth() | said("<#me> foaf:name 'Alice' .")
    managed = server_managed(sent, container_url=CONTAINER)
    assert managed == truth()
    assert claimed_members(managed, container_url=CONTAINER) == {"a.ttl", "b/"}
    assert own_triples(sent, container_url=CONTAINER) == said("<#me> foaf:name 'Alice' .")


def test_only_statements_of_containment_claim_members() -> None:
    """C-13, C-25."""
    managed = said(
        "<> ldp:contains <a.ttl>, <c/> ; a ldp:Container ; stat:mtime 1 ."
        "<b/> a ldp:Container . <d> stat:size 1 ."
    )
    assert claimed_members(managed, container_url=CONTAINER) == {"a.ttl", "c/"}
    assert claimed_members(EMPTY_GRAPH, container_url=CONTAINER) == frozenset()


@pytest.mark.parametrize(
    "statement",
    [
        "<> ldp:contains ldp:RDFSource .",
        "<> ldp:contains <a.ttl>, <http://other.example/> .",
        "<> ldp:contains <b/c.ttl> .",
        "<> ldp:contains <a.ttl#x> .",
        "<> ldp:contains <> .",
        "<> ldp:contains 'a secret' .",
        "<> ldp:contains [] .",
        "<b/> ldp:contains <a.ttl> .",
    ],
)
def test_what_can_be_no_member_is_a_conflict(statement: str) -> None:
    """C-13; and the response does not repeat what was sent (P-16)."""
    managed = server_managed(said(statement), container_url=CONTAINER)
    with pytest.raises(NotContained) as caught:
        claimed_members(managed, container_url=CONTAINER)
    assert "secret" not in str(caught.value)
