"""HTTP itself: methods, required headers, and what refusals say (P-1 to P-20)."""

from __future__ import annotations

import json
import re
import socket
import ssl
from email.utils import parsedate_to_datetime

import pytest

from tests.conformance.agents import (
    N3_PATCH,
    SPARQL_UPDATE,
    WRITTEN,
    Agent,
    Response,
    create_agent,
)
from tests.conformance.conformance_places import EXISTING, PLACES
from tests.support.features import QUERIES
from tests.support.processes import REPOSITORY
from tests.support.rdf import JSON_LD, TURTLE
from tests.support.server import DEADLINE_S, ServerProcess, server_fixture
from tests.support.waiting import wait_until
from tests.support.wire import Wire, compose

CERTIFICATE = REPOSITORY / "tests/support/tls/certificate.pem"
READS = ("GET", "HEAD", "OPTIONS")
CONTAINER_LINK = {"Link": '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'}
INSERT = "INSERT DATA { <#a> <#b> <#c> . }"
TURTLE_TYPE = {"Content-Type": TURTLE}

ALL_METHODS = {"OPTIONS", "HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"}
TRANSFERS = {"COPY", "MOVE"}
"""Beyond the methods of the Solid Protocol."""
ALLOWED = {
    "root": ALL_METHODS - {"DELETE"} | {"COPY"} | QUERIES,
    "container": ALL_METHODS | TRANSFERS | QUERIES,
    "rdf": ALL_METHODS - {"POST"} | TRANSFERS,
    "text": ALL_METHODS - {"POST"} | TRANSFERS,
    "root ACL": ALL_METHODS - {"POST", "DELETE"},
    "ACL": ALL_METHODS - {"POST"},
    "description": ALL_METHODS - {"POST"},
    "storage description": {"OPTIONS", "HEAD", "GET"},
}
"""Methods by kind of place."""


# --- P-1: the protocol ------------------------------------------------------------------------


@pytest.fixture
def host(server: ServerProcess) -> str:
    return f"localhost:{server.port}"


def test_p_1_a_connection_carries_several_requests(server: ServerProcess, host: str) -> None:
    with Wire(server) as wire:
        for _ in range(3):
            wire.send(compose("GET", "/", host=host))
            answer = wire.receive()
            assert (answer.status, answer.closes) == (200, False)


def test_p_1_a_body_may_come_in_chunks(
    server: ServerProcess, host: str, alice: Agent, container: str
) -> None:
    fields = {
        "Authorization": f"Bearer {alice.token}",
        "Content-Type": "text/plain",
        "Transfer-Encoding": "chunked",
    }
    with Wire(server) as wire:
        wire.send(compose("PUT", f"{container}x.txt", fields, host=host))
        wire.send(b"5\r\nHello\r\n", b"7\r\n, World\r\n", b"0\r\n\r\n")
        assert wire.receive("PUT").status == 201
    assert alice.get(f"{container}x.txt").body == b"Hello, World"


@pytest.mark.parametrize("host_fields", [b"", b"Host: \r\n", b"Host: a\r\nHost: b\r\n"])
def test_p_1_a_request_without_one_host_is_refused(
    server: ServerProcess, host_fields: bytes
) -> None:
    with Wire(server) as wire:
        wire.send(b"GET / HTTP/1.1\r\n" + host_fields + b"\r\n")
        assert wire.receive().status == 400


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 1\r\nContent-Length: 2\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked, gzip\r\n",
    ],
)
def test_p_1_a_request_of_ambiguous_length_is_refused_and_the_connection_closed(
    server: ServerProcess, alice: Agent, container: str, lengths: bytes
) -> None:
    head = compose(
        "PUT",
        f"{container}x.txt",
        {"Authorization": f"Bearer {alice.token}", "Content-Type": "text/plain"},
        host=f"localhost:{server.port}",
    )
    with Wire(server) as wire:
        wire.send_what_is_taken(head[:-2] + lengths + b"\r\n" + b"ab")
        assert set(wire.receive_statuses()) <= {400}  # one refusal, or none, and then the end
    assert alice.get(f"{container}x.txt").status == 404


secure = server_fixture(
    ("--ssl-cert", str(CERTIFICATE), "--ssl-key", str(CERTIFICATE.with_name("key.pem"))),
    tls=ssl.create_default_context(cafile=str(CERTIFICATE)),
)
"""A server that speaks HTTPS."""


