"""How a dataset reads as JSON-LD (R-1, R-9)."""

from __future__ import annotations

import json

import pytest

from podstead.core.media_types import JSON_LD, TRIG, TURTLE
from podstead.rdf.codecs import parse, serialize
from podstead.rdf.graph import Graph, Iri, Literal
from tests.support.rdf_oracle import BASE, assert_same, assert_same_dataset, read

XSD = "http://www.w3.org/2001/XMLSchema#"


def as_json(content: str, media_type: str = TURTLE) -> object:
    """A document as JSON-LD, after checking that we, and rdflib if it can, read the same."""
    document = parse(content.encode(), media_type, base_iri=BASE)
    written = serialize(document, JSON_LD, base_iri=BASE)
    assert_same_dataset(parse(written, JSON_LD, base_iri=BASE).dataset, document.dataset)
    if not document.dataset.named:
        assert_same(read(written, JSON_LD), document.graph)
    value: object = json.loads(written)
    return value


def test_a_profile_looks_as_a_person_would_write_it() -> None:
    content = """
        @prefix foaf: <http://xmlns.com/foaf/0.1/> .
        @prefix ex: <http://example.org/vocab#> .
        <#me> a foaf:Person ;
            foaf:name "Alice", "Алиса"@ru ;
            foaf:age 42 ;
            foaf:knows [ a foaf:Person, foaf:Agent ; foaf:name "Bob" ] ;
            ex:list ( 1 "two" ( <three> ) ) ;
            ex:none () ;
            ex:flag true ;
            ex:price 9.99 .
        """
    assert as_json(content) == {
        "@context": {
            "ex": "http://example.org/vocab#",
            "foaf": "http://xmlns.com/foaf/0.1/",
            "xsd": XSD,
        },
        "@id": f"{BASE}#me",
        "@type": "foaf:Person",
        "foaf:name": ["Alice", {"@value": "Алиса", "@language": "ru"}],
        "foaf:age": 42,
        "foaf:knows": {"@type": ["foaf:Person", "foaf:Agent"], "foaf:name": "Bob"},
        "ex:list": {"@list": [1, "two", {"@list": [{"@id": "http://example.org/folder/three"}]}]},
        "ex:none": {"@list": []},
        "ex:flag": True,
        "ex:price": {"@value": "9.99", "@type": "xsd:decimal"},
    }


def test_several_nodes_are_in_a_graph() -> None:
    assert as_json("<urn:a> <urn:p> 1 . <urn:b> <urn:p> 2 .") == {
        "@graph": [{"@id": "urn:a", "urn:p": 1}, {"@id": "urn:b", "urn:p": 2}]
    }


def test_nothing_is_an_empty_object() -> None:
    assert as_json("") == {}


def test_named_graphs_follow_the_default_graph() -> None:
    """R-9."""
    content = (
        "<urn:a> <urn:p> _:x . <urn:g> { _:x <urn:p> [ <urn:q> 1 ] } _:h { <urn:c> <urn:p> 3 }"
    )
    assert as_json(content, TRIG) == {
        "@graph": [
            {"@id": "urn:a", "urn:p": {"@id": "_:b0"}},
            {"@id": "urn:g", "@graph": [{"@id": "_:b0", "urn:p": {"urn:q": 1}}]},
            {"@id": "_:b1", "@graph": [{"@id": "urn:c", "urn:p": 3}]},
        ]
    }


def test_one_named_graph_is_not_taken_for_the_default_graph() -> None:
    assert as_json("<urn:g> { <urn:a> <urn:p> 1 }", TRIG) == {
        "@graph": [{"@id": "urn:g", "@graph": [{"@id": "urn:a", "urn:p": 1}]}]
    }


def test_a_graphs_name_may_be_described() -> None:
    as_json("<urn:g> <urn:p> 1 . <urn:g> { <urn:g> <urn:p> 2 }", TRIG)
    as_json("_:g <urn:p> 1 . _:g { _:g <urn:p> 2 }", TRIG)


