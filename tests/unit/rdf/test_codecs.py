"""Bytes to RDF and back (R-1, R-6, R-7, R-9, R-10, R-12, R-13)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from podstead.core.errors import BadRequest, BodyTooLarge, NotAcceptable, UnsupportedMediaType
from podstead.core.media_types import (
    JSON_LD,
    N3,
    N_QUADS,
    N_TRIPLES,
    RDF_TYPES,
    RDF_XML,
    TRIG,
    TURTLE,
)
from podstead.rdf.codecs import Document, parse, repair_missing_final_dot, serialize
from podstead.rdf.errors import (
    MalformedRdf,
    NotExpressible,
    RdfTooComplex,
    RdfTooLarge,
    UnknownContext,
    UnsupportedCharset,
    UnsupportedRdfType,
)
from podstead.rdf.graph import EMPTY_GRAPH, BlankNode, Dataset, Graph, Iri, Literal
from podstead.rdf.limits import RdfLimits
from tests.support.rdf_oracle import BASE, assert_same, assert_same_dataset, read, read_dataset

TURTLE_EXAMPLES = sorted((Path(__file__).parents[2] / "vectors/rdf/turtle").glob("*.ttl"))

SMALL = {
    TURTLE: b'<#a> <#p> "x"@en, 1 .',
    N3: b'<#a> <#p> "x"@en, 1 .',
    TRIG: b'<#a> <#p> "x"@en, 1 .',
    N_TRIPLES: (
        b"<http://example.org/folder/document#a> <http://example.org/folder/document#p> "
        b'"x"@en .\n<http://example.org/folder/document#a> '
        b'<http://example.org/folder/document#p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    ),
    JSON_LD: (
        b'{"@id": "#a", "http://example.org/folder/document#p": '
        b'[{"@value": "x", "@language": "en"}, 1]}'
    ),
    RDF_XML: (
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        b'xmlns:d="http://example.org/folder/document#"><rdf:Description rdf:about="#a">'
        b'<d:p xml:lang="en">x</d:p>'
        b'<d:p rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">1</d:p>'
        b"</rdf:Description></rdf:RDF>"
    ),
}
SMALL[N_QUADS] = SMALL[N_TRIPLES]

EXPECTED = Graph(
    [
        (Iri(f"{BASE}#a"), Iri(f"{BASE}#p"), Literal("x", language="en")),
        (
            Iri(f"{BASE}#a"),
            Iri(f"{BASE}#p"),
            Literal("1", datatype=Iri("http://www.w3.org/2001/XMLSchema#integer")),
        ),
    ]
)


@pytest.mark.parametrize("media_type", RDF_TYPES)
def test_every_rdf_type_is_read(media_type: str) -> None:
    """R-6, R-7: relative IRIs resolve against the resource's URL."""
    document = parse(SMALL[media_type], media_type, base_iri=BASE)
    assert document.graph == EXPECTED
    assert not document.dataset.named


@pytest.mark.parametrize("media_type", RDF_TYPES)
def test_every_rdf_type_is_written_and_reads_the_same(media_type: str) -> None:
    """R-1, R-6."""
    written = serialize(EXPECTED, media_type, base_iri=BASE)
    assert parse(written, media_type, base_iri=BASE).graph == EXPECTED
    if media_type != N3:
        assert_same(read(written, media_type), EXPECTED)


@pytest.mark.parametrize("media_type", RDF_TYPES)
def test_an_empty_document_of_every_type_has_no_triples(media_type: str) -> None:
    """C-16: a document of length zero is valid Turtle."""
    written = serialize(EMPTY_GRAPH, media_type, base_iri=BASE)
    assert len(parse(written, media_type, base_iri=BASE).dataset) == 0
    if media_type in (TURTLE, N_TRIPLES, N_QUADS, TRIG, N3):
        assert len(parse(b"", media_type, base_iri=BASE).dataset) == 0


