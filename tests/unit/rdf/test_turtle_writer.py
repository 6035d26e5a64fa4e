"""How a graph reads as Turtle (R-8, R-14)."""

from __future__ import annotations

from textwrap import dedent

import pytest

from podstead.core.media_types import TURTLE
from podstead.rdf.codecs import parse, serialize
from podstead.rdf.graph import Graph, Iri, Literal
from tests.support.rdf_oracle import BASE, assert_same, read

XSD = "http://www.w3.org/2001/XMLSchema#"


def rewritten(content: str, *, base_iri: str = BASE) -> str:
    """Turtle read and written again, after checking that rdflib reads the same in it."""
    document = parse(dedent(content).encode(), TURTLE, base_iri=base_iri)
    written = serialize(document, TURTLE, base_iri=base_iri)
    assert_same(read(written, TURTLE, base_iri=base_iri), document.graph)
    return written.decode()


def test_a_profile_looks_as_a_person_would_write_it() -> None:
    content = dedent("""\
        @prefix ex: <http://example.org/vocab#> .
        @prefix foaf: <http://xmlns.com/foaf/0.1/> .
        @prefix solid: <http://www.w3.org/ns/solid/terms#> .
        @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .

        <#me> a foaf:Person, foaf:Agent ;
            foaf:name "Alice", "Алиса"@ru ;
            foaf:age 42 ;
            foaf:knows [
                a foaf:Person ;
                foaf:name "Bob"
            ], <card#bob> ;
            ex:list ( 1 "two" ( <three> ) ) ;
            ex:none () ;
            ex:flag true ;
            ex:price 9.99 ;
            ex:born "2000-01-01"^^xsd:date ;
            solid:oidcIssuer <https://issuer.example/> .

        <> a foaf:PersonalProfileDocument ;
            foaf:primaryTopic <#me> ;
            ex:text \"""Several
        lines\""" .
        """)
    assert rewritten(content) == content


def test_only_prefixes_in_use_are_declared() -> None:
    written = rewritten(
        "@prefix a: <http://a.example/> . @prefix b: <http://b.example/> . <> b:p 1 ."
    )
    assert written.startswith("@prefix b: <http://b.example/> .\n\n<> b:p 1 .")
    assert "a.example" not in written


def test_customary_prefixes_are_used_where_a_document_has_none() -> None:
    graph = Graph([(Iri(BASE), Iri("http://www.w3.org/ns/ldp#inbox"), Iri(f"{BASE}#x"))])
    assert serialize(graph, TURTLE, base_iri=BASE) == (
        b"@prefix ldp: <http://www.w3.org/ns/ldp#> .\n\n<> ldp:inbox <#x> .\n"
    )


def test_a_document_without_short_names_has_no_header() -> None:
    graph = Graph([(Iri("urn:a"), Iri("urn:b"), Iri("urn:c"))])
    assert serialize(graph, TURTLE) == b"<urn:a> <urn:b> <urn:c> .\n"
    assert serialize(Graph(), TURTLE) == b""


def test_statements_about_one_subject_are_adjacent() -> None:
    written = rewritten("<#a> <#p> 1 . <#b> <#p> 2 . <#a> <#q> 3 . <#a> <#p> 4 .")
    assert written == "<#a> <#p> 1, 4 ;\n    <#q> 3 .\n\n<#b> <#p> 2 .\n"


def test_a_blank_node_mentioned_twice_gets_a_label() -> None:
    written = rewritten("<#a> <#p> _:x, _:y . <#b> <#p> _:x . _:x <#q> 1 . _:y <#q> 2 .")
    assert "_:b0 <#q> 1 ." in written
    assert "[\n        <#q> 2\n    ]" in written


def test_a_blank_node_nobody_mentions_needs_no_label() -> None:
    """The blank Authorizations of ACLs are of this kind (W-12)."""
    assert rewritten("_:x <#p> 1 . _:y <#p> 2 .") == "[] <#p> 1 .\n\n[] <#p> 2 .\n"


def test_a_blank_node_of_which_nothing_is_said_keeps_its_label() -> None:
    assert rewritten("<#a> <#p> [] .") == "<#a> <#p> _:b0 .\n"


@pytest.mark.parametrize(
    "content",
    [
        "_:x <#p> _:x .",
        "_:x <#p> _:y . _:y <#p> _:x .",
        "_:x <#p> _:y . _:y <#p> _:z . _:z <#p> _:x . <#a> <#p> _:x .",
        "_:x <#p> [ <#p> _:x ] .",
    ],
)
def test_circles_of_blank_nodes_are_written_once(content: str) -> None:
    rewritten(content)


RDF = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> ."


