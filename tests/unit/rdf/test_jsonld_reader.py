"""JSON-LD with contexts by URL (R-11), and what the parser is kept from."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import pytest

from podstead.core.media_types import JSON_LD
from podstead.rdf.codecs import parse
from podstead.rdf.errors import MalformedRdf, RdfTooComplex, RdfTooLarge, UnknownContext
from podstead.rdf.graph import Graph, Iri, Literal
from podstead.rdf.jsonld_contexts import Context, read_context
from podstead.rdf.jsonld_reader import prepare_json_ld
from podstead.rdf.limits import DEFAULT_LIMITS, RdfLimits
from tests.support.rdf_oracle import BASE, assert_same_dataset

URL = "https://contexts.example/one"
OTHER = "https://contexts.example/two"


def sources(**documents: object) -> Mapping[str, Context]:
    urls = {"one": URL, "two": OTHER, "three": "https://contexts.example/folder/three"}
    return {
        urls[name]: read_context(json.dumps({"@context": value}).encode(), url=urls[name])
        for name, value in documents.items()
    }


def unknown_contexts(content: bytes, contexts: Mapping[str, Context] = {}) -> list[str]:
    """The contexts that reading fails for want of, one after the other."""
    known = dict(contexts)
    unknown = []
    while True:
        try:
            prepare_json_ld(content, base_iri=BASE, contexts=known, limits=DEFAULT_LIMITS)
        except UnknownContext as error:
            unknown.append(error.url)
            known[error.url] = read_context(b'{"@context": {}}', url=error.url)
        else:
            return unknown


def read(document: object, contexts: Mapping[str, Context]) -> Graph:
    content = json.dumps(document).encode()
    return parse(content, JSON_LD, base_iri=BASE, contexts=contexts).graph


def same(document: object, contexts: Mapping[str, Context], plain: object) -> None:
    """Assert that a document says the same as one that refers to no context."""
    left = parse(json.dumps(document).encode(), JSON_LD, base_iri=BASE, contexts=contexts)
    right = parse(json.dumps(plain).encode(), JSON_LD, base_iri=BASE)
    assert len(right.dataset), "or else this shows nothing"
    assert_same_dataset(left.dataset, right.dataset)


NAME = {"name": "http://schema.org/name"}


@pytest.mark.parametrize(
    "context",
    [
        URL,
        [URL],
        [{"unrelated": "http://x.example/"}, URL],
        [None, URL],
        [URL, {"also": "name"}],
        {"@import": URL},
        {"@import": URL, "also": "http://x.example/"},
    ],
)
def test_a_context_is_found_wherever_a_node_may_name_it(context: object) -> None:
    plain = {"@id": "#a", "http://schema.org/name": "x"}
    same({"@context": context, "@id": "#a", "name": "x"}, sources(one=NAME), plain)


def test_a_nested_node_may_have_its_own() -> None:
    document = {"@id": "#a", "http://x.example/p": [{"@context": URL, "@id": "#b", "name": "x"}]}
    plain = {
        "@id": "#a",
        "http://x.example/p": {"@id": "#b", "http://schema.org/name": "x"},
    }
    same(document, sources(one=NAME), plain)


def test_a_term_may_have_its_own() -> None:
    scoped = {"p": {"@id": "http://x.example/p", "@context": URL}}
    plain = {"@id": "#a", "http://x.example/p": {"@id": "#b", "http://schema.org/name": "x"}}
    document = {"@id": "#a", "p": {"@id": "#b", "name": "x"}, "name": "not defined here"}
    same({"@context": scoped, **document}, sources(one=NAME), plain)
    same({"@context": OTHER, **document}, sources(one=NAME, two=scoped), plain)


def test_a_type_may_have_its_own() -> None:
    scoped = {"T": {"@id": "http://x.example/T", "@context": URL}}
    same(
        {"@context": scoped, "@id": "#a", "@type": "T", "name": "x"},
        sources(one=NAME),
        {"@id": "#a", "@type": "http://x.example/T", "http://schema.org/name": "x"},
    )


def test_contexts_name_contexts() -> None:
    plain = {"@id": "#a", "http://schema.org/name": "x"}
    document = {"@context": OTHER, "@id": "#a", "name": "x"}
    same(document, sources(one=NAME, two=URL), plain)
    same(document, sources(one=NAME, two=[{"x": "http://x.example/"}, URL]), plain)
    same(document, sources(one=NAME, two={"@import": URL}), plain)


def test_the_later_context_applies() -> None:
    contexts = sources(one=NAME, two={"name": "http://later.example/name"})
    same(
        {"@context": [URL, OTHER], "@id": "#a", "name": "x"},
        contexts,
        {"@id": "#a", "http://later.example/name": "x"},
    )
    same(
        {"@context": [OTHER, URL], "@id": "#a", "name": "x"},
        contexts,
        {"@id": "#a", "http://schema.org/name": "x"},
    )


def test_what_imports_lies_over_what_is_imported() -> None:
    """JSON-LD 1.1, section 4.1.10: the document's own entry replaces the imported one."""
    same(
        {"@context": {"@import": URL, "name": "http://own.example/"}, "@id": "#a", "name": "x"},
        sources(one=NAME),
        {"@id": "#a", "http://own.example/": "x"},
    )


