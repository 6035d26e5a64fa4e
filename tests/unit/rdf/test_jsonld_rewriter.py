"""A changed JSON-LD document is written as it was: its context, terms and habits (X-37, R-8)."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.core.media_types import JSON_LD, TRIG
from podstead.rdf import jsonld_rewriter
from podstead.rdf.codecs import parse, serialize
from podstead.rdf.graph import Dataset, Graph
from tests.support.rdf_oracle import BASE, assert_same_dataset

AS = "https://www.w3.org/ns/activitystreams"
CREDENTIALS = "https://www.w3.org/2018/credentials/v1"
PREFIXES = f"""
    @prefix : <http://v.example/> .
    @prefix as: <{AS}#> .
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
"""


def patched(document: object, *, inserted: str = "", deleted: str = "") -> dict[str, object]:
    """A document with triples (Turtle) inserted and deleted."""
    content = json.dumps(document).encode()
    read = parse(content, JSON_LD, base_iri=BASE, contexts=bundled_contexts())
    more = parse((PREFIXES + inserted).encode(), TRIG, base_iri=BASE).graph
    less = parse((PREFIXES + deleted).encode(), TRIG, base_iri=BASE).graph
    assert len(less & read.graph) == len(less), "what is deleted is there"
    after = Dataset((read.graph - less) | more, read.dataset.named)
    changed = read.with_graph(after.default)
    written = serialize(changed, JSON_LD, base_iri=BASE)
    said = parse(written, JSON_LD, base_iri=BASE, contexts=bundled_contexts()).dataset
    assert_same_dataset(said, after)
    decoded: dict[str, object] = json.loads(written)
    return decoded


TERM = "http://v.example/p"


@pytest.mark.parametrize(
    ("context", "inserted", "expected"),
    [
        ({"p": TERM}, "<#a> :p 'x'", {"p": "x"}),
        ({"p": {"@id": TERM}}, "<#a> :p 5, true", {"p": [5, True]}),
        ({"v": "http://v.example/"}, "<#a> :p 'x'", {"v:p": "x"}),
        ({"v": "http://v.example/", "p": "v:p"}, "<#a> :p 'x'", {"p": "x"}),
        ({"@vocab": "http://v.example/"}, "<#a> :p 'x'", {"p": "x"}),
        ({"@vocab": "http://v.example/"}, "<#a> a :T", {"@type": "T"}),
        ({"p": {"@id": TERM, "@type": "@id"}}, "<#a> :p <#b>", {"p": "#b"}),
        ({"p": {"@id": TERM, "@type": "@id"}}, "<#a> :p 'x'", {TERM: "x"}),
        (
            {"@vocab": "http://v.example/", "p": {"@type": "@vocab"}},
            "<#a> :p :Value",
            {"p": "Value"},
        ),
        (
            {"xsd": "http://www.w3.org/2001/XMLSchema#", "p": {"@id": TERM, "@type": "xsd:date"}},
            "<#a> :p '2020-01-01'^^xsd:date, 'x'",
            {"p": "2020-01-01", TERM: "x"},
        ),
        (
            {"xsd": "http://www.w3.org/2001/XMLSchema#", "p": TERM},
            "<#a> :p '2020-01-01'^^xsd:date",
            {"p": {"@value": "2020-01-01", "@type": "xsd:date"}},
        ),
        ({"@language": "en", "p": TERM}, "<#a> :p 'x'@en", {"p": "x"}),
        ({"@language": "en", "p": TERM}, "<#a> :p 'x'", {"p": {"@value": "x"}}),
        (
            {"@language": "en", "p": TERM, "plain": {"@id": TERM, "@language": None}},
            "<#a> :p 'x', 'y'@en",
            {"plain": "x", "p": "y"},
        ),
        (
            {"p": {"@id": TERM, "@container": "@language"}},
            "<#a> :p 'x'@en, 'y'@en, 'z'@de, 'plain'",
            {"p": {"en": ["x", "y"], "de": "z"}, TERM: "plain"},
        ),
        ({"p": {"@id": TERM, "@container": "@set"}}, "<#a> :p 'x'", {"p": ["x"]}),
        ({"p": {"@id": TERM, "@container": "@list"}}, "<#a> :p (1 'x' ())", None),
        (
            {"p": {"@id": TERM, "@container": "@list", "@type": "@id"}},
            "<#a> :p (<#b> <#c>)",
            {"p": ["#b", "#c"]},
        ),
        ({"p": TERM}, "<#a> :p (1 2)", {"p": {"@list": [1, 2]}}),
        ({"p": {"@id": TERM, "@container": "@index"}}, "<#a> :p 1", {"p": {"@none": 1}}),
        (
            {"p": {"@id": TERM, "@container": "@id"}},
            "<#a> :p <#b>, [ :q 1 ]",
            {"p": {"#b": {}, "@none": {"http://v.example/q": 1}}},
        ),
        (
            {"p": {"@id": TERM, "@type": "@json"}},
            """<#a> :p '{"a":[1]}'^^rdf:JSON""",
            {"p": {"a": [1]}},
        ),
        (
            {"p": {"@id": TERM, "@type": "@json"}},
            """<#a> :p '{ }'^^rdf:JSON""",
            None,  # a space that would be lost
        ),
        (
            {"id": "@id", "type": "@type", "value": "@value", "lang": "@language", "p": TERM},
            "<#a> a :T ; :p 'x'@en",
            {"id": "#a", "type": "http://v.example/T", "p": {"value": "x", "lang": "en"}},
        ),
        (
            {"type": {"@id": "@type", "@container": "@set"}},
            "<#a> a :T",
            {"type": ["http://v.example/T"]},
        ),
        (
            {"p": {"@id": TERM, "@context": {"q": "http://v.example/q"}}},
            "<#a> :p [ :q 1 ]",
            {"p": {"q": 1}},
        ),
        (
            {"T": {"@id": "http://v.example/T", "@context": {"q": "http://v.example/q"}}},
            "<#a> a :T ; :q 1 ; :p [ :q 1 ]",
            {"@type": "T", "q": 1, TERM: {"http://v.example/q": 1}},
        ),
        ([{"p": "http://old.example/"}, None, {"p": TERM}], "<#a> :p 1", {"p": 1}),
        ({"p": TERM}, "<#a> <http://other.example/p> 1", {"http://other.example/p": 1}),
    ],
)
def test_what_the_context_says_is_used(
    context: object, inserted: str, expected: Mapping[str, object] | None
) -> None:
    written = patched({"@context": context}, inserted=inserted + " .")
    assert written.pop("@context") == context
    if expected is not None:
        names = {"@id", "id"} & written.keys()
        assert {name: written.pop(name) for name in names if name not in expected} in (
            {},
            {"@id": "#a"},
        )
        assert written == expected