@pytest.mark.parametrize("path", TURTLE_EXAMPLES, ids=lambda path: path.stem)
def test_turtle_as_the_specification_shows_it(path: Path) -> None:
    expected = read(path.with_suffix(".nt").read_text(), N_TRIPLES)
    document = parse(path.read_bytes(), TURTLE, base_iri=BASE)
    assert_same(document.graph, expected)
    for media_type in (TURTLE, JSON_LD, N_TRIPLES):
        written = serialize(document, media_type, base_iri=BASE)
        assert_same(read(written, media_type), expected)


@pytest.mark.parametrize(
    "suffix",
    ["", "; charset=UTF-8", ";charset=utf-8", '; charset="utf-8"', "; Charset=Utf8; x=y"],
)
@pytest.mark.parametrize("media_type", [TURTLE, JSON_LD])
def test_a_charset_that_is_utf_8_is_tolerated(media_type: str, suffix: str) -> None:
    """R-13."""
    assert len(parse(SMALL[media_type], media_type.upper() + suffix, base_iri=BASE).graph) == 2


@pytest.mark.parametrize("media_type", RDF_TYPES)
def test_another_charset_is_refused_by_name(media_type: str) -> None:
    """R-13."""
    with pytest.raises(UnsupportedCharset, match="iso-8859-1") as caught:
        parse(SMALL[media_type], f"{media_type}; charset=iso-8859-1", base_iri=BASE)
    assert isinstance(caught.value, UnsupportedMediaType)


@pytest.mark.parametrize("media_type", ["application/json", "text/html", "text/plain"])
def test_other_types_are_not_rdf(media_type: str) -> None:
    """R-6: JSON is bytes."""
    with pytest.raises(UnsupportedRdfType, match=media_type):
        parse(b"{}", media_type, base_iri=BASE)
    with pytest.raises(UnsupportedRdfType, match=media_type):
        serialize(EXPECTED, media_type)


@pytest.mark.parametrize("media_type", [TURTLE, JSON_LD])
def test_a_byte_order_mark_is_not_part_of_the_document(media_type: str) -> None:
    assert parse(b"\xef\xbb\xbf" + SMALL[media_type], media_type, base_iri=BASE).graph == EXPECTED


@pytest.mark.parametrize(
    ("media_type", "content", "line", "reason"),
    [
        (TURTLE, b"<a> <b> <c> .\n<a> <b .> <c> .", 2, "Invalid IRI"),
        (TURTLE, b"<a> <b> <c> .\n\n<a> <b> <c>", 3, "Unexpected end"),
        (TURTLE, b"<a> foaf:name 'x' .", 1, "foaf"),
        (TURTLE, b'<a> "x" <c> .', 1, "predicate"),
        (TURTLE, b"<a> <b> \xff .", 1, ""),
        (TURTLE, b'<a> <b> "\xe9" .', 1, "UTF-8"),
        (TURTLE, b'<a> <b> "\\uD800" .', 1, ""),
        (N_TRIPLES, b"<http://a.example/> <b> <c> .", 1, ""),
        (JSON_LD, b'{\n"@id": "a",\n}', 3, "trailing comma"),
        (JSON_LD, b"", None, "truncated"),
        (JSON_LD, b'{\n"@id": "\xff"}', 2, "UTF-8"),
        (JSON_LD, b'{"@id": NaN}', 1, "invalid"),
        (JSON_LD, b'{"@context": 5}', None, "context"),
        (JSON_LD, b'{"@id": 5}', None, "@id"),
        (JSON_LD, b'{"@context": {"@import": 1}}', None, "@import"),
        (RDF_XML, b"<rdf:RDF\n", 1, "token"),
        (RDF_XML, b"<a>\n<b></a>", 2, "mismatched tag"),
        (RDF_XML, SMALL[RDF_XML].replace(b"<d:p xml", b'<rdf:RDF rdf:about="x" xml'), None, ""),
    ],
)
def test_a_malformed_document_is_refused_with_line_and_reason(
    media_type: str, content: bytes, line: int | None, reason: str
) -> None:
    """R-12."""
    with pytest.raises(MalformedRdf) as caught:
        parse(content, media_type, base_iri=BASE)
    assert isinstance(caught.value, BadRequest)
    assert media_type in str(caught.value)
    if line is not None:
        assert caught.value.line == line
        assert f"line {line}" in str(caught.value)
    assert reason.lower() in caught.value.reason.lower()