def test_only_one_object_can_be_imported() -> None:
    with pytest.raises(MalformedRdf, match="@import"):
        read({"@context": {"@import": URL}}, sources(one=[NAME, NAME]))


def test_a_context_set_to_nothing_hides_a_term() -> None:
    same(
        {
            "@context": URL,
            "@id": "#a",
            "name": "x",
            "http://x.example/p": {"@id": "#b", "@context": None, "name": "y"},
        },
        sources(one=NAME),
        {"@id": "#a", "http://schema.org/name": "x", "http://x.example/p": {"@id": "#b"}},
    )
    with_hidden_term = sources(one=[NAME, {"name": None}])
    assert not read({"@context": URL, "@id": "#a", "name": "x"}, with_hidden_term)


def test_relative_references_resolve_against_their_document() -> None:
    """JSON-LD 1.1 API, 4.1.2 step 5.2.1."""
    document = {"@context": "../context", "@id": "#a", "name": "x"}
    content = json.dumps(document).encode()
    assert unknown_contexts(content) == ["http://example.org/context"]
    with_base = json.dumps({**document, "@context": [{"@base": "http://b.example/"}, "c"]}).encode()
    assert unknown_contexts(with_base) == ["http://example.org/folder/c"]
    same(
        {"@context": "https://contexts.example/folder/three", "@id": "#a", "name": "x"},
        sources(one=NAME, three="../one"),
        {"@id": "#a", "http://schema.org/name": "x"},
    )


def test_the_base_of_a_remote_context_has_no_effect() -> None:
    """JSON-LD 1.1 API, 4.1.2 step 5.7."""
    same(
        {"@context": URL, "@id": "#a", "name": "x"},
        sources(one={"@base": "http://base.example/", **NAME}),
        {"@id": "#a", "http://schema.org/name": "x"},
    )
    same(
        {"@context": {"@base": "http://base.example/"}, "@id": "#a", "http://x.example/p": 1},
        {},
        {"@id": "http://base.example/#a", "http://x.example/p": 1},
    )


def test_protected_terms_stay_protected() -> None:
    """JSON-LD 1.1, section 4.1.11."""
    contexts = sources(one={"@protected": True, **NAME})
    with pytest.raises(MalformedRdf, match="protected"):
        read({"@context": [URL, {"name": "http://other.example/"}], "@id": "#a"}, contexts)
    same(
        {"@context": [URL, NAME], "@id": "#a", "name": "x"},
        contexts,
        {"@id": "#a", "http://schema.org/name": "x"},
    )


@pytest.mark.parametrize("order", [("@context", "@type", "name"), ("name", "@type", "@context")])
def test_the_order_of_members_means_nothing(order: tuple[str, ...]) -> None:
    members = {"@context": URL, "@type": "T", "name": "x"}
    document = {"@id": "#a", **{key: members[key] for key in order}}
    scoped = {"T": {"@id": "http://x.example/T", "@context": NAME}}
    same(
        document,
        sources(one=scoped),
        {"@id": "#a", "@type": "http://x.example/T", "http://schema.org/name": "x"},
    )


# --- Pruning ---------------------------------------------------------------------------------