def test_a_term_from_the_object_to_the_subject_is_used() -> None:
    context = {"children": {"@reverse": "http://v.example/parent", "@type": "@id"}}
    document = {"@context": context, "@id": "#a", "http://v.example/p": 1, "children": "#b"}
    assert patched(document, inserted="<#c> :parent <#a> .") == {
        "@context": context,
        "@id": "#a",
        "http://v.example/p": 1,
        "children": ["#b", "#c"],
    }


@pytest.mark.parametrize(
    "own", [{"nick": "http://v.example/nick"}, {"@base": "http://b.example/"}, {"@base": "sub/"}]
)
def test_contexts_by_url_stay(own: object) -> None:
    document = {"@context": [AS, own], "id": "#a", "type": "Note", "name": "x"}
    written = patched(document, inserted="<http://e.example/> as:summary 'y' .")
    assert written["@context"] == [AS, own]
    nodes = written["@graph"]
    assert isinstance(nodes, list)
    assert nodes[1] == {"id": "http://e.example/", "summary": "y"}


def test_a_credential_keeps_terms_that_its_type_brings() -> None:
    document = {
        "@context": [CREDENTIALS, {"name": "http://schema.org/name"}],
        "id": "urn:example:1",
        "type": "VerifiableCredential",
        "issuer": "https://issuer.example/",
        "issuanceDate": "2020-01-01T00:00:00Z",
        "credentialSubject": {"id": "https://subject.example/", "name": "S"},
    }
    written = patched(
        document,
        inserted="<urn:example:1> <https://www.w3.org/2018/credentials#expirationDate>"
        " '2030-01-01T00:00:00Z'^^xsd:dateTime .",
    )
    assert written == {**document, "expirationDate": "2030-01-01T00:00:00Z"}


