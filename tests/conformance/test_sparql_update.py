"""SPARQL Update (X-30 to X-38)."""

from __future__ import annotations

import pytest
import rdflib

from tests.conformance.agents import (
    LDP,
    N3_PATCH,
    SPARQL_UPDATE,
    WRITTEN,
    Agent,
    Rule,
)
from tests.conformance.patches import PREFIXES, expected, said
from tests.support.rdf import JSON_LD, TURTLE, Triples, triples

STORED = '<#a> ex:p 1, 2; a ex:T. <#b> ex:p 3; ex:q [ ex:r "x" ].'
SPARQL_PREFIXES = "PREFIX ex: <http://example.org/>\n"
CHANGED = {200, 204, 205}


@pytest.fixture
def document(alice: Agent, container: str) -> str:
    """A Turtle document."""
    return alice.create(f"{container}doc.ttl", PREFIXES + STORED)


def judged(alice: Agent, target: str, turtle: str, update: str) -> rdflib.Graph:
    """What rdflib makes of a document at a target by an update."""
    url = alice.url(target)
    graph = rdflib.Graph().parse(data=PREFIXES + turtle, format="turtle", publicID=url)
    graph.update(f"BASE <{url}>\n{update}")
    return graph


def assert_as_judged(alice: Agent, target: str, update: str) -> None:
    """Assert that an update of STORED at a target has the effect that rdflib gives it."""
    judge = judged(alice, target, STORED, update)
    response = alice.patch(target, update)
    assert response.status == 204, response
    written = judge.serialize(format="turtle")
    assert said(alice, target) == triples(written, TURTLE, alice.url(target))


@pytest.mark.parametrize("name", ["doc.ttl", ""])
def test_x_30_insert_data_on_what_exists(alice: Agent, document: str, name: str) -> None:
    target = document.removesuffix("doc.ttl") + name
    before = said(alice, target)
    response = alice.patch(target, "INSERT DATA { <#new> <http://example.org/p> <> }")
    assert response.status in CHANGED
    new = expected(alice, target, "<#new> ex:p <> .")
    assert new <= said(alice, target)
    assert len(said(alice, target)) == len(before) + 1


@pytest.mark.parametrize("name", ["a", "a.ttl", "a.txt", "a.jsonld", "x/y/a.txt", "x/y/z/"])
def test_x_30_insert_data_creates_what_is_missing_and_its_containers(
    alice: Agent, container: str, name: str
) -> None:
    path = container + name
    response = alice.patch(path, "INSERT DATA { <#a> <http://example.org/p> <> }")
    assert response.status == 201
    assert expected(alice, path, "<#a> ex:p <> .") <= said(alice, path)
    place = container
    for segment in name.rstrip("/").split("/")[:-1]:
        place += f"{segment}/"
        assert alice.url(place) in alice.read(place.rstrip("/").rpartition("/")[0] + "/").members


def test_x_31_every_match_is_changed(alice: Agent, document: str) -> None:
    update = "DELETE { ?s ex:p ?o } INSERT { ?s ex:was ?o } WHERE { ?s ex:p ?o }"
    assert_as_judged(alice, document, SPARQL_PREFIXES + update)


def test_x_31_no_match_is_a_success(alice: Agent, container: str) -> None:
    path = alice.create(f"{container}doc.ttl", PREFIXES + "<#a> ex:p 1 .")
    update = "DELETE { ?s a ?o } INSERT { ?s a <http://example.org/U> } WHERE { ?s a ?o }"
    assert alice.patch(path, update).status in CHANGED
    assert said(alice, path) == expected(alice, path, "<#a> ex:p 1 .")


def test_x_32_a_variable_on_a_container_is_none_of_the_servers_triples(
    alice: Agent, bob: Agent, container: str
) -> None:
    alice.create(f"{container}member.ttl", PREFIXES + STORED)
    alice.grant(container, Rule(bob.named, "Read Write"))
    assert bob.patch(container, "INSERT DATA { <#x> a <#T> }").status in CHANGED
    before = said(alice, container)
    update = "DELETE { ?s a ?o } INSERT { ?s <#was> ?o } WHERE { ?s a ?o }"
    assert bob.patch(container, update).status in CHANGED
    gone = expected(alice, container, "<#x> a <#T> .")
    new = expected(alice, container, "<#x> <#was> <#T> .")
    assert without_times(said(alice, container)) == without_times(before - gone | new)
    assert bob.patch(container, "DELETE WHERE { ?s ?p ?o }").status in CHANGED
    assert without_times(said(alice, container)) == without_times(before - gone)