@pytest.mark.parametrize(
    ("media_type", "content", "place"),
    [
        (TURTLE, b'<a> <b> "c" .\n<a> <b> nonsense .', (2, 9)),
        (TURTLE, '<a> <b> "\u00e9" \u00e9'.encode(), (1, 13)),
        (JSON_LD, '{"\u00e9": 1,\n "\u00e9\u00e9": x}'.encode(), (2, 8)),
        (RDF_XML, b"<a>\n <b></a>", (2, 7)),
    ],
)
def test_the_place_of_an_error_is_given_in_characters(
    media_type: str, content: bytes, place: tuple[int, int]
) -> None:
    with pytest.raises(MalformedRdf) as caught:
        parse(content, media_type, base_iri=BASE)
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize(
    ("media_type", "content"),
    [(TURTLE, b"<\n{"), (TURTLE, b'<a> <b> "open\n'), (JSON_LD, b"<\n{"), (RDF_XML, b"<\n{")],
)
def test_a_refusal_names_the_place_once(media_type: str, content: bytes) -> None:
    with pytest.raises(MalformedRdf) as caught:
        parse(content, media_type, base_iri=BASE)
    assert str(caught.value).count("line") <= 1
    assert "Parser error" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"<a> <b> <<( <a> <b> <c> )>> .",
        b"<< <a> <b> <c> >> <d> <e> .",
        b"<a> <b> <c> {| <d> <e> |} .",
        b"<a> <b> <c> ~ <d> .",
        b"<a> <b> <c>~ .",
    ],
)
def test_triple_terms_are_refused(content: bytes) -> None:
    """JSON-LD has no form for them, and R-1 wants every RDF source in both."""
    with pytest.raises(MalformedRdf, match="triple terms"):
        parse(content, TURTLE, base_iri=BASE)


@pytest.mark.parametrize("media_type", [TRIG, N_TRIPLES, N_QUADS])
def test_triple_terms_are_refused_in_the_syntaxes_like_turtle(media_type: str) -> None:
    with pytest.raises(MalformedRdf, match="triple terms"):
        parse(b"<a:a> <a:b> <<( <a:a> <a:b> <a:c> )>> .", media_type, base_iri=BASE)


def test_triple_terms_are_refused_in_rdf_xml() -> None:
    content = (
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="a:"'
        b' rdf:version="1.2"><rdf:Description rdf:about="a:a"><a:b rdf:parseType="Triple">'
        b'<rdf:Description rdf:about="a:a"><a:b rdf:resource="a:c"/></rdf:Description>'
        b"</a:b></rdf:Description></rdf:RDF>"
    )
    with pytest.raises(MalformedRdf, match="triple terms"):
        parse(content, RDF_XML, base_iri=BASE)


@pytest.mark.parametrize("embedded", ["@id", "@annotation"])
def test_json_ld_has_no_triple_terms(embedded: str) -> None:
    """Its documents are not searched for them, so the parser must never return one."""
    triple = {"@id": "a:a", "a:b": {"@id": "a:c"}}
    document = {"@id": "a:a", "a:b": {"@id": "a:c"}, embedded: triple}
    for each in (document, {"@id": "a:x", "a:y": document}):
        content = json.dumps(each).encode()
        try:
            graph = parse(content, JSON_LD, base_iri=BASE).graph
        except MalformedRdf:
            continue
        assert {type(term) for triple in graph for term in triple} <= {Iri, BlankNode, Literal}


def test_marks_of_triple_terms_are_allowed_in_texts_and_iris() -> None:
    document = parse(b'<~a> <b> "<<( {| ~" .', TURTLE, base_iri=BASE)
    assert len(document.graph) == 1


