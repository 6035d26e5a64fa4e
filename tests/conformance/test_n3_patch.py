"""N3 Patch (X-1 to X-17), and which modes a patch needs (X-20 to X-26)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.agents import (
    EVERYONE,
    N3_PATCH,
    SPARQL_UPDATE,
    WRITTEN,
    Agent,
    Rule,
)
from tests.conformance.patches import PREFIXES, TYPE, expected, n3, patch_n3, said
from tests.support.rdf import JSON_LD, N_TRIPLES, RDF_XML, TRIG, TURTLE, triples

STORED = "<#a> ex:p 1, 2. <#b> ex:p 3."


@pytest.fixture
def document(alice: Agent, container: str) -> str:
    """A Turtle document."""
    return alice.create(f"{container}doc.ttl", PREFIXES + STORED)


def assert_refused(
    alice: Agent, target: str, text: str, *statuses: int, content_type: str = N3_PATCH
) -> None:
    """Assert that a patch has one of the statuses and changes nothing."""
    before = alice.read(target)
    response = alice.patch(target, text, content_type)
    assert response.status in statuses, response
    after = alice.read(target)
    assert (after.body, after.header("ETag")) == (before.body, before.header("ETag"))


# --- X-1: where -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        (TURTLE, "<#a> <#p> 1."),
        (JSON_LD, '{"@id": "#a", "#p": 1, "@context": {"@vocab": ""}}'),
        (N_TRIPLES, "<http://e/a> <http://e/p> <http://e/b> ."),
        (TRIG, "<#a> <#p> 1. <#g> { <#c> <#p> 2 }"),
        (
            RDF_XML,
            (
                '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
                '<r:Description r:about="#a"><e:p>1</e:p></r:Description></r:RDF>'
            ),
        ),
    ],
)
def test_x_1_documents_of_every_rdf_type_are_patched(
    alice: Agent, container: str, content_type: str, content: str
) -> None:
    path = alice.create(f"{container}doc", content, content_type)
    before = said(alice, path)
    response = patch_n3(alice, path, n3(inserts="<#new> ex:q <#a> ."))
    assert response.status == 204, response
    assert said(alice, path) == before | expected(alice, path, "<#new> ex:q <#a> .")
    assert alice.get(path).media_type == content_type


def test_x_1_containers_acls_and_descriptions_are_patched(alice: Agent, container: str) -> None:
    subject = alice.create(f"{container}doc.ttl", STORED_PLAIN)
    alice.grant(subject)
    description = f"{subject}.meta"
    alice.create(description, "<doc.ttl> <#q> 1 .")
    for target in (container, alice.acl_of(subject), description):
        before = said(alice, target)
        response = patch_n3(alice, target, n3(inserts="<#new> ex:q 1 ."))
        assert response.status == 204, response
        new = expected(alice, target, "<#new> ex:q 1 .")
        assert new <= said(alice, target)
        assert len(said(alice, target)) == len(before) + 1


STORED_PLAIN = "<#a> <#p> 1 ."


@pytest.mark.parametrize("name", ["new.ttl", "new", "new.txt", "deep/er/new.jsonld", "new/"])
def test_x_1_a_patch_of_what_is_missing_creates_it(alice: Agent, container: str, name: str) -> None:
    path = container + name
    response = patch_n3(alice, path, n3(inserts="<#a> ex:p [ ex:q 1 ] ."))
    assert response.status == 201, response
    assert expected(alice, path, "<#a> ex:p [ ex:q 1 ] .") <= said(alice, path)
    assert alice.get(path).media_type == TURTLE


@pytest.mark.parametrize("name", ["doc.acl", "doc.meta"])
def test_x_1_auxiliaries_that_are_missing_are_created(
    alice: Agent, container: str, name: str
) -> None:
    alice.create(f"{container}doc", "x", "text/plain")
    path = container + name
    assert patch_n3(alice, path, n3(inserts="<#a> ex:p 1 .")).status == 201
    assert said(alice, path) == expected(alice, path, "<#a> ex:p 1 .")


def test_x_1_n3_patch_is_offered(alice: Agent, document: str, container: str) -> None:
    for target in (document, container, alice.acl_of(document), f"{container}missing"):
        for response in (alice.get(target), alice.head(target), alice.options(target)):
            assert N3_PATCH in response.listed("Accept-Patch"), response


# --- X-2: grammar ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "# a comment",
        "<#patch> a",
        f"{PREFIXES} <#patch> {TYPE}; solid:inserts {{ <#a> ex:p 1 .",
        f"{PREFIXES} <#patch> {TYPE}; solid:inserts {{ <#a> ex:p }} .",
        f"{PREFIXES} <#patch> {TYPE}; solid:inserts {{ <#a> none:p 1 }} .",
        f"{PREFIXES} <#patch> {TYPE}; solid:inserts {{ <#a> ex:p 'x }} .",
        f"{PREFIXES} <#patch> {TYPE}; solid:inserts {{ <#a> ex:p <a b> }} .",
        f"{PREFIXES} <#patch> {TYPE} }} .",
        "INSERT DATA { <#a> <#p> 1 }",
    ],
)
def test_x_2_invalid_n3_is_400(alice: Agent, document: str, text: str) -> None:
    assert_refused(alice, document, text, 400)


def test_x_2_relative_iris_resolve_against_the_target(alice: Agent, container: str) -> None:
    for path in (f"{container}a/b/doc.ttl", f"{container}a/"):
        inserts = "<> ex:p <#x>, <other>, </root>, <../up> ."
        assert patch_n3(alice, path, n3(inserts=inserts)).status in WRITTEN
        assert expected(alice, path, inserts) <= said(alice, path)
        deletes = "<> ex:p <#x>, <other>, </root>, <../up> ."
        assert patch_n3(alice, path, n3(where="<> ex:p <#x> .", deletes=deletes)).status == 204
        assert not expected(alice, path, inserts) & said(alice, path)


def test_x_2_a_base_of_the_patch_is_followed(alice: Agent, document: str) -> None:
    text = f"@base <http://other.example/x> .\n{n3(inserts='<#a> ex:p <y> .')}"
    assert patch_n3(alice, document, text).status == 204
    new = "<http://other.example/x#a> ex:p <http://other.example/y> ."
    assert expected(alice, document, new) <= said(alice, document)


# --- X-3 to X-9: rules ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "<#a> <#b> <#c> .",
        f"<#one> {TYPE} . <#two> {TYPE} .",
        f"<#one> {TYPE}; solid:inserts {{ <#c> ex:p 1 }} . <#two> solid:deletes {{}} .",
        f"_:a {TYPE} . _:b {TYPE} .",
        f"?one {TYPE}; solid:inserts {{ <#c> ex:p 1 }} .",
    ],
)
def test_x_3_a_document_with_any_number_of_patches_but_one_is_422(
    alice: Agent, document: str, text: str
) -> None:
    assert_refused(alice, document, PREFIXES + text, 422)


@pytest.mark.parametrize("subject", ["<>", "<#patch>", "_:patch", "[]", "<http://e/patch>", "ex:x"])
def test_x_3_the_one_patch_is_named_by_an_iri_or_a_blank_node(
    alice: Agent, document: str, subject: str
) -> None:
    text = f"{PREFIXES}{subject} {TYPE}; solid:inserts {{ <#c> ex:p 1 }} ."
    assert patch_n3(alice, document, text).status == 204
    assert said(alice, document) == expected(alice, document, STORED + "<#c> ex:p 1 .")


@pytest.mark.parametrize(
    "types",
    ["", "a solid:Patch;", "a ex:InsertDeletePatch;", "a 'solid:InsertDeletePatch';", "a solid:x;"],
)
def test_x_4_a_patch_of_another_type_is_422(alice: Agent, document: str, types: str) -> None:
    text = f"{PREFIXES}<#patch> {types} solid:inserts {{ <#c> ex:p 1 }} ."
    assert_refused(alice, document, text, 422)


@pytest.mark.parametrize(
    "text",
    [
        f"<#x> {TYPE}; solid:inserts {{ <#c> ex:p 1 }} .",
        f"<#x> solid:inserts {{ <#c> ex:p 1 }}; {TYPE} .",
        f"<#x> solid:inserts {{ <#c> ex:p 1 }} . <#x> {TYPE} .",
        f"<#x> {TYPE}, solid:Patch; solid:inserts {{ <#c> ex:p 1 }} .",
        f"<#x> solid:patches <>; {TYPE}; solid:inserts {{ <#c> ex:p 1 }} .",
        (
            "<#x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
            " <http://www.w3.org/ns/solid/terms#InsertDeletePatch>;"
            " <http://www.w3.org/ns/solid/terms#inserts> { <#c> <http://example.org/p> 1 } ."
        ),
    ],
)
def test_x_4_the_type_may_stand_anywhere_and_beside_others(
    alice: Agent, document: str, text: str
) -> None:
    assert patch_n3(alice, document, PREFIXES + text).status == 204
    assert said(alice, document) == expected(alice, document, STORED + "<#c> ex:p 1 .")


@pytest.mark.parametrize("clause", ["where", "deletes", "inserts"])
@pytest.mark.parametrize("separator", [",", "; solid:{} "])
def test_x_5_a_repeated_clause_is_422(
    alice: Agent, document: str, clause: str, separator: str
) -> None:
    twice = separator.format(clause).join(["{ <#a> ex:p 1 }", "{ <#b> ex:p 3 }"])
    assert_refused(alice, document, f"{PREFIXES}<#patch> {TYPE}; solid:{clause} {twice} .", 422)


def test_x_5_a_patch_without_clauses_changes_nothing_and_needs_more_than_read(
    alice: Agent, bob: Agent, document: str
) -> None:
    for text in (n3(), f"{PREFIXES}<#x> {TYPE}; solid:inserts {{ }}; solid:deletes {{}} ."):
        assert patch_n3(alice, document, text).status == 204
        assert said(alice, document) == expected(alice, document, STORED)
        for modes, status in (("Read", 403), ("Append", 204), ("Read Write", 204)):
            alice.grant(document, Rule(bob.named, modes))
            assert patch_n3(bob, document, text).status == status


@pytest.mark.parametrize(
    "clauses",
    [
        "solid:inserts { <#c> ex:p { <#d> ex:p 1 } }",
        "solid:inserts { { <#d> ex:p 1 } ex:p <#c> }",
        "solid:where { <#c> ex:p ({ <#d> ex:p 1 }) }",
        "solid:inserts ({ <#d> ex:p 1 })",
        "solid:inserts ({ <#d> ex:p 1 } { <#e> ex:p 1 })",
        "solid:inserts { { <#d> ex:p 1 } => { <#e> ex:p 1 } }",
        "solid:inserts { <#d> => <#e> }",
        "solid:inserts { <#d> <= <#e> }",
        "solid:inserts <#c>",
        "solid:inserts 'text'",
        "solid:inserts [ <#d> 1 ]",
        "solid:inserts {}. { <#d> ex:p 1 } => { <#e> ex:p 1 }",
        "solid:inserts { <#c> ex:p 1 }; ex:other { <#d> ex:p 1 }",
    ],
)
def test_x_6_a_clause_that_is_not_a_plain_formula_is_422(
    alice: Agent, document: str, clauses: str
) -> None:
    assert_refused(alice, document, f"{PREFIXES}<#patch> {TYPE}; {clauses} .", 422)


@pytest.mark.parametrize(
    "text",
    [
        n3(inserts="<#c> ex:p ?x ."),
        n3(deletes="<#c> ex:p ?x ."),
        n3(where="?y ex:p 3 .", inserts="?x ex:p 1 ."),
        n3(where="?y ex:p 3 .", deletes="<#b> ?x 3 ."),
        n3(where="?y ex:p 3 .", inserts="?y ex:p 1 ; ex:q ?x ."),
        n3(where="?X ex:p 3 .", inserts="?x ex:p 1 ."),
        n3(around="@forAll ex:x .", inserts="<#c> ex:p ex:x ."),
        n3(around="@forSome <#x> .", where="<#b> ex:p ?x .", deletes="<#x> ex:p 1 ."),
    ],
)
def test_x_7_a_variable_that_the_conditions_lack_is_422(
    alice: Agent, document: str, text: str
) -> None:
    assert_refused(alice, document, text, 422)


@pytest.mark.parametrize(
    "text",
    [
        n3(where="?x ex:p 3 .", deletes="?x ex:p 3 .", inserts="?x ex:p 4 ."),
        n3(where="<#b> ?x 3 .", deletes="<#b> ?x 3 .", inserts="<#b> ?x 4 ."),
        *(
            n3(
                around=f"{quantifier} ex:x, <#y> .",
                where="ex:x <#y> 3 .",
                deletes="ex:x <#y> 3 .",
                inserts="ex:x <#y> 4 .",
            )
            for quantifier in ("@forAll", "@forSome")
        ),
    ],
)
def test_x_7_variables_of_the_conditions_are_filled_in(
    alice: Agent, document: str, text: str
) -> None:
    assert patch_n3(alice, document, text).status == 204
    assert said(alice, document) == expected(alice, document, "<#a> ex:p 1, 2. <#b> ex:p 4.")


@pytest.mark.parametrize("deletes", ["_:x ex:p 1", "<#a> ex:p []", "[] ex:p 1", "<#a> ex:p (1)"])
def test_x_8_blank_nodes_in_deletes_are_422(alice: Agent, document: str, deletes: str) -> None:
    assert_refused(alice, document, n3(deletes=deletes), 422)


def test_x_8_blank_nodes_in_inserts_are_new_nodes(alice: Agent, document: str) -> None:
    inserts = "<#c> ex:p _:b0, _:x, [ ex:q _:x ] . _:b0 ex:q (1 [ ex:r 2 ]) ."
    for _ in range(2):
        assert patch_n3(alice, document, n3(inserts=inserts)).status == 204
    twice = inserts + inserts.replace("_:b0", "_:b1").replace("_:x", "_:y")
    assert said(alice, document) == expected(alice, document, STORED + twice)


@pytest.mark.parametrize(
    "text",
    [
        n3(where="_:x ex:p 3 .", inserts="_:x ex:p 4 ."),
        n3(where="_:x ex:p 3 .", around="<#other> ex:p _:x ."),
        n3(inserts="_:x ex:p 3 .", around="_:x ex:p 1 ."),
        f"{PREFIXES}_:x {TYPE}; solid:inserts {{ _:x ex:p 1 }} .",
        f"{PREFIXES}_:x {TYPE}; solid:where {{ <#a> ex:p _:x }} .",
    ],
)
def test_x_9_a_label_that_parts_of_the_patch_share_is_422(
    alice: Agent, document: str, text: str
) -> None:
    assert_refused(alice, document, text, 422)


# --- X-10 to X-17: what comes of it ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["doc.ttl", "missing.ttl", ""])
@pytest.mark.parametrize(
    "content_type", ["text/turtle", "text/plain", "application/json", "text/n4", "*/*"]
)
def test_x_10_another_media_type_is_415_and_lists_the_accepted_ones(
    alice: Agent, document: str, container: str, name: str, content_type: str
) -> None:
    response = alice.patch(container + name, n3(inserts="<#a> ex:p 1 ."), content_type)
    assert response.status == 415
    assert response.listed("Accept-Patch") >= {N3_PATCH, SPARQL_UPDATE}
    assert said(alice, document) == expected(alice, document, STORED)


def test_x_10_no_media_type_is_400(alice: Agent, document: str, container: str) -> None:
    for target in (document, f"{container}missing.ttl", container):
        response = alice.request("PATCH", target, n3(inserts="<#c> ex:p 1 ."))
        assert response.status == 400, response


@pytest.mark.parametrize(
    "text",
    [
        n3(where="<#a> ex:p ?x .", inserts="<#c> ex:p ?x ."),
        n3(where="<#c> ex:p ?x .", inserts="<#c> ex:q ?x ."),
        n3(where="<#a> ex:p 3 .", inserts="<#c> ex:q 1 ."),
        n3(where="?x ex:p ?y .", deletes="?x ex:p ?y ."),
        n3(where="?x ex:p 1 . ?x ex:p 3 .", inserts="?x ex:q 1 ."),
        n3(where="<#a> ex:p ?x ."),
    ],
)
def test_x_11_conditions_that_hold_in_no_or_in_several_ways_are_409(
    alice: Agent, document: str, text: str
) -> None:
    assert_refused(alice, document, text, 409)


@pytest.mark.parametrize(
    ("where", "deletes"),
    [
        ("?x ex:p 3 .", "?x ex:p 3 ."),
        ("?x ex:p 1 . ?x ex:p 2 . <#b> ex:p ?y .", "<#b> ex:p ?y ."),
        ("_:x ex:p _:y . <#b> ex:p ?y .", "<#b> ex:p ?y ."),
        ("[] ex:p [] . ?x ex:p 3 .", "?x ex:p 3 ."),
        ("[] ex:p [] .", "<#b> ex:p 3 ."),
    ],
)
def test_x_11_ways_are_counted_over_variables(
    alice: Agent, document: str, where: str, deletes: str
) -> None:
    text = n3(where=where, deletes=deletes)
    assert patch_n3(alice, document, text).status == 204
    assert said(alice, document) == expected(alice, document, "<#a> ex:p 1, 2.")


def test_x_11_conditions_about_what_is_missing_do_not_hold(alice: Agent, container: str) -> None:
    path = f"{container}new.ttl"
    assert patch_n3(alice, path, n3(where="?x ex:p 1 .", inserts="<#c> ex:p 1 .")).status == 409
    assert patch_n3(alice, path, n3(deletes="<#c> ex:p 1 .")).status == 409
    assert alice.get(path).status == 404


@pytest.mark.parametrize(
    "text",
    [
        n3(deletes="<#a> ex:p 3 ."),
        n3(deletes="<#a> ex:p 1, 9 ."),
        n3(deletes="<#a> ex:p '1' ."),
        n3(deletes="<#a> ex:p 01 ."),
        n3(deletes="<#a> ex:p 3 .", inserts="<#a> ex:p 4 ."),
        n3(where="?x ex:p 3 .", deletes="?x ex:p 3, 4 ."),
    ],
)
def test_x_12_deleting_what_is_not_there_is_409(alice: Agent, document: str, text: str) -> None:
    assert_refused(alice, document, text, 409)


def test_x_13_what_is_deleted_and_inserted_stays(alice: Agent, document: str) -> None:
    text = n3(deletes="<#a> ex:p 1, 2 .", inserts="<#a> ex:p 2, 5 .")
    assert patch_n3(alice, document, text).status == 204
    assert said(alice, document) == expected(alice, document, "<#a> ex:p 2, 5. <#b> ex:p 3.")


def test_x_13_patches_at_one_time_are_all_applied(alice: Agent, document: str) -> None:
    def add(number: int) -> int:
        return patch_n3(alice, document, n3(inserts=f"<#log> ex:entry {number} .")).status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(add, range(24))) == {204}
    entries = "".join(f"<#log> ex:entry {number} ." for number in range(24))
    assert said(alice, document) == expected(alice, document, STORED + entries)


def test_x_13_of_patches_for_one_triple_one_succeeds(alice: Agent, document: str) -> None:
    def take(number: int) -> int:
        text = n3(deletes="<#b> ex:p 3 .", inserts=f"<#b> ex:taken {number} .")
        return patch_n3(alice, document, text).status

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(take, range(8)))
    assert sorted(statuses) == [204] + [409] * 7
    winner = statuses.index(204)
    remaining = f"<#a> ex:p 1, 2. <#b> ex:taken {winner}."
    assert said(alice, document) == expected(alice, document, remaining)


@pytest.mark.parametrize(
    "text",
    [
        n3(where="<#b> ex:p ?x .", inserts="?x ex:p 1 ."),
        n3(where="<#b> ex:p ?x .", inserts="<#b> ?x 1 ."),
        n3(where="<#b> ex:p ?x .", deletes="?x ex:p 1 ."),
    ],
)
def test_x_14_what_comes_to_no_triple_is_409_or_422(alice: Agent, document: str, text: str) -> None:
    assert_refused(alice, document, text, 409, 422)


@pytest.mark.parametrize("content_type", ["text/plain", "image/png", "application/json"])
def test_x_15_a_patch_of_something_other_than_rdf_is_409(
    alice: Agent, container: str, content_type: str
) -> None:
    path = alice.create(f"{container}doc.bin", "<#a> <#p> 1 .", content_type)
    assert patch_n3(alice, path, n3(inserts="<#c> ex:p 1 .")).status == 409
    assert alice.patch(path, "INSERT DATA { <#a> <#p> 1 }").status == 409
    assert alice.patch(path, "x", content_type).status == 415
    assert alice.get(path).text == "<#a> <#p> 1 ."


def test_x_16_a_patch_that_creates_is_201_with_location(alice: Agent, container: str) -> None:
    path = f"{container}deep/new.ttl"
    made = patch_n3(alice, path, n3(inserts="<#a> ex:p 1 ."))
    assert made.status == 201
    assert made.location == alice.url(path)
    changed = patch_n3(alice, path, n3(inserts="<#a> ex:p 2 ."))
    assert (changed.status, changed.header("Location"), changed.body) == (204, None, b"")


def test_x_17_preconditions_apply(alice: Agent, container: str) -> None:
    path = f"{container}doc.ttl"

    def status(number: int, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        text = n3(inserts=f"<#a> ex:p {number} .")
        return alice.patch(path, text, N3_PATCH, named).status

    assert status(0, If_Match="*") == 412
    assert status(1, If_None_Match="*") == 201
    assert status(2, If_None_Match="*") == 412
    tag = alice.get(path).header("ETag") or ""
    assert status(3, If_Match=tag) == 204
    assert status(4, If_Match=tag) == 412
    assert status(5, If_Unmodified_Since="Tue, 01 Jan 2019 00:00:00 GMT") == 412
    assert said(alice, path) == expected(alice, path, "<#a> ex:p 1, 3 .")


def test_x_17_a_patch_that_changes_nothing_succeeds(alice: Agent, document: str) -> None:
    for text in (n3(inserts="<#a> ex:p 1 ."), n3(deletes="<#b> ex:p 3 .", inserts="<#b> ex:p 3 .")):
        assert patch_n3(alice, document, text).status == 204
        assert said(alice, document) == expected(alice, document, STORED)


# --- X-20 to X-26: modes --------------------------------------------------------------------------

INSERT = n3(inserts="<#new> ex:p 1 .")
DELETE = n3(deletes="<#b> ex:p 3 .")
CONDITION = n3(where="<#b> ex:p ?x .", inserts="<#c> ex:p ?x .")
CONDITION_ONLY = n3(where="<#b> ex:p ?x .")
MODES = [
    "Read", "Append", "Write", "Control", "Read Append", "Read Write", "Append Control",
    "Write Control", "Read Control",
]  # fmt: skip


def assert_modes_decide(
    alice: Agent, bob: Agent, target: str, text: str, content_type: str, enough: set[str]
) -> None:
    """Assert that of all combinations of modes exactly those that are enough let a patch pass."""
    for modes in MODES:
        alice.grant(target, Rule(bob.named, modes))
        before = said(alice, target)
        response = bob.patch(target, text, content_type)
        passes = any(set(needed.split()) <= set(modes.split()) for needed in enough)
        assert response.status == (204 if passes else 403), (modes, response)
        if not passes:
            assert said(alice, target) == before
        alice.put(target, PREFIXES + STORED)


def test_x_20_inserting_takes_append_or_write(alice: Agent, bob: Agent, document: str) -> None:
    assert_modes_decide(alice, bob, document, INSERT, N3_PATCH, {"Append", "Write"})


@pytest.mark.parametrize("inherited", ["Append", "Write"])
def test_x_20_inserting_takes_inherited_modes_too(
    alice: Agent, bob: Agent, public: Agent, container: str, inherited: str
) -> None:
    path = alice.create(f"{container}doc.ttl", PREFIXES + STORED)
    alice.grant(container, Rule(bob.named, inherited, default=True))
    for target in (path, f"{container}fictive.ttl"):
        assert patch_n3(public, target, INSERT).status == 401
        assert patch_n3(bob, target, INSERT).status in WRITTEN
        assert expected(alice, target, "<#new> ex:p 1 .") <= said(alice, target)
        assert bob.get(target).status == 403
    alice.grant(container, Rule(bob.named, "Control", default=True))
    for target in (path, f"{container}fictive2.ttl"):
        assert patch_n3(bob, target, INSERT).status == 403
        assert patch_n3(public, target, INSERT).status == 401


def test_x_21_deleting_takes_read_and_write(alice: Agent, bob: Agent, document: str) -> None:
    both = n3(deletes="<#b> ex:p 3 .", inserts="<#b> ex:p 4 .")
    for text in (DELETE, both):
        assert_modes_decide(alice, bob, document, text, N3_PATCH, {"Read Write"})


def test_x_22_conditions_take_read(alice: Agent, bob: Agent, document: str) -> None:
    for text in (CONDITION, CONDITION_ONLY):
        assert_modes_decide(alice, bob, document, text, N3_PATCH, {"Read Append", "Read Write"})


def test_x_23_creating_takes_a_mode_on_the_closest_container(
    alice: Agent, bob: Agent, container: str
) -> None:
    cases = [("Append", True), ("Write", True), ("Read", False), ("Control", False)]
    for number, (modes, passes) in enumerate(cases):
        place = alice.create(f"{container}{number}/")
        inherited = Rule(bob.named, "Append", access_to=False, default=True)
        alice.grant(place, inherited, Rule(bob.named, modes))
        for name in ("new.ttl", "deep/er/new.ttl"):
            response = patch_n3(bob, place + name, INSERT)
            assert response.status == (201 if passes else 403), (modes, response)
            assert alice.get(place + name).status == (200 if passes else 404)


@pytest.mark.parametrize(
    ("update", "enough"),
    [
        ("INSERT DATA { <#new> <#p> 1 }", {"Append", "Write"}),
        ("INSERT { <#new> <#p> 1 } WHERE { }", {"Append", "Write"}),
        ("INSERT { <#new> <#p> ?x } WHERE { <#b> ?p ?x }", {"Read Append", "Read Write"}),
        ("DELETE DATA { <#b> <http://example.org/p> 3 }", {"Read Write"}),
        ("DELETE DATA { <#none> <#p> 3 }", {"Read Write"}),
        ("DELETE WHERE { <#b> ?p ?o }", {"Read Write"}),
        ("DELETE { ?s a ?o } INSERT { ?s <#x> ?o } WHERE { ?s a ?o }", {"Read Write"}),
        ("INSERT DATA { <#a> <#p> 1 } ; DELETE DATA { <#a> <#p> 1 }", {"Read Write"}),
        ("WHERE { ?s <#p> 1 } INSERT { ?s <#q> 2 }", {"Read Append", "Read Write"}),
    ],
)
def test_x_24_updates_take_what_their_operations_do(
    alice: Agent, bob: Agent, document: str, update: str, enough: set[str]
) -> None:
    assert_modes_decide(alice, bob, document, update, SPARQL_UPDATE, enough)


@pytest.mark.parametrize(
    ("content_type", "text"),
    [
        (N3_PATCH, INSERT),
        (N3_PATCH, n3(where="?x a ex:T .", deletes="?x a ex:T .", inserts="?x a ex:U .")),
        (SPARQL_UPDATE, "INSERT DATA { <#new> <#p> 1 }"),
        (SPARQL_UPDATE, "DELETE { ?x a ?o } INSERT { ?x <#p> ?o } WHERE { ?x a ?o ; <#none> 1 }"),
    ],
)
def test_x_25_a_patch_of_an_acl_takes_control_alone(
    alice: Agent, bob: Agent, document: str, content_type: str, text: str
) -> None:
    for modes, status in (("Control", 204), ("Read Write Append", 403)):
        alice.grant(document, Rule(bob.named, modes))
        acl = alice.acl_of(document)
        add = n3(inserts="<#t> a ex:T .")
        assert patch_n3(alice, acl, add).status == 204
        assert bob.patch(acl, text, content_type).status == status


def test_x_25_an_acl_is_created_by_a_patch_with_control_alone(
    alice: Agent, bob: Agent, container: str
) -> None:
    alice.grant(container, Rule(bob.named, "Control", access_to=False, default=True))
    path = alice.create(f"{container}doc.ttl")
    rule = (
        "<#r> a acl:Authorization; acl:mode acl:Read; acl:accessTo <doc.ttl>;"
        f" acl:agent <{bob.web_id}> ."
    )
    text = "@prefix acl: <http://www.w3.org/ns/auth/acl#>.\n" + n3(inserts=rule)
    assert bob.get(path).status == 403
    assert patch_n3(bob, f"{path}.acl", text).status == 201
    assert bob.get(path).status == 200


def test_x_26_read_alone_is_enough_for_no_patch(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    alice.create(f"{container}doc.ttl", PREFIXES + STORED)
    alice.create(f"{container}doc.txt", "x", "text/plain")
    alice.create(f"{container}c/")
    for who in (Rule(bob.named, "Read", default=True), Rule(EVERYONE, "Read", default=True)):
        alice.grant(container, who)
        for name in ("doc.ttl", "fictive.ttl", "c/", ""):
            for text in (INSERT, DELETE, CONDITION, n3()):
                assert patch_n3(bob, container + name, text).status == 403
                assert patch_n3(public, container + name, text).status == 401
        for name in ("doc.txt", "fictive.txt"):
            assert bob.patch(container + name, "y", "text/plain").status in {403, 405, 415}
            assert public.patch(container + name, "y", "text/plain").status in {401, 405, 415}
    assert said(alice, f"{container}doc.ttl") == triples(
        PREFIXES + STORED, TURTLE, alice.url(f"{container}doc.ttl")
    )