def prepared(document: object, contexts: Mapping[str, Context]) -> str:
    return prepare_json_ld(
        json.dumps(document).encode(), base_iri=BASE, contexts=contexts, limits=DEFAULT_LIMITS
    ).decode()


def test_only_terms_in_reach_are_written_in() -> None:
    contexts = sources(
        one={
            "schema": "http://schema.org/",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
            "name": "schema:name",
            "born": {"@id": "schema:birthDate", "@type": "xsd:date"},
            **{f"unused{number}": f"http://x.example/{number}" for number in range(1000)},
        }
    )
    text = prepared({"@context": URL, "@id": "#a", "name": "x"}, contexts)
    assert json.loads(text)["@context"] == [{"schema": "http://schema.org/", "name": "schema:name"}]
    assert "xsd" in prepared({"@context": URL, "@id": "#a", "born": "2000-01-01"}, contexts)


@pytest.mark.parametrize(
    ("context", "document", "plain"),
    [
        (
            {"id": "@id", "type": "@type", "T": "http://x.example/T"},
            {"id": "#a", "type": "T"},
            {"@id": "#a", "@type": "http://x.example/T"},
        ),
        (
            {"@vocab": "http://x.example/"},
            {"@id": "#a", "p": 1},
            {"@id": "#a", "http://x.example/p": 1},
        ),
        (
            [{"v": "http://x.example/"}, {"@vocab": "v:sub/"}],
            {"@id": "#a", "p": 1},
            {"@id": "#a", "http://x.example/sub/p": 1},
        ),
        (
            {"p": {"@id": "http://x.example/p", "@type": "@vocab"}, "Value": "http://x.example/V"},
            {"@id": "#a", "p": "Value"},
            {"@id": "#a", "http://x.example/p": {"@id": "http://x.example/V"}},
        ),
        (
            {"x": "http://x.example/", "p": {"@reverse": "x:q"}},
            {"@id": "#a", "p": {"@id": "#b"}},
            {"@id": "#b", "http://x.example/q": {"@id": "#a"}},
        ),
        (
            {
                "x": "http://x.example/",
                "p": {"@id": "x:p", "@container": "@index", "@index": "x:i"},
            },
            {"@id": "#a", "p": {"key": {"@id": "#b"}}},
            {"@id": "#a", "http://x.example/p": {"@id": "#b", "http://x.example/i": "key"}},
        ),
        (
            {"name": "http://x.example/name", "details": "@nest"},
            {"@id": "#a", "details": {"name": "x"}},
            {"@id": "#a", "http://x.example/name": "x"},
        ),
        (
            {"@language": "en", "name": "http://x.example/name"},
            {"@id": "#a", "name": "x"},
            {"@id": "#a", "http://x.example/name": {"@value": "x", "@language": "en"}},
        ),
        (
            {"label": {"@id": "http://x.example/l", "@container": "@language"}},
            {"@id": "#a", "label": {"en": "x", "de": "y"}},
            {
                "@id": "#a",
                "http://x.example/l": [
                    {"@value": "x", "@language": "en"},
                    {"@value": "y", "@language": "de"},
                ],
            },
        ),
        (
            {"a": "http://x.example/", "a:b": {"@type": "@id"}},
            {"@id": "#a", "a:b": "#b"},
            {"@id": "#a", "http://x.example/b": {"@id": "#b"}},
        ),
        (
            {"x": "http://x.example/"},
            {"@id": "x:me", "http://y.example/p": {"@id": "x:you"}},
            {"@id": "http://x.example/me", "http://y.example/p": {"@id": "http://x.example/you"}},
        ),
    ],
)
def test_pruning_changes_nothing(
    context: object, document: dict[str, object], plain: object
) -> None:
    same({"@context": URL, **document}, sources(one=context), plain)
    same({"@context": context, **document}, {}, plain)


# --- Contexts that lead back to themselves ------------------------------------------------------


@pytest.mark.parametrize(
    "documents",
    [
        {"one": URL},
        {"one": {"@import": URL}},
        {"one": OTHER, "two": URL},
        {"one": [{"x": "http://x.example/"}, OTHER], "two": [URL]},
    ],
)
def test_a_context_must_not_include_itself(documents: dict[str, object]) -> None:
    with pytest.raises(MalformedRdf, match="includes itself"):
        read({"@context": URL, "@id": "#a", "x": 1}, sources(**documents))


