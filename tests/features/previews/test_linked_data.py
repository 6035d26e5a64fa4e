from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import TRIG, TURTLE
from podstead.features.previews.cards import (
    MAX_CARDS,
    MAX_STATEMENTS,
    MAX_VALUES,
    Card,
    Cards,
    CardValue,
    ValueKind,
    read_cards,
    read_statements,
)
from podstead.features.previews.drawing import MAX_NODES, draw
from podstead.features.previews.labels import name_in, vocabulary_label
from podstead.rdf.codecs import parse
from podstead.rdf.graph import Dataset, Graph, Iri, Object, Subject
from podstead.web.pages.links import Address, Links

BASE = "https://pod.example"
LINKS = Links(BASE, ResourcePath("/alice/card"))
PREFIXES = """
    @prefix foaf: <http://xmlns.com/foaf/0.1/> .
    @prefix vcard: <http://www.w3.org/2006/vcard/ns#> .
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    @prefix ex: <https://vocabulary.example/terms#> .
"""


def graph(turtle: str) -> Graph:
    return parse((PREFIXES + turtle).encode(), TURTLE, base_iri=LINKS.document_url).graph


def cards(turtle: str, language: str = "en") -> Cards:
    return read_cards(graph(turtle), LINKS, language)


def values(card: Card, name: str) -> tuple[CardValue, ...]:
    return next(found.values for found in card.properties if found.name == name)


def test_a_profile_reads_like_a_card() -> None:
    card = cards("""
        <> a foaf:PersonalProfileDocument ; foaf:primaryTopic <#me> .
        <#me> a foaf:Person ; foaf:name "Alice" ; foaf:img <photo.jpg> ;
            foaf:mbox <mailto:alice@example.org> ; foaf:homepage <https://alice.example/> ;
            vcard:hasAddress [ vcard:locality "Ghent" ] ;
            ex:shoeSize 38 ; ex:favouriteColours ( "red" "blue" ) .
    """).cards[0]
    assert card.title == "Alice"
    assert card.types == ("Person",)
    assert card.picture == "/.pages/raw/alice/photo.jpg"
    assert values(card, "Home page")[0].link == Address("https://alice.example/", external=True)
    assert values(card, "E-mail")[0].text == "alice@example.org"
    address = values(card, "Address")[0].card
    assert address is not None
    assert values(address, "City")[0].text == "Ghent"
    assert values(card, "shoeSize")[0].kind is ValueKind.NUMBER
    assert [value.text for value in values(card, "favouriteColours")] == ["red", "blue"]


def test_names_are_in_the_readers_language() -> None:
    card = cards('<#me> foaf:name "Cat"@en, "Katze"@de, "Kat"@nl .', "de").cards[0]
    assert card.title == "Katze"
    assert vocabulary_label("http://xmlns.com/foaf/0.1/img", "es") == "Imagen"
    assert vocabulary_label("https://schema.org/name") == vocabulary_label("http://schema.org/name")


def test_links_lead_on_inside_the_pod_and_within_the_document() -> None:
    card = cards("<#me> foaf:knows <#bob>, </bob/card#me> . <#bob> foaf:name 'Bob' .").cards[0]
    first, second = values(card, "Knows")
    assert (first.text, first.link) == ("Bob", Address("#card-2", external=False))
    assert second.link == Address("/.pages/files/bob/card#me", external=False)


@pytest.mark.parametrize(
    "path",
    [
        ".pages/sign-out",
        "./.pages/sign-out",
        "a/../.pages/sign-out",
        "%2e/.pages/sign-out",
        "a/%2E%2e/.pages/sign-out",
        "%2epages/sign-out",
        ".pa\nges/sign-out",
        "\\.pages/sign-out",
        "/.pages/sign-out",
        ".well-known/solid",
    ],
)
def test_content_links_to_no_page_of_the_server_however_it_is_written(path: str) -> None:
    assert LINKS.of(f"{BASE}/{path}") is None
    assert LINKS.path_of(f"{BASE}/{path}") is None
    assert LINKS.picture(f"{BASE}/{path}") is None