def without_times(found: Triples) -> Triples:
    """All but when something was changed, which a change of the container changes."""
    times = {"http://purl.org/dc/terms/modified", "http://www.w3.org/ns/posix/stat#mtime"}
    return {triple for triple in found if str(triple[1]) not in times}


@pytest.mark.parametrize(
    "data",
    [
        f"<> <{LDP}contains> <member.ttl>",
        f"<> <{LDP}contains> <other.ttl>",
        f"<> a <{LDP}BasicContainer>",
        "<member.ttl> <http://www.w3.org/ns/posix/stat#size> 1",
        "<> <http://purl.org/dc/terms/modified> 'now'",
    ],
)
def test_x_32_naming_the_servers_triples_is_409(alice: Agent, container: str, data: str) -> None:
    alice.create(f"{container}member.ttl", PREFIXES + STORED)
    before = said(alice, container)
    for operation in ("INSERT", "DELETE"):
        assert alice.patch(container, f"{operation} DATA {{ {data} }}").status == 409
    assert said(alice, container) == before


@pytest.mark.parametrize(
    "update",
    [
        "INSERT DATA { <#c> ex:p 1, 'x'@en ; a ex:T . }",
        "DELETE DATA { <#a> ex:p 1 }",
        "DELETE DATA { <#a> ex:p 1 . } ; INSERT DATA { <#a> ex:p 5 . }",
        "DELETE DATA { <#a> ex:p 1 . };\nINSERT DATA { <#a> ex:p 5 . };",
        "INSERT DATA { <#a> ex:p 5 } ; PREFIX f: <http://f/> DELETE DATA { <#a> ex:p 5, f:x } ;",
        "DELETE WHERE { <#a> ex:p ?x }",
        "DELETE WHERE { ?s ex:p ?x ; a ex:T }",
        "DELETE { ?s ex:p ?x } INSERT { ?s ex:p [ ex:was ?x ] } WHERE { ?s ex:p ?x }",
        "DELETE { ?n ex:r 'x' } INSERT { ?n ex:r 'y' } WHERE { <#b> ex:q ?n . ?n ex:r 'x' }",
        "INSERT { ?s ex:n _:b . _:b ex:n ?o } WHERE { ?s ex:p ?o . }",
        "INSERT { ?s ex:n 1 } WHERE { ?s ex:q [ ex:r 'x' ] }",
        "DELETE { <#a> ex:p 1 } WHERE { }",
        "delete { ?S ex:p $x } insert { $S ex:p 'n' } where { ?S ex:p ?x }",
        "INSERT DATA { <#l> ex:list (1 (2) 'x') ; ex:on TRUE, false }",
        "INSERT DATA { _:x ex:p _:y . _:y ex:p [] , [ ex:q 1 ] }",
        "BASE <http://other.example/d/> INSERT DATA { <e> ex:p <#f> }",
        "# a comment\nINSERT DATA { <#a> ex:p '#', \"{\", '''}''' } # another",
    ],
)
def test_x_33_updates_have_the_effect_that_sparql_gives_them(
    alice: Agent, document: str, update: str
) -> None:
    assert_as_judged(alice, document, SPARQL_PREFIXES + update)


@pytest.mark.parametrize(
    "update",
    [
        "WHERE { ?s ex:p ?o } DELETE { ?s ex:p ?o } INSERT { ?s ex:q ?o }",
        "WHERE { ?s ex:p ?o } INSERT { ?s ex:q ?o } DELETE { ?s ex:p ?o } ;",
        "INSERT { ?s ex:q ?o } DELETE { ?s ex:p ?o } WHERE { ?s ex:p ?o }",
        "DELETE { ?s ex:p ?o } WHERE { ?s ex:p ?o } INSERT { ?s ex:q ?o }",
    ],
)
def test_x_33_clauses_come_in_any_order(alice: Agent, document: str, update: str) -> None:
    ordered = "DELETE { ?s ex:p ?o } INSERT { ?s ex:q ?o } WHERE { ?s ex:p ?o }"
    judge = judged(alice, document, STORED, SPARQL_PREFIXES + ordered)
    assert alice.patch(document, SPARQL_PREFIXES + update).status == 204
    written = judge.serialize(format="turtle")
    assert said(alice, document) == triples(written, TURTLE, alice.url(document))