def test_a_scoped_context_may_lead_back() -> None:
    """JSON-LD API test suite, te126 and te127: recursion by scoped contexts is no error."""
    plain = {
        "@id": "#a",
        "http://x.example/t": {
            "@id": "#b",
            "http://x.example/t": {"@id": "#c", "http://x.example/t": {"@id": "#d"}},
        },
    }
    document = {"@id": "#a", "t": {"@id": "#b", "t": {"@id": "#c", "t": {"@id": "#d"}}}}
    term = {"@id": "http://x.example/t"}
    direct = sources(one={"t": {**term, "@context": URL}})
    same({"@context": URL, **document}, direct, plain)
    indirect = sources(one={"t": {**term, "@context": OTHER}}, two={"t": {**term, "@context": URL}})
    same({"@context": URL, **document}, indirect, plain)
    same({"@context": OTHER, **document}, indirect, plain)
    same({"@context": [URL, OTHER], **document}, indirect, plain)


# --- Unknown contexts ---------------------------------------------------------------------------


def test_unknown_contexts_are_listed_in_order_and_once() -> None:
    content = json.dumps(
        {
            "@context": ["https://c.example/1", URL, "https://c.example/2"],
            "@id": "#a",
            "http://x.example/p": {"@context": "https://c.example/1", "q": {"@context": "/3"}},
        }
    ).encode()
    assert unknown_contexts(content, sources(one=NAME)) == [
        "https://c.example/1",
        "https://c.example/2",
        "http://example.org/3",
    ]


def test_a_known_context_may_need_an_unknown_one() -> None:
    contexts = sources(
        one={
            "p": {"@id": "http://x.example/p", "@context": "https://c.example/scoped"},
            "q": {"@id": "http://x.example/q", "@context": "https://c.example/unused"},
        }
    )
    content = json.dumps({"@context": URL, "@id": "#a", "p": {}}).encode()
    assert unknown_contexts(content, contexts) == ["https://c.example/scoped"]
    with pytest.raises(UnknownContext, match="scoped"):
        parse(content, JSON_LD, base_iri=BASE, contexts=contexts)


def test_no_context_is_unknown_where_none_is_referred_to() -> None:
    documents: list[object] = [
        {},
        [],
        {"@context": NAME},
        {"@context": None},
        {"@context": [None, {}]},
    ]
    for document in documents:
        assert unknown_contexts(json.dumps(document).encode()) == []


@pytest.mark.parametrize(
    "document",
    [
        {"@id": "#a", "http://x.example/p": {"@value": {"@context": "no"}, "@type": "@json"}},
        {
            "@context": {"p": {"@id": "http://x.example/p", "@type": "@json"}},
            "@id": "#a",
            "p": {"@context": "no", "deep": [{"@context": ["no"]}]},
        },
        {
            "@context": {"p": {"@id": "http://x.example/p", "@type": "@json"}},
            "@id": "#a",
            "p": [{"@context": {"p": {"@type": "no"}}}],
        },
    ],
)
def test_a_json_literal_is_left_alone(document: dict[str, object]) -> None:
    content = json.dumps(document).encode()
    assert unknown_contexts(content) == []
    ((_, _, literal),) = parse(content, JSON_LD, base_iri=BASE).graph
    held = document.get("p") or document["http://x.example/p"]["@value"]  # type: ignore[index]
    assert json.loads(literal.value) == held


@pytest.mark.parametrize("reference", ["http://[", "//[x"])
def test_a_reference_that_is_not_an_iri_is_malformed(reference: str) -> None:
    content = json.dumps({"@context": reference}).encode()
    with pytest.raises(MalformedRdf, match="not an IRI"):
        parse(content, JSON_LD, base_iri=BASE)


