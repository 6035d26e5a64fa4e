"""In which bytes RDF is returned: the stored ones, or a rewritten form (R-8 to R-10, R-14)."""

from __future__ import annotations

import pytest

from tests.conformance.agents import SPARQL_UPDATE, Agent, Rule, acl_turtle
from tests.conformance.rdf_samples import DOCUMENT, EX, INSERTED, PATCHES
from tests.support.rdf import (
    FORMATS,
    JSON_LD,
    N3,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    TRIG,
    TURTLE,
    graphs,
    triples,
    written,
)

# --- bytes ----------------------------------------------------------------------------------------

ODD = {
    TURTLE: "# a comment\r\n@prefix  x: <#> .\n\n x:a   x:b x:c .\t\n",
    JSON_LD: '[ {"@id" :"#a"\n, "http://example.org/p":  1.0 } ]',
    N_TRIPLES: '<http://e/a>   <http://e/b> "\\u00e9" . # why not\n',
    N_QUADS: "<http://e/a> <http://e/b> <http://e/c>   <http://e/g> .\n",
    TRIG: "{ <#a> <#b>\t<#c> }",
    N3: "# a comment\n<#a>    <#b>  <#c> .",
    RDF_XML: "<?xml version='1.0'?>\n<r:RDF   "
    "xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>",
}


@pytest.mark.parametrize("content_type", ODD)
def test_r_8_the_stored_form_is_given_byte_for_byte(
    alice: Agent, container: str, content_type: str
) -> None:
    target = alice.create(f"{container}doc", ODD[content_type], content_type)
    for headers in ({}, {"Accept": content_type}, {"Accept": "*/*"}):
        assert alice.get(target, headers=headers).text == ODD[content_type]
    other = JSON_LD if content_type == TURTLE else TURTLE
    assert alice.read(target, other).media_type == other
    assert alice.read(target, content_type).text == ODD[content_type]


@pytest.mark.parametrize("content_type", PATCHES)
@pytest.mark.parametrize("stored", FORMATS)
def test_r_8_a_patched_document_keeps_its_form(
    alice: Agent, container: str, stored: str, content_type: str
) -> None:
    url = alice.url(f"{container}doc.txt")
    alice.create(url, written(triples(DOCUMENT, TURTLE, url), stored), stored)
    assert alice.patch(url, PATCHES[content_type], content_type).status == 204
    read = alice.get(url)
    assert (read.status, read.media_type) == (200, stored)
    assert read.triples == triples(DOCUMENT + INSERTED, TURTLE, url)


def test_r_8_a_patched_document_keeps_its_prefixes(alice: Agent, container: str) -> None:
    body = f"@prefix my: <{EX}>. @prefix : <#>. :a my:b :c."
    target = alice.create(f"{container}doc", body)
    assert alice.patch(target, f"INSERT DATA {{ <#d> <{EX}e> 'f' }}").status == 204
    text = alice.get(target).text
    assert "my:b" in text
    assert "my:e" in text
    assert text.count(EX) == 1


# --- named graphs ---------------------------------------------------------------------------------

GRAPHS = {
    JSON_LD: '{"@context": {"ex": "http://example.org/"}, "@graph": ['
    '{"@id": "ex:default", "ex:b": "in none"}, '
    '{"@id": "ex:g", "ex:about": "the graph", "@graph": [{"@id": "ex:a", "ex:b": "in one"}]}]}',
    TRIG: "@prefix ex: <http://example.org/>. ex:default ex:b 'in none'. "
    "ex:g ex:about 'the graph'. ex:g { ex:a ex:b 'in one' }",
    N_QUADS: '<http://example.org/default> <http://example.org/b> "in none" .\n'
    '<http://example.org/g> <http://example.org/about> "the graph" .\n'
    '<http://example.org/a> <http://example.org/b> "in one" <http://example.org/g> .\n',
}


@pytest.mark.parametrize("sent", GRAPHS)
@pytest.mark.parametrize("accept", GRAPHS)
def test_r_9_named_graphs_survive(alice: Agent, container: str, sent: str, accept: str) -> None:
    target = alice.create(f"{container}doc", GRAPHS[sent], sent)
    expected = graphs(GRAPHS[sent], sent, alice.url(target))
    assert expected.keys() == {None, f"{EX}g"}
    read = alice.read(target, accept)
    assert read.media_type == accept
    assert graphs(read.body, accept, read.url) == expected


@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_r_9_a_document_of_one_named_graph_survives(
    alice: Agent, container: str, method: str
) -> None:
    body = (
        '{"@context": {"ex": "http://example.org/"}, "@id": "ex:g", '
        '"@graph": [{"@id": "ex:a", "ex:b": {"@id": "ex:c"}}]}'
    )
    target = container + ("doc.jsonld" if method == "PUT" else "")
    made = alice.request(method, target, body, {"Content-Type": JSON_LD})
    found = graphs(alice.read(made.location, JSON_LD).body, JSON_LD, made.location)
    assert {name: len(content) for name, content in found.items()} == {f"{EX}g": 1}


def test_r_9_named_graphs_survive_a_patch_of_the_default_graph(
    alice: Agent, container: str
) -> None:
    target = alice.create(f"{container}doc", GRAPHS[JSON_LD], JSON_LD)
    before = graphs(GRAPHS[JSON_LD], JSON_LD, alice.url(target))
    assert alice.patch(target, PATCHES[SPARQL_UPDATE]).status == 204
    after = graphs(alice.read(target, JSON_LD).body, JSON_LD, alice.url(target))
    assert after[f"{EX}g"] == before[f"{EX}g"]
    assert after[None] > before[None]


@pytest.mark.parametrize("sent", GRAPHS)
@pytest.mark.parametrize("accept", [TURTLE, N_TRIPLES, N3, RDF_XML])
def test_r_10_of_named_graphs_forms_without_them_have_the_default_graph(
    alice: Agent, container: str, sent: str, accept: str
) -> None:
    target = alice.create(f"{container}doc", GRAPHS[sent], sent)
    read = alice.get(target, headers={"Accept": accept})
    assert (read.status, read.media_type) == (200, accept)
    assert {str(value) for _, _, value in read.triples} == {"in none", "the graph"}


# --- texts that are searched ---


@pytest.mark.parametrize("sent", FORMATS)
@pytest.mark.parametrize("patched", [False, True])
def test_r_14_an_acl_as_turtle_names_its_agents_in_full(
    alice: Agent, bob: Agent, container: str, sent: str, patched: bool
) -> None:
    target = alice.create(f"{container}doc")
    acl = alice.acl_of(target)
    text = acl_turtle(
        alice.url(target),
        Rule(alice.named, "Read Write Control"),
        Rule(bob.named, "Read"),
    )
    assert alice.put(acl, written(triples(text, TURTLE, acl), sent), sent).status == 201
    if patched:
        prefixes = f"PREFIX alice: <{alice.url(alice.pod)}#> PREFIX bob: <{bob.url(bob.pod)}#> "
        assert alice.patch(acl, f"{prefixes} INSERT DATA {{ alice:a bob:b 'c' }}").status == 204
    for agent in (alice, bob):
        assert f"<{agent.web_id}>" in alice.read(acl, TURTLE).text