def test_n3_is_read_as_far_as_it_is_triples() -> None:
    with pytest.raises(MalformedRdf, match="formulas"):
        parse(b"<a> <b> { <c> <d> <e> } .", N3, base_iri=BASE)
    with pytest.raises(MalformedRdf):
        parse(b"?x <b> <c> .", N3, base_iri=BASE)


def test_the_base_of_the_document_comes_before_its_url() -> None:
    """R-7, as the fixture of content-negotiation-turtle has it."""
    content = b"@base <http://example.org> . <#hello> <http://purl.org/dc/terms/title> 'x' ."
    document = parse(content, TURTLE, base_iri="https://pod.example/a/b")
    assert document.graph.subjects() == [Iri("http://example.org#hello")]
    assert document.base_iri == "http://example.org"
    as_json = serialize(document, JSON_LD, base_iri="https://pod.example/a/b")
    assert parse(as_json, JSON_LD, base_iri="https://pod.example/a/b").graph == document.graph


@pytest.mark.parametrize("media_type", [JSON_LD, N_QUADS, TRIG])
def test_named_graphs_survive_where_the_format_has_them(media_type: str) -> None:
    """R-9."""
    content = (
        b'{"@id": "#g", "http://schema.org/about": {"@id": "#a"}, "@graph": '
        b'[{"@id": "#a", "http://schema.org/name": "x", "http://schema.org/knows": {"@id": "_:n"}},'
        b' {"@id": "_:b", "@graph": {"@id": "_:n", "http://schema.org/name": "y"}}]}'
    )
    document = parse(content, JSON_LD, base_iri=BASE)
    assert [len(graph) for graph in document.dataset.named.values()] == [2, 1]
    assert len(document.graph) == 1
    written = serialize(document, media_type, base_iri=BASE)
    assert_same_dataset(parse(written, media_type, base_iri=BASE).dataset, document.dataset)
    assert len(read_dataset(written, media_type)) == 4


@pytest.mark.parametrize("media_type", [TURTLE, N_TRIPLES, RDF_XML, N3])
def test_other_formats_get_the_default_graph_alone(media_type: str) -> None:
    """R-10."""
    content = b"<http://a.example/#s> <http://a.example/#p> 1 . <#g> { <#x> <#y> 2 }"
    document = parse(content, TRIG, base_iri=BASE)
    written = serialize(document, media_type, base_iri=BASE)
    assert parse(written, media_type, base_iri=BASE).graph == document.graph
    assert b"#x" not in written


def test_prefixes_of_a_document_are_kept() -> None:
    document = parse(
        b"@prefix f: <http://xmlns.com/foaf/0.1/> . <> f:name 'x' .", TURTLE, base_iri=BASE
    )
    assert document.prefixes["f"] == "http://xmlns.com/foaf/0.1/"
    for media_type in (TURTLE, JSON_LD):
        assert b"f:name" in serialize(document, media_type, base_iri=BASE)


@pytest.mark.parametrize("media_type", RDF_TYPES)
def test_the_same_graph_gives_the_same_bytes(media_type: str) -> None:
    """P-24: a strong entity tag promises the bytes; the parser labels blank nodes at random."""
    content = b"[] <#p> [ <#q> _:x, ( 1 [] ) ] . _:x <#p> _:x, _:y ."
    first, second = (parse(content, TURTLE, base_iri=BASE) for _ in range(2))
    assert first.graph != second.graph, "or else this shows nothing"
    assert serialize(first, media_type) == serialize(second, media_type)


def test_another_graph_of_a_document_keeps_its_prefixes() -> None:
    document = parse(SMALL[TURTLE], TURTLE, base_iri=BASE)
    changed = document.with_graph(EMPTY_GRAPH)
    assert changed.graph == EMPTY_GRAPH
    assert changed.prefixes == document.prefixes
    assert document.graph == EXPECTED


def test_documents_datasets_and_graphs_can_be_written() -> None:
    dataset = Dataset(EXPECTED)
    assert (
        serialize(EXPECTED, TURTLE)
        == serialize(dataset, TURTLE)
        == serialize(Document(dataset), TURTLE)
    )


