"""Who states what about a container (C-12, C-13, C-25)."""

from __future__ import annotations

import json

import pytest

from podstead.core.identifiers import encode_segment
from podstead.core.media_types import JSON_LD, RDF_TYPES, RDF_XML, TURTLE
from podstead.core.vocab import LDP, STAT
from podstead.rdf.codecs import parse
from podstead.rdf.errors import NotExpressible, UnsupportedRdfType
from podstead.rdf.graph import EMPTY_GRAPH, Graph, Iri, Literal
from podstead.rdf.listing import (
    LISTING_TYPES,
    ListedMember,
    NotContained,
    claimed_members,
    container_statements,
    listing,
    member_statements,
    server_managed,
)
from tests.support.rdf_oracle import assert_same, read

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
    assert graph - server_managed(graph, container_url=CONTAINER) == EMPTY_GRAPH


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
    assert graph - server_managed(graph, container_url=CONTAINER) == graph
    assert server_managed(graph, container_url=CONTAINER) == EMPTY_GRAPH


def test_what_the_server_states_is_told_from_what_the_owner_does() -> None:
    """C-13: a client sends back the representation it read, with a triple of its own changed."""
    sent = truth() | said("<#me> foaf:name 'Alice' .")
    managed = server_managed(sent, container_url=CONTAINER)
    assert managed == truth()
    assert claimed_members(managed, container_url=CONTAINER) == {"a.ttl", "b/"}
    assert sent - server_managed(sent, container_url=CONTAINER) == said("<#me> foaf:name 'Alice' .")


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


# --- The representation of a container (C-23 to C-27, C-29) ------------------------------------


LISTED = "https://pod.example/alice/notes/"
LISTED_MODIFIED_MS = 1_700_000_000_999


def document(name: str, *, media_type: str = "text/turtle", size_bytes: int = 12) -> ListedMember:
    return ListedMember(name, False, media_type, size_bytes, LISTED_MODIFIED_MS)


def container(name: str) -> ListedMember:
    return ListedMember(name, True, "text/turtle", 0, LISTED_MODIFIED_MS)


def rendered(
    media_type: str,
    *pages: list[ListedMember],
    own: Graph = EMPTY_GRAPH,
    is_storage: bool = False,
) -> bytes:
    begun = listing(
        LISTED,
        media_type,
        is_storage=is_storage,
        modified_ms=LISTED_MODIFIED_MS,
        own_triples=own,
    )
    return begun.head + b"".join(map(begun.page, pages)) + begun.foot


EXPECTED = """
    @prefix dcterms: <http://purl.org/dc/terms/> .
    @prefix ldp: <http://www.w3.org/ns/ldp#> .
    @prefix stat: <http://www.w3.org/ns/posix/stat#> .
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    <> a ldp:Container, ldp:BasicContainer, ldp:Resource ;
        dcterms:modified "2023-11-14T22:13:20Z"^^xsd:dateTime ;
        stat:mtime 1700000000 ;
        ldp:contains <a.ttl>, <b/> .
    <a.ttl> a ldp:Resource, <http://www.w3.org/ns/iana/media-types/text/turtle#Resource> ;
        dcterms:modified "2023-11-14T22:13:20Z"^^xsd:dateTime ;
        stat:mtime 1700000000 ;
        stat:size 12 .
    <b/> a ldp:Container, ldp:BasicContainer, ldp:Resource ;
        dcterms:modified "2023-11-14T22:13:20Z"^^xsd:dateTime ;
        stat:mtime 1700000000 .
    """


@pytest.mark.parametrize("media_type", LISTING_TYPES)
def test_a_listing_says_what_the_server_knows(media_type: str) -> None:
    """C-23, C-24, C-25: times in whole seconds, as Last-Modified has them."""
    content = rendered(media_type, [document("a.ttl"), container("b/")])
    expected = read(EXPECTED, TURTLE, base_iri=LISTED)
    assert_same(read(content, media_type, base_iri=LISTED), expected)
    assert_same(parse(content, media_type, base_iri=LISTED).graph, expected)


@pytest.mark.parametrize("media_type", LISTING_TYPES)
def test_it_says_the_same_as_the_statements_do(media_type: str) -> None:
    members = [document("a.ttl"), container("b/"), document("c", media_type="image/png")]
    statements = container_statements(
        LISTED, is_storage=True, modified_ms=LISTED_MODIFIED_MS
    ) | member_statements(LISTED, members)
    content = rendered(media_type, members, is_storage=True)
    assert parse(content, media_type, base_iri=LISTED).graph == statements


@pytest.mark.parametrize("media_type", LISTING_TYPES)
def test_only_a_storage_is_a_storage(media_type: str) -> None:
    """C-25."""
    assert b"space#Storage" not in rendered(media_type)
    graph = parse(rendered(media_type, is_storage=True), media_type, base_iri=LISTED).graph
    storage = Iri("http://www.w3.org/ns/pim/space#Storage")
    assert graph.subjects(object_=storage) == [Iri(LISTED)]