@pytest.mark.parametrize("version", ["h2", "http/1.1"])
def test_p_1_https_is_spoken_in_the_version_that_the_client_speaks(
    secure: ServerProcess, version: str
) -> None:
    tls = ssl.create_default_context(cafile=str(CERTIFICATE))
    tls.set_alpn_protocols([version])
    with (
        socket.create_connection(("127.0.0.1", secure.port or 0), DEADLINE_S) as connection,
        tls.wrap_socket(connection, server_hostname="localhost") as channel,
    ):
        assert channel.selected_alpn_protocol() == version


def test_p_1_resources_of_an_https_server_have_https_urls(secure: ServerProcess) -> None:
    owner = create_agent(secure)
    created = owner.put(f"{owner.pod}x.txt", "Hello", "text/plain")
    assert created.header("Location") == f"https://localhost:{secure.port}{owner.pod}x.txt"
    assert owner.get(created.location).text == "Hello"


# --- P-3, P-4: the challenge ------------------------------------------------------------------


def attempt(agent: Agent, method: str, target: str) -> Response:
    """A sound request with this method."""
    if method == "PATCH":
        return agent.patch(target, INSERT)
    if method in {"PUT", "POST"}:
        return agent.request(method, target, "<> <#a> <#b>.", TURTLE_TYPE)
    return agent.request(method, target)