@pytest.mark.parametrize(
    "content",
    [
        "<#a> <#p> _:x . _:x rdf:first 1 .",
        "<#a> <#p> _:x . _:x rdf:rest () .",
        "<#a> <#p> _:x . _:x rdf:first 1 ; rdf:rest <#b> .",
        "<#a> <#p> _:x . _:x rdf:first 1 ; rdf:rest 'end' .",
        "<#a> <#p> _:x . _:x rdf:first 1, 2 ; rdf:rest () .",
        "<#a> <#p> _:x . _:x rdf:first 1 ; rdf:rest (), (2) .",
        "<#a> <#p> _:x . _:x rdf:first 1 ; rdf:rest () ; <#q> 1 .",
        "<#a> <#p> _:x . _:x rdf:first 1 ; rdf:rest () ; a rdf:List .",
        "<#a> <#p> _:x . _:x rdf:first 1 ; rdf:rest _:y . _:y rdf:first 2 ; rdf:rest (), _:x .",
        "<#a> <#p> _:x . <#b> <#p> _:y . _:x rdf:first 1 ; rdf:rest _:y . _:y rdf:rest () .",
        "<#a> <#p> _:x, _:y . _:x rdf:first 1 ; rdf:rest _:y . _:y rdf:first 2 ; rdf:rest () .",
        "<#a> <#p> _:x . _:x rdf:first 1 ; rdf:rest _:y . _:y rdf:first 2 ; rdf:rest _:x .",
        "_:x rdf:first 1 ; rdf:rest _:x .",
        "_:x rdf:first 1 ; rdf:rest _:y . _:y rdf:first 2 ; rdf:rest _:x .",
        "<#a> <#p> _:x . _:x rdf:first _:x ; rdf:rest () .",
        "( 1 2 ) <#p> ( 3 ) .",
        "() <#p> () .",
        "<#a> rdf:rest ( 1 ) .",
        "<#a> <#p> ( [ <#q> ( () ) ] ) .",
    ],
)
def test_whatever_is_not_quite_a_list_is_not_written_as_one(content: str) -> None:
    rewritten(f"{RDF} {content}")


def test_a_list_that_breaks_late_is_not_walked_from_each_cell() -> None:
    """Or else a document of a megabyte would take hours."""
    count = 30_000
    cells = "".join(f"_:c{i} rdf:first {i} ; rdf:rest _:c{i + 1} .\n" for i in range(count))
    document = parse(f"{RDF} <#a> <#p> _:c0 .\n{cells}".encode(), TURTLE, base_iri=BASE)
    written = serialize(document, TURTLE, base_iri=BASE)
    assert len(parse(written, TURTLE, base_iri=BASE).graph) == 2 * count + 1


@pytest.mark.parametrize(
    ("lexical", "datatype", "bare"),
    [
        ("0", "integer", True),
        ("-5", "integer", True),
        ("12345678901234567890", "integer", True),
        ("+5", "integer", False),
        ("007", "integer", False),
        ("-0", "integer", False),
        ("five", "integer", False),
        ("1.5", "decimal", True),
        ("-0.5", "decimal", True),
        ("0.0", "decimal", True),
        ("1.50", "decimal", False),
        (".5", "decimal", False),
        ("5.", "decimal", False),
        ("5", "decimal", False),
        ("-0.0", "decimal", False),
        ("1.5E0", "double", False),
        ("true", "boolean", True),
        ("1", "boolean", False),
        ("True", "boolean", False),
        ("x", "string", False),
        ("5", "int", False),
        ("5\n", "integer", False),
    ],
)
def test_numbers_and_booleans_are_bare_in_their_canonical_form(
    lexical: str, datatype: str, *, bare: bool
) -> None:
    literal = Literal(lexical, datatype=Iri(XSD + datatype))
    graph = Graph([(Iri("urn:s"), Iri("urn:p"), literal)])
    written = serialize(graph, TURTLE)
    assert (f"<urn:p> {lexical} ." in written.decode()) is bare
    assert parse(written, TURTLE, base_iri=BASE).graph == graph
    assert_same(read(written, TURTLE), graph)


@pytest.mark.parametrize(
    "value",
    [
        "",
        '"',
        '""',
        '"""',
        "\\",
        "\\\\",
        "\\n",
        "\n",
        "a\nb",
        'a\n"',
        'a\n""',
        'a\n"""',
        'a\n""""b',
        '"""\na',
        "a\n\\",
        'a\n\\"',
        "a\rb\n",
        "a\tb\nc",
        "\x00\n\x01\x7f",
        "\b\f\n",
        "\ufeff\n\u2028\x85",
        "\U0001f600\n",
        "# no comment\n<no:iri>",
    ],
)
@pytest.mark.parametrize("suffix", ["plain", "language", "datatype"])
def test_texts_come_back_character_by_character(value: str, suffix: str) -> None:
    literal = {
        "plain": Literal(value),
        "language": Literal(value, language="en-gb"),
        "datatype": Literal(value, datatype=Iri("http://example.org/dt")),
    }[suffix]
    graph = Graph([(Iri("urn:s"), Iri("urn:p"), literal)])
    written = serialize(graph, TURTLE)
    assert parse(written, TURTLE, base_iri=BASE).graph == graph


def test_type_is_a_word_only_as_a_predicate() -> None:
    written = rewritten(
        "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . rdf:type rdf:type rdf:type ."
    )
    assert "rdf:type a rdf:type ." in written


def test_agents_of_an_acl_are_whole_iris() -> None:
    """R-14: clients search the text of an ACL for a WebID."""
    base_iri = "https://pod.example/alice/.acl"
    written = rewritten(
        """
        @prefix acl: <http://www.w3.org/ns/auth/acl#> .
        @prefix bob: <https://pod.example/bob/#> .
        @prefix foaf: <http://xmlns.com/foaf/0.1/> .
        <#owner> a acl:Authorization ; acl:agent </alice/#me>, bob:me, <#here> ;
            acl:agentClass foaf:Agent ; acl:accessTo <./> ; acl:default <./> ; acl:mode acl:Read .
        """,
        base_iri=base_iri,
    )
    assert (
        "acl:agent <https://pod.example/alice/#me>, <https://pod.example/bob/#me>, "
        "<https://pod.example/alice/.acl#here> ;"
    ) in written
    assert "acl:accessTo <./> ;" in written
    assert "acl:agentClass foaf:Agent ;" in written


def test_the_empty_prefix_of_a_document_is_used() -> None:
    assert "<> :p :o ." in rewritten("@prefix : <http://other.example/#> . <> :p :o .")