@pytest.mark.parametrize("media_type", LISTING_TYPES)
@pytest.mark.parametrize("cut", range(6))
def test_pages_make_no_difference(media_type: str, cut: int) -> None:
    """C-29: it is sent while it is read."""
    members = [document(f"{number}.ttl") for number in range(5)]
    whole = rendered(media_type, members)
    assert rendered(media_type, members[:cut], [], members[cut:]) == whole
    assert rendered(media_type, *([member] for member in members)) == whole


@pytest.mark.parametrize("media_type", LISTING_TYPES)
def test_own_triples_are_a_part_of_it(media_type: str) -> None:
    """C-30: the container's description and its representation are one graph."""
    own = parse(
        b"""
        @prefix foaf: <http://xmlns.com/foaf/0.1/> .
        <> <http://purl.org/dc/terms/title> "Notes" .
        <#me> foaf:knows [ foaf:name "Bob" ], <x> ; foaf:nick ( "a" "b" ) .
        <a.ttl> <http://www.w3.org/2000/01/rdf-schema#label> "first" .
        """,
        TURTLE,
        base_iri=LISTED,
    ).graph
    members = [document("a.ttl")]
    statements = container_statements(LISTED, is_storage=False, modified_ms=LISTED_MODIFIED_MS)
    content = rendered(media_type, members, own=own)
    assert_same(
        read(content, media_type, base_iri=LISTED),
        statements | own | member_statements(LISTED, members),
    )


ODD_NAMES = [
    "a:b",
    "http:x",
    "urn:x:y",
    "@id",
    "@type/",
    "_:b0",
    "_x",
    "~",
    "...",
    ".hidden",
    "-",
    "a%20b",
    "%2F",
    "%5C",
    "%3Cx%3E",
    "%22quoted%22",
    "%E4%BC%9D%E8%A8%80.ttl",
    "%00",
    "a%3Fb%23c",
    "!$&'()*+,;=",
    "x" * 255,
]


@pytest.mark.parametrize("media_type", LISTING_TYPES)
def test_odd_names_are_read_as_what_they_are(media_type: str) -> None:
    members = [document(name) for name in ODD_NAMES if not name.endswith("/")]
    members += [container(f"{name.rstrip('/')}/") for name in ODD_NAMES]
    graph = read(rendered(media_type, members), media_type, base_iri=LISTED)
    contained = {
        str(member)
        for _, predicate, member in graph
        if str(predicate) == "http://www.w3.org/ns/ldp#contains"
    }
    assert contained == {LISTED + member.name for member in members}


@pytest.mark.parametrize("media_type", LISTING_TYPES)
def test_every_byte_may_stand_in_a_name(media_type: str) -> None:
    names = [encode_segment(bytes([65, byte, 66])) for byte in range(256)]
    content = rendered(media_type, [document(name) for name in names])
    graph = parse(content, media_type, base_iri=LISTED).graph
    assert graph.objects(Iri(LISTED), Iri(f"{LDP}contains")) == tuple(
        Iri(LISTED + name) for name in names
    )


@pytest.mark.parametrize("media_type", LISTING_TYPES)
@pytest.mark.parametrize(
    "odd", ["a/b^c", "a/b|c", "a/b`c", "a/b#c", "a/b%c", "application/ld+json", "x/*"]
)
def test_media_types_make_classes_that_are_iris(media_type: str, odd: str) -> None:
    content = rendered(media_type, [document("a", media_type=odd)])
    assert len(read(content, media_type, base_iri=LISTED)) == 5 + 6


def test_the_json_reads_as_a_tree_without_rdf() -> None:
    value = json.loads(rendered(JSON_LD, [document("a.ttl"), container("b/")]))
    (node,) = value["@graph"]
    assert node["@id"] == LISTED
    assert [member["@id"] for member in node["ldp:contains"]] == [
        LISTED + "a.ttl",
        LISTED + "b/",
    ]
    assert node["ldp:contains"][0]["stat:size"] == 12
    assert json.loads(rendered(JSON_LD))["@graph"][0]["ldp:contains"] == []


def test_a_prefix_that_an_own_triple_would_suffer_from_is_not_used() -> None:
    own = Graph([(Iri("stat:x"), Iri("ldp:y"), Literal("z"))])
    graph = parse(rendered(JSON_LD, [document("a")], own=own), JSON_LD, base_iri=LISTED).graph
    assert (Iri("stat:x"), Iri("ldp:y"), Literal("z")) in graph
    assert graph.objects(Iri(f"{LISTED}a"), Iri(f"{STAT}size"))


@pytest.mark.parametrize("media_type", ["application/json", "text/html"])
def test_other_types_are_refused(media_type: str) -> None:
    with pytest.raises(UnsupportedRdfType):
        rendered(media_type)


def test_turtle_is_the_default() -> None:
    """C-27."""
    assert LISTING_TYPES[0] == TURTLE


def test_a_container_is_available_in_every_type_of_documents() -> None:
    """R-2, R-6."""
    assert LISTING_TYPES == RDF_TYPES


def test_own_triples_that_xml_cannot_say_are_refused_before_anything_is_sent() -> None:
    """The last part of a property's IRI would have to be an XML name."""
    own = Graph([(Iri(LISTED), Iri("https://example.org/1"), Literal("one"))])
    with pytest.raises(NotExpressible):
        rendered(RDF_XML, own=own)
