"""N3 Patch: what is read, and which rule refuses what is not."""

from __future__ import annotations

import pytest

from podstead.core.errors import BadRequest, Unprocessable
from podstead.core.media_types import TURTLE
from podstead.rdf.codecs import parse
from podstead.rdf.errors import MalformedRdf, PatchRefused, RdfTooLarge
from podstead.rdf.graph import BlankNode, Iri, Literal
from podstead.rdf.limits import RdfLimits
from podstead.rdf.patch_parsers import parse_n3_patch
from podstead.rdf.patching import Patch, PatchOperation, Semantics, Variable, apply
from tests.support.rdf_oracle import BASE, assert_same, read

PREFIX = "@prefix solid: <http://www.w3.org/ns/solid/terms#> .\n"
S, P, Q = Iri(f"{BASE}#s"), Iri(f"{BASE}#p"), Iri(f"{BASE}#q")
X, Y = Variable("x"), Variable("y")

# Each part of a patch as a statement of its own, so that tests can leave one out or repeat it.
WHERE = "<#patch> solid:where { ?x <#p> <#s> } ."
DELETES = "<#patch> solid:deletes { ?x <#p> <#s> } ."
INSERTS = "<#patch> solid:inserts { ?x <#q> 'new' } ."
TYPE = "<#patch> a solid:InsertDeletePatch ."


def read_patch(text: str, limits: RdfLimits | None = None) -> Patch:
    return parse_n3_patch((PREFIX + text).encode(), base_iri=BASE, limits=limits or RdfLimits())


def operation(text: str) -> PatchOperation:
    [only] = read_patch(text).operations
    return only


FULL = PatchOperation(where=((X, P, S),), deletes=((X, P, S),), inserts=((X, Q, Literal("new")),))


@pytest.mark.parametrize(
    "text",
    [
        f"{TYPE} {WHERE} {DELETES} {INSERTS}",
        f"{INSERTS} {DELETES} {WHERE} {TYPE}",  # X-4: rdflib writes the type last
        f"{WHERE} <#patch> solid:patches <> . {INSERTS} {TYPE} {DELETES}",
        f"{TYPE} <#patch> a solid:Patch . {WHERE} {DELETES} {INSERTS}",
        (
            "_:a a solid:InsertDeletePatch; solid:inserts { ?x <#q> 'new' . };"
            "solid:where {?x <#p> <#s>}; solid:deletes{?x<#p><#s>}."
        ),
        (
            "[] solid:inserts {?x <#q> 'new'}; solid:deletes {?x <#p> <#s>};"
            "   solid:where {?x <#p> <#s>};\n a solid:InsertDeletePatch ."
        ),
        (
            "<> <http://www.w3.org/ns/solid/terms#where> { ?x <#p> <#s> . } ;"
            "<http://www.w3.org/ns/solid/terms#deletes> { ?x <#p> <#s> . } ;"
            "<http://www.w3.org/ns/solid/terms#inserts> { ?x <#q> '''new''' . } ;"
            "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
            "<http://www.w3.org/ns/solid/terms#InsertDeletePatch> ."
        ),
        (
            "PREFIX t: <http://www.w3.org/ns/solid/terms#> BASE <http://example.org/folder/>\n"
            "<x> t:inserts { ?x <document#q> 'new' }; t:deletes { ?x <document#p> <document#s> };"
            "t:where { ?x <document#p> <document#s> }; a t:InsertDeletePatch."
        ),
    ],
)
def test_clauses_may_come_in_any_order_and_layout(text: str) -> None:
    """X-3, X-4, R-7: relative IRIs resolve against the target."""
    patch = read_patch(text)
    assert patch.operations == (FULL,)
    assert patch.semantics is Semantics.ONE_SOLUTION


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TYPE, PatchOperation()),
        (f"{TYPE} <#patch> solid:inserts {{}}; solid:where {{ }} .", PatchOperation()),
        (f"{TYPE} {WHERE}", PatchOperation(where=FULL.where)),
    ],
)
def test_absent_clauses_are_empty_formulas(text: str, expected: PatchOperation) -> None:
    """X-5: without any clause the patch is a valid one that changes nothing."""
    assert operation(text) == expected


