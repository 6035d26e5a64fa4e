"""What a URL identifies: slashes, spellings, and reserved names (P-47 to P-52)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rdflib import URIRef

from tests.conformance.agents import N3_PATCH, PIM, RDF_TYPE, WRITTEN, Agent, Response, Rule
from tests.support.rdf import TURTLE
from tests.support.server import ServerProcess
from tests.support.wire import Wire, WireAnswer, compose

CONTAINER_LINK = {"Link": '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'}
SPARQL_INSERT = "INSERT DATA { <#a> <#b> <#c> . }"
N3_INSERT = (
    "@prefix solid: <http://www.w3.org/ns/solid/terms#>.\n"
    "[] a solid:InsertDeletePatch; solid:inserts { <#a> <#b> <#c> . }."
)

WRITES: dict[str, Callable[[Agent, str], Response]] = {
    "PUT": lambda agent, target: agent.put(target, None),
    "PUT text": lambda agent, target: agent.put(target, "x", "text/plain"),
    "PATCH with SPARQL Update": lambda agent, target: agent.patch(target, SPARQL_INSERT),
    "PATCH with N3 Patch": lambda agent, target: agent.patch(target, N3_INSERT, N3_PATCH),
}
RDF_WRITES = sorted({*WRITES} - {"PUT text"})


# --- P-47, P-48: the final slash --------------------------------------------------------------


@pytest.mark.parametrize("name", ["x", "x/"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_p_47_a_reader_is_redirected_to_the_spelling_that_exists(
    alice: Agent, container: str, method: str, name: str
) -> None:
    alice.create(container + name)
    twin = f"{container}x" if name == "x/" else f"{container}x/"
    response = alice.request(method, twin)
    assert (response.status, response.location) == (301, alice.url(container + name))


@pytest.mark.parametrize("name", ["x", "x/"])
def test_p_47_agents_without_read_access_learn_nothing_of_what_exists(
    alice: Agent, bob: Agent, public: Agent, container: str, name: str
) -> None:
    alice.create(container + name)
    twin, other = (f"{container}x", "y") if name == "x/" else (f"{container}x/", "y/")
    for agent, status in ((bob, 403), (public, 401)):
        asked, missing = agent.get(twin), agent.get(container + other)
        assert (asked.status, asked.body) == (missing.status, missing.body)
        assert asked.status == status
        assert asked.header("Location") is None


@pytest.mark.parametrize("name", ["x", "x/"])
def test_p_47_read_access_to_the_container_alone_gives_no_redirect(
    alice: Agent, bob: Agent, container: str, name: str
) -> None:
    """To such a reader of a container's members, the one that exists is as good as missing."""
    alice.create(container + name)
    alice.grant(container, Rule(bob.named, "Read", default=True))
    alice.grant(container + name)
    twin = f"{container}x" if name == "x/" else f"{container}x/"
    response = bob.get(twin)
    assert (response.status, response.header("Location")) == (404, None)


def test_p_47_everybody_is_redirected_to_the_root_of_a_pod(alice: Agent, public: Agent) -> None:
    response = public.get(alice.pod.rstrip("/"))
    assert (response.status, response.location) == (301, alice.url(alice.pod))


@pytest.mark.parametrize("name", ["x", "x/"])
@pytest.mark.parametrize("how", RDF_WRITES)
def test_p_47_the_other_spelling_cannot_be_made(
    alice: Agent, container: str, how: str, name: str
) -> None:
    alice.create(container + name)
    twin = f"{container}x" if name == "x/" else f"{container}x/"
    assert WRITES[how](alice, twin).status == 409
    assert alice.read(container).members == [alice.url(container + name)]


@pytest.mark.parametrize("slug", ["x", "x/"])
@pytest.mark.parametrize("fields", [{}, CONTAINER_LINK])
@pytest.mark.parametrize("name", ["x", "x/"])
def test_p_47_a_post_never_makes_the_other_spelling(
    alice: Agent, container: str, name: str, fields: dict[str, str], slug: str
) -> None:
    alice.create(container + name)
    made = alice.post(container, "", TURTLE, {**fields, "Slug": slug})
    assert made.status in WRITTEN
    assert made.location.rstrip("/") != alice.url(f"{container}x")
    assert alice.read(container).members == sorted([alice.url(container + name), made.location])