@pytest.mark.parametrize(
    ("iri", "href"),
    [
        (f"{BASE}/alice/./b/../c?x#y", "/.pages/files/alice/c#y"),
        (f"{BASE}/alice/%7euser", "/.pages/files/alice/~user"),
        (f"{BASE}/alice/a%2Fb", "/.pages/files/alice/a%2Fb"),
        (BASE.replace("/", "\\") + "\\@evil.example\\", "/.pages/files/@evil.example/"),
        ("https://other.example/a/../b?c d#e", "https://other.example/b?c%20d#e"),
        ("https:\\\\other.example\\x", "https://other.example/x"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example/"),
    ],
)
def test_a_link_leads_where_a_browser_would_go(iri: str, href: str) -> None:
    found = LINKS.of(iri)
    assert found is not None
    assert found.href == href


@pytest.mark.parametrize(
    "iri",
    [
        "javascript:alert(1)",
        "JAVASCRIPT:alert(1)",
        "data:text/html,<script>",
        "vbscript:x",
        "file:///etc/passwd",
        "blob:https://pod.example/x",
        "urn:uuid:0",
        "https://",
        "https://pod.example@evil.example/",
        "mailto:a@b?subject=x&body=y",
        "x" * 10_000,
    ],
)
def test_other_schemes_and_broken_addresses_are_text(iri: str) -> None:
    assert LINKS.of(iri) is None


@pytest.mark.parametrize(
    "iri",
    [
        "https://pod.example/../.pages/sign-out",
        "https://pod.example/.pages/sign-out",
        "https://pod.example/%2e%2e/.pages/",
        "https://pod.example/.well-known/x",
        "https://pod.example//evil.example/",
    ],
)
def test_no_address_in_content_is_taken_for_one_of_the_pages(iri: str) -> None:
    link = LINKS.of(iri)
    assert link is None or link.external
    assert LINKS.picture(iri) is None


@given(st.text(max_size=60))
def test_no_link_can_leave_its_attribute(text: str) -> None:
    for iri in (text, f"https://{text}", f"https://pod.example/{text}", f"mailto:{text}"):
        link = LINKS.of(iri)
        if link is not None:
            assert not set(link.href) & set('"<> \n`')


def test_pictures_of_other_servers_are_not_loaded() -> None:
    card = cards("<#me> foaf:img <https://tracker.example/pixel.png> .").cards[0]
    assert card.picture is None
    assert values(card, "Picture")[0].picture is None
    assert values(card, "Picture")[0].link == Address("https://tracker.example/pixel.png", True)


def test_blank_nodes_in_a_circle_have_cards_and_end() -> None:
    read = cards("_:a ex:next _:b . _:b ex:next _:a .")
    assert len(read.cards) == 2
    deep = cards("<#x> ex:p " + "[ ex:p " * 40 + "1" + " ]" * 40 + " .")
    assert len(deep.cards) == 1


def test_long_lists_and_documents_are_bounded() -> None:
    card = cards("<#x> ex:p ( " + "1 " * 3_000 + ") .").cards[0]
    assert len(card.properties[0].values) == MAX_VALUES
    assert card.properties[0].more == 3_000 - MAX_VALUES
    read = cards("".join(f"<#{n}> ex:p {n} .\n" for n in range(1_000)))
    assert len(read.cards) == MAX_CARDS
    assert read.more == 1_000 - MAX_CARDS


def test_what_is_referred_to_often_is_not_read_again_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = Counter[str]()
    objects = Graph.objects

    def counted_objects(self: Graph, subject: Subject, predicate: Iri) -> Sequence[Object]:
        read["objects"] += 1
        return objects(self, subject, predicate)

    def counted_name(graph: Graph, subject: Subject, language: str) -> str | None:
        read[f"name of {subject.value}"] += 1
        return name_in(graph, subject, language)

    monkeypatch.setattr(Graph, "objects", counted_objects)
    monkeypatch.setattr("podstead.features.previews.labels.name_in", counted_name)
    cells = "".join(f"_:c{n} rdf:first {n} ; rdf:rest _:c{n + 1} .\n" for n in range(1_000))
    references = "".join(f"<#{s}> ex:p{p} _:c0, <#named> .\n" for s in range(20) for p in range(50))
    rdf = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"
    cards(f'{rdf}{references}{cells}<#named> foaf:name "x" .')
    assert read["objects"] < 100_000
    assert read[f"name of {LINKS.document_url}#named"] == 1


def test_a_circular_list_ends() -> None:
    cards("""@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
             <#x> ex:p _:l . _:l rdf:first 1 ; rdf:rest _:l .""")


def test_statements_are_complete_and_bounded() -> None:
    read = read_statements(
        Dataset(graph("".join(f"<#x> ex:p {n} .\n" for n in range(MAX_STATEMENTS + 7)))), LINKS
    )
    assert len(read.rows) == MAX_STATEMENTS
    assert read.more == 7
    assert read.rows[0].subject.text == "<#x>"
    assert read.rows[0].object.note == "http://www.w3.org/2001/XMLSchema#integer"


def test_statements_name_their_graphs() -> None:
    quads = parse(b"<#g> { <#s> <#p> 'o'@en } <#s> <#p> <#o> .", TRIG, base_iri=LINKS.document_url)
    read = read_statements(quads.dataset, LINKS)
    assert [row.graph and row.graph.text for row in read.rows] == [None, "<#g>"]
    assert read.rows[1].object.note == "en"


def test_a_drawing_has_its_subject_in_the_middle() -> None:
    drawing = draw(graph("<#me> foaf:name 'Alice' ; foaf:knows <#b>, <#c>, <#d> . "), LINKS)
    middle = next(node for node in drawing.nodes if node.name == "Alice" and node.shape == "thing")
    assert (middle.x, middle.y) == pytest.approx((drawing.width / 2, drawing.height / 2), abs=1)
    assert len(drawing.edges) == 4


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3), st.integers(0, 60)), max_size=120))
def test_every_drawing_is_bounded_and_its_nodes_are_apart(
    statements: list[tuple[int, int, int]],
) -> None:
    turtle = "".join(f"<#n{s}> ex:p{p} <#n{o}> .\n" for s, p, o in statements)
    drawing = draw(graph(turtle), LINKS)
    assert len(drawing.nodes) <= MAX_NODES
    places = [(node.x, node.y) for node in drawing.nodes]
    assert len(set(places)) == len(places)
    for x, y in places:
        assert 0 < x < drawing.width
        assert 0 < y < drawing.height
        assert not math.isnan(x)
    assert drawing == draw(graph(turtle), LINKS)


def test_every_vocabulary_term_has_a_label_in_each_language() -> None:
    from podstead.features.previews.labels import _table  # noqa: PLC0415

    assert all(len(labels) == 4 and all(labels) for labels in _table().values())