def test_a_patch_says_what_its_modes_depend_on() -> None:
    """X-20, X-21, X-22."""
    flags = [
        (patch.has_inserts, patch.has_deletes, patch.has_conditions, patch.reads_managed)
        for patch in (
            read_patch(TYPE),
            read_patch(f"{TYPE} <#patch> solid:inserts {{ <#a> <#b> <#c> }} ."),
            read_patch(f"{TYPE} <#patch> solid:deletes {{ <#a> <#b> <#c> }} ."),
            read_patch(f"{TYPE} {WHERE}"),
            read_patch(
                f"{TYPE} <#patch> solid:inserts {{}}; solid:deletes {{}}; solid:where {{}}."
            ),
        )
    ]
    assert flags == [
        (False, False, False, False),
        (True, False, False, False),
        (False, True, False, False),
        (False, False, True, True),
        (False, False, False, False),
    ]


def test_prefixes_of_the_patch_are_kept() -> None:
    assert read_patch(f"@prefix e: <urn:e:> . {TYPE}").prefixes == {
        "solid": "http://www.w3.org/ns/solid/terms#",
        "e": "urn:e:",
    }


def test_variables_are_distinguished_from_text_that_looks_like_them() -> None:
    text = (
        "<#p> a solid:InsertDeletePatch; # ?comment { {\n"
        'solid:where { ?x <#p?q=?no> \'?no { \\\' ?no\', """?no " {\n?no"""@en } ;\n'
        "solid:inserts { ?x <http://e/?a> 'it\\'s ?y' ; <#p> ?x } ."
    )
    found = operation(text)
    assert found.where == (
        (X, Iri(f"{BASE}#p?q=?no"), Literal("?no { ' ?no")),
        (X, Iri(f"{BASE}#p?q=?no"), Literal('?no " {\n?no', language="en")),
    )
    assert found.inserts == ((X, Iri("http://e/?a"), Literal("it's ?y")), (X, P, X))


def test_a_question_mark_escaped_in_a_local_name_is_not_a_variable() -> None:
    found = operation(
        "@prefix e: <urn:e:> . [] a solid:InsertDeletePatch; solid:inserts {e:a\\?b e:c e:d}."
    )
    assert found.inserts[0][0] == Iri("urn:e:a?b")


@pytest.mark.parametrize(
    "name", ["x", "X1", "_x", "1", "g_L3C12", "n3-0", "größe", "名", "e\u0301t"]
)
def test_variable_names_are_those_of_clients(name: str) -> None:
    """rdflib.js makes variables of blank node labels."""
    patterns = operation(
        f"{TYPE} <#patch> solid:where {{ ?{name} <#p> ?{name}. ?{name}<#p>?y.}} ."
    ).where
    assert patterns == ((Variable(name), P, Variable(name)), (Variable(name), P, Y))


@pytest.mark.parametrize("quantifier", ["@forAll", "@forSome"])
def test_declared_iris_are_variables(quantifier: str) -> None:
    """X-7: in the whole patch, or in the formula that declares them."""
    everywhere = operation(
        f"@prefix e: <urn:e:> . {quantifier} <#v>, e:w . {TYPE} <#patch> solid:where "
        "{ <#v> e:w e:x }; solid:deletes { <#v> <#p> e:w }; solid:inserts { <#q> <#p> <#v> } ."
    )
    v, w = Variable(f"{BASE}#v"), Variable("urn:e:w")
    assert everywhere == PatchOperation(
        where=((v, w, Iri("urn:e:x")),), deletes=((v, P, w),), inserts=((Q, P, v),)
    )
    in_one = operation(
        f"{TYPE} <#patch> solid:where {{ {quantifier} <#v> . <#v> <#p> <#q> }};"
        "solid:inserts { <#v> <#p> <#q> } ."
    )
    assert in_one.where == ((v, P, Q),)
    assert in_one.inserts == ((Iri(f"{BASE}#v"), P, Q),)


