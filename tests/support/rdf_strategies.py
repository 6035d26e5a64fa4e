"""Graphs and datasets of any kind, for property tests."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from podstead.core.vocab import RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE, XSD
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
from tests.support.rdf_oracle import BASE

# IRIs near the base, where relative references are made; vocabularies, where prefixes are; and
# those whose schemes could be taken for prefixes.
_WORDS = st.text("ab.:/#?%41-_@~é", max_size=6)
_NEAR = st.sampled_from(
    [BASE, f"{BASE}#", "http://example.org/folder/", "http://example.org/", "http://example.org"]
)
_FAR = st.sampled_from(
    ["http://xmlns.com/foaf/0.1/", "http://a.example/ns#", "urn:a:", "did:web:", "p:", "acl:"]
)


def _is_iri(text: str) -> bool:
    try:
        Iri(text)
    except ValueError:
        return False
    return True


# A dot segment is not kept by anybody who resolves references, so no document can hold one.
IRIS = (
    st.builds(str.__add__, _NEAR | _FAR, _WORDS)
    .filter(_is_iri)
    .filter(lambda iri: "/." not in iri)
    .map(Iri)
)
PREDICATES = IRIS | st.sampled_from([RDF_TYPE, RDF_FIRST, RDF_REST]).map(Iri)
BLANK_NODES = st.sampled_from(["a", "b", "c", "d", "e"]).map(BlankNode)
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text("\"'\\\n\r\t nu", max_size=8)
DATATYPES = st.sampled_from(["string", "integer", "decimal", "double", "boolean", "dateTime"])
LEXICAL = st.text("0123456789+-.eE", max_size=6) | st.sampled_from(["true", "false", "1", "x"])
LITERALS = (
    TEXTS.map(Literal)
    | st.builds(
        lambda text, tag: Literal(text, language=tag), TEXTS, st.sampled_from(["en", "de-at"])
    )
    | st.builds(lambda text, name: Literal(text, datatype=Iri(XSD + name)), LEXICAL, DATATYPES)
)
SUBJECTS: st.SearchStrategy[Subject] = IRIS | BLANK_NODES
OBJECTS: st.SearchStrategy[Object] = LITERALS | IRIS | BLANK_NODES | st.just(Iri(RDF_NIL))
TRIPLES: st.SearchStrategy[Triple] = st.tuples(SUBJECTS, PREDICATES, OBJECTS)


@st.composite
def lists(draw: st.DrawFn) -> list[Triple]:
    """A list under a subject, perhaps with a flaw: another mention, a second value."""
    items = draw(st.lists(OBJECTS, max_size=4))
    cells = [BlankNode(f"cell{number}") for number in range(len(items))]
    ends: list[Iri | BlankNode] = [*cells, Iri(RDF_NIL)]
    triples: list[Triple] = [(draw(SUBJECTS), draw(PREDICATES), ends[0])]
    for cell, item, rest in zip(cells, items, ends[1:], strict=True):
        triples += [(cell, Iri(RDF_FIRST), item), (cell, Iri(RDF_REST), rest)]
    if draw(st.booleans()):
        triples.append((draw(SUBJECTS), draw(PREDICATES), draw(st.sampled_from(ends))))
    if draw(st.booleans()) and cells:
        triples.append((draw(st.sampled_from(cells)), draw(PREDICATES), draw(OBJECTS)))
    return triples


GRAPHS = st.builds(
    lambda triples, more: Graph([*triples, *more]), st.lists(TRIPLES, max_size=8), lists()
)
PREFIXES = st.dictionaries(
    st.sampled_from(["", "a", "p", "did", "urn", "http", "foaf", "é", "x y"]),
    st.sampled_from(["http://a.example/ns#", "http://example.org/folder/", f"{BASE}#", "urn:a:"]),
)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    names: st.SearchStrategy[GraphName] = IRIS | BLANK_NODES
    named: Mapping[GraphName, Graph] = draw(
        st.dictionaries(names, st.lists(TRIPLES, min_size=1, max_size=4).map(Graph), max_size=3)
    )
    return Dataset(draw(GRAPHS), named)
