"""How a graph reads as Turtle (R-8, R-14)."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest
from pyoxigraph import BaseDirection

from podstead.core.media_types import (
    JSON_LD,
    N3,
    N_QUADS,
    N_TRIPLES,
    RDF_TYPES,
    RDF_XML,
    SPARQL_UPDATE,
    TRIG,
    TURTLE,
)
from podstead.rdf.codecs import Document, parse, serialize
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.graph import Dataset, Graph, Iri, Literal
from podstead.rdf.listing import listing
from podstead.rdf.patch_parsers import parse_n3_patch, parse_sparql_update
from tests.support.rdf_oracle import BASE, assert_same, read, read_dataset

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


# --- rdf12 -------------------------------------------------------------------------------------
#
# Readers of RDF 1.1 can read what is written; of RDF 1.2, JSON-LD alone has something.


OTHERS = tuple(each for each in RDF_TYPES if each != JSON_LD)
TEXT = {"@value": "x", "@language": "ar", "@direction": "rtl"}
DIRECTED = Literal("x", language="ar", direction=BaseDirection.RTL)
SUBJECT, PREDICATE = Iri(f"{BASE}#a"), Iri("http://e.example/p")
UNDIRECTED = Graph([(SUBJECT, PREDICATE, Literal("x", language="ar"))])


def sent(*texts: dict[str, str]) -> Document:
    document = {"@id": "#a", PREDICATE.value: list(texts)}
    return parse(json.dumps(document).encode(), JSON_LD, base_iri=BASE)


# --- out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("media_type", OTHERS)
def test_the_direction_of_a_text_is_left_out_of_other_syntaxes(media_type: str) -> None:
    """JSON-LD 1.1 API, section 8.2.2: without ``rdfDirection``, which is the default."""
    document = sent(TEXT)
    assert set(document.graph) == {(SUBJECT, PREDICATE, DIRECTED)}
    for said in (document, document.dataset, document.graph):
        written = serialize(said, media_type, base_iri=BASE)
        assert_same(read(written, media_type), UNDIRECTED)


@pytest.mark.parametrize("media_type", [TURTLE, N_TRIPLES])
def test_texts_that_differ_by_their_direction_are_one_without_it(media_type: str) -> None:
    document = sent(TEXT, {**TEXT, "@direction": "ltr"}, {"@value": "x", "@language": "ar"})
    assert len(document.graph) == 3
    assert serialize(document, media_type, base_iri=BASE).count(b'"x"@ar') == 1


@pytest.mark.parametrize("media_type", [N_QUADS, TRIG])
def test_the_direction_is_left_out_of_named_graphs_too(media_type: str) -> None:
    node = {"@id": "#a", PREDICATE.value: TEXT}
    content = json.dumps({"@id": "#g", "@graph": [node]}).encode()
    written = serialize(parse(content, JSON_LD, base_iri=BASE), media_type)
    graph = read_dataset(written, media_type).graph(f"{BASE}#g")
    assert_same(graph, UNDIRECTED)


@pytest.mark.parametrize("media_type", OTHERS)
def test_a_listing_leaves_directions_out_of_the_owners_triples(media_type: str) -> None:
    listing = _listing(media_type)
    texts = [each for each in read(listing, media_type).objects() if str(each) == "x"]
    assert [getattr(each, "language", None) for each in texts] == ["ar"]
    assert b"rtl" not in listing


def test_a_listing_as_json_ld_keeps_them() -> None:
    nodes = json.loads(_listing(JSON_LD))["@graph"]
    [text] = [node[PREDICATE.value] for node in nodes if PREDICATE.value in node]
    assert text == TEXT


def _listing(media_type: str) -> bytes:
    begun = listing(
        "http://e.example/c/",
        media_type,
        is_storage=False,
        modified_ms=0,
        own_triples=sent(TEXT).graph,
    )
    return begun.head + begun.foot


def test_json_ld_keeps_the_direction() -> None:
    written = serialize(Dataset(sent(TEXT).graph), JSON_LD)
    assert json.loads(written)[PREDICATE.value] == TEXT
    assert parse(written, JSON_LD, base_iri=BASE).graph == sent(TEXT).graph


def test_json_ld_that_is_patched_keeps_the_direction_in_its_own_words() -> None:
    """X-37, R-8."""
    context = {"p": {"@id": PREDICATE.value, "@language": "ar", "@direction": "rtl"}}
    content = json.dumps({"@context": context, "@id": "#a", "p": "x"}).encode()
    document = parse(content, JSON_LD, base_iri=BASE)
    more = Graph([(SUBJECT, PREDICATE, Literal("y", language="ar"))])
    written = json.loads(
        serialize(document.with_graph(document.graph | more), JSON_LD, base_iri=BASE)
    )
    assert written["@context"] == context
    assert written["p"] == ["x", {"@value": "y", "@language": "ar"}]


# --- in ---------------------------------------------------------------------------------------

XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" rdf:version="1.2"
    xmlns:i="http://www.w3.org/2005/11/its" i:version="2.0"><rdf:Description rdf:about="http://e/a">
    <p xmlns="http://e/" xml:lang="ar" i:dir="rtl">x</p></rdf:Description></rdf:RDF>"""