def test_x_33_a_list_may_stand_alone(alice: Agent, document: str) -> None:
    assert alice.patch(document, "INSERT DATA { (1 2) . [ <#p> 3 ] }").status == 204
    rest = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>"
    first = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>"
    new = f"[] {first} 1 ; {rest} (2) . [] <#p> 3 ."
    assert said(alice, document) == expected(alice, document, STORED + new)


def test_x_33_an_update_without_operations_changes_nothing(alice: Agent, document: str) -> None:
    for update in ("", "# nothing", SPARQL_PREFIXES, "INSERT DATA { }", "DELETE DATA { } ;"):
        assert alice.patch(document, update).status == 204
        assert said(alice, document) == expected(alice, document, STORED)


@pytest.mark.parametrize("charset", ["", "; charset=UTF-8", ";charset=utf-8"])
def test_x_33_relative_iris_resolve_against_the_target(
    alice: Agent, container: str, charset: str
) -> None:
    for path in (f"{container}a/doc", f"{container}a/"):
        update = "INSERT DATA { <> <#p> <x>, </y>, <../z> }"
        assert alice.patch(path, update, SPARQL_UPDATE + charset).status in WRITTEN
        assert expected(alice, path, "<> <#p> <x>, </y>, <../z> .") <= said(alice, path)


MATCH = "DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o . {} }}"


@pytest.mark.parametrize(
    "update",
    [
        "LOAD <http://127.0.0.1:9/x>",
        "LOAD SILENT <http://127.0.0.1:9/x>",
        "CLEAR ALL",
        "CLEAR DEFAULT",
        "DROP ALL",
        "CREATE GRAPH <#g>",
        "ADD <#a> TO <#b>",
        "MOVE <#a> TO <#b>",
        "COPY <#a> TO <#b>",
        "WITH <#g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "DELETE { ?s ?p ?o } USING <#g> WHERE { ?s ?p ?o }",
        "DELETE { ?s ?p ?o } USING NAMED <#g> WHERE { ?s ?p ?o }",
        "INSERT DATA { GRAPH <#g> { <#a> <#b> 1 } }",
        "DELETE WHERE { GRAPH ?g { ?s ?p ?o } }",
        MATCH.format("SERVICE <http://127.0.0.1:9/> { ?s ?p ?x }"),
        MATCH.format("{ SELECT ?s WHERE { ?s ?p 1 } }"),
        MATCH.format("FILTER(?o > 1)"),
        MATCH.format("FILTER NOT EXISTS { ?s ?p 9 }"),
        MATCH.format("OPTIONAL { ?s ?p 9 }"),
        MATCH.format("{ ?s ?p 1 } UNION { ?s ?p 2 }"),
        MATCH.format("MINUS { ?s ?p 1 }"),
        MATCH.format("BIND(1 AS ?x)"),
        MATCH.format("VALUES ?x { 1 }"),
        MATCH.format("?s <#a>/<#b> 1"),
        "INSERT DATA { <#a> <#b> 1 } ; LOAD <http://127.0.0.1:9/x>",
        "SELECT * WHERE { ?s ?p ?o }",
        "INSERT DATA { ?x <#p> 1 }",
        "DELETE DATA { _:x <#p> 1 }",
        "DELETE { _:x <#p> 1 } WHERE { ?s ?p ?o }",
    ],
)
def test_x_34_what_reaches_beyond_the_document_is_400_or_422(
    alice: Agent, document: str, update: str
) -> None:
    before = alice.read(document)
    response = alice.patch(document, update)
    assert response.status in {400, 422}, response
    after = alice.read(document)
    assert (after.body, after.header("ETag")) == (before.body, before.header("ETag"))


def test_x_34_the_work_of_conditions_is_bounded(alice: Agent, container: str) -> None:
    many = " ".join(f"<#s{number}> <#p> <#o{number}> ." for number in range(150))
    path = alice.create(f"{container}doc.ttl", many)
    product = " ".join(f"?a{number} <#p> ?b{number} ." for number in range(6))
    response = alice.patch(path, f"INSERT {{ ?a0 <#q> ?b5 }} WHERE {{ {product} }}")
    assert response.status == 422, response
    assert said(alice, path) == triples(many, TURTLE, alice.url(path))


