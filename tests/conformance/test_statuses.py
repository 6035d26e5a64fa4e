"""Which status has which method in which state, for a caller with all access (S-1 to S-11)?

Each case is one state of a container of its own: a table of targets, which rows describe by name.
"""

from __future__ import annotations

import itertools

import pytest

from tests.conformance.agents import N3_PATCH, SPARQL_UPDATE, Agent, Response, Rule, acl_turtle
from tests.support.rdf import JSON_LD, TURTLE

CONTAINER_LINK = {"Link": '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'}
PREFIX = "PREFIX ldp: <http://www.w3.org/ns/ldp#> "
INSERT = "INSERT DATA { <#a> <#b> <#c> . }"
N3 = "@prefix solid: <http://www.w3.org/ns/solid/terms#>.\n[] a solid:InsertDeletePatch; "
N3_INSERT = f"{N3} solid:inserts {{ <#a> <#b> <#c> . }}."
N3_IMPOSSIBLE = f"{N3} solid:deletes {{ <#x> <#y> <#z> . }}."
READS = ("GET", "HEAD")
METHODS = ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE")


@pytest.fixture
def pod(alice: Agent, container: str) -> str:
    """A container with a document, a container with a member, an empty one, and two twins."""
    alice.create(f"{container}doc.ttl", "<> <#is> <#here>.")
    alice.create(f"{container}doc.txt", "Hello", "text/plain")
    alice.create(f"{container}full/member.txt", "x", "text/plain")
    alice.create(f"{container}empty/")
    return container


def ask(agent: Agent, method: str, target: str) -> Response:
    """A sound request."""
    if method == "PATCH":
        return agent.patch(target, INSERT)
    if method in {"PUT", "POST"}:
        return agent.request(method, target, "<> <#a> <#b>.", {"Content-Type": TURTLE})
    return agent.request(method, target)


# --- S-1: a document --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "status"),
    [("GET", 200), ("HEAD", 200), ("PUT", 204), ("POST", 405), ("PATCH", 204), ("DELETE", 204)],
)
def test_s_1_a_document(alice: Agent, pod: str, method: str, status: int) -> None:
    assert ask(alice, method, f"{pod}doc.ttl").status == status


@pytest.mark.parametrize("method", READS)
@pytest.mark.parametrize(
    ("name", "fields", "status"),
    [
        ("doc.ttl", {"If-None-Match": "*"}, 304),
        ("doc.ttl", {"Accept": "image/png"}, 406),
        ("doc.txt", {"Range": "bytes=1-2"}, 206),
    ],
)
def test_s_1_reading_a_document_in_other_ways(
    alice: Agent, pod: str, method: str, name: str, fields: dict[str, str], status: int
) -> None:
    expected = 200 if (method, status) == ("HEAD", 206) else status
    assert alice.request(method, pod + name, None, fields).status == expected


@pytest.mark.parametrize(
    ("name", "body", "content_type", "fields", "status"),
    [
        ("doc.ttl", N3_INSERT, N3_PATCH, {}, 204),
        ("doc.ttl", N3_IMPOSSIBLE, N3_PATCH, {}, 409),
        ("doc.txt", INSERT, SPARQL_UPDATE, {}, 409),
        ("doc.ttl", INSERT, SPARQL_UPDATE, {"If-Match": '"x"'}, 412),
        ("doc.ttl", INSERT, "text/plain", {}, 415),
        ("doc.ttl", f"{N3} a solid:Other; solid:inserts <x>.", N3_PATCH, {}, 422),
        ("doc.ttl", "INSERT DATA { <#a> ", SPARQL_UPDATE, {}, 400),
    ],
)
def test_s_1_patching_a_document(
    alice: Agent,
    pod: str,
    name: str,
    body: str,
    content_type: str,
    fields: dict[str, str],
    status: int,
) -> None:
    assert alice.patch(pod + name, body, content_type, fields).status == status


# --- S-2: a container -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "status"),
    [("GET", 200), ("HEAD", 200), ("PUT", 204), ("POST", 201), ("PATCH", 204)],
)
@pytest.mark.parametrize("name", ["full/", "empty/"])
def test_s_2_a_container(alice: Agent, pod: str, name: str, method: str, status: int) -> None:
    assert ask(alice, method, pod + name).status == status