def test_p_47_what_ends_with_a_slash_is_a_container(alice: Agent, container: str) -> None:
    for name, is_container in (("x/", True), ("y", False)):
        alice.create(container + name)
        types = alice.head(container + name).targets("type")
        assert ("http://www.w3.org/ns/ldp#Container" in types) == is_container


@pytest.mark.parametrize("slug", [{}, {"Slug": "name"}, {"Slug": "name/"}, {"Slug": "a/b"}])
@pytest.mark.parametrize("fields", [{}, CONTAINER_LINK])
@pytest.mark.parametrize("body", [None, "<> <#a> <#b>."])
def test_p_48_only_the_location_of_a_container_ends_with_a_slash(
    alice: Agent, container: str, slug: dict[str, str], fields: dict[str, str], body: str | None
) -> None:
    made = alice.post(container, body, TURTLE, {**slug, **fields})
    assert made.status == 201
    assert made.location.endswith("/") == (fields == CONTAINER_LINK)
    rest = made.location.removeprefix(alice.url(container)).rstrip("/")
    assert rest
    assert "/" not in rest


# --- P-49: nothing below a document -----------------------------------------------------------


@pytest.mark.parametrize("below", ["x", "x/", "deep/er/x", "deep/er/x/", "x.meta"])
@pytest.mark.parametrize("how", RDF_WRITES)
@pytest.mark.parametrize("document", ["doc.ttl", "doc.txt"])
def test_p_49_nothing_is_made_below_a_document(
    alice: Agent, container: str, document: str, how: str, below: str
) -> None:
    content_type = TURTLE if document == "doc.ttl" else "text/plain"
    alice.create(container + document, "", content_type)
    target = f"{container}{document}/{below}"
    assert WRITES[how](alice, target).status == 409
    assert alice.get(target).status == 404
    assert alice.read(container).members == [alice.url(container + document)]


@pytest.mark.parametrize("below", ["", "foo/"])
def test_p_49_a_post_below_a_document_finds_nothing(
    alice: Agent, container: str, below: str
) -> None:
    alice.create(f"{container}doc", "", "text/plain")
    assert alice.post(f"{container}doc/{below}").status == 404


# --- P-50: one spelling -----------------------------------------------------------------------


@pytest.fixture
def raw(server: ServerProcess, alice: Agent) -> Callable[[str, bytes], WireAnswer]:
    """Send a request of Alice's with a target as it stands."""

    def send(method: str, target: bytes) -> WireAnswer:
        fields = {"Authorization": f"Bearer {alice.token}", "Content-Type": "text/plain"}
        body = b"content" if method == "PUT" else None
        with Wire(server) as wire:
            wire.send(compose(method, target, fields, body, host=f"localhost:{server.port}"))
            return wire.receive(method)

    return send


@pytest.mark.parametrize(
    ("canonical", "others"),
    [
        ("abc", ["%61bc", "a%62%63"]),
        ("caf%C3%A9", ["caf%c3%a9", "%63%61%66%C3%A9"]),
        ("a-._~b", ["%61%2D%2E%5F%7Eb", "a%2d%2e%5f%7eb"]),
        ("a%2Fb", ["a%2fb"]),
        ("a%5Cb", ["a%5cb"]),
        ("100%25", ["%3100%25"]),
        ("a%20b", []),
    ],
)
def test_p_50_all_spellings_of_a_name_are_one(
    raw: Callable[[str, bytes], WireAnswer],
    alice: Agent,
    container: str,
    canonical: str,
    others: list[str],
) -> None:
    for spelling in (canonical, *others):
        name = f"{container}{spelling}".encode()
        created = raw("PUT", name)
        assert created.status == 201
        assert created.headers["location"] == alice.url(container) + canonical
        for other in (canonical, *others):
            assert raw("GET", f"{container}{other}".encode()).body == b"content"
        assert alice.read(container).members == [alice.url(container) + canonical]
        assert raw("DELETE", f"{container}{canonical}".encode()).status == 204


def test_p_50_an_escaped_slash_is_not_a_slash(
    raw: Callable[[str, bytes], WireAnswer], alice: Agent, container: str
) -> None:
    assert raw("PUT", f"{container}a%2Fb".encode()).status == 201
    assert raw("GET", f"{container}a/b".encode()).status == 404
    assert raw("GET", f"{container}a/".encode()).status == 404


