"""The shortcuts for simple patches and for the texts of triples change nothing but the time.

Each is compared with the general way, which is always open: by taking the shortcut away.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import RequestRefused
from podstead.core.media_types import TURTLE
from podstead.rdf import patch_parsers, patching
from podstead.rdf.codecs import Document, parse, serialize
from podstead.rdf.graph import Dataset, Graph, Iri, Quad, Triple, as_triple, text_of, texts_of_quads
from podstead.rdf.limits import RdfLimits
from podstead.rdf.patch_parsers import parse_n3_patch, parse_sparql_update
from podstead.rdf.patching import Patch, PatchOperation, Semantics, apply
from tests.support.rdf_oracle import BASE
from tests.support.rdf_strategies import GRAPHS, PREFIXES

pytestmark = pytest.mark.usefixtures("literals_as_written")

SOLID = "@prefix solid: <http://www.w3.org/ns/solid/terms#> .\n"


# --- Triples as text ---------------------------------------------------------------------------


@given(graph=GRAPHS, other=GRAPHS)
def test_two_triples_have_one_text_only_if_they_are_equal(graph: Graph, other: Graph) -> None:
    triples = [*graph, *other]
    quads = [Quad(*triple) for triple in triples]
    assert texts_of_quads(quads) == [text_of(triple) for triple in triples]
    assert len(set(map(text_of, triples))) == len(set(triples))
    assert list(Graph.of_quads(quads).texts) == list(Graph(triples).texts)
    assert list(map(as_triple, quads)) == triples


@given(graph=GRAPHS)
def test_a_text_has_its_literal_last_and_no_other_space(graph: Graph) -> None:
    for subject, predicate, object_ in graph:
        text = text_of((subject, predicate, object_))
        assert text.split(" ", 2) == [str(subject), str(predicate), str(object_)]


@given(graph=GRAPHS, prefixes=PREFIXES)
def test_a_graph_is_the_same_from_quads_from_texts_and_from_triples(
    graph: Graph, prefixes: dict[str, str]
) -> None:
    triples = list(graph)
    graphs = [
        graph,
        Graph.of_quads([Quad(*triple) for triple in triples * 2]),
        Graph.of_texts({text_of(triple): triple for triple in triples}),
    ]
    written = {
        serialize(Document(Dataset(each), prefixes), TURTLE, base_iri=BASE) for each in graphs
    }
    assert len(written) == 1
    for one, another in permutations(graphs, 2):
        assert one == another
        assert list(one) == triples
        assert len(one) == len(triples)


# --- Applying a ground patch -------------------------------------------------------------------

IRIS = st.sampled_from([Iri(f"urn:{name}") for name in "abc"])
GROUND: st.SearchStrategy[Triple] = st.tuples(IRIS, IRIS, IRIS)
SOME = st.lists(GROUND, max_size=3).map(tuple)
OPERATIONS = st.lists(
    st.builds(PatchOperation, deletes=SOME, inserts=SOME), min_size=1, max_size=3
).map(tuple)


def outcome(call: Callable[[], object]) -> object:
    """What a call returns, or what it is refused with."""
    try:
        return call()
    except RequestRefused as refusal:
        return type(refusal), str(refusal)


@given(stored=st.lists(GROUND, max_size=6), operations=OPERATIONS, strict=st.booleans())
def test_a_ground_patch_has_the_effect_of_its_evaluation(
    stored: list[Triple], operations: tuple[PatchOperation, ...], *, strict: bool
) -> None:
    patch = Patch(operations, Semantics.ONE_SOLUTION if strict else Semantics.ALL_SOLUTIONS)
    graph = Graph.of_quads([Quad(*triple) for triple in stored])

    def applied() -> list[Triple]:
        return list(apply(patch, graph))

    fast = outcome(applied)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(patching, "_ground_changes", lambda _: None)
        assert outcome(applied) == fast


# --- Reading a simple patch --------------------------------------------------------------------

PIECES = [
    "{",
    "}",
    "{}",
    "{ <#a> <#b> <#c> }",
    "{ <#a> <#b> 'x } { y' . }",
    "<#p> a solid:InsertDeletePatch",
    "; solid:inserts",
    "; solid:deletes",
    "; solid:where",
    "<#a> <#b> <#c> .",
    "<#a>",
    '"""',
    '"',
    "'",
    "# } comment\n",
    "# { comment",
    "\n",
    "\\",
    "_:b",
    "( )",
    "]",
    ".",
    ";",
    "PREFIX ex: <http://example.org/>",
    "@prefix ex: <http://example.org/> .",
    "BASE <http://example.org/>",
    "INSERT DATA",
    "insert data",
    "DELETE DATA",
    "\u0130NSERT DATA",
    "DELETE WHERE",
    "INSERT DATA { <#a> <#b> 'c', TRUE }",
    "INSERT DATA { <#a> <#b> 'c' . }",
    "DELETE DATA { <#a> <#b> _:c }",
    "INSERT DATA { # }\n }",
    "INSERT DATA { <#a> <#b> '}; INSERT DATA {' }",
    "INSERT DATA { <#a> ex:b\\' <#c> . <#d> ex:e\\' <#f> }",
    "GRAPH <urn:block:1> { <#a> <#b> <#c> }",
    "ex:a",
    "?x",
    "$x",
    "=>",
    "<=",
    "@forAll",
    "FILTER",
    "VERSION '1.2'",
    "true",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join)


def same_without(module: object, shortcut: str, read: Callable[[], Patch]) -> None:
    fast = outcome(read)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(module, shortcut, lambda *_: None)
        assert outcome(read) == fast


