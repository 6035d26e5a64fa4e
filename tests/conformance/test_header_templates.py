"""Which header does each kind of response have (F-1 to F-10)?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.agents import LDP, SOLID, SPARQL_UPDATE, Agent, Response
from tests.conformance.conformance_places import PLACES
from tests.support.rdf import JSON_LD, TURTLE

ORIGIN = {"Origin": "https://app.example"}
READS = ("GET", "HEAD")
INSERT = "INSERT DATA { <#a> <#b> <#c> . }"
STORAGE_DESCRIPTION = f"{SOLID}storageDescription"
IN_DOCUMENTS = (
    *("Content-Type", "ETag", "Last-Modified", "Allow", "Accept-Patch", "Accept-Put"),
    *("Accept-Ranges", "WAC-Allow"),
)


@pytest.fixture
def document(alice: Agent, container: str) -> str:
    return alice.create(f"{container}x.ttl", "<> <#is> <#here>.")


def assert_has(response: Response, *names: str) -> None:
    """The response has each of these headers, in one line, with a value."""
    missing = [name for name in names if not response.header(name)]
    assert missing == [], response


# --- F-1 to F-4: what is there ----------------------------------------------------------------


@pytest.mark.parametrize("kind", [*PLACES, "server", "/.pods", "/nobody/x", "%00"])
@pytest.mark.parametrize("method", [*READS, "OPTIONS", "PUT", "POST", "DELETE", "BREW"])
def test_f_1_every_response_varies_and_is_not_to_be_sniffed(
    public: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    target = places.get(kind) or {"server": "/", "%00": f"{places['root']}%00"}.get(kind, kind)
    response = public.request(method, target, None, {"Content-Type": "text/plain"})
    [vary] = response.values("Vary")
    assert {"Accept", "Authorization", "Origin"} <= set(vary.split(", "))
    assert response.values("X-Content-Type-Options") == ["nosniff"]


@pytest.mark.parametrize(
    ("kind", "types"), [("rdf", {"Resource", "RDFSource"}), ("text", {"Resource", "NonRDFSource"})]
)
@pytest.mark.parametrize("method", READS)
def test_f_2_a_document(
    alice: Agent, places: dict[str, str], method: str, kind: str, types: set[str]
) -> None:
    response = alice.request(method, places[kind])
    assert response.status == 200
    assert_has(response, *IN_DOCUMENTS)
    assert response.header("Accept-Post") is None
    assert set(response.targets("type")) == {f"{LDP}{name}" for name in types}
    for rel in ("acl", "describedby", STORAGE_DESCRIPTION):
        assert response.target(rel).startswith(alice.url(alice.pod))


@pytest.mark.parametrize("kind", ["root", "container"])
@pytest.mark.parametrize("method", READS)
def test_f_3_a_container(alice: Agent, places: dict[str, str], method: str, kind: str) -> None:
    response = alice.request(method, places[kind])
    assert response.status == 200
    assert_has(response, *IN_DOCUMENTS, "Accept-Post")
    types = set(response.targets("type"))
    assert types >= {f"{LDP}Resource", f"{LDP}Container", f"{LDP}BasicContainer"}
    assert ("http://www.w3.org/ns/pim/space#Storage" in types) == (kind == "root")
    for rel in ("acl", "describedby", STORAGE_DESCRIPTION):
        assert response.target(rel).startswith(alice.url(alice.pod))


@pytest.mark.parametrize("kind", ["root", "container", "rdf", "text", "missing"])
@pytest.mark.parametrize("origin", [{}, {**ORIGIN, "Access-Control-Request-Method": "PUT"}])
def test_f_4_options(
    public: Agent, places: dict[str, str], kind: str, origin: dict[str, str]
) -> None:
    response = public.options(places[kind], headers=origin)
    assert (response.status, response.body) == (204, b"")
    assert response.header("Content-Length") in {None, "0"}
    assert_has(response, "Allow", "Accept-Patch", "Accept-Put")
    assert (response.header("Accept-Post") is not None) == (kind in {"root", "container"})
    assert response.target(STORAGE_DESCRIPTION) == public.url(places["storage description"])
    allowed = response.header("Access-Control-Allow-Methods")
    assert (allowed is not None) == bool(origin)


# --- F-5 to F-10: what happened ---------------------------------------------------------------

CREATIONS: dict[str, Callable[[Agent, str], Response]] = {
    "PUT": lambda agent, container: agent.put(f"{container}x.ttl"),
    "PUT of text": lambda agent, container: agent.put(f"{container}x.txt", "x", "text/plain"),
    "PUT of a container": lambda agent, container: agent.put(f"{container}x/"),
    "PUT below": lambda agent, container: agent.put(f"{container}a/b/x.ttl"),
    "POST": lambda agent, container: agent.post(container),
    "PATCH": lambda agent, container: agent.patch(f"{container}x.ttl", INSERT),
}


@pytest.mark.parametrize("how", CREATIONS)
def test_f_5_what_was_created(alice: Agent, container: str, how: str) -> None:
    response = CREATIONS[how](alice, container)
    assert response.status == 201
    assert_has(response, "Location", "ETag", "Last-Modified")
    location = response.header("Location") or ""
    assert location.startswith(alice.url(container))
    assert f"{LDP}Resource" in response.targets("type")
    assert response.target("acl").startswith(location)


@pytest.mark.parametrize("kind", ["document", "container"])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_f_6_what_was_written(
    alice: Agent, document: str, container: str, method: str, kind: str
) -> None:
    target = document if kind == "document" else container
    response = alice.patch(target, INSERT) if method == "PATCH" else alice.put(target)
    assert (response.status, response.body) == (204, b"")
    now = alice.head(target)
    assert_has(response, "ETag", "Last-Modified")
    assert response.header("ETag") == now.header("ETag")
    assert response.header("Last-Modified") == now.header("Last-Modified")


@pytest.mark.parametrize("method", [*READS, "PUT", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("kind", ["container", "rdf", "missing"])
def test_f_7_a_challenge(public: Agent, places: dict[str, str], kind: str, method: str) -> None:
    content_type = SPARQL_UPDATE if method == "PATCH" else TURTLE
    body = INSERT if method == "PATCH" else None
    fields = {**ORIGIN, "Content-Type": content_type}
    response = public.request(method, places[kind], body, fields)
    assert response.status == 401
    assert all(response.values("WWW-Authenticate"))
    assert response.values("WWW-Authenticate")
    assert response.header("Access-Control-Allow-Origin") == ORIGIN["Origin"]
    assert_has(response, "Access-Control-Expose-Headers")


@pytest.mark.parametrize(
    ("method", "kind"),
    [("POST", "rdf"), ("POST", "text"), ("DELETE", "root"), ("TRACE", "rdf"), ("TRACE", "root")],
)
def test_f_8_a_method_that_is_not_allowed(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    response = alice.request(method, places[kind], None, {"Content-Type": TURTLE})
    assert response.status == 405
    assert_has(response, "Allow")
    assert method not in response.listed("Allow")


@pytest.mark.parametrize(
    ("method", "name"),
    [("PUT", "x/"), ("PUT", ""), ("PUT", ".acl"), ("PATCH", "x.ttl"), ("PATCH", "")],
)
def test_f_9_a_type_that_will_not_do(
    alice: Agent, container: str, document: str, method: str, name: str
) -> None:
    fields = {"Content-Type": "image/png"}
    response = alice.request(method, container + name, b"PNG", fields)
    assert response.status == 415
    assert_has(response, f"Accept-{method.title()}")
    assert "image/png" not in response.listed(f"Accept-{method.title()}")


def test_f_9_a_new_container_of_a_type_that_will_not_do(alice: Agent, container: str) -> None:
    fields = {"Link": '<http://www.w3.org/ns/ldp#BasicContainer>; rel="type"'}
    response = alice.post(container, b"PNG", "image/png", fields)
    assert response.status == 415
    assert_has(response, "Accept-Post")


@pytest.mark.parametrize("kind", ["document", "container"])
def test_f_10_a_precondition(alice: Agent, document: str, container: str, kind: str) -> None:
    target = document if kind == "document" else container
    tag = alice.head(target).header("ETag")
    assert tag
    unchanged = alice.get(target, headers={"If-None-Match": tag})
    failed = alice.put(target, headers={"If-Match": '"x"'})
    there = alice.put(target, headers={"If-None-Match": "*"})
    assert [unchanged.status, failed.status, there.status] == [304, 412, 412]
    assert {r.header("ETag") for r in (unchanged, failed, there)} == {tag}


def test_f_10_each_representation_has_its_own(alice: Agent, document: str) -> None:
    tag = alice.read(document, JSON_LD).header("ETag") or ""
    response = alice.get(document, headers={"If-None-Match": tag, "Accept": JSON_LD})
    assert (response.status, response.header("ETag")) == (304, tag)
