"""What may be written to containers, ACLs and descriptions, and what never (C-9 to C-14, C-30)."""

from __future__ import annotations

import pytest

from tests.conformance.agents import (
    LDP,
    N3_PATCH,
    PIM,
    SPARQL_UPDATE,
    WRITTEN,
    Agent,
    Rule,
    acl_turtle,
)
from tests.support.rdf import JSON_LD, N_TRIPLES, TURTLE, Triples, triples, written

TEXT = "text/plain"
TITLE = "http://example.org/title"
STAT = "http://www.w3.org/ns/posix/stat#"
DCTERMS = "http://purl.org/dc/terms/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
DATE_TIME = "http://www.w3.org/2001/XMLSchema#dateTime"
TYPE_LINK = '<{}{}>; rel="type"'


def titles(found: Triples) -> set[str]:
    """What test documents put under their one property."""
    return {str(value) for _, predicate, value in found if str(predicate) == TITLE}


# --- PUT of containers ----------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["BasicContainer", "Container", "RDFSource", "Resource", None])
@pytest.mark.parametrize("body", [None, "", f"<> <{TITLE}> 'mine'."])
def test_c_9_put_on_a_slash_makes_a_container(
    alice: Agent, container: str, model: str | None, body: str | None
) -> None:
    headers = {"Link": TYPE_LINK.format(LDP, model)} if model else {}
    made = alice.put(f"{container}new/", body, TURTLE, headers)
    assert made.status == 201
    assert made.location == alice.url(f"{container}new/")
    assert f"{LDP}BasicContainer" in made.targets("type")
    listing = alice.read(f"{container}new/")
    assert f"{LDP}BasicContainer" in listing.targets("type")
    assert titles(listing.triples) == ({"mine"} if body else set())
    assert titles(alice.read(f"{container}new/.meta").triples) == titles(listing.triples)
    assert alice.read(container).members == [listing.url]
    assert alice.post(f"{container}new/", "x", TEXT).status == 201


@pytest.mark.parametrize("content_type", [TURTLE, JSON_LD, N_TRIPLES])
def test_c_9_a_container_is_described_in_any_rdf_type(
    alice: Agent, container: str, content_type: str
) -> None:
    url = alice.url(f"{container}new/")
    own = triples(f"<> <{TITLE}> 'mine'; <#b> [ <#c> 1 ].", TURTLE, url)
    assert alice.put(url, written(own, content_type), content_type).status == 201
    assert alice.read(url).triples > own


@pytest.mark.parametrize("body", [None, "", f"<> <{TITLE}> 'mine'."])
def test_c_10_put_on_a_slash_as_non_rdf_source_is_409(
    alice: Agent, container: str, body: str | None
) -> None:
    link = TYPE_LINK.format(LDP, "NonRDFSource")
    assert alice.put(f"{container}new/", body, TURTLE, {"Link": link}).status == 409
    assert alice.get(f"{container}new/").status == 404
    assert alice.read(container).members == []


@pytest.mark.parametrize("model", ["BasicContainer", "Container"])
@pytest.mark.parametrize("name", ["new", "new.ttl", "there.ttl"])
def test_c_11_put_without_slash_as_container_is_409(
    alice: Agent, container: str, model: str, name: str
) -> None:
    there = alice.create(f"{container}there.ttl", "<#a> <#b> 'kept'.")
    link = TYPE_LINK.format(LDP, model)
    assert alice.put(container + name, "", TURTLE, {"Link": link}).status == 409
    assert alice.read(container).members == [alice.url(there)]
    assert "kept" in alice.get(there).text


@pytest.mark.parametrize("content_type", [TEXT, "image/png", "application/json", "text/html"])
def test_c_11_a_container_takes_no_content_that_is_not_rdf(
    alice: Agent, container: str, content_type: str
) -> None:
    refused = alice.put(f"{container}new/", "x", content_type)
    assert refused.status == 415
    assert TURTLE in refused.listed("Accept-Put")
    assert alice.get(f"{container}new/").status == 404
    alice.create(f"{container}there/", f"<> <{TITLE}> 'kept'.")
    assert alice.put(f"{container}there/", "x", content_type).status == 415
    assert titles(alice.read(f"{container}there/").triples) == {"kept"}


@pytest.mark.parametrize("content_type", [TURTLE, JSON_LD])
def test_c_12_put_on_a_container_replaces_its_description_and_keeps_its_members(
    alice: Agent, bob: Agent, container: str, content_type: str
) -> None:
    alice.grant(container, Rule(bob.named, "Read Write"))
    member = alice.create(f"{container}x.txt", "x", TEXT)
    for title in ("first", "second"):
        own = triples(f"<> <{TITLE}> '{title}'.", TURTLE, alice.url(container))
        put = bob.put(container, written(own, content_type), content_type)
        assert put.status == 204
        listing = bob.read(container)
        assert titles(listing.triples) == {title}
        assert listing.members == [alice.url(member)]
    assert alice.get(member).text == "x"