@pytest.mark.parametrize(
    ("lexical", "datatype", "native"),
    [
        ("0", "integer", 0),
        ("-12", "integer", -12),
        ("999999999999999", "integer", 999999999999999),
        ("9007199254740993", "integer", None),
        ("+1", "integer", None),
        ("01", "integer", None),
        ("1", "int", None),
        ("true", "boolean", True),
        ("1", "boolean", None),
        ("1.5E0", "double", None),
        ("1.5", "decimal", None),
    ],
)
def test_a_literal_is_native_only_if_it_comes_back(
    lexical: str, datatype: str, native: object
) -> None:
    graph = Graph([(Iri("urn:s"), Iri("urn:p"), Literal(lexical, datatype=Iri(XSD + datatype)))])
    written = serialize(graph, JSON_LD)
    assert parse(written, JSON_LD, base_iri=BASE).graph == graph
    expected = {"@value": lexical, "@type": f"xsd:{datatype}"} if native is None else native
    assert json.loads(written)["urn:p"] == expected


@pytest.mark.parametrize(
    "content",
    [
        "@prefix did: <http://did.example/#> . <did:web:a> did:p <did:web:b> .",
        "@prefix urn: <http://u.example/#> . <urn:a> a <urn:b> ; urn:c <urn:d> .",
        "@prefix foaf: <http://f.example/#> . <foaf:a> foaf:b 1 .",
        "@prefix mailto: <http://m.example/#> . [] mailto:x <mailto:a@b.example> .",
        "@prefix urn: <urn:a:> . [] urn:x 1 .",
        "@prefix a: <urn:a:> . @prefix urn: <http://u.example/#> . [] a:x 1 ; urn:y 2 .",
        "@prefix a: <b:> . @prefix b: <c:> . @prefix c: <a:> . [] a:x 1 ; b:x 2 ; c:x 3 .",
        "@prefix http: <http://h.example/#> . <http://h.example/#a> http:b <http://c.example/> .",
    ],
)
def test_no_prefix_makes_another_iri_of_an_absolute_one(content: str) -> None:
    """``did:web:a`` would be the prefix "did" and "web:a" if the document used that prefix."""
    as_json(content)


@pytest.mark.parametrize(
    "content",
    [
        "<urn:a> <urn:p> [] .",
        "[] <urn:p> [] .",
        "_:x <urn:p> _:x .",
        "_:x <urn:p> _:y . _:y <urn:p> _:x .",
        "<urn:a> a _:x . _:x <urn:p> 1 .",
        "<urn:a> a [ <urn:p> 1 ] .",
        "<urn:a> a 'no class' .",
        "<urn:a> a 'no class', <urn:b> .",
        "<urn:a> a () .",
        "<urn:a> a <urn:b>, <http://xmlns.com/foaf/0.1/Person>, <http://a.example/x/y> .",
        "( 1 2 ) <urn:p> ( 3 ) .",
        "() <urn:p> () .",
        "<urn:a> <urn:p> ( () ( () ) ) , ( 1 ) , 2 .",
        "<urn:a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#rest> ( 1 ) .",
        "<urn:a> <urn:p> 'x'^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML> .",
        "<@id> <urn:p> <@type> .",
        "<urn:a> <urn:p> '@id', '_:x', '' .",
    ],
)
def test_odd_graphs_come_back_too(content: str) -> None:
    as_json(content)


def test_a_json_literal_stays_a_literal() -> None:
    content = b'{"@id": "urn:a", "urn:p": {"@type": "@json", "@value": {"b": [1, null]}}}'
    document = parse(content, JSON_LD, base_iri=BASE)
    written = serialize(document, JSON_LD)
    assert parse(written, JSON_LD, base_iri=BASE).graph == document.graph


def test_text_is_not_escaped_without_need() -> None:
    graph = Graph([(Iri("urn:s"), Iri("urn:p"), Literal("Ünïcödé </script> \x00"))])
    assert '"Ünïcödé </script> \\u0000"'.encode() in serialize(graph, JSON_LD)