def test_what_hides_behind_a_repeated_key_is_not_seen_by_the_parser() -> None:
    """Of repeated members the last counts, for us and so for the parser."""
    content = (
        b'{"@context": "https://c.example/", "@context": {}, "@id": "#a", "http://x.example/p": 1}'
    )
    assert len(parse(content, JSON_LD, base_iri=BASE).graph) == 1
    hidden = b'{"@id": "#a", "@id": "#b", "http://x.example/p": 1, "http://x.example/p": 2}'
    assert list(parse(hidden, JSON_LD, base_iri=BASE).graph) == [
        (
            Iri(f"{BASE}#b"),
            Iri("http://x.example/p"),
            Literal("2", datatype=Iri("http://www.w3.org/2001/XMLSchema#integer")),
        )
    ]


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'"@context"', b'{"context": {}}'])
def test_a_context_document_has_a_context(content: bytes) -> None:
    with pytest.raises(MalformedRdf):
        read_context(content, url=URL)


# --- Maps by type -------------------------------------------------------------------------------


def test_a_map_by_type_is_read() -> None:
    """The parser refuses these ("@type must be the first key")."""
    context = {
        "p": {"@id": "http://x.example/p", "@container": ["@type", "@set"]},
        "none": "@none",
        "T": {"@id": "http://x.example/T", "@context": {"q": "http://x.example/q"}},
    }
    document = {
        "@id": "#a",
        "p": {
            "T": [{"q": 1, "@id": "#b"}, "#c"],
            "none": {"@id": "#d"},
            "http://x.example/U": {"@id": "#e", "@type": "T", "q": 2},
        },
    }
    plain = {
        "@id": "#a",
        "http://x.example/p": [
            {"@id": "#b", "@type": "http://x.example/T", "http://x.example/q": 1},
            {"@id": "#c", "@type": "http://x.example/T"},
            {"@id": "#d"},
            {
                "@id": "#e",
                "@type": ["http://x.example/T", "http://x.example/U"],
                "http://x.example/q": 2,
            },
        ],
    }
    same({"@context": context, **document}, {}, plain)
    same({"@context": URL, **document}, sources(one=context), plain)


def test_a_map_by_type_holds_nodes() -> None:
    context = {"p": {"@id": "http://x.example/p", "@container": "@type"}}
    with pytest.raises(MalformedRdf, match="type map"):
        read({"@context": context, "p": {"http://x.example/T": 5}}, {})


def test_a_term_that_is_a_map_by_type_only_sometimes_is_refused() -> None:
    """Better no answer than a wrong one."""
    context = {"p": {"@id": "http://x.example/p", "@container": "@type"}}
    inner = {"@context": {"p": "http://x.example/p"}, "p": {"@id": "#c"}}
    with pytest.raises(MalformedRdf, match="type map"):
        read({"@context": context, "@id": "#a", "http://x.example/q": inner}, {})


# --- Graphs as values ---------------------------------------------------------------------------


@pytest.mark.parametrize("type_", [{}, {"@type": "@id"}])
@pytest.mark.parametrize(
    ("container", "value"),
    [
        ("@graph", {"@list": []}),
        ("@graph", [[{"@list": ["x"]}]]),
        ("@graph", {"@set": ["x"]}),
        (["@graph", "@set"], [{"@id": "#b"}, {"@list": []}]),
        ("@graph", {"items": []}),
        ("@graph", {"members": []}),
        (["@graph", "@index"], {"key": {"@list": []}}),
        (["@graph", "@id"], {"#b": [{"items": []}]}),
        (["@graph", "@id"], {"@list": []}),
    ],
)
def test_a_list_where_a_graph_is_wanted_does_not_reach_the_parser(
    container: object, value: object, type_: dict[str, object]
) -> None:
    """It would abort the whole process, and this test with it."""
    context = {
        "p": {"@id": "http://x.example/p", "@container": container, **type_},
        "items": {"@id": "more"},
        "more": "@list",
        "members": "@set",
    }
    for at_hand, reference in ({}, context), (sources(one=context), URL):
        with pytest.raises(MalformedRdf, match="cannot be used as a graph"):
            read({"@context": reference, "@id": "#a", "p": value}, at_hand)


def test_what_only_seems_to_be_a_json_literal_is_kept_from_the_parser_too() -> None:
    """A term of JSON somewhere, and none here: the contexts below it come into force."""
    graphs = {"q": {"@id": "http://x.example/q", "@container": ["@graph", "@index"]}}
    below: dict[str, object] = {"@context": graphs, "q": {"r": {"@list": []}}}
    elsewhere = {"@context": {"p": {"@id": "http://x.example/p", "@type": "@json"}}}
    document = {"p": below, "http://x.example/other": elsewhere}
    with pytest.raises(MalformedRdf, match="cannot be used as a graph"):
        read(document, {})
    deep = {**document, "p": {"@context": chain(20_000, "prefix"), "t0": 1}}
    with pytest.raises(RdfTooComplex, match="chain of definitions"):
        read(deep, {})