@pytest.mark.parametrize(("name", "status"), [("full/", 409), ("empty/", 204)])
def test_s_2_deleting_a_container(alice: Agent, pod: str, name: str, status: int) -> None:
    assert alice.delete(pod + name).status == status


@pytest.mark.parametrize("method", READS)
def test_s_2_reading_a_container_again(alice: Agent, pod: str, method: str) -> None:
    tag = alice.head(f"{pod}full/").header("ETag") or ""
    response = alice.request(method, f"{pod}full/", None, {"If-None-Match": tag})
    assert response.status == 304


@pytest.mark.parametrize(
    ("method", "body", "content_type"),
    [
        ("PUT", "<> <http://www.w3.org/ns/ldp#contains> <other.txt>.", TURTLE),
        ("PATCH", f"{PREFIX} INSERT DATA {{ <> ldp:contains <other.txt> }}", SPARQL_UPDATE),
        ("PATCH", f"{PREFIX} DELETE DATA {{ <> ldp:contains <member.txt> }}", SPARQL_UPDATE),
    ],
)
def test_s_2_what_the_server_manages_conflicts(
    alice: Agent, pod: str, method: str, body: str, content_type: str
) -> None:
    fields = {"Content-Type": content_type}
    assert alice.request(method, f"{pod}full/", body, fields).status == 409
    assert alice.read(f"{pod}full/").members == [alice.url(f"{pod}full/member.txt")]


# --- S-3, S-4, S-5: roots and ACLs ------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "status"),
    [("GET", 200), ("HEAD", 200), ("POST", 201), ("PATCH", 204), ("DELETE", 405)],
)
def test_s_3_the_root_of_a_storage(alice: Agent, method: str, status: int) -> None:
    assert ask(alice, method, alice.pod).status == status


def test_s_3_the_root_of_a_storage_is_replaced(alice: Agent) -> None:
    profile = alice.read(alice.pod, JSON_LD)
    assert alice.put(alice.pod, profile.body, JSON_LD).status == 204


@pytest.mark.parametrize(
    ("method", "status"),
    [("GET", 200), ("HEAD", 200), ("POST", 405), ("PATCH", 204), ("DELETE", 405)],
)
def test_s_4_the_acl_of_a_root(alice: Agent, method: str, status: int) -> None:
    assert ask(alice, method, alice.acl_of(alice.pod)).status == status


def test_s_4_the_acl_of_a_root_is_replaced(alice: Agent) -> None:
    acl = alice.acl_of(alice.pod)
    assert alice.put(acl, alice.get(acl).body).status == 204


@pytest.mark.parametrize(
    ("method", "there", "missing"),
    [
        ("GET", 200, 404),
        ("HEAD", 200, 404),
        ("PUT", 204, 201),
        ("POST", 405, 404),
        ("PATCH", 204, 201),
        ("DELETE", 204, 404),
    ],
)
@pytest.mark.parametrize("name", ["doc.ttl", "full/"])
def test_s_5_another_acl(
    alice: Agent, pod: str, name: str, method: str, there: int, missing: int
) -> None:
    acl = alice.acl_of(pod + name)
    content = acl_turtle(
        alice.url(pod + name),
        Rule(alice.named, "Read Write Control", default=name.endswith("/")),
    )
    for status in (missing, there):
        fields = {"Content-Type": TURTLE}
        response = (
            alice.request(method, acl, content, fields)
            if method in {"PUT", "POST"}
            else ask(alice, method, acl)
        )
        assert response.status == status
        alice.put(acl, content)


# --- S-6 to S-9: nothing there ----------------------------------------------------------------

MISSING = (
    ("GET", 404),
    ("HEAD", 404),
    ("PUT", 201),
    ("POST", 404),
    ("PATCH", 201),
    ("DELETE", 404),
)


@pytest.mark.parametrize(("method", "status"), MISSING)
@pytest.mark.parametrize("name", ["new", "new.ttl", "new.txt", "new/"])
def test_s_6_nothing_in_a_container(
    alice: Agent, container: str, name: str, method: str, status: int
) -> None:
    assert ask(alice, method, container + name).status == status
    assert bool(alice.read(container).members) == (status == 201)