@pytest.mark.parametrize("direction", ["ltr", "rtl", "up"])
@pytest.mark.parametrize("media_type", [TURTLE, TRIG, N_TRIPLES, N_QUADS, N3])
def test_a_direction_is_refused_in_other_syntaxes(media_type: str, direction: str) -> None:
    _assert_refused(f'<http://e/a> <http://e/b> "x"@ar--{direction} .', media_type, "directions")


def test_a_direction_is_refused_in_rdf_xml() -> None:
    _assert_refused(XML, RDF_XML, "directions")
    assert len(parse(XML.replace('i:dir="rtl"', "").encode(), RDF_XML, base_iri=BASE).graph) == 1


def test_a_direction_is_refused_in_named_graphs() -> None:
    _assert_refused('<g> { <a> <b> "x"@ar--rtl }', TRIG, "directions")


PATCH = '[] a <http://www.w3.org/ns/solid/terms#InsertDeletePatch>; <http://www.w3.org/ns/solid/terms#inserts> { <a> <b> "x"@ar--rtl }.'  # noqa: E501 - one patch


def test_a_direction_is_refused_in_patches() -> None:
    with pytest.raises(MalformedRdf, match=r"text/n3.*directions"):
        parse_n3_patch(PATCH.encode(), base_iri=BASE)
    for update in ('INSERT DATA { <a> <b> "x"@ar--rtl }', 'DELETE WHERE { ?s ?p "x"@ar--ltr }'):
        with pytest.raises(MalformedRdf, match=rf"{SPARQL_UPDATE}.*directions"):
            parse_sparql_update(update.encode(), base_iri=BASE)


TRIPLE = '<http://e/a> <http://e/b> "version".'
DIRECTIVES = ['VERSION "1.2"', "version '1.1'", 'VeRsIoN # said so\n "1.2"']


@pytest.mark.parametrize("directive", [*DIRECTIVES, '@version "1.2" .'])
@pytest.mark.parametrize("media_type", [TURTLE, TRIG])
def test_a_version_is_refused_wherever_it_stands(media_type: str, directive: str) -> None:
    for text in (f"{directive}\n{TRIPLE}", f"{TRIPLE}{directive}", f"# a\n{TRIPLE}\n{directive}"):
        _assert_refused(text, media_type, "version")


@pytest.mark.parametrize("media_type", [N_TRIPLES, N_QUADS, N3])
def test_a_version_is_refused_as_such_where_the_library_knows_none(media_type: str) -> None:
    _assert_refused(f'{TRIPLE}\nVERSION "1.2"\n', media_type, "version")


def test_a_version_is_refused_in_an_update() -> None:
    with pytest.raises(MalformedRdf, match=rf"{SPARQL_UPDATE}, line 2.*version"):
        parse_sparql_update(b'\nVERSION "1.2" INSERT DATA { <a> <b> <c> }', base_iri=BASE)


@pytest.mark.parametrize(
    "text",
    [
        '@prefix e: <http://e/>. e:a e:version "1.2" ; e:a.version "a" ; e:owl-version "b".',
        '@prefix version: <http://e/>. version:version version:p "version" , "1".',
        "<a> <b> 'version \"1.2\"' , '''@version \"1.2\" . VERSION \"2\"''' .",
        '# VERSION "1.2"\n<a> <b> "x"@version, "y".',
        '<version> <b> "version", "--rtl", "dir --ltr", "x"@ar-rtl.',
    ],
)
def test_what_only_looks_like_it_is_fine(text: str) -> None:
    assert len(parse(text.encode(), TURTLE, base_iri=BASE).graph) >= 2


def _assert_refused(text: str, media_type: str, reason: str) -> None:
    with pytest.raises(MalformedRdf, match=f"RDF 1.2 .*{reason}"):
        parse(text.encode(), media_type, base_iri=BASE)