def test_a_graph_may_hold_a_list() -> None:
    context = {"p": {"@id": "http://x.example/p", "@container": "@graph"}}
    inner = {"@id": "#b", "http://x.example/q": {"@list": [1]}}
    content = json.dumps({"@context": context, "@id": "#a", "p": inner}).encode()
    (graph,) = parse(content, JSON_LD, base_iri=BASE).dataset.named.values()
    assert len(graph) == 3


# --- Work -----------------------------------------------------------------------------------------

MANY: dict[str, object] = {f"t{number}": f"http://x.example/{number}" for number in range(100)}


FORCED: list[dict[str, object]] = [
    {"@context": MANY, "@graph": [{"@context": {}, "@id": "#a", "t1": 1}] * 50},
    {
        "@context": MANY | {"s": {"@id": "http://x.example/s", "@context": {}}},
        "@graph": [{"@id": "#a", "s": {"t1": 1}}] * 50,
    },
    {
        "@context": MANY | {"T": {"@id": "http://x.example/T", "@context": {}}},
        "@graph": [{"@id": "#a", "@type": ["T"] * 25}] * 2,
    },
    {
        "@context": {"s": {"@id": "http://x.example/s", "@context": MANY}},
        "@graph": [{"@id": "#a", "s": [{"t1": 1}] * 50}],
    },
]


@pytest.mark.parametrize("document", FORCED)
def test_a_large_context_must_not_come_into_force_too_often(document: object) -> None:
    content = json.dumps(document).encode()
    parse(content, JSON_LD, base_iri=BASE, limits=RdfLimits(max_context_work=150_000))
    with pytest.raises(RdfTooComplex, match="contexts"):
        parse(content, JSON_LD, base_iri=BASE, limits=RdfLimits(max_context_work=4_000))


SCOPED: dict[str, object] = {"@id": "http://x.example/s", "@context": {"u": "http://x.example/u"}}
LARGE: dict[str, object] = {f"t{number}": f"http://x.example/{number}" for number in range(3000)}


@pytest.mark.parametrize(
    "document",
    [
        {"@context": {"s": {**SCOPED, "@context": LARGE}}, "s": [{"t1": 1}] * 1000},
        {"@context": {f"t{number}": SCOPED for number in range(3000)}, "t1": {"u": 1}},
        {"@context": {"T": {**SCOPED, "@context": LARGE}}, "@graph": [{"@type": "T"}] * 1000},
        {"@context": LARGE | {"T": SCOPED}, "@graph": [{"@type": "T", "u": 1}] * 1000},
    ],
    ids=["processed again for each value", "copied for each definition", "for each type", "twice"],
)
def test_contexts_that_take_the_parser_seconds_are_refused(document: object) -> None:
    """Each of these took one to five seconds of processor time, with 80 to 250 kB."""
    content = json.dumps(document).encode()

    def taken_s() -> float:
        began_s = time.process_time()
        with pytest.raises(RdfTooComplex, match="contexts"):
            parse(content, JSON_LD, base_iri=BASE)
        return time.process_time() - began_s

    # On a busy machine the same work takes now and then twice as much processor time.
    assert min(taken_s() for _ in range(3)) < 0.5


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ({"@vocab": "http://x.example/" + "v" * 30_000}, "p"),
        ({"p": "http://x.example/" + "v" * 30_000}, "p:p"),
        (
            {"t0": "http://x.example/"}
            | {f"t{number + 1}": f"t{number}:{'v' * 300}" for number in range(90)},
            "t90:p",
        ),
        ([{"@vocab": "http://x.example/"}, *[{"@vocab": "v" * 300}] * 100], "p"),
        ({"s": {"@id": "http://x.example/", "@context": {"p": "s:" + "v" * 30_000}}}, "s"),
    ],
    ids=["vocabulary", "prefix", "chain of prefixes", "chain of vocabularies", "scoped"],
)
def test_names_cannot_be_made_long_and_numerous(context: object, name: str) -> None:
    """A document of 64 kB could take hundreds of megabytes, and one of 8 MiB all there is."""
    few = {"@context": context, "@graph": [{"@id": "#a", name: 1}]}
    assert len(parse(json.dumps(few).encode(), JSON_LD, base_iri=BASE).graph) == 1
    many = {"@context": context, "@graph": [{"@id": "#a", name: 1}] * 5000}
    with pytest.raises(RdfTooLarge):
        parse(json.dumps(many).encode(), JSON_LD, base_iri=BASE)