@pytest.mark.parametrize(("method", "status"), MISSING)
@pytest.mark.parametrize("name", ["new", "new/"])
def test_s_7_nothing_and_no_container(
    alice: Agent, container: str, name: str, method: str, status: int
) -> None:
    target = f"{container}a/b/{name}"
    assert ask(alice, method, target).status == status
    steps = (container, f"{container}a/", f"{container}a/b/", target)
    for above, below in itertools.pairwise(steps):
        if status == 201:
            assert alice.read(above).members == [alice.url(below)]
        else:
            assert alice.get(below).status == 404


@pytest.mark.parametrize(
    ("method", "status"),
    [("GET", 301), ("HEAD", 301), ("PUT", 409), ("POST", 404), ("PATCH", 409), ("DELETE", 404)],
)
@pytest.mark.parametrize("name", ["doc.ttl/", "doc.txt/", "full", "empty"])
def test_s_8_only_the_other_spelling_exists(
    alice: Agent, pod: str, name: str, method: str, status: int
) -> None:
    before = alice.read(pod).members
    assert ask(alice, method, pod + name).status == status
    assert alice.read(pod).members == before


@pytest.mark.parametrize(
    ("method", "status"),
    [("GET", 404), ("HEAD", 404), ("PUT", 409), ("POST", 404), ("PATCH", 409), ("DELETE", 404)],
)
@pytest.mark.parametrize("document", ["doc.ttl", "doc.txt"])
@pytest.mark.parametrize("below", ["x", "x/", "a/b/x"])
def test_s_9_below_a_document(
    alice: Agent, pod: str, document: str, below: str, method: str, status: int
) -> None:
    assert ask(alice, method, f"{pod}{document}/{below}").status == status


# --- S-10, S-11: whatever is there ------------------------------------------------------------

ANYTHING = ("doc.ttl", "doc.txt", "full/", "new", "new/", "a/b/new", "doc.ttl/x", "full")


@pytest.mark.parametrize(
    ("method", "name", "body"),
    [
        (method, name, body)
        for method in ("PUT", "POST", "PATCH")
        for name in ANYTHING
        for body in (None, "", "<> <#a> <#b>.")
        if body or method != "PUT" or not name.endswith("/")
    ],
)
def test_s_10_no_content_type(
    alice: Agent, pod: str, name: str, method: str, body: str | None
) -> None:
    before = alice.read(pod).members
    assert alice.request(method, pod + name, body).status == 400
    assert alice.read(pod).members == before


@pytest.mark.parametrize("kind", [None, "BasicContainer", "Container"])
@pytest.mark.parametrize("body", [None, ""])
@pytest.mark.parametrize("name", ["new/", "a/b/new/"])
def test_s_10_a_container_without_content_needs_no_content_type(
    alice: Agent, pod: str, name: str, body: str | None, kind: str | None
) -> None:
    link = f'<http://www.w3.org/ns/ldp#{kind}>; rel="type"'
    fields = {} if kind is None else {"Link": link}
    assert alice.request("PUT", pod + name, body, fields).status == 201
    assert alice.get(pod + name).status == 200


@pytest.mark.parametrize("body", [None, ""])
def test_s_10_nothing_changes_in_a_container_that_exists(
    alice: Agent, pod: str, body: str | None
) -> None:
    before = alice.get(f"{pod}full/")
    assert alice.request("PUT", f"{pod}full/", body).status == 204
    assert alice.get(f"{pod}full/").header("ETag") == before.header("ETag")


def test_s_10_a_container_link_does_not_replace_the_content_type(alice: Agent, pod: str) -> None:
    response = alice.request("PUT", f"{pod}new/", "<> <#a> <#b>.", CONTAINER_LINK)
    assert response.status == 400
    assert alice.get(f"{pod}new/").status == 404


@pytest.mark.parametrize("name", ["", *ANYTHING])
@pytest.mark.parametrize(
    ("method", "statuses"),
    [("TRACE", {405}), ("CONNECT", {405, 400}), ("LOCK", {405, 501}), ("BREW", {405, 501})],
)
def test_s_11_methods_that_nothing_has(
    alice: Agent, pod: str, name: str, method: str, statuses: set[int]
) -> None:
    assert alice.request(method, pod + name).status in statuses
