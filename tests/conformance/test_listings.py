"""What the representation of a container says about itself and its members (C-23 to C-29)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

import pytest
from rdflib import RDF, XSD, Literal, URIRef
from rdflib.term import Node

from tests.conformance.agents import LDP, PIM, Agent, Response, Rule
from tests.support.client import Client
from tests.support.rdf import FORMATS, JSON_LD, N_TRIPLES, TURTLE, Triples, triples

TEXT = "text/plain"
STAT = "http://www.w3.org/ns/posix/stat#"
MODIFIED = URIRef("http://purl.org/dc/terms/modified")
CONTAINER_CLASSES = {URIRef(LDP + name) for name in ("Container", "BasicContainer", "Resource")}
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


def values(found: Triples, subject: str, predicate: str) -> set[Node]:
    return {o for s, p, o in found if (str(s), str(p)) == (subject, str(predicate))}


def value(found: Triples, subject: str, predicate: str) -> Literal:
    """The one value there is."""
    (only,) = values(found, subject, predicate)
    assert isinstance(only, Literal)
    return only


def check_times(found: Triples, subject: str, last_modified: str | None) -> None:
    """What a listing says of the time of a resource is what its Last-Modified says."""
    expected = parsedate_to_datetime(last_modified or "")
    modified = value(found, subject, MODIFIED)
    assert modified.datatype == XSD.dateTime
    assert modified.toPython() == expected
    mtime = value(found, subject, f"{STAT}mtime")
    assert mtime.datatype == XSD.integer
    assert mtime.toPython() == expected.timestamp()


# --- members --------------------------------------------------------------------------------------


@pytest.mark.parametrize("accept", FORMATS)
def test_c_23_a_container_contains_every_direct_child_and_no_other(
    alice: Agent, container: str, accept: str
) -> None:
    children = ["a.ttl", "b.txt", "c/", "caf%C3%A9", "d:e", "~f", "%25", "%2F"]
    for name in children:
        alice.create(container + name, "", TEXT if name == "b.txt" else TURTLE)
    alice.create(f"{container}c/grandchild.txt", "x", TEXT)
    alice.grant(f"{container}a.ttl")
    alice.grant(f"{container}c/")
    assert alice.put(f"{container}b.txt.meta", "<> <#b> <#c>.").status == 201
    listing = alice.read(container, accept)
    assert listing.media_type == accept
    url = alice.url(container)
    assert values(listing.triples, url, RDF.type) == CONTAINER_CLASSES
    assert listing.members == sorted(url + name for name in children)
    assert {s for s, p, _ in listing.triples if str(p) == f"{LDP}contains"} == {URIRef(url)}


def test_c_23_containment_is_the_hierarchy_of_paths(alice: Agent, container: str) -> None:
    made = {f"{container}{name}" for name in ("a/b/c/d.txt", "a/e.txt", "f/")}
    for target in sorted(made):
        alice.create(target, "", TURTLE if target.endswith("/") else TEXT)
    found = set(walked(alice, alice.url(container)))
    above = {f"{container}{name}" for name in ("a/", "a/b/", "a/b/c/")}
    assert found == {alice.url(path) for path in made | above}


def walked(alice: Agent, container: str) -> Iterator[str]:
    """All that is contained, by following what listings say."""
    for member in alice.read(container).members:
        assert re.fullmatch(re.escape(container) + "[^/]+/?", member)
        yield member
        if member.endswith("/"):
            yield from walked(alice, member)


@pytest.mark.parametrize("accept", FORMATS)
@pytest.mark.parametrize(
    ("name", "content_type", "body"),
    [
        ("a.ttl", TURTLE, "<#a> <#b> 'Zoë'."),
        ("a", f"{TURTLE}; charset=utf-8", ""),
        ("b.txt", TEXT, "Zoë"),
        ("c.jsonld", JSON_LD, "{}"),
        ("d.png", "image/png", "not really"),
        ("e", "application/vnd.example.x+y", ""),
    ],
)
def test_c_24_of_each_document_there_is_type_size_and_time(
    alice: Agent, container: str, accept: str, name: str, content_type: str, body: str
) -> None:
    url = alice.url(alice.create(container + name, body, content_type))
    listed = alice.read(container, accept).triples
    essence = content_type.partition(";")[0]
    media_type_class = f"http://www.w3.org/ns/iana/media-types/{essence}#Resource"
    assert values(listed, url, RDF.type) == {URIRef(media_type_class), URIRef(f"{LDP}Resource")}
    size = value(listed, url, f"{STAT}size")
    assert size.datatype == XSD.integer
    assert size.toPython() == len(body.encode())
    check_times(listed, url, alice.head(url).header("Last-Modified"))


@pytest.mark.parametrize("accept", FORMATS)
def test_c_24_of_each_container_there_are_classes_and_time(
    alice: Agent, container: str, accept: str
) -> None:
    url = alice.url(alice.create(f"{container}c/"))
    listed = alice.read(container, accept).triples
    assert values(listed, url, RDF.type) == CONTAINER_CLASSES
    check_times(listed, url, alice.head(url).header("Last-Modified"))


def test_c_24_what_is_said_of_a_member_follows_its_changes(alice: Agent, container: str) -> None:
    target = alice.create(f"{container}x", "one", TEXT)
    assert alice.read(container).members == [alice.url(target)]
    assert alice.put(target, "<#a> <#b> <#c>.", TURTLE).status == 204
    listed = alice.read(container).triples
    assert value(listed, alice.url(target), f"{STAT}size").toPython() == 15
    types = {str(type_) for type_ in values(listed, alice.url(target), RDF.type)}
    assert types == {f"{LDP}Resource", "http://www.w3.org/ns/iana/media-types/text/turtle#Resource"}
    insert = "INSERT DATA { <#a> <#b> <#d> }"
    assert alice.patch(target, insert).status == 204
    listed = alice.read(container).triples
    size = value(listed, alice.url(target), f"{STAT}size").toPython()
    assert size == len(alice.get(target).body)


# --- the container itself -------------------------------------------------------------------------


@pytest.mark.parametrize("accept", FORMATS)
def test_c_25_a_container_says_when_it_changed_and_whether_it_is_a_storage(
    alice: Agent, container: str, accept: str
) -> None:
    for target in (alice.pod, container):
        read = alice.read(target, accept)
        check_times(read.triples, read.url, read.header("Last-Modified"))
        is_storage = URIRef(f"{PIM}Storage") in values(read.triples, read.url, RDF.type)
        assert is_storage == (target == alice.pod)


def test_c_25_true_statements_of_the_server_are_taken_and_not_kept(
    alice: Agent, container: str
) -> None:
    bare = alice.read(container, N_TRIPLES)
    own = f'<{bare.url}> <http://example.org/title> "mine" .\n'
    assert alice.put(container, bare.text + own, N_TRIPLES).status == 204
    assert len(alice.read(f"{container}.meta").triples) == 1
    alice.create(f"{container}x.txt", "x", TEXT)
    listed = alice.read(container)
    check_times(listed.triples, listed.url, listed.header("Last-Modified"))


@pytest.mark.parametrize(
    "statement",
    [
        f"<> a <{PIM}Storage>.",
        f"<> a <{LDP}DirectContainer>.",
        f"<> <{STAT}mtime> 1 .",
        f"<> <{STAT}size> 1 .",
        f"<> <{MODIFIED}> 'yesterday'.",
    ],
)
def test_c_25_untrue_statements_about_the_container_are_ignored(
    alice: Agent, container: str, statement: str
) -> None:
    assert alice.put(container, statement).status == 204
    assert alice.put(f"{container}new/", statement).status == 201
    for path in (container, f"{container}new/"):
        assert not triples(statement, TURTLE, alice.url(path)) & alice.read(path).triples
        assert not alice.read(f"{path}.meta").triples


def test_c_26_members_that_the_reader_may_not_read_are_listed(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    alice.grant(
        container,
        Rule(bob.named, "Read"),
        Rule("acl:agentClass foaf:Agent", "Read"),
    )
    members = [alice.create(f"{container}{name}", "", TURTLE) for name in ("a", "b/")]
    for agent, refusal in ((bob, 403), (public, 401)):
        listing = agent.read(container)
        assert listing.members == [alice.url(member) for member in members]
        assert listing.triples == alice.read(container).triples
        assert [agent.get(member).status for member in members] == [refusal, refusal]


# --- form ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("accept", [None, "*/*", "text/*", TURTLE, f"text/html;q=0.5, {TURTLE}"])
def test_c_27_a_container_is_turtle_by_default(
    alice: Agent, container: str, accept: str | None
) -> None:
    read = alice.get(container, headers={"Accept": accept} if accept else {})
    assert (read.status, read.header("Content-Type")) == (200, TURTLE)
    assert read.body != b""
    assert read.members == []


@pytest.mark.parametrize("accept", ["*/*", f"{TURTLE}, text/html", f"{JSON_LD}, text/html;q=0.9"])
def test_c_27_html_is_given_only_to_those_who_prefer_it(
    alice: Agent, container: str, accept: str
) -> None:
    read = alice.get(container, headers={"Accept": accept})
    assert (read.status, read.media_type) == (200, JSON_LD if JSON_LD in accept else TURTLE)


@pytest.mark.parametrize("accept", [None, BROWSER, "text/html"])
def test_c_28_an_index_document_is_not_a_representation_of_its_container(
    alice: Agent, container: str, accept: str | None
) -> None:
    index = alice.create(f"{container}index.html", "<p>of the index", "text/html")
    read = alice.get(container, headers={"Accept": accept} if accept else {})
    assert "of the index" not in read.text
    assert alice.get(index, headers={"Accept": BROWSER}).text == "<p>of the index"


def test_c_29_a_large_container_is_complete_and_is_sent_while_it_is_read(
    alice: Agent, container: str
) -> None:
    # More than the server reads at once, with names that make it more than it holds at once.
    names = {f"{number:0>150x}" for number in range(700)}
    with Client(alice.server, token=alice.token) as client:
        statuses = {client.put(container + name, b"x").status for name in names}
    assert statuses == {201}
    members = {alice.url(container + name) for name in names}
    for accept in (TURTLE, JSON_LD):
        first = alice.read(container, accept)
        assert first.header("Content-Length") is None
        assert first.header("Transfer-Encoding") == "chunked"
        check_complete(first, members)
        assert alice.read(container, accept).body == first.body


def check_complete(listing: Response, members: set[str]) -> None:
    """Nothing of the listing is missing or twice."""
    found = listing.triples
    assert {str(o) for _, p, o in found if str(p) == f"{LDP}contains"} == members
    assert {str(s) for s, p, _ in found if str(p) == f"{STAT}size"} == members
    assert len(found) == len(members) * 6 + 5