def test_references_must_not_write_too_much_in() -> None:
    contexts = sources(one=MANY, two=[URL] * 50)
    document: dict[str, object] = {"@context": OTHER, "@id": "#a", **dict.fromkeys(MANY, 1)}
    content = json.dumps(document).encode()
    limits = RdfLimits(max_context_work=4_000)
    with pytest.raises(RdfTooComplex, match="contexts"):
        parse(content, JSON_LD, base_iri=BASE, contexts=contexts, limits=limits)
    assert len(parse(content, JSON_LD, base_iri=BASE, contexts=contexts).graph) == 100


def test_many_nodes_under_one_context_are_accepted() -> None:
    document = {"@context": MANY, "@graph": [{"@id": f"#{n}", "t1": n} for n in range(1000)]}
    content = json.dumps(document).encode()
    limits = RdfLimits(max_context_work=1000)
    assert len(parse(content, JSON_LD, base_iri=BASE, limits=limits).graph) == 1000


def chain(length: int, kind: str) -> dict[str, object]:
    """A context in which each term is defined by means of the next one."""
    steps = [(f"t{number}", f"t{number + 1}") for number in range(length)]
    chains: dict[str, dict[str, object]] = {
        "prefix": {term: f"{following}:x" for term, following in steps},
        "id": {term: {"@id": following} for term, following in reversed(steps)},
        "type": {
            term: {"@id": "http://x.example/", "@type": following} for term, following in steps
        },
        "circle": {term: f"{following}:x" for term, following in [*steps, (f"t{length}", "t0")]},
    }
    return {f"t{length}": "http://x.example/"} | chains[kind]


@pytest.mark.parametrize("kind", ["prefix", "id", "type", "circle"])
@pytest.mark.parametrize("length", [200, 20_000])
def test_a_chain_of_definitions_cannot_overflow_the_stack(length: int, kind: str) -> None:
    """The parser follows it by recursion: the whole process would die at some thousands."""
    content = json.dumps({"@context": chain(length, kind), "@id": "#a", "t0": 1}).encode()
    with pytest.raises(RdfTooComplex, match="chain of definitions"):
        parse(content, JSON_LD, base_iri=BASE)


def test_a_chain_of_definitions_may_not_hide_in_a_context_by_url() -> None:
    contexts = sources(one=chain(200, "prefix"))
    with pytest.raises(RdfTooComplex, match="chain of definitions"):
        read({"@context": URL, "@id": "#a", "t0": 1}, contexts)


def test_scoped_contexts_lengthen_the_chain() -> None:
    context: dict[str, object] = {}
    for _ in range(10):
        context = chain(20, "prefix") | {"deep": {"@id": "t0:x", "@context": context}}
    content = json.dumps({"@context": context, "@id": "#a", "t0": 1}).encode()
    with pytest.raises(RdfTooComplex, match="chain of definitions"):
        parse(content, JSON_LD, base_iri=BASE)
    parse(content, JSON_LD, base_iri=BASE, limits=RdfLimits(max_depth=250))


def test_a_context_of_many_terms_that_lead_nowhere_is_fine() -> None:
    context = {"x": "http://x.example/", **{f"t{n}": f"x:{n}" for n in range(1000)}}
    content = json.dumps({"@context": context, "@id": "#a", "t999": 1}).encode()
    assert len(parse(content, JSON_LD, base_iri=BASE).graph) == 1


@pytest.mark.parametrize("content", [b'"text"', b"5", b"true", b"null"])
def test_a_scalar_is_not_a_document(content: bytes) -> None:
    """JSON-LD 1.1 section 9."""
    with pytest.raises(MalformedRdf, match="object or an array"):
        parse(content, JSON_LD, base_iri=BASE)
