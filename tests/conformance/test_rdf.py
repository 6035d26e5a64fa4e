"""RDF that is stored and returned: the same graph in every format (R-1, R-2, R-6 to R-10, R-14)."""

from __future__ import annotations

import pytest

from tests.conformance.agents import (
    LDP,
    PIM,
    SOLID,
    WRITTEN,
    Agent,
    Rule,
    acl_turtle,
)
from tests.conformance.rdf_samples import DOCUMENT, INSERTED, PATCHES
from tests.support.rdf import (
    FORMATS,
    JSON_LD,
    N3,
    RDF_XML,
    TRIG,
    TURTLE,
    triples,
    written,
)

BOTH = (TURTLE, JSON_LD)

# --- both syntaxes --------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", FORMATS)
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_r_1_rdf_that_was_put_or_posted_is_available_as_turtle_and_json_ld(
    alice: Agent, container: str, sent: str, method: str
) -> None:
    target = container + ("doc" if method == "PUT" else "")
    headers = {"Content-Type": sent, "Slug": "doc"}
    url = alice.url(f"{container}doc")
    expected = triples(DOCUMENT, TURTLE, url)
    made = alice.request(method, target, written(expected, sent), headers)
    assert (made.status, made.location) == (201, url)
    assert f"{LDP}RDFSource" in made.targets("type")
    for accept in BOTH:
        read = alice.get(url, headers={"Accept": accept})
        assert (read.status, read.media_type) == (200, accept)
        assert read.triples == expected


@pytest.mark.parametrize("content_type", PATCHES)
@pytest.mark.parametrize("stored", [None, *FORMATS])
def test_r_1_patched_documents_are_available_as_turtle_and_json_ld(
    alice: Agent, container: str, content_type: str, stored: str | None
) -> None:
    url = alice.url(f"{container}doc")
    expected = triples(INSERTED, TURTLE, url)
    if stored:
        before = triples("<#me> <http://example.org/name> 'Zoë'.", TURTLE, url)
        alice.create(url, written(before, stored), stored)
        expected |= before
    assert alice.patch(url, PATCHES[content_type], content_type).status in WRITTEN
    for accept in BOTH:
        assert alice.read(url, accept).triples == expected


@pytest.mark.parametrize("sent", FORMATS)
def test_r_2_a_container_is_available_as_turtle_and_json_ld(
    alice: Agent, container: str, sent: str
) -> None:
    url = alice.url(container)
    own = triples("<> <http://example.org/title> 'mine'.", TURTLE, url)
    assert alice.put(container, written(own, sent), sent).status == 204
    alice.create(f"{container}x.ttl")
    turtle, json_ld = (alice.read(container, accept) for accept in BOTH)
    assert (turtle.media_type, json_ld.media_type) == BOTH
    assert turtle.triples == json_ld.triples > own


@pytest.mark.parametrize("sent", FORMATS)
@pytest.mark.parametrize("name", ["doc", "c/"])
def test_r_2_an_acl_is_available_as_turtle_and_json_ld(
    alice: Agent, bob: Agent, container: str, sent: str, name: str
) -> None:
    target = alice.create(container + name)
    acl = alice.acl_of(target)
    text = acl_turtle(
        alice.url(target),
        Rule(alice.named, "Read Write Control"),
        Rule(bob.named, "Read"),
    )
    rules = triples(text, TURTLE, acl)
    assert alice.put(acl, written(rules, sent), sent).status == 201
    assert bob.get(target).status == 200
    for accept in BOTH:
        read = alice.read(acl, accept)
        assert (read.media_type, read.triples) == (accept, rules)


@pytest.mark.parametrize("sent", FORMATS)
@pytest.mark.parametrize("name", ["photo.jpg", "doc.ttl", "c/"])
def test_r_2_a_description_is_available_as_turtle_and_json_ld(
    alice: Agent, container: str, sent: str, name: str
) -> None:
    target = alice.create(container + name, "", "image/jpeg" if "jpg" in name else TURTLE)
    description = alice.head(target).target("describedby")
    for accept in BOTH:
        assert alice.read(description, accept).media_type == accept
    about = triples(DOCUMENT, TURTLE, description)
    assert alice.put(description, written(about, sent), sent).status in WRITTEN
    for accept in BOTH:
        read = alice.read(description, accept)
        assert (read.media_type, read.triples) == (accept, about)


def test_r_2_a_storage_description_is_available_as_turtle_and_json_ld(
    alice: Agent, public: Agent
) -> None:
    description = alice.head(alice.pod).target(f"{SOLID}storageDescription")
    turtle, json_ld = (public.read(description, accept) for accept in BOTH)
    assert (turtle.media_type, json_ld.media_type) == BOTH
    assert turtle.triples == json_ld.triples
    assert f"{PIM}Storage" in {str(o) for s, _, o in turtle.triples if str(s).endswith(alice.pod)}


# --- further formats ------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", FORMATS)
@pytest.mark.parametrize("sent", FORMATS)
def test_r_6_every_format_goes_in_and_out(
    alice: Agent, container: str, sent: str, asked: str
) -> None:
    url = alice.url(f"{container}doc")
    expected = triples(DOCUMENT, TURTLE, url)
    made = alice.put(url, written(expected, sent), sent)
    assert made.status == 201
    read = alice.read(url, asked)
    assert read.media_type == asked
    assert f"{LDP}RDFSource" in read.targets("type")
    assert read.triples == expected


