"""Whatever bytes are sent as RDF, reading them gives a document or a named error, never a crash.

The invariant: ``parse`` raises nothing but ``RequestRefused``; what it reads, every format writes
(or says by name that it cannot), and reads back. Documents are real ones, cut, mixed and mutated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.core.errors import RequestRefused
from podstead.core.media_types import JSON_LD, N3, N_TRIPLES, RDF_TYPES, RDF_XML, TRIG, TURTLE
from podstead.rdf.codecs import Document, parse, repair_missing_final_dot, serialize
from podstead.rdf.errors import NotExpressible
from podstead.rdf.identity_statements import identity_statements
from podstead.rdf.lexing import without_directions
from podstead.rdf.limits import RdfLimits
from tests.support import json_ld_suite
from tests.support.rdf_oracle import BASE

pytestmark = pytest.mark.usefixtures("literals_as_written")

VECTORS = Path(__file__).parents[1] / "vectors/rdf"
LIMITS = RdfLimits(max_bytes=1_000_000, max_triples=10_000)

CONTEXTS = [
    {
        "@context": url,
        "id": "#a",
        "type": ["Person", "Note", "Multikey", "VerifiableCredential"],
        "name": "x",
        "proof": {"type": "DataIntegrityProof"},
        "authentication": ["#k"],
    }
    for url in bundled_contexts()
]

XML = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE rdf:RDF [<!ENTITY e "http://e.example/">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.example/"
    xml:base="http://example.org/base" xml:lang="en">
  <e:Class rdf:about="#a" e:attribute="x"><e:p rdf:resource="&e;b"/>
    <e:list rdf:parseType="Collection"><rdf:Description rdf:nodeID="n"/></e:list>
    <e:xml rdf:parseType="Literal"><b>bold &amp; <i/></b></e:xml>
    <e:node rdf:parseType="Resource"><e:q rdf:datatype="&e;dt">1</e:q></e:node>
  </e:Class>
  <rdf:Bag rdf:ID="bag"><rdf:li>1</rdf:li><rdf:li>2</rdf:li></rdf:Bag>
</rdf:RDF>
"""

TURTLES = [path.read_bytes() for path in sorted((VECTORS / "turtle").glob("*.ttl"))]
TRIPLES = [path.read_bytes() for path in sorted((VECTORS / "turtle").glob("*.nt"))]
JSONS = [
    *(case.content for case in json_ld_suite.cases()),
    *(json.dumps(document).encode() for document in CONTEXTS),
]
CORPUS: Mapping[str, list[bytes]] = {
    TURTLE: TURTLES,
    N3: [*TURTLES, b"{ ?x <#p> <#o> } => { <#s> <#p> ?x } . <a> <b>!<c>^<d> <e> ; = <f> ."],
    TRIG: [*TURTLES, b"<#g> { <#a> <#p> ( 1 [ <#q> 2 ] ) } GRAPH _:g { <#a> a <#b> }"],
    N_TRIPLES: TRIPLES,
    JSON_LD: JSONS,
    RDF_XML: [XML],
}
KEYWORDS = (
    *("context", "id", "type", "value", "language", "direction", "list", "set", "graph", "reverse"),
    *("included", "index", "nest", "container", "base", "vocab", "version", "import", "propagate"),
    *("protected", "prefix", "none", "json"),
)
FRAGMENTS = [
    *(bytes([byte]) for byte in b'\\"<>[](){}.;,&%\x00\xff'),
    *(b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"\\u0000", b"\\uD800", b"&e;"),
    *(b'"""', b"'''", b"<<", b"<<(", b")>>", b"{|", b"|}", b"_:", b"_:b0", b"^^", b"@en", b"--ltr"),
    *(
        b"@prefix",
        b"@base <> .",
        b"VERSION '1.2'",
        b"rdf:",
        b"1" * 5000,
        b"-1e999",
        b"null",
        b"true",
    ),
    *(b"@context", b'"@context": null,', b'"@container": "@type"', b'"@import": "x"'),
    *(f'"@{keyword}"'.encode() for keyword in KEYWORDS),
]


@st.composite
def mutated(draw: st.DrawFn, corpus: list[bytes]) -> bytes:
    """A document of the corpus after some accidents."""
    content = draw(st.sampled_from(corpus))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 40)))
        middle = draw(
            st.one_of(
                st.just(b""),
                st.sampled_from(FRAGMENTS),
                st.binary(max_size=4),
                st.just(content[start:end] * 2),
                st.sampled_from(corpus).map(lambda other: other[: len(other) // 2]),
            )
        )
        content = content[:start] + middle + content[end:]
    return content


def check(content: bytes, media_type: str) -> None:
    try:
        document = parse(
            content, media_type, base_iri=BASE, contexts=bundled_contexts(), limits=LIMITS
        )
    except RequestRefused:
        return
    identity_statements(document.dataset, document_iri=BASE)
    for target in RDF_TYPES:
        check_written(document, target)


def check_written(document: Document, media_type: str) -> None:
    try:
        written = serialize(document, media_type, base_iri=BASE)
    except NotExpressible:
        assert media_type == RDF_XML
        return
    again = parse(written, media_type, base_iri=BASE, contexts=bundled_contexts())
    said = document.dataset if media_type == JSON_LD else without_directions(document.dataset)
    assert len(again.graph) == len(said.default), written


@pytest.mark.parametrize("media_type", CORPUS)
@given(data=st.data())
def test_mutated_documents_are_read_or_refused(media_type: str, data: st.DataObject) -> None:
    check(data.draw(mutated(CORPUS[media_type])), media_type)


@pytest.mark.parametrize("media_type", RDF_TYPES)
@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(media_type: str, content: bytes) -> None:
    check(content, media_type)


KEYS = st.sampled_from(
    [
        *(f"@{keyword}" for keyword in KEYWORDS),
        *("", "a", "b", "a:b", "_:x", "http://e.example/", "https://www.w3.org/ns/activitystreams"),
    ]
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(value=JSON_VALUES)
def test_any_json_is_read_or_refused(value: object) -> None:
    content = json.dumps(value).encode()
    check(content, JSON_LD)


@given(content=mutated(TURTLES))
def test_a_repair_makes_valid_turtle_or_nothing(content: bytes) -> None:
    """R-12."""
    repaired = repair_missing_final_dot(content)
    if repaired is not None:
        parse(repaired, TURTLE, base_iri=BASE)
