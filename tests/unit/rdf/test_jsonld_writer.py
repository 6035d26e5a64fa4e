"""How a dataset reads as JSON-LD (R-1, R-9)."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyoxigraph
import pytest
from pyoxigraph import CanonicalizationAlgorithm, RdfFormat

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.core.media_types import JSON_LD, N_QUADS, TRIG, TURTLE
from podstead.rdf import jsonld_rewriter
from podstead.rdf.codecs import parse, serialize
from podstead.rdf.errors import MalformedRdf, UnknownContext
from podstead.rdf.graph import Dataset, Graph, Iri, Literal
from tests.support.json_ld_suite import Case, SuiteContexts, cases, exceptions
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


# --- jsonld rewriter ---------------------------------------------------------------------------
#
# A changed JSON-LD document is written as it was: its context, terms and habits.


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


# --- jsonld suite ------------------------------------------------------------------------------
#
# The W3C test suite for turning JSON-LD into RDF passes, but for a list with reasons.


MAX_EXCEPTIONS = 29
SUITE_SIZE = 467


def marked() -> list[object]:
    """The cases, of which the listed ones must fail (``xfail_strict``)."""
    reasons = exceptions()
    return [
        pytest.param(
            case,
            id=case.id,
            marks=[pytest.mark.xfail(reason=reasons[case.id])] if case.id in reasons else [],
        )
        for case in cases()
    ]


@pytest.mark.parametrize("case", marked())
def test_the_suite_of_the_specification(case: Case) -> None:
    if case.error is not None:
        refused = UnknownContext if case.error == "loading remote context failed" else MalformedRdf
        with pytest.raises(refused):
            parse(case.content, JSON_LD, base_iri=case.base_iri, contexts=SuiteContexts())
        return
    document = parse(case.content, JSON_LD, base_iri=case.base_iri, contexts=SuiteContexts())
    if case.expected is not None:
        assert canonical(serialize(document, N_QUADS)) == canonical(case.expected), case.name


def test_few_cases_are_excepted() -> None:
    listed = exceptions()
    assert len(listed) <= MAX_EXCEPTIONS
    assert listed.keys() <= {case.id for case in cases()}
    assert len(cases()) == SUITE_SIZE


def canonical(content: bytes) -> set[str]:
    """The statements of N-Quads, labelled as RDF Dataset Canonicalization (RDFC-1.0) does."""
    quads = pyoxigraph.Dataset(pyoxigraph.parse(content, format=RdfFormat.N_QUADS))
    quads.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return {str(quad) for quad in quads}