N3_TEXTS = [
    f"<#p> a solid:InsertDeletePatch ; {rest}"
    for rest in (
        "solid:inserts { <#a> <#b> <#c> } .",
        "solid:inserts {} .",
        "solid:inserts { # comment }\n } .",
        "solid:inserts { <#a> <#b> '}' } ; solid:deletes {} .",
        "solid:inserts { <#a> <#b> '{' } ; solid:deletes {} .",
        "solid:inserts { <#a> <#b> {} } .",
        "solid:inserts { <#a> <#b> { <#a> <#b> <#c> } } .",
        "solid:inserts _:b .",
        "solid:inserts { <#a> } .",
        "solid:inserts { <#a> <#b> <#c> . <#d> } .",
        "solid:inserts { <#a> <#b> _:c } ; <#other> _:c .",
        "solid:inserts { <#a> <#b> <#c> } ; solid:inserts { <#a> <#b> <#d> } .",
        "solid:deletes { <#a> <#b> _:c } .",
        "<#other> { <#a> <#b> <#c> } .",
        "solid:inserts { <#a> => <#c> } .",
        "solid:inserts { <#a> <= <#c> } .",
        "solid:inserts { <#a> = <#c> } .",
        "solid:where { ?x <#b> <#c> } ; solid:inserts { ?x <#b> <#d> } .",
        "solid:inserts { @forAll <#x> . <#x> <#b> <#c> } .",
    )
]


@pytest.mark.parametrize("text", N3_TEXTS)
def test_a_known_n3_patch_is_read_as_with_the_lexer(text: str) -> None:
    content = (SOLID + text).encode()
    same_without(patch_parsers, "_read_unchanged", lambda: parse_n3_patch(content, base_iri=BASE))


@given(text=TEXTS)
def test_an_n3_patch_is_read_as_with_the_lexer(text: str) -> None:
    content = (SOLID + "<#p> a solid:InsertDeletePatch " + text).encode()
    same_without(patch_parsers, "_read_unchanged", lambda: parse_n3_patch(content, base_iri=BASE))


SPARQL_TEXTS = [piece for piece in PIECES if "DATA" in piece] + [
    "PREFIX ex: <http://example.org/> INSERT DATA { ex:a ex:b ex:c } ; ",
    "INSERT DATA { <#a> <#b> 1 } ; PREFIX ex: <urn:x:> DELETE DATA { ex:a ex:b ex:c } ; ;",
    "INSERT DATA { <#a> <#b> <#c> . # } ; DELETE DATA {\n <#d> <#e> <#f> }",
    # Letters that match I and S if case is ignored beyond ASCII.
    "\u0130NSERT DATA { <#a> <#b> <#c> }",
    "\u0131nsert data { <#a> <#b> <#c> }",
    "IN\u017fERT DATA { <#a> <#b> <#c> }",
    "INSERT DATA { <#a> <#b> <#c> } INSERT DATA { <#a> <#b> <#d> }",
    "INSERT DATA {} ; DELETE DATA { }",
    "INSERT DATA { <#a> <#b> <#c> . # } ; INSERT DATA { \n } ; DELETE DATA { <#d> <#e> <#f> }",
    "PREFIX <#a>: <urn:x> INSERT DATA { }",
    "PREFIX ex:y <urn:x> INSERT DATA { }",
]


@pytest.mark.parametrize("text", SPARQL_TEXTS)
def test_a_known_update_is_read_as_with_the_lexer(text: str) -> None:
    content = text.encode()
    same_without(patch_parsers, "_read_plain", lambda: parse_sparql_update(content, base_iri=BASE))


@given(text=TEXTS)
def test_an_update_is_read_as_with_the_lexer(text: str) -> None:
    content = text.encode()
    same_without(patch_parsers, "_read_plain", lambda: parse_sparql_update(content, base_iri=BASE))


@given(text=st.lists(st.sampled_from(SPARQL_TEXTS), min_size=1, max_size=4).map(" ; ".join))
def test_several_updates_are_read_as_with_the_lexer(text: str) -> None:
    content = text.encode()
    same_without(patch_parsers, "_read_plain", lambda: parse_sparql_update(content, base_iri=BASE))


def test_the_simple_patches_of_clients_take_the_shortcuts() -> None:
    limits = RdfLimits()
    n3 = f"{SOLID}_:p a solid:InsertDeletePatch; solid:inserts {{ <#a> <#b> 'c'. }}."
    assert patch_parsers._read_unchanged(n3, BASE, limits) is not None
    update = "PREFIX ex: <urn:x:>\nDELETE DATA { <#a> ex:b '}' . } ;\nINSERT DATA { <#a> ex:b 1 }"
    assert patch_parsers._PLAIN_UPDATE.fullmatch(update) is not None
    assert patch_parsers._read_plain(update, BASE, limits) is not None


def test_a_control_character_in_a_string_of_several_lines_stays() -> None:
    """The library escapes it in N-Triples, from which Turtle's long strings are written."""
    content = rb'<#a> <#b> "\u0000\u0001\u001f\u007f\\n\n\"\"\"\t\b\f\r\U0001F600" .'
    document = parse(content, TURTLE, base_iri=BASE)
    written = serialize(document, TURTLE, base_iri=BASE)
    assert b'"""' in written
    [quad] = pyoxigraph.parse(written, format=pyoxigraph.RdfFormat.TURTLE, base_iri=BASE)
    assert isinstance(quad.object, pyoxigraph.Literal)
    assert quad.object.value == '\0\x01\x1f\x7f\\n\n"""\t\b\f\r\U0001f600'