@pytest.mark.parametrize(
    ("statements", "count"),
    [
        ("(1 2) .", 4),
        ("(1 2)", 4),
        ("[ <#p> 1 ] . <#a> <#b> <#c>", 2),
        ("<#a> <#b> <#c> . [ <#p> (1 [ <#q> 2 ]) ] # .\n .", 7),
        ("<#a> <#b> (1), [ <#p> 'x)' ] . (<#a>) .", 7),
    ],
)
def test_brackets_may_stand_alone_in_any_clause(statements: str, count: int) -> None:
    for clauses in (
        f"solid:where {{ {statements} }}; solid:inserts {{ <#d> <#e> <#f> }}",
        f"solid:inserts {{ <#d> <#e> <#f> }}; solid:where {{ {statements} }}",
    ):
        found = operation(f"(3) . [] <#x> <#y> . {TYPE} <#patch> {clauses} . (4) .")
        assert len(found.where) == count
        assert found.inserts == (tuple(Iri(f"{BASE}#{name}") for name in "def"),)


def test_an_iri_cannot_pass_for_a_variable() -> None:
    first = operation(f"{TYPE} {WHERE}")
    second = operation(f"{TYPE} <#patch> solid:where {{ <urn:x> <#p> ?x }} .")
    assert isinstance(first.where[0][0], Variable)
    assert isinstance(second.where[0][0], Iri)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing but a comment",
        "\ufeff  \n",
    ],
)
def test_an_empty_body_is_malformed(text: str) -> None:
    """X-2."""
    with pytest.raises(MalformedRdf):
        parse_n3_patch(text.encode(), base_iri=BASE)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"{TYPE}\n<#patch> solid:inserts {{ <#a> <#b> .", 3),
        (f"{TYPE}\n\n<#patch> solid:inserts {{ <#a> <#b> 'x }} .", 4),
        (f"{TYPE}\n<#patch> solid:inserts {{ <#a> <#b> e:c }} .", 3),
        (f"{TYPE} }} .", 2),
        ("INSERT DATA { <#a> <#b> <#c> }", 2),
        (f"{TYPE} <#patch> solid:where {{ 'x' <#p> <#q> }} .", None),
        (f"{TYPE} <#patch> solid:where {{ <#p> 'x' <#q> }} .", None),
        (f"{TYPE} <#patch> solid:where {{ <#p> <#q> 'x'^^?t }} .", None),
        (f"@prefix v: ?v . {TYPE}", None),
        (f"{TYPE} @base ?v .", None),
        (f"{TYPE} <#patch> solid:where {{ ? <#q> 'x' }} .", 2),
        (f"@forAll 'x' . {TYPE}", None),
        (f"@forAll ?x . {TYPE}", None),
        (f"@forAll _:x . {TYPE}", None),
        (f"@forAll <#x>; <#p> <#q> . {TYPE} <#patch> solid:where {{ @forAll . }} .", 2),
        (f"{TYPE} <#patch> solid:where {{ @forAll <#x>; <#p> <#q> . }} .", None),
        (f"{TYPE} <#patch> solid:where {{ <<( <#a> <#b> <#c> )>> <#q> 'x' }} .", 2),
    ],
)
def test_invalid_n3_is_malformed(text: str, line: int | None) -> None:
    """X-2: a syntax error is 400, and its line is told where the parser knows it."""
    with pytest.raises(MalformedRdf) as caught:
        read_patch(text)
    assert isinstance(caught.value, BadRequest)
    assert caught.value.line == line
    assert caught.value.media_type == "text/n3"
    assert "urn:" not in str(caught.value)


@pytest.mark.parametrize(
    "formula", ["<#x>", "<#x> .", "?x", "[] .", "\n<#a> <#b> <#c> . <#x> . <#d> <#e> <#f>", "()."]
)
@pytest.mark.parametrize("brackets", ["", "[ <#q> 1 ] ."])
def test_a_single_term_in_a_formula_is_malformed(formula: str, brackets: str) -> None:
    """X-2: also where the library takes it for the subject of what stands around it."""
    text = f"{TYPE} {brackets}\n<#patch> solid:inserts {{ {formula} }} ."
    with pytest.raises(MalformedRdf, match="a statement has too few terms") as caught:
        read_patch(text)
    assert caught.value.line == 3 + formula.count("\n")