def test_p_50_slashes_in_a_row_do_not_make_another_name(
    raw: Callable[[str, bytes], WireAnswer], alice: Agent, container: str
) -> None:
    """They are one slash, or refused."""
    created = raw("PUT", f"{container}a//b".encode())
    assert created.status in {201, 400}
    assert not any("//" in member for member in alice.read(container).members)
    if created.status == 201:
        assert created.headers["location"] == alice.url(f"{container}a/b")


@pytest.mark.parametrize(
    "name",
    [
        *("..", ".", "../x", "a/../b", "a/./b", "%2e%2e/x", "%2E", ".%2e/x", "a/%2e%2E/b"),
        *("%00", "a%00b", "%0A", "%0d", "%1F", "%7F", "%", "%4", "%zz", "%C3%28", "%FF"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_p_50_paths_with_dot_segments_or_control_characters_are_refused(
    raw: Callable[[str, bytes], WireAnswer],
    alice: Agent,
    container: str,
    method: str,
    name: str,
) -> None:
    assert raw(method, f"{container}{name}".encode()).status == 400
    assert alice.read(container).members == []


@pytest.mark.parametrize("host", ["evil.example", "localhost:1"])
def test_p_50_the_host_header_names_nothing(
    server: ServerProcess, alice: Agent, container: str, host: str
) -> None:
    fields = {"Authorization": f"Bearer {alice.token}", "Content-Type": "text/plain"}
    with Wire(server) as wire:
        wire.send(compose("PUT", f"{container}x", fields, b"x", host=host))
        assert wire.receive("PUT").status in {400, 421}
    assert alice.get(f"{container}x").status == 404


# --- P-51, P-52: queries and names ------------------------------------------------------------


@pytest.mark.parametrize("query", ["?", "?a=b", "?ext=acl", "?/x/", "?x.acl"])
def test_p_51_a_query_is_not_part_of_the_name(alice: Agent, container: str, query: str) -> None:
    created = alice.put(f"{container}x.txt{query}", "one", "text/plain")
    assert created.status == 201
    assert alice.read(container).members == [alice.url(f"{container}x.txt")]
    assert alice.read(container + query).body == alice.read(container).body
    assert alice.get(f"{container}x.txt").body == b"one"
    assert alice.put(f"{container}x.txt{query}", "two", "text/plain").status == 204
    assert alice.get(f"{container}x.txt?other").body == b"two"
    assert alice.delete(f"{container}x.txt{query}").status == 204


def test_p_51_a_query_opens_nothing(alice: Agent, bob: Agent, container: str) -> None:
    alice.create(f"{container}x.txt", "one", "text/plain")
    alice.grant(container, Rule(bob.named, "Read"))
    assert bob.get(f"{container}x.txt?{container}").status == 403


@pytest.mark.parametrize("name", [".hidden", ".well-known-not", "..x", "...", ".hidden/", ".git/x"])
def test_p_52_names_may_begin_with_a_dot(alice: Agent, container: str, name: str) -> None:
    assert alice.put(container + name, None).status == 201
    assert alice.get(container + name).status == 200


@pytest.mark.parametrize("name", [".acl/", "x.acl/", ".meta/", "x.meta/", "x.acl/y", "x.meta.acl"])
@pytest.mark.parametrize("how", WRITES)
def test_p_52_names_like_those_of_auxiliary_resources_are_refused(
    alice: Agent, container: str, how: str, name: str
) -> None:
    assert WRITES[how](alice, container + name).status in {403, 404, 409, 415}
    assert alice.read(container).members == []


@pytest.mark.parametrize(
    "target", ["/.well-known/x", "/.notifications/x", "/.pods/x", "/idp/x", "/x.txt", "/nobody/x"]
)
@pytest.mark.parametrize("how", WRITES)
def test_p_52_nothing_is_made_outside_of_pods(alice: Agent, how: str, target: str) -> None:
    assert WRITES[how](alice, target).status in {403, 404, 405}
    assert alice.get(target).status in {403, 404}


@pytest.mark.parametrize("name", [".well-known/solid", ".well-known/solid/x"])
@pytest.mark.parametrize("how", WRITES)
def test_p_52_nothing_is_made_in_place_of_the_storage_description(
    alice: Agent, how: str, name: str
) -> None:
    assert WRITES[how](alice, alice.pod + name).status in {403, 404, 405, 409}
    description = alice.read(f"{alice.pod}.well-known/solid")
    assert (URIRef(alice.url(alice.pod)), RDF_TYPE, URIRef(f"{PIM}Storage")) in description.triples