def test_x_34_the_size_of_a_patch_is_bounded(alice: Agent, document: str) -> None:
    mebibyte = 1024 * 1024
    for content_type, text in (
        (SPARQL_UPDATE, "INSERT DATA { <#big> <#p> 1 } #"),
        (N3_PATCH, "[] a <http://www.w3.org/ns/solid/terms#InsertDeletePatch> . #"),
    ):
        assert alice.patch(document, text.ljust(mebibyte + 1, "#"), content_type).status == 413
        assert said(alice, document) == expected(alice, document, STORED)
    assert alice.patch(document, "INSERT DATA { } #".ljust(mebibyte, "#")).status == 204


def test_x_35_deleting_what_is_not_there_changes_nothing(alice: Agent, document: str) -> None:
    for update in (
        "DELETE DATA { <#a> ex:p 9 }",
        "DELETE DATA { <#a> ex:p 9 } ; INSERT DATA { <#a> a ex:T }",
        "DELETE WHERE { <#none> ?p ?o }",
    ):
        assert alice.patch(document, SPARQL_PREFIXES + update).status in CHANGED
        assert said(alice, document) == expected(alice, document, STORED)


@pytest.mark.parametrize(
    "update",
    [
        "INSERT DATA { <#a> <#b> }",
        "INSERT DATA { <#a> <#b> 1",
        "INSERT DATA <#a> <#b> 1",
        "INSERT { <#a> <#b> 1 }",
        "INSERT DATA { <#a> none:b 1 }",
        "INSERT DATA { <#a> <#b> 1 } INSERT DATA { <#a> <#b> 2 }",
        "INSERT DATA { <#a> <#b> 'x }",
        "WHERE { ?s ?p ?o }",
        "@prefix ex: <http://example.org/> .",
        "nonsense",
    ],
)
def test_x_35_a_syntax_error_is_400(alice: Agent, document: str, update: str) -> None:
    assert alice.patch(document, update).status == 400
    assert said(alice, document) == expected(alice, document, STORED)


@pytest.mark.parametrize(
    ("modes", "statuses"),
    [
        ("Read Write", {415}),
        ("Append", {400, 403, 405, 415}),
        ("Read Append", {400, 403, 405, 415}),
    ],
)
def test_x_36_a_patch_of_plain_text(
    alice: Agent, bob: Agent, container: str, modes: str, statuses: set[int]
) -> None:
    path = alice.create(f"{container}doc.txt", "Hello", "text/plain")
    alice.grant(path, Rule(bob.named, modes))
    assert bob.patch(path, "More", "text/plain").status in statuses
    assert alice.get(path).text == "Hello"


def test_x_37_what_is_created_is_turtle_and_json_ld_stays_json_ld(
    alice: Agent, container: str
) -> None:
    update = "INSERT DATA { <#a> <http://example.org/p> 1 }"
    for name in ("a.txt", "a.jsonld", "a.png", "a"):
        assert alice.patch(container + name, update).status == 201
        assert alice.get(container + name).media_type == TURTLE
    content = '{"@context": {"ex": "http://example.org/"}, "@id": "#b", "ex:q": {"@id": "#c"}}'
    path = alice.create(f"{container}b", content, JSON_LD)
    assert alice.patch(path, update).status == 204
    response = alice.get(path)
    assert response.media_type == JSON_LD
    assert response.triples == expected(alice, path, "<#a> ex:p 1 . <#b> ex:q <#c> .")


@pytest.mark.parametrize(
    ("content_type", "text"),
    [
        ("application/json-patch+json", '[{"op": "add", "path": "/a", "value": 1}]'),
        ("application/merge-patch+json", '{"a": 1}'),
    ],
)
def test_x_38_patches_of_json_are_415(
    alice: Agent, container: str, content_type: str, text: str
) -> None:
    for name, stored_type, stored in (
        ("doc.json", "application/json", "{}"),
        ("doc.jsonld", JSON_LD, "{}"),
    ):
        path = alice.create(container + name, stored, stored_type)
        assert alice.patch(path, text, content_type).status == 415
        assert alice.get(path).text == stored
    assert alice.patch(f"{container}missing", text, content_type).status == 415
    assert alice.get(f"{container}missing").status == 404
