"""Readers of RDF 1.1 can read what is written; of RDF 1.2, JSON-LD alone has something (R-1)."""

from __future__ import annotations

import json

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
from podstead.rdf.codecs import Document, MalformedRdf, parse, serialize
from podstead.rdf.graph import Dataset, Graph, Iri, Literal
from podstead.rdf.listing import Listing
from podstead.rdf.n3_patch import parse_n3_patch
from podstead.rdf.sparql_update import parse_sparql_update
from tests.support.rdf_oracle import BASE, assert_same, read, read_dataset

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
    listing = Listing(
        container_url="http://e.example/c/",
        is_storage=False,
        modified_ms=0,
        own_triples=sent(TEXT).graph,
        media_type=media_type,
    )
    return listing.begin() + listing.end()


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