@pytest.mark.parametrize(
    ("predicate", "object_"),
    [
        ("http://example.org/1", Literal("x")),
        ("http://example.org/", Literal("x")),
        ("http://example.org/p", Literal("a\x00b")),
        ("http://example.org/p", Literal("\x1b[31m")),
        ("http://example.org/p", Literal("\uffff")),
    ],
)
def test_what_xml_cannot_say_is_not_said_wrongly(predicate: str, object_: Literal) -> None:
    graph = Graph([(Iri("http://example.org/s"), Iri(predicate), object_)])
    with pytest.raises(NotExpressible, match=r"rdf\+xml") as caught:
        serialize(graph, RDF_XML)
    assert isinstance(caught.value, NotAcceptable)


def test_odd_prefixes_do_not_spoil_xml() -> None:
    content = "@prefix a\u00b7: <http://a.example/> . <> a\u00b7:p 1 .".encode()
    document = parse(content, TURTLE, base_iri=BASE)
    assert_same(read(serialize(document, RDF_XML), RDF_XML), document.graph)


def test_an_unknown_context_is_named() -> None:
    """R-11."""
    with pytest.raises(UnknownContext, match=r"https://unknown\.example/context") as caught:
        parse(b'{"@context": "https://unknown.example/context"}', JSON_LD, base_iri=BASE)
    assert caught.value.url == "https://unknown.example/context"
    assert isinstance(caught.value, BadRequest)


# --- Limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize("media_type", [TURTLE, JSON_LD])
def test_the_size_limit_is_exact(media_type: str) -> None:
    content = SMALL[media_type]
    parse(content, media_type, base_iri=BASE, limits=RdfLimits(max_bytes=len(content)))
    with pytest.raises(RdfTooLarge, match=str(len(content) - 1)) as caught:
        parse(content, media_type, base_iri=BASE, limits=RdfLimits(max_bytes=len(content) - 1))
    assert isinstance(caught.value, BodyTooLarge)


@pytest.mark.parametrize("media_type", RDF_TYPES)
def test_the_triple_limit_is_exact(media_type: str) -> None:
    parse(SMALL[media_type], media_type, base_iri=BASE, limits=RdfLimits(max_triples=2))
    with pytest.raises(RdfTooLarge, match="1 triples"):
        parse(SMALL[media_type], media_type, base_iri=BASE, limits=RdfLimits(max_triples=1))


@pytest.mark.parametrize(
    ("opening", "middle", "closing"),
    [
        (b'{"http://a.example/b": ', b"1", b"}"),
        (b'{"@list": [', b"", b"]}"),
        (b'{"@graph": [', b"", b"]}"),
        (b'{"@context": {"a": {"@id": "http://a.example/", "@context": ', b"{}", b"}}}"),
        (b'{"@included": ', b"{}", b"}"),
        (b"[", b"", b"]"),
    ],
)
@pytest.mark.parametrize("depth", [200, 20_000])
def test_json_that_nests_too_deep_never_reaches_the_parser(
    depth: int, opening: bytes, middle: bytes, closing: bytes
) -> None:
    """The parser recurses: beyond some thousand levels the whole process would die."""
    content = opening * depth + middle + closing * depth
    with pytest.raises(RdfTooComplex, match="nested"):
        parse(content, JSON_LD, base_iri=BASE)


def test_the_depth_limit_of_json_is_exact() -> None:
    content = b'{"@id": "x", "http://a.example/b": [{"http://a.example/c": 1}]}'
    parse(content, JSON_LD, base_iri=BASE, limits=RdfLimits(max_depth=3))
    with pytest.raises(RdfTooComplex, match="2 nested"):
        parse(content, JSON_LD, base_iri=BASE, limits=RdfLimits(max_depth=2))


def test_triple_terms_cannot_overflow_the_stack() -> None:
    content = b"<a> <b> " + b"<<( <a> <b> " * 50_000 + b"<c>" + b" )>>" * 50_000 + b" ."
    with pytest.raises(RdfTooComplex):
        parse(content, TURTLE, base_iri=BASE)