def test_c_12_put_without_content_changes_nothing(alice: Agent, container: str) -> None:
    assert alice.put(container, f"<> <{TITLE}> 'mine'.").status == 204
    member = alice.create(f"{container}x.txt", "x", TEXT)
    link = TYPE_LINK.format(LDP, "BasicContainer")
    assert alice.put(container, None, TURTLE, {"Link": link}).status == 204
    listing = alice.read(container)
    assert titles(listing.triples) == {"mine"}
    assert listing.members == [alice.url(member)]


# --- what only the server states ---

CONTAINMENT = {
    "a member that is not there": f"<> <{LDP}contains> <missing.txt>.",
    "one of two that is not there": f"<> <{LDP}contains> <x.txt>, <missing.txt>.",
    "something elsewhere": f"<> <{LDP}contains> <http://example.org/>.",
    "its own rules": f"<> <{LDP}contains> <.acl>.",
    "a literal": f"<> <{LDP}contains> 'x.txt'.",
    "a member of a member": f"<x.txt> <{LDP}contains> <x.txt>.",
}
METADATA = {
    "a size": f"<x.txt> <{STAT}size> 4711 .",
    "a time": f'<x.txt> <{DCTERMS}modified> "2001-01-01T00:00:00Z"^^<{DATE_TIME}>.',
    "a time in seconds": f"<x.txt> <{STAT}mtime> 1 .",
    "a media type": "<x.txt> a <http://www.w3.org/ns/iana/media-types/image/png#Resource>.",
    "a class of members": f"<x.txt> a <{LDP}Container>.",
    "its own time": f'<> <{DCTERMS}modified> "2001-01-01T00:00:00Z"^^<{DATE_TIME}>.',
    "its own class": f"<> a <{PIM}Storage>.",
    "a size of what is gone": f"<gone.txt> <{STAT}size> 4711 .",
}
MANAGED = CONTAINMENT | METADATA


@pytest.mark.parametrize("statement", CONTAINMENT.values(), ids=CONTAINMENT)
@pytest.mark.parametrize("name", ["", ".meta"])
def test_c_13_put_makes_no_member(alice: Agent, container: str, statement: str, name: str) -> None:
    before = described(alice, container)
    body = f"@base <{alice.url(container)}>. <> <{TITLE}> 'new'. {statement}"
    assert alice.put(container + name, body).status == 409
    assert alice.read(container).body == before


@pytest.mark.parametrize("statement", METADATA.values(), ids=METADATA)
@pytest.mark.parametrize("name", ["", ".meta"])
def test_c_13_put_changes_nothing_that_the_server_states(
    alice: Agent, container: str, statement: str, name: str
) -> None:
    described(alice, container)
    body = f"@base <{alice.url(container)}>. <> <{TITLE}> 'new'. {statement}"
    assert alice.put(container + name, body).status == 204
    listing = alice.read(container)
    assert titles(listing.triples) == {"new"}
    assert not triples(statement, TURTLE, alice.url(container)) & listing.triples
    assert len(alice.read(f"{container}.meta").triples) == 1


@pytest.mark.parametrize("content_type", [TURTLE, JSON_LD, N_TRIPLES])
@pytest.mark.parametrize("name", ["", ".meta"])
def test_c_13_what_was_read_a_moment_ago_is_sent_back_although_members_have_changed(
    alice: Agent, container: str, content_type: str, name: str
) -> None:
    """As applications do that write a profile back whole."""
    described(alice, container)
    for each in ("gone.txt", "gone/below.txt", "moved/below.txt"):
        alice.create(container + each, "x", TEXT)
    read = written(alice.read(container).triples, content_type)
    assert alice.put(f"{container}x.txt", "longer", TEXT).status == 204
    for each in ("gone.txt", "gone/below.txt", "gone/"):
        assert alice.delete(container + each).status in {200, 204}
    alice.create(f"{container}later.txt", "x", TEXT)
    members = alice.read(container).members
    assert alice.put(container + name, read, content_type).status == 204
    again = alice.read(container)
    assert again.members == members
    assert titles(again.triples) == {"mine"}
    assert len(alice.read(f"{container}.meta").triples) == 1