def test_invalid_utf_8_is_malformed() -> None:
    """R-13."""
    with pytest.raises(MalformedRdf, match="line 2: it is not UTF-8"):
        parse_n3_patch(b"# a\n# \xff", base_iri=BASE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # X-3
        ("<#a> <#b> <#c> .", "no solid:InsertDeletePatch"),
        ("?patch a solid:InsertDeletePatch .", "not a variable"),
        (f"@forAll <#patch> . {TYPE}", "not a variable"),
        (f"{TYPE} {INSERTS} <#other> a solid:InsertDeletePatch .", "more than one patch"),
        (f"{TYPE} <#other> solid:inserts {{}} .", "more than one patch"),
        # X-4, X-5
        (INSERTS, "does not have the type"),
        (f"{INSERTS} <#patch> a solid:Patch .", "does not have the type"),
        ("<#patch> a solid:Patch .", "does not have the type"),
        # X-5
        (f"{TYPE} {WHERE} <#patch> solid:where {{}} .", "solid:where is stated more than once"),
        (f"{TYPE} {INSERTS} {INSERTS}", "solid:inserts is stated more than once"),
        (f"{TYPE} <#patch> solid:deletes {{}}, {{}} .", "solid:deletes is stated more than once"),
        # X-6
        (f"{TYPE} <#patch> solid:inserts <#a> .", "object of solid:inserts is not a formula"),
        (f"{TYPE} <#patch> solid:inserts [] .", "object of solid:inserts is not a formula"),
        (f"{TYPE} <#patch> solid:where 'x' .", "object of solid:where is not a formula"),
        (f"{TYPE} <#patch> solid:where ({{ }}) .", "object of solid:where is not a formula"),
        (f"{TYPE} <#patch> solid:where {{ <#a> <#b> {{ }} }} .", "formulas cannot be nested"),
        (f"{TYPE} {{ <#a> <#b> <#c> }} => {{ <#a> <#b> <#d> }} .", "objects of solid:where"),
        (f"{TYPE} <#patch> <#other> {{ }} .", "objects of solid:where"),
        (f"{TYPE} <#patch> solid:inserts {{ <#a> => <#b> }} .", "cannot contain a rule"),
        (f"{TYPE} <#patch> solid:inserts {{ (1) => <#b> }} .", "cannot contain a rule"),
        (f"{TYPE} <#patch> solid:where {{ <#a> <= ?x }} .", "cannot contain a rule"),
        (f"{TYPE} {WHERE} {DELETES} {INSERTS} <#a> <#b> {{}} .", "more formulas than one"),
        # X-7
        (f"{TYPE} {INSERTS}", r"\?x occurs in solid:inserts but not in solid:where"),
        (f"{TYPE} {DELETES}", r"\?x occurs in solid:deletes but not in solid:where"),
        (f"{TYPE} {WHERE} <#patch> solid:inserts {{ <#a> ?y ?x }} .", r"\?y occurs in"),
        (f"@forAll <#v> . {TYPE} <#patch> solid:inserts {{ <#v> <#p> 1 }} .", "#v occurs in"),
        (f"{TYPE} <#patch> solid:deletes {{ @forSome <#v> . <#v> <#p> 1 }} .", "#v occurs in"),
        # X-8
        (f"{TYPE} <#patch> solid:deletes {{ _:a <#b> <#c> }} .", "has a blank node"),
        (f"{TYPE} <#patch> solid:deletes {{ <#a> <#b> [] }} .", "has a blank node"),
        (f"{TYPE} <#patch> solid:deletes {{ <#a> <#b> (1) }} .", "has a blank node"),
        # X-9
        (
            f"{TYPE} <#patch> solid:where {{ _:a <#b> <#c> }}; solid:inserts {{ _:a <#b> <#d> }} .",
            "_:a is shared",
        ),
        (f"{TYPE} <#patch> solid:where {{ _:a <#b> <#c> }}; <#d> _:a .", "_:a is shared"),
        ("_:a a solid:InsertDeletePatch; solid:inserts { _:a <#b> <#c> } .", "_:a is shared"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_its_reason(text: str, reason: str) -> None:
    """X-3 to X-9: 422."""
    with pytest.raises(PatchRefused, match=reason) as caught:
        read_patch(text)
    assert isinstance(caught.value, Unprocessable)


def test_a_nested_formula_is_refused_with_its_line() -> None:
    """X-6."""
    with pytest.raises(PatchRefused, match="line 3: ") as caught:
        read_patch(f"{TYPE}\n<#patch> solid:inserts {{ {{ }} <#a> <#b> }} .")
    assert caught.value.line == 3


def test_blank_nodes_are_accepted_in_inserts_and_conditions() -> None:
    """X-8, X-9."""
    found = operation(
        f"{TYPE} <#patch> solid:inserts {{ _:a <#p> [ <#q> (1) ] }};"
        "solid:where { _:b <#p> <#s> } ."
    )
    assert found.where == ((BlankNode("b"), P, S),)
    assert len(found.inserts) == 4


def test_other_statements_about_the_patch_are_ignored() -> None:
    text = (
        f"{TYPE} {WHERE} {DELETES} {INSERTS} <#patch> <http://e/comment> 'why' . <#a> <#b> <#c> ."
    )
    assert operation(text) == FULL


def test_more_bytes_than_the_limit_are_refused() -> None:
    content = (PREFIX + TYPE).encode()
    parse_n3_patch(content, base_iri=BASE, limits=RdfLimits(max_bytes=len(content)))
    with pytest.raises(RdfTooLarge):
        parse_n3_patch(content, base_iri=BASE, limits=RdfLimits(max_bytes=len(content) - 1))


def test_more_triples_than_the_limit_are_refused() -> None:
    """The type, the clause, the formula's own and one more: four."""
    text = f"{TYPE} <#patch> solid:inserts {{ <#a> <#b> <#c> }} ."
    read_patch(text, RdfLimits(max_triples=4))
    with pytest.raises(RdfTooLarge):
        read_patch(text, RdfLimits(max_triples=3))


def test_more_variables_than_triples_have_room_for_are_refused() -> None:
    with pytest.raises(RdfTooLarge, match="variables"):
        read_patch("?x" * 100, RdfLimits(max_triples=10))


# --- As clients send them --------------------------------------------------------------------

STORED = """
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
<#me> a foaf:Person ; foaf:name "Alice" ; foaf:knows [ foaf:name "Bob" ; foaf:age 40 ] .
"""

RDFLIB = """
@prefix solid: <http://www.w3.org/ns/solid/terms#>.
@prefix ex: <http://www.example.org/terms#>.

_:patch
      solid:where {
        <http://example.org/folder/document#me> <http://xmlns.com/foaf/0.1/knows> ?_g_L3C70 .
      };
      solid:deletes {
        ?_g_L3C70 <http://xmlns.com/foaf/0.1/age> "40"^^<http://www.w3.org/2001/XMLSchema#integer> .
      };
      solid:inserts {
        ?_g_L3C70 <http://xmlns.com/foaf/0.1/age> "41"^^<http://www.w3.org/2001/XMLSchema#integer> .
      };   a solid:InsertDeletePatch .
"""

SPECIFICATION = """
@prefix solid: <http://www.w3.org/ns/solid/terms#>.
@prefix foaf: <http://xmlns.com/foaf/0.1/>.

_:rename a solid:InsertDeletePatch;
  solid:where   { ?person foaf:name "Bob". };
  solid:inserts { ?person foaf:givenName "Robert". };
  solid:deletes { ?person foaf:age 40 . }.
"""

TESTS_OF_THE_SPECIFICATION = """
@prefix solid: <http://www.w3.org/ns/solid/terms#>.
_:insert a solid:InsertDeletePatch; solid:inserts { <> a <http://example.org/Foo> . }.
"""


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (RDFLIB, STORED.replace("40", "41")),
        (SPECIFICATION, STORED.replace("foaf:age 40", 'foaf:givenName "Robert"')),
        (TESTS_OF_THE_SPECIFICATION, STORED + "<> a <http://example.org/Foo> ."),
    ],
    ids=["rdflib", "specification", "specification-tests"],
)
def test_patches_as_clients_send_them(patch: str, expected: str) -> None:
    """X-4, X-20."""
    stored = parse(STORED.encode(), TURTLE, base_iri=BASE).graph
    patched = apply(parse_n3_patch(patch.encode(), base_iri=BASE), stored)
    assert_same(patched, read(expected, TURTLE))
