"""A changed JSON-LD document keeps its context and says just what it shall (X-37, R-8, R-9).

What is written is read by this server's reader and by a second, independent one (pyld).
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from pyld import jsonld  # type: ignore[import-untyped]

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.core.media_types import JSON_LD, N_QUADS
from podstead.core.vocab import RDF, RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE, XSD
from podstead.rdf.codecs import Document, parse, serialize
from podstead.rdf.errors import MalformedRdf
from podstead.rdf.graph import (
    BlankNode,
    Dataset,
    Graph,
    GraphName,
    Iri,
    Literal,
    Object,
    Subject,
    Triple,
)
from tests.support.rdf_oracle import BASE, assert_same_dataset

pytestmark = pytest.mark.usefixtures("literals_as_written")

V = "http://v.example/"
W = "http://w.example/ns#"
AS = "https://www.w3.org/ns/activitystreams"

_COERCIONS: st.SearchStrategy[dict[str, object]] = st.sampled_from(
    [
        {},
        {"@type": "@id"},
        {"@type": "@vocab"},
        {"@type": "@json"},
        {"@type": "@none"},
        {"@type": "xsd:integer"},
        {"@type": f"{XSD}date"},
        {"@language": "en"},
        {"@language": "DE-at"},
        {"@language": None},
        {"@language": "en", "@direction": "rtl"},
        {"@container": "@list"},
        {"@container": "@list", "@type": "@id"},
        {"@container": "@set"},
        {"@container": "@set", "@type": "@id"},
        {"@container": "@language"},
        {"@container": ["@language", "@set"]},
        {"@container": "@index"},
        {"@container": "@id"},
        {"@container": ["@id", "@set"]},
        {"@container": "@type"},
        {"@container": "@graph"},
        {"@context": {"q": f"{V}other", "inner": f"{V}q"}},
        {"@context": None},
    ]
)
_PROPERTY_IRIS = [f"{V}p", f"{V}q", f"{V}r", f"{W}p", f"{V}deep/p", "urn:x:p", RDF_TYPE]
# The last two look like IRIs and are terms all the same.
_TERMS = ["p", "q", "r", "other", "inner", "T", "foaf", "w:p", f"{V}p"]


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, object]:
    context: dict[str, object] = {"xsd": XSD}
    for name in draw(st.lists(st.sampled_from(_TERMS), unique=True, max_size=5)):
        iri = draw(st.sampled_from(_PROPERTY_IRIS))
        if name in (f"{V}p", "w:p"):
            iri = {f"{V}p": f"{V}p", "w:p": f"{W}p"}[name]
        detail: dict[str, object] = draw(_COERCIONS)
        if name.isalnum() and draw(st.integers(0, 9)) == 0:
            context[name] = {"@reverse": iri}
        else:
            is_simple = not detail and draw(st.booleans())
            context[name] = iri if is_simple else {"@id": iri, **detail}
    keywords: dict[str, list[object]] = {
        "@vocab": [V, W, ""],
        "@language": ["en", "DE-AT"],
        "@base": ["http://example.org/folder/", "http://b.example/x/y", None],
        "id": ["@id"],
        "type": ["@type", {"@id": "@type", "@container": "@set"}],
        "lang": ["@language"],
        "value": ["@value"],
        "none": ["@none"],
        "v": [V],
    }
    for name in draw(st.lists(st.sampled_from(sorted(keywords)), unique=True, max_size=4)):
        context[name] = draw(st.sampled_from(keywords[name]))
    context["w"] = W
    return context


CONTEXTS: st.SearchStrategy[object] = (
    definitions()
    | st.lists(definitions(), min_size=1, max_size=2)
    | definitions().map(lambda context: [AS, context])
    | st.just(AS)
)

NODES = st.sampled_from(
    [BASE, f"{BASE}#me", "http://example.org/folder/x", "http://example.org/", f"{W}T", f"{V}p", AS]
).map(Iri)
BLANK = st.sampled_from(["a", "b", "c"]).map(BlankNode)
PROPERTIES = st.sampled_from([*_PROPERTY_IRIS, f"{AS}#name", f"{AS}#items"]).map(Iri)
LITERALS = (
    st.sampled_from(["", "x", "text", "a:b"]).map(Literal)
    | st.builds(
        lambda text, tag: Literal(text, language=tag),
        st.sampled_from(["x", "y"]),
        st.sampled_from(["en", "de-at", "fr"]),
    )
    | st.builds(
        lambda text, name: Literal(text, datatype=Iri(XSD + name)),
        st.sampled_from(["1", "01", "-5", "true", "1.5", "2020-01-01"]),
        st.sampled_from(["integer", "boolean", "date", "decimal"]),
    )
    | st.sampled_from(["null", "[1,2]", '{"a":{"@id":1}}', "[ 1]", "x"]).map(
        lambda text: Literal(text, datatype=Iri(f"{RDF}JSON"))
    )
)
SUBJECTS: st.SearchStrategy[Subject] = NODES | BLANK
OBJECTS: st.SearchStrategy[Object] = LITERALS | NODES | BLANK | st.just(Iri(RDF_NIL))
TRIPLES: st.SearchStrategy[Triple] = st.tuples(SUBJECTS, PROPERTIES, OBJECTS)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    triples = draw(st.lists(TRIPLES, max_size=6))
    items = draw(st.lists(OBJECTS, max_size=3))
    cells = [BlankNode(f"cell{number}") for number in range(len(items))]
    ends: list[Iri | BlankNode] = [*cells, Iri(RDF_NIL)]
    if draw(st.booleans()):
        triples.append((draw(SUBJECTS), draw(PROPERTIES), ends[0]))
        for cell, item, rest in zip(cells, items, ends[1:], strict=True):
            triples += [(cell, Iri(RDF_FIRST), item), (cell, Iri(RDF_REST), rest)]
    return Graph(triples)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    names: st.SearchStrategy[GraphName] = NODES | BLANK
    few = st.lists(TRIPLES, min_size=1, max_size=3).map(Graph)
    named = draw(st.dictionaries(names, few, max_size=1))
    return Dataset(draw(graphs()), named)


def rewritten(context: object, dataset: Dataset) -> dict[str, object]:
    """A document with this context, changed so that it says what the dataset says."""
    sent = json.dumps({"@context": context}).encode()
    try:
        original = parse(sent, JSON_LD, base_iri=BASE, contexts=bundled_contexts())
    except MalformedRdf:
        reject()  # a context that the reader refuses is in no stored document
    changed = Document(dataset, original.prefixes, original=original.original)
    written: dict[str, object] = json.loads(serialize(changed, JSON_LD, base_iri=BASE))
    return written


def read_here(document: object) -> Dataset:
    content = json.dumps(document).encode()
    return parse(content, JSON_LD, base_iri=BASE, contexts=bundled_contexts()).dataset


def read_by_pyld(document: object) -> Dataset:
    options = {"base": BASE, "documentLoader": _bundled, "format": "application/n-quads"}
    quads: str = jsonld.to_rdf(document, options)
    return parse(quads.encode(), N_QUADS, base_iri=BASE).dataset


def _bundled(url: str, _options: object) -> dict[str, object]:
    value = bundled_contexts()[url].value
    return {
        "contextUrl": None,
        "documentUrl": url,
        "document": {"@context": value},
        "contentType": JSON_LD,
    }


@given(context=CONTEXTS, dataset=datasets())
def test_what_is_written_is_read_as_what_was_meant(context: object, dataset: Dataset) -> None:
    written = rewritten(context, dataset)
    assert_same_dataset(read_here(written), dataset)
    assert_same_dataset(read_by_pyld(written), dataset)


def has_terms_like_iris(context: object) -> bool:
    parts = context if isinstance(context, list) else [context]
    return any(isinstance(part, dict) and f"{V}p" in part for part in parts)


@given(
    context=CONTEXTS.filter(lambda context: not has_terms_like_iris(context)), dataset=datasets()
)
def test_the_context_stays_as_it_was_sent(context: object, dataset: Dataset) -> None:
    """The one way out: an IRI in full is a term that takes other values only."""
    assert rewritten(context, dataset).get("@context") == context