@pytest.mark.parametrize("statement", MANAGED.values(), ids=MANAGED)
@pytest.mark.parametrize("content_type", [SPARQL_UPDATE, N3_PATCH])
@pytest.mark.parametrize("name", ["", ".meta"])
def test_c_13_patch_adds_nothing_that_the_server_states(
    alice: Agent, container: str, statement: str, content_type: str, name: str
) -> None:
    before = described(alice, container)
    absolute = written(triples(statement, TURTLE, alice.url(container)), N_TRIPLES)
    patch = changing(absolute, content_type, "insert")
    assert alice.patch(container + name, patch, content_type).status == 409
    assert alice.read(container).body == before


@pytest.mark.parametrize("content_type", [SPARQL_UPDATE, N3_PATCH])
@pytest.mark.parametrize("name", ["", ".meta"])
def test_c_13_patch_takes_nothing_away_that_the_server_states(
    alice: Agent, container: str, content_type: str, name: str
) -> None:
    before = described(alice, container)
    managed = alice.read(container, N_TRIPLES).text.splitlines()
    managed = [line for line in managed if TITLE not in line]
    assert len(managed) == 5 + 1 + 5
    for statement in managed:
        patch = changing(statement, content_type, "delete")
        assert alice.patch(container + name, patch, content_type).status == 409, statement
    assert alice.read(container).body == before


@pytest.mark.parametrize("statement", CONTAINMENT.values(), ids=CONTAINMENT)
def test_c_13_post_makes_no_container_with_members(
    alice: Agent, container: str, statement: str
) -> None:
    headers = {"Link": TYPE_LINK.format(LDP, "BasicContainer"), "Slug": "new"}
    assert alice.post(container, statement, TURTLE, headers).status == 409
    assert alice.read(container).members == []


@pytest.mark.parametrize("statement", METADATA.values(), ids=METADATA)
def test_c_13_post_makes_no_container_that_states_what_only_the_server_does(
    alice: Agent, container: str, statement: str
) -> None:
    headers = {"Link": TYPE_LINK.format(LDP, "BasicContainer"), "Slug": "new"}
    made = alice.post(container, statement, TURTLE, headers)
    assert made.status == 201
    assert not triples(statement, TURTLE, made.location) & alice.read(made.location).triples


@pytest.mark.parametrize("content_type", [TURTLE, JSON_LD, N_TRIPLES])
def test_c_13_sending_back_what_was_read_changes_nothing(
    alice: Agent, container: str, content_type: str
) -> None:
    described(alice, container)
    read = alice.read(container, content_type)
    assert alice.put(container, read.body, content_type).status == 204
    again = alice.read(container, content_type)
    assert titles(again.triples) == {"mine"}
    assert again.members == read.members
    assert len(alice.read(f"{container}.meta").triples) == 1


def test_c_13_a_document_may_state_whatever_it_likes(alice: Agent, container: str) -> None:
    statement = f"<> <{LDP}contains> <missing.txt>; <{STAT}size> 4711 ."
    target = alice.create(f"{container}doc.ttl", statement)
    assert alice.get(target).text == statement
    assert alice.read(container).members == [alice.url(target)]


def described(alice: Agent, container: str) -> bytes:
    """Give the container a title and a member; its representation."""
    assert alice.put(container, f"<> <{TITLE}> 'mine'.").status == 204
    alice.create(f"{container}x.txt", "x", TEXT)
    return alice.read(container).body


def changing(statements: str, content_type: str, how: str) -> str:
    """A patch that inserts or deletes statements given as N-Triples."""
    if content_type == SPARQL_UPDATE:
        return f"{how.upper()} DATA {{ {statements} }}"
    return (
        "@prefix solid: <http://www.w3.org/ns/solid/terms#>. "
        f"[] a solid:InsertDeletePatch; solid:{how}s {{ {statements} }}."
    )


# --- auxiliary resources ---


@pytest.mark.parametrize("name", ["x.ttl", "x.txt", "x/"])
def test_c_14_an_acl_is_made_and_changed_by_put_and_patch_and_never_listed(
    alice: Agent, container: str, name: str
) -> None:
    target = alice.create(container + name, "", TEXT if name == "x.txt" else TURTLE)
    acl = alice.acl_of(target)
    rules = acl_turtle(alice.url(target), Rule(alice.named, "Read Write Control"))
    assert alice.put(acl, rules).status == 201
    assert alice.put(acl, rules).status == 204
    insert = f"INSERT DATA {{ <#a> <{TITLE}> 'mine' }}"
    assert alice.patch(acl, insert).status in WRITTEN
    assert titles(alice.read(acl).triples) == {"mine"}
    assert alice.read(container).members == [alice.url(target)]
    if name.endswith("/"):
        assert alice.read(target).members == []