@pytest.mark.parametrize("place", ["container", "rdf", "ACL", "missing", "missing container"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"])
def test_p_3_a_request_without_credentials_has_401_and_a_challenge(
    public: Agent, places: dict[str, str], method: str, place: str
) -> None:
    response = attempt(public, method, places[place])
    assert response.status == 401
    assert response.values("WWW-Authenticate")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("place", ["root", "container", "missing"])
def test_p_3_invalid_credentials_have_401_and_a_challenge_also_where_all_may_read(
    alice: Agent, places: dict[str, str], method: str, place: str
) -> None:
    stranger = Agent(alice.server, token="no-token-at-all")
    response = attempt(stranger, method, places[place])
    assert response.status == 401
    assert response.values("WWW-Authenticate")


@pytest.mark.parametrize("scheme", ["DPoP", "Bearer"])
def test_p_4_the_challenge_offers_each_scheme_with_realm_and_scope(
    public: Agent, places: dict[str, str], scheme: str
) -> None:
    offered = ", ".join(public.get(places["container"]).values("WWW-Authenticate"))
    [challenge] = re.findall(rf'{scheme}((?:,? \w+="[^"]*")+)', offered)
    parameters = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    assert parameters["realm"] == public.server.base_url
    assert parameters["scope"] == "openid webid"
    assert scheme != "DPoP" or {"ES256", "RS256"} <= set(parameters["algs"].split())


def test_p_4_scripts_may_read_the_challenge(public: Agent, places: dict[str, str]) -> None:
    response = public.get(places["container"], headers={"Origin": "https://app.example"})
    assert "WWW-Authenticate" in response.listed("Access-Control-Expose-Headers")


# --- P-5, P-6, P-7: the type of content -------------------------------------------------------


@pytest.mark.parametrize("kind", EXISTING)
def test_p_5_content_has_a_type(alice: Agent, places: dict[str, str], kind: str) -> None:
    response = alice.get(places[kind])
    assert response.status == 200
    assert response.header("Content-Type")


@pytest.mark.parametrize(
    ("method", "place", "fields", "status"),
    [
        ("PUT", "rdf", {}, 400),
        ("GET", "missing", {}, 404),
        ("POST", "rdf", TURTLE_TYPE, 405),
        ("GET", "rdf", {"Accept": "image/png"}, 406),
        ("DELETE", "container", {}, 409),
        ("PUT", "rdf", {**TURTLE_TYPE, "If-None-Match": "*"}, 412),
        ("PATCH", "rdf", {"Content-Type": "text/plain"}, 415),
        ("GET", "text", {"Range": "bytes=99-"}, 416),
    ],
)
def test_p_5_refusals_say_the_type_of_their_content(
    alice: Agent,
    places: dict[str, str],
    method: str,
    place: str,
    fields: dict[str, str],
    status: int,
) -> None:
    body = "<> <#a> <#b>." if method in {"PUT", "POST", "PATCH"} else None
    response = alice.request(method, places[place], body, fields)
    assert response.status == status
    assert response.body
    assert response.header("Content-Type") == "application/json"


@pytest.mark.parametrize(
    ("method", "name", "body"),
    [
        ("PUT", "new.ttl", "<> <#a> <#b>."),
        ("PUT", "new/", "<> <#a> <#b>."),
        ("PUT", "old.ttl", "<> <#a> <#b>."),
        ("POST", "", "<> <#a> <#b>."),
        ("PATCH", "old.ttl", "@prefix solid: <http://www.w3.org/ns/solid/terms#>. [] a <#p>."),
        ("PATCH", "new.ttl", INSERT),
    ],
)
def test_p_6_content_without_a_type_is_refused(
    alice: Agent, container: str, method: str, name: str, body: str
) -> None:
    alice.create(f"{container}old.ttl", "<> <#is> <#old>.")
    before = alice.get(f"{container}old.ttl").lines
    assert alice.request(method, container + name, body).status == 400
    after = alice.read(container)
    assert after.members == [alice.url(f"{container}old.ttl")]
    assert [line for line in alice.get(f"{container}old.ttl").lines if line[0] != "date"] == [
        line for line in before if line[0] != "date"
    ]


@pytest.mark.parametrize(
    ("method", "name"), [("PUT", "new/"), ("PUT", "new"), ("POST", ""), ("POST", "with link")]
)
def test_p_7_a_request_with_a_type_needs_no_body_and_no_length(
    alice: Agent, container: str, method: str, name: str
) -> None:
    fields = {**TURTLE_TYPE, **(CONTAINER_LINK if name == "with link" else {})}
    target = container if method == "POST" else container + name
    response = alice.request(method, target, None, fields)
    assert response.status == 201
    assert alice.read(container).members == [response.location]


# --- P-8: dates -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted({*EXISTING} - {"storage description"}))
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_p_8_reads_say_when_it_was_modified(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    response = alice.request(method, places[kind])
    assert parsedate_to_datetime(response.header("Last-Modified") or "") <= parsedate_to_datetime(
        response.header("Date") or ""
    )


def test_p_8_a_container_is_modified_by_its_membership_and_not_by_its_members(
    alice: Agent, container: str
) -> None:
    member = alice.create(f"{container}x.txt", "one", "text/plain")
    created = alice.head(container).header("Last-Modified")
    wait_until(lambda: alice.head(container).header("Date") != created, "the next second")

    assert alice.put(member, "two", "text/plain").status == 204
    assert alice.head(container).header("Last-Modified") == created
    changed = alice.head(member).header("Last-Modified")
    assert changed != created

    alice.create(f"{container}y.txt", "one", "text/plain")
    assert alice.head(container).header("Last-Modified") != created


def test_p_8_a_container_is_modified_by_its_own_statements(alice: Agent, container: str) -> None:
    def next_second(after: str) -> None:
        wait_until(lambda: alice.head(container).header("Date") != after, "the next second")

    # If a member was deleted beside it in the second of its creation, no date of that second is
    # exact.
    next_second(alice.head(container).header("Last-Modified") or "")
    assert alice.put(container, "<> <http://example.org/title> 'first'.").status == 204
    before = alice.head(container).header("Last-Modified") or ""
    since = {"If-Modified-Since": before}
    assert alice.get(container, headers=since).status == 304
    next_second(before)

    assert alice.put(container, "<> <http://example.org/title> 'mine'.").status == 204
    changed = alice.get(container, headers=since)
    assert (changed.status, "mine" in changed.text) == (200, True)
    modified = changed.header("Last-Modified") or ""
    assert parsedate_to_datetime(modified) > parsedate_to_datetime(before)
    assert alice.get(container, headers={"If-Modified-Since": modified}).status == 304


# --- P-9 to P-14: methods ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", PLACES)
def test_p_9_trace_is_refused_with_what_is_allowed(
    alice: Agent, places: dict[str, str], kind: str
) -> None:
    response = alice.request("TRACE", places[kind])
    assert response.status == 405
    assert {"GET", "HEAD", "OPTIONS"} <= response.listed("Allow")


@pytest.mark.parametrize("kind", ["root", "container", "rdf", "missing"])
@pytest.mark.parametrize("method", ["BREW", "PROPFIND", "get"])
def test_p_9_methods_that_the_server_does_not_know_are_refused(
    alice: Agent, places: dict[str, str], kind: str, method: str
) -> None:
    assert alice.request(method, places[kind]).status in {405, 501}


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("POST", "rdf"),
        ("POST", "text"),
        ("POST", "ACL"),
        ("POST", "description"),
        ("DELETE", "root"),
        ("DELETE", "root ACL"),
        ("PUT", "storage description"),
        ("PATCH", "storage description"),
        ("POST", "storage description"),
        ("DELETE", "storage description"),
    ],
)
def test_p_9_a_method_that_the_target_does_not_support_is_refused_with_what_it_does(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    response = attempt(alice, method, places[kind])
    assert response.status == 405
    assert response.listed("Allow") == ALLOWED[kind]


@pytest.mark.parametrize("kind", [*PLACES, "server", "accounts"])
@pytest.mark.parametrize("method", READS)
def test_p_10_reading_is_supported_everywhere(
    public: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    target = {"server": "/", "accounts": "/nobody/here"}.get(kind) or places[kind]
    assert public.request(method, target).status not in {405, 501}


@pytest.mark.parametrize("kind", EXISTING)
@pytest.mark.parametrize("method", READS)
def test_p_11_successful_reads_say_which_methods_are_allowed(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    response = alice.request(method, places[kind])
    assert response.status in {200, 204}
    [allow] = response.values("Allow")
    assert allow == allow.upper()
    assert {"GET", "HEAD", "OPTIONS"} <= response.listed("Allow")


@pytest.mark.parametrize("kind", EXISTING)
@pytest.mark.parametrize("method", READS)
def test_p_12_formats_are_listed_for_the_methods_that_are_allowed(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    response = alice.request(method, places[kind])
    allowed = response.listed("Allow")
    for writing in ("PATCH", "POST", "PUT"):
        formats = response.listed(f"Accept-{writing.title()}")
        assert bool(formats) == (writing in allowed)
        expected = {N3_PATCH, SPARQL_UPDATE} if writing == "PATCH" else {TURTLE, JSON_LD}
        assert not formats or expected <= formats


@pytest.mark.parametrize("origin", [{}, {"Origin": "https://app.example"}])
@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("who", ["alice", "bob", "public"])
def test_p_13_options_is_204_for_everybody(
    alice: Agent,
    bob: Agent,
    public: Agent,
    places: dict[str, str],
    who: str,
    kind: str,
    origin: dict[str, str],
) -> None:
    agent = {"alice": alice, "bob": bob, "public": public}[who]
    response = agent.options(places[kind], headers=origin)
    assert (response.status, response.body) == (204, b"")
    assert response.header("Content-Length") in {None, "0"}


@pytest.mark.parametrize(
    ("there", "not_there"), [("rdf", "missing"), ("container", "missing container")]
)
def test_p_13_options_reveals_nothing_about_what_exists(
    public: Agent, places: dict[str, str], there: str, not_there: str
) -> None:
    known, unknown = (
        [line for line in public.options(places[kind]).lines if line[0] != "date"]
        for kind in (there, not_there)
    )
    assert known == unknown


@pytest.mark.parametrize("kind", EXISTING)
@pytest.mark.parametrize("method", READS)
def test_p_14_each_kind_of_resource_allows_its_methods(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    assert alice.request(method, places[kind]).listed("Allow") == ALLOWED[kind]


# --- P-15, P-16: what a response holds --------------------------------------------------------


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize(
    "accept",
    [{}, {"Accept": JSON_LD}, {"Accept": "text/html"}, {"Accept": "application/rdf+xml"}],
)
@pytest.mark.parametrize("who", ["alice", "public"])
def test_p_15_head_is_get_without_its_body(
    alice: Agent,
    public: Agent,
    places: dict[str, str],
    who: str,
    kind: str,
    accept: dict[str, str],
) -> None:
    agent = alice if who == "alice" else public
    get, head = (agent.request(method, places[kind], None, accept) for method in ("GET", "HEAD"))
    assert (head.status, head.body) == (get.status, b"")
    assert get.body
    assert comparable(head) == comparable(get)
    assert head.header("Content-Length") in {None, str(len(get.body))}


@pytest.mark.parametrize("kind", PLACES)
def test_p_15_nothing_follows_the_header_of_an_answer_to_head(
    server: ServerProcess, host: str, alice: Agent, places: dict[str, str], kind: str
) -> None:
    credential = {"Authorization": f"Bearer {alice.token}"}
    with Wire(server) as wire:
        wire.send(compose("HEAD", places[kind], credential, host=host))
        assert wire.receive("HEAD").status in {200, 404}
        wire.send(compose("GET", "/", host=host))
        assert wire.receive().status == 200


def comparable(response: Response) -> list[tuple[str, str]]:
    """All of the header but what may differ: the date, and the length, which HEAD may leave out."""
    return sorted(line for line in response.lines if line[0] not in {"date", "content-length"})


@pytest.mark.parametrize(
    ("method", "name", "content_type", "fields", "statuses"),
    [
        ("PUT", "new.ttl", TURTLE, {}, WRITTEN),
        ("PUT", "old.ttl", TURTLE, {}, WRITTEN),
        ("PUT", "old.ttl", TURTLE, {"If-None-Match": "*"}, {412}),
        ("PUT", "new/", TURTLE, {}, WRITTEN),
        ("PUT", "new/", "text/plain", {}, {415}),
        ("PUT", "old.ttl/below", TURTLE, {}, {409}),
        ("PUT", "new.json", JSON_LD, {}, {400}),
        ("POST", "", TURTLE, {}, WRITTEN),
        ("POST", "", "text/plain", {}, WRITTEN),
        ("POST", "old.ttl", TURTLE, {}, {405}),
        ("POST", "nothing/", TURTLE, {}, {404}),
        ("PATCH", "old.ttl", SPARQL_UPDATE, {}, {400}),
        ("PATCH", "old.ttl", N3_PATCH, {}, {422}),
        ("PATCH", "old.ttl", "text/plain", {}, {415}),
    ],
)
@pytest.mark.parametrize("who", ["alice", "bob", "public"])
def test_p_16_a_response_does_not_repeat_what_was_sent(
    alice: Agent,
    bob: Agent,
    public: Agent,
    container: str,
    method: str,
    name: str,
    content_type: str,
    fields: dict[str, str],
    statuses: set[int],
    who: str,
) -> None:
    alice.create(f"{container}old.ttl", "<> <#is> <#old>.")
    agent, expected = {
        "alice": (alice, statuses),
        "bob": (bob, {403, *(statuses & {400, 415, 422})}),
        "public": (public, {401, *(statuses & {400, 415, 422})}),
    }[who]
    body = '<> <http://example.org#Foo> "a literal of its own".'
    response = agent.request(
        method, container + name, body, {"Content-Type": content_type, **fields}
    )
    assert response.status in expected
    assert "a literal of its own" not in response.text
    assert "http://example.org#Foo" not in response.text


# --- P-17, P-18, P-20: refusals ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "kind", "status"),
    [("public", "rdf", 401), ("bob", "rdf", 403), ("alice", "missing", 404)],
)
def test_p_17_a_refusal_is_json_with_error_and_message(
    alice: Agent,
    bob: Agent,
    public: Agent,
    places: dict[str, str],
    who: str,
    kind: str,
    status: int,
) -> None:
    agent = {"alice": alice, "bob": bob, "public": public}[who]
    response = agent.get(places[kind])
    assert (response.status, response.header("Content-Type")) == (status, "application/json")
    refusal = json.loads(response.body)
    assert set(refusal) == {"error", "message"}
    assert all(isinstance(text, str) and text for text in refusal.values())


@pytest.mark.parametrize("accept", ["text/html", "text/html,application/xhtml+xml,*/*;q=0.8"])
def test_p_17_browsers_get_a_page(alice: Agent, places: dict[str, str], accept: str) -> None:
    response = alice.get(places["missing"], headers={"Accept": accept})
    assert (response.status, response.media_type) == (404, "text/html")
    assert "<html" in response.text


def test_p_17_a_refusal_is_the_same_whether_or_not_something_is_there(
    bob: Agent, places: dict[str, str]
) -> None:
    there, not_there = bob.get(places["rdf"]), bob.get(places["missing"])
    assert (there.status, there.body) == (not_there.status, not_there.body)


def test_p_18_deleting_a_container_with_members_is_refused_with_the_reason(
    alice: Agent, container: str
) -> None:
    alice.create(f"{container}x.txt", "x", "text/plain")
    response = alice.delete(container)
    assert response.status == 409
    assert json.loads(response.body)["message"]
    assert alice.get(f"{container}x.txt").status == 200


def test_p_20_what_was_deleted_is_not_found_and_its_url_is_free_again(
    alice: Agent, container: str
) -> None:
    target = alice.create(f"{container}x.txt", "one", "text/plain")
    assert alice.delete(target).status == 204
    assert alice.get(target).status == 404
    assert alice.put(target, "two", "text/plain").status == 201
    assert alice.get(target).body == b"two"