@pytest.mark.parametrize("pair", [(b"[ <p> ", b" ]"), (b"( ", b" )")])
def test_turtle_may_nest_as_deep_as_it_fits(pair: tuple[bytes, bytes]) -> None:
    depth = 20_000
    content = b"<a> <b> " + pair[0] * depth + b"1" + pair[1] * depth + b" ."
    document = parse(content, TURTLE, base_iri=BASE)
    for media_type in (TURTLE, JSON_LD):
        written = serialize(document, media_type, base_iri=BASE)
        assert len(parse(written, media_type, base_iri=BASE).graph) == len(document.graph)


def xml(body: bytes, *, declarations: bytes = b"") -> bytes:
    return (
        b"<!DOCTYPE rdf:RDF [" + declarations + b"]>"
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        b'xmlns:e="http://e.example/">' + body + b"</rdf:RDF>"
    )


def test_xml_nests_to_the_limit_and_not_deeper() -> None:
    content = xml(b"<e:A><e:p>" * 10 + b"</e:p></e:A>" * 10)
    parse(content, RDF_XML, base_iri=BASE, limits=RdfLimits(max_depth=21))
    with pytest.raises(RdfTooComplex, match="nested"):
        parse(content, RDF_XML, base_iri=BASE, limits=RdfLimits(max_depth=20))


@pytest.mark.parametrize("encoding", [b"TF-8", b"utf-16", b"iso-8859-1", b"utf-7", b"idna", b""])
def test_xml_that_names_another_encoding_is_refused(encoding: bytes) -> None:
    """R-13; Python would try any codec of that name."""
    content = b'<?xml version="1.0" encoding="' + encoding + b'"?>' + SMALL[RDF_XML]
    with pytest.raises(MalformedRdf):
        parse(content, RDF_XML, base_iri=BASE)


def test_entities_for_namespaces_are_fine() -> None:
    content = xml(
        b'<rdf:Description rdf:about="&e;x"><e:p rdf:resource="&e;y"/></rdf:Description>',
        declarations=b'<!ENTITY e "http://e.example/">',
    )
    assert parse(content, RDF_XML, base_iri=BASE).graph.subjects() == [Iri("http://e.example/x")]


def test_entities_cannot_make_gigabytes() -> None:
    nested = b'<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">'
    with pytest.raises(RdfTooComplex, match="entity"):
        parse(xml(b"", declarations=nested), RDF_XML, base_iri=BASE)
    external = b'<!ENTITY a SYSTEM "file:///etc/passwd">'
    with pytest.raises(RdfTooComplex, match="entity"):
        parse(xml(b"", declarations=external), RDF_XML, base_iri=BASE)
    long_one = b'<!ENTITY a "' + b"a" * 100_000 + b'">'
    body = b'<rdf:Description rdf:about="x"><e:p>' + b"&a;" * 1000 + b"</e:p></rdf:Description>"
    with pytest.raises(RdfTooComplex, match="entities"):
        parse(xml(body, declarations=long_one), RDF_XML, base_iri=BASE)


# --- R-12 -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"<> <#p> <#o>",
        b"<> <#p> 1",
        b"<> <#a> <#b> .\n<> <#p> 'x'  \n",
        b"<> <#p> <#o> # a comment at the end.",
        b"@prefix a: <http://a.example/>",
        b"<> <#p> [ <#q> 1 ]",
        b"<> <#p> <#o> ;",
    ],
)
def test_a_missing_last_dot_is_repaired(content: bytes) -> None:
    """R-12: the bodies of the converted tests 3-3.7, 3-5.7 and 3-7.7 are of this kind."""
    repaired = repair_missing_final_dot(content)
    assert repaired is not None
    assert repaired.startswith(content)
    read(repaired, TURTLE)
    with pytest.raises(MalformedRdf):
        parse(content, TURTLE, base_iri=BASE)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"# nothing.",
        b"<> <#p> <#o> .",
        b"<> <#p> <#o> . # comment.",
        b"<> <#p>",
        b"<> <#p> <#o",
        b"<> <#p> 'x",
        b"<> <#p> <#o>\n<> <#q> <#r> .",
        b"<> <#p> <#o>\n<> <#q> <#r>",
        b"<> <#p> [ <#q> 1",
        b"PREFIX a: <http://a.example/>",
        b"{}",
    ],
)
def test_nothing_else_is_repaired(content: bytes) -> None:
    """R-12: one tolerance only; what is valid stays as it is."""
    assert repair_missing_final_dot(content) is None