def test_only_the_requested_change_happens() -> None:
    """Order, nesting, arrays and the way IRIs were written are what they were."""
    document = {
        "@context": {"v": "http://v.example/", "knows": {"@id": "v:knows", "@type": "@id"}},
        "@id": "#me",
        "@type": ["v:Person"],
        "v:name": "A",
        "knows": [{"@id": "v:bob", "v:name": "B"}, "http://far.example/c", "d"],
        "v:old": 1,
        "v:list": {"@list": [{"v:name": "in a list"}]},
    }
    written = patched(document, inserted="<#me> :new 2 .", deleted="<#me> :old 1 .")
    expected = {key: value for key, value in document.items() if key != "v:old"} | {"v:new": 2}
    assert json.dumps(written) == json.dumps(expected)


def test_absolute_iris_stay_absolute() -> None:
    document = {"@context": {"p": TERM}, "@id": f"{BASE}#me", "p": 1}
    written = patched(document, inserted=f"<{BASE}#me> :q <{BASE}#you> .")
    assert written["@id"] == f"{BASE}#me"
    assert written["http://v.example/q"] == {"@id": f"{BASE}#you"}


def test_named_graphs_stay() -> None:
    """R-9."""
    graph = {"@id": "#g", "@graph": [{"@id": "#in", "p": {"@id": "_:b0"}}]}
    document = {"@context": {"p": TERM}, "@graph": [{"@id": "_:b0", "p": 1}, graph]}
    assert patched(document, inserted="<#new> :p 2 .") == {
        "@context": {"p": TERM},
        "@graph": [{"@id": "_:b0", "p": 1}, {"@id": "#new", "p": 2}, graph],
    }


def test_an_emptied_document_keeps_its_context() -> None:
    document = {"@context": {"p": TERM}, "@id": "#a", "p": 1}
    assert patched(document, deleted="<#a> :p 1 .") == {"@context": {"p": TERM}}


@pytest.mark.parametrize(
    "context",
    [
        # The IRI itself is a term, which takes texts by language only.
        {TERM: {"@id": TERM, "@container": "@language"}},
        # Each type brings all terms again: 200 times 200 definitions.
        {
            f"T{number}": {
                "@id": f"http://v.example/T{number}",
                "@context": {f"t{inner}": f"http://v.example/{inner}" for inner in range(200)},
            }
            for number in range(200)
        },
    ],
)
def test_where_a_context_does_not_serve_prefixes_do(context: object) -> None:
    nodes = " ".join(f"<#{number}> a :T{number} ." for number in range(200))
    written = patched({"@context": context}, inserted=f"<#a> :p 1 . {nodes}")
    assert written.get("@context") != context


def test_large_documents_are_written_with_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"@context": {"p": TERM}, "@id": "#a", "p": 1}
    inserted = "<#a> :p 2 ."
    monkeypatch.setattr(jsonld_rewriter, "MAX_TRIPLES", 2)
    assert patched(document, inserted=inserted)["@context"] == document["@context"]
    monkeypatch.setattr(jsonld_rewriter, "MAX_TRIPLES", 1)
    assert "@context" not in patched(document, inserted=inserted)


@pytest.mark.parametrize("document", [{"@id": "#a", TERM: 1}, [{"@id": "#a", TERM: 1}], []])
def test_a_document_without_a_context_is_written_without_it(document: object) -> None:
    assert "@context" not in patched(document, inserted="<#a> <http://other.example/> 2 .")


def test_a_document_of_one_kind_is_not_written_in_the_style_of_another() -> None:
    read = parse(b"<#a> <#p> 1 .", TRIG, base_iri=BASE)
    assert read.original is None
    assert isinstance(read.graph, Graph)