@pytest.mark.parametrize("asked", FORMATS)
def test_r_6_containers_acls_and_descriptions_come_in_every_format(
    alice: Agent, container: str, asked: str
) -> None:
    alice.grant(container)
    assert alice.put(f"{container}.meta", DOCUMENT).status == 204
    storage = alice.head(container).target(f"{SOLID}storageDescription")
    for target in (container, alice.acl_of(container), f"{container}.meta", storage):
        read = alice.read(target, asked)
        assert read.media_type == asked
        assert read.triples == alice.read(target, TURTLE).triples != frozenset()


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", '{"@id": "#me", "http://example.org/b": 1}'),
        ("application/json", '{"broken": '),
        ("text/html", '<p property="http://example.org/b">1'),
        ("application/xhtml+xml", "<html xmlns='http://www.w3.org/1999/xhtml'/>"),
        ("application/xml", "<a>"),
    ],
)
def test_r_6_json_and_html_are_bytes_and_no_rdf(
    alice: Agent, container: str, content_type: str, body: str
) -> None:
    target = alice.create(f"{container}doc", body, content_type)
    for accept in ("*/*", f"{TURTLE}, */*;q=0.1", TURTLE):
        read = alice.read(target, accept)
        assert (read.header("Content-Type"), read.text) == (content_type, body)
        assert f"{LDP}NonRDFSource" in read.targets("type")
        assert f"{LDP}RDFSource" not in read.targets("type")


# --- bases ----------------------------------------------------------------------------------------

RELATIVE = {
    TURTLE: "<> <#about> <sibling>, <../>, </root>.",
    N3: "<> <#about> <sibling>, <../>, </root>.",
    TRIG: "{ <> <#about> <sibling>, <../>, </root>. }",
    JSON_LD: '{"@context": {"about": {"@id": "%s#about", "@type": "@id"}},'
    ' "@id": "", "about": ["sibling", "../", "/root"]}',
    RDF_XML: '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="%s#">'
    '<rdf:Description rdf:about=""><x:about rdf:resource="sibling"/>'
    '<x:about rdf:resource="../"/><x:about rdf:resource="/root"/></rdf:Description></rdf:RDF>',
}


@pytest.mark.parametrize("sent", RELATIVE)
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_r_7_relative_iris_are_relative_to_the_resource(
    alice: Agent, container: str, sent: str, method: str
) -> None:
    url = alice.url(f"{container}doc")
    body = RELATIVE[sent].replace("%s", url)
    headers = {"Content-Type": sent, "Slug": "doc"}
    target = url if method == "PUT" else container
    assert alice.request(method, target, body, headers).location == url
    objects = [f"{url[:-3]}sibling", url[: url.rindex("/", 0, -4) + 1], alice.url("/root")]
    for accept in FORMATS:
        found = {(str(s), str(p), str(o)) for s, p, o in alice.read(url, accept).triples}
        assert found == {(url, f"{url}#about", each) for each in objects}


BASED = {
    TURTLE: "@base <{}>. <#hello> <#linked> <#world>.",
    N3: "@base <{}>. <#hello> <#linked> <#world>.",
    TRIG: "@base <{}>. {{ <#hello> <#linked> <#world>. }}",
    JSON_LD: '{{"@context": {{"@base": "{0}", "linked": {{"@id": "{0}#linked", "@type": "@id"}}}},'
    ' "@id": "#hello", "linked": "#world"}}',
    RDF_XML: '<rdf:RDF xml:base="{0}" xmlns:x="{0}#"'
    ' xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description'
    ' rdf:about="#hello"><x:linked rdf:resource="#world"/></rdf:Description></rdf:RDF>',
}


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("base", ["http://example.org", "http://example.org/other"])
@pytest.mark.parametrize("content_type", BASED)
def test_r_7_a_base_in_the_document_applies_and_survives(
    alice: Agent, container: str, method: str, base: str, content_type: str
) -> None:
    target = container + ("doc" if method == "PUT" else "")
    body = BASED[content_type].format(base)
    made = alice.request(method, target, body, {"Content-Type": content_type})
    expected = {tuple(f"{base}#{name}" for name in ("hello", "linked", "world"))}
    for accept in FORMATS:
        read = alice.read(made.location, accept)
        if accept == content_type:
            assert read.text == body
            continue
        # Read at another URL: what was absolute by its base is so in every form.
        found = triples(read.body, accept, "http://elsewhere.example/")
        assert {tuple(map(str, triple)) for triple in found} == expected


def test_r_7_a_base_of_its_own_survives_a_patch(alice: Agent, container: str) -> None:
    body = "@base <http://example.org/other/>. <#hello> <#linked> <world>."
    target = alice.create(f"{container}doc", body)
    assert alice.patch(target, "INSERT DATA { <#a> <#b> <c> }").status == 204
    url = alice.url(target)
    assert {tuple(map(str, triple)) for triple in alice.read(target).triples} == {
        tuple(f"http://example.org/other/{name}" for name in ("#hello", "#linked", "world")),
        (f"{url}#a", f"{url}#b", f"{url[:-3]}c"),
    }