def test_a_repair_does_not_lift_the_limits() -> None:
    limits = RdfLimits(max_triples=1)
    assert repair_missing_final_dot(b"<> <#p> 1, 2", limits=limits) is None


def test_blank_node_labels_of_a_document_are_kept() -> None:
    graph = parse(b"_:me <#p> 1 .", TURTLE, base_iri=BASE).graph
    assert graph.subjects() == [BlankNode("me")]


def test_further_prefixes_are_added_to_those_of_a_document() -> None:
    document = parse(b"@prefix a: <http://a.example/>. a:x a:y a:z.", TURTLE, base_iri=BASE)
    further = {"a": "http://other.example/", "b": "http://b.example/"}
    both = {"a": "http://a.example/", "b": "http://b.example/"}
    assert document.with_prefixes(further).prefixes == both
    assert document.with_prefixes({"a": "http://other.example/"}).prefixes == document.prefixes
    assert document.with_prefixes(further).dataset == document.dataset


@pytest.mark.parametrize("media_type", [TRIG, RDF_XML])
def test_many_prefixes_do_not_keep_the_writer_busy(media_type: str) -> None:
    """The library compares each name with each prefix: this took more than a minute."""
    prefixes = {f"p{number}": f"http://x.example/{number}/" for number in range(40_000)}
    graph = parse(
        "".join(f"<{iri}s> <{iri}p> <{iri}o> .\n" for iri in prefixes.values()).encode(),
        N_TRIPLES,
        base_iri=BASE,
    ).graph
    began_s = time.process_time()
    written = serialize(Document(Dataset(graph), prefixes), media_type)
    assert time.process_time() - began_s < 10
    assert len(parse(written, media_type, base_iri=BASE).graph) == len(graph)


def test_of_many_prefixes_those_are_declared_that_shorten_most() -> None:
    """And those that shorten nothing are not."""
    prefixes = {f"p{number}": f"http://x.example/{number}/" for number in range(1000)}
    often = "".join(f"<http://x.example/997/{n}> a <http://x.example/998/T> .\n" for n in range(9))
    once = "<http://x.example/999/a> a <http://y.example/> .\n"
    graph = parse((often + once).encode(), TURTLE, base_iri=BASE).graph
    written = serialize(Document(Dataset(graph), prefixes), TRIG).decode()
    assert [line.split()[1] for line in written.splitlines() if line.startswith("@prefix")] == [
        "p997:",
        "p998:",
        "p999:",
    ]
    assert "p997:8 a p998:T" in written


@pytest.mark.parametrize(
    "declarations",
    [
        f"@prefix p: <http://x.example/{'a' * 30_000}> .\n",
        f"@base <http://x.example/{'a' * 30_000}/> .\n@prefix p: <b> .\n",
        f"@base <{'a' * 300}/> .\n" * 100 + "@prefix p: <b> .\n",
    ],
    ids=["prefix", "base", "bases"],
)
def test_names_cannot_be_made_long_and_numerous(declarations: str) -> None:
    """Two megabytes took all the memory of the machine, and 64 kB hundreds of megabytes."""
    content = declarations + "p:a p:b p:c ."
    assert len(parse(content.encode(), TURTLE, base_iri=BASE).graph) == 1
    content = declarations + "".join(f"p:{number} p:b p:c .\n" for number in range(2000))
    with pytest.raises(RdfTooLarge):
        parse(content.encode(), TURTLE, base_iri=BASE)