def test_c_14_patch_makes_an_acl_where_there_is_none(alice: Agent, container: str) -> None:
    target = alice.create(f"{container}x.txt", "x", TEXT)
    rules = triples(
        acl_turtle(alice.url(target), Rule(alice.named, "Read Write Control")), TURTLE, "x:"
    )
    insert = f"INSERT DATA {{ {written(rules, N_TRIPLES)} }}"
    assert alice.patch(alice.acl_of(target), insert).status == 201
    assert alice.read(container).members == [alice.url(target)]


@pytest.mark.parametrize("name", ["x.ttl", "x.txt", "x/"])
def test_c_14_a_description_is_made_and_changed_by_put_and_patch_and_never_listed(
    alice: Agent, container: str, name: str
) -> None:
    target = alice.create(container + name, "", TEXT if name == "x.txt" else TURTLE)
    description = alice.head(target).target("describedby")
    for title in ("first", "second"):
        assert alice.put(description, f"<> <{TITLE}> '{title}'.").status in WRITTEN
        assert titles(alice.read(description).triples) == {title}
    assert alice.patch(description, f"INSERT DATA {{ <> <{TITLE}> 'more' }}").status in WRITTEN
    assert titles(alice.read(description).triples) == {"second", "more"}
    assert alice.read(container).members == [alice.url(target)]
    if name.endswith("/"):
        assert alice.read(target).members == []


@pytest.mark.parametrize("name", ["x.ttl", "x.txt", "x/"])
@pytest.mark.parametrize("content_type", [SPARQL_UPDATE, N3_PATCH])
def test_c_14_patch_makes_a_description_where_there_is_none(
    alice: Agent, container: str, name: str, content_type: str
) -> None:
    target = alice.create(container + name, "", TEXT if name == "x.txt" else TURTLE)
    description = alice.head(target).target("describedby")
    patch = changing(f"<> <{TITLE}> 'mine' .", content_type, "insert")
    assert alice.patch(description, patch, content_type).status in WRITTEN
    assert titles(alice.read(description).triples) == {"mine"}


# --- descriptions ---


@pytest.mark.parametrize("name", ["doc", "doc.ttl", "photo.jpg", "c/"])
def test_c_30_the_description_is_at_the_url_with_meta_and_empty_at_first(
    alice: Agent, container: str, name: str
) -> None:
    target = alice.create(container + name, "", "image/jpeg" if "jpg" in name else TURTLE)
    description = alice.head(target).target("describedby")
    assert description == alice.url(f"{target}.meta")
    read = alice.get(description)
    assert (read.status, read.body, read.media_type) == (200, b"", TURTLE)
    assert read.target("describes") == alice.url(target)
    assert f"{LDP}RDFSource" in read.targets("type")
    assert alice.get(f"{container}missing{'/' if name == 'c/' else ''}.meta").status == 404


@pytest.mark.parametrize("changed", ["", ".meta"])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_c_30_a_container_and_its_description_are_one_graph(
    alice: Agent, container: str, changed: str, method: str
) -> None:
    url = alice.url(container)
    member = alice.create(f"{container}x.txt", "x", TEXT)
    if method == "PUT":
        assert alice.put(container + changed, f"<{url}> <{TITLE}> 'mine'.").status == 204
    else:
        insert = f"INSERT DATA {{ <{url}> <{TITLE}> 'mine' }}"
        assert alice.patch(container + changed, insert).status == 204
    own = triples(f"<{url}> <{TITLE}> 'mine'.", TURTLE, url)
    for accept in (TURTLE, JSON_LD):
        assert alice.read(f"{container}.meta", accept).triples == own
        listing = alice.read(container, accept)
        assert listing.triples > own
        assert listing.members == [alice.url(member)]


@pytest.mark.parametrize("name", ["x.ttl", "c/"])
def test_c_30_a_description_can_be_taken_back(alice: Agent, container: str, name: str) -> None:
    target = alice.create(container + name)
    assert alice.put(f"{target}.meta", f"<> <{TITLE}> 'mine'.").status in WRITTEN
    assert alice.delete(f"{target}.meta").status == 204
    read = alice.get(f"{target}.meta")
    assert (read.status, read.triples) == (200, frozenset())
    assert titles(alice.read(target).triples) == set()
    assert alice.get(target).status == 200


def test_c_30_the_description_of_a_document_is_apart_from_it(alice: Agent, container: str) -> None:
    target = alice.create(f"{container}x.ttl", f"<> <{TITLE}> 'document'.")
    assert alice.put(f"{target}.meta", f"<x.ttl> <{TITLE}> 'description'.").status == 201
    assert titles(alice.read(target).triples) == {"document"}
    assert titles(alice.read(f"{target}.meta").triples) == {"description"}
