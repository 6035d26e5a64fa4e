"""What the server says of itself at its own /.well-known/solid (P-36, N-6)."""

from __future__ import annotations

import pytest
import rdflib

from podstead.web.description_endpoints import MAX_LISTED_STORAGES
from tests.support.application import BASE, Server, Start
from tests.support.asgi import Answer
from tests.support.rdf import FORMATS, JSON_LD, TURTLE, Triples, media_type, said

DESCRIPTION = "/.well-known/solid"
SERVER = rdflib.URIRef(f"{BASE}/")
GATEWAY = rdflib.URIRef("http://www.w3.org/ns/solid/terms#notificationGateway")
STORAGE = rdflib.URIRef("http://www.w3.org/ns/pim/space#storage")
ORIGIN = "https://app.example"


def storages(answer: Answer) -> set[str]:
    """The storages that a description names."""
    return {str(o) for _, p, o in said(answer, BASE + DESCRIPTION) if p == STORAGE}


@pytest.mark.parametrize("accept", [None, *FORMATS])
async def test_anyone_may_read_what_the_server_is_in_every_rdf_type(
    server: Server, accept: str | None
) -> None:
    """P-36: Turtle unless asked otherwise."""
    answer = await server.public.get(DESCRIPTION, **({"accept": accept} if accept else {}))
    assert answer.status == 200
    assert media_type(answer) == (accept or TURTLE)
    assert said(answer, BASE + DESCRIPTION) == {
        (SERVER, rdflib.DCTERMS.title, rdflib.Literal("Podstead")),
        (SERVER, GATEWAY, rdflib.URIRef(f"{BASE}/.notifications/gateway")),
    }


async def test_all_is_said_of_one_subject(start: Start) -> None:
    """P-36, N-25: applications of solid-client take the first subject that they find."""
    server = await start(list_storages=True)
    for accept in FORMATS:
        description: Triples = said(
            await server.public.get(DESCRIPTION, accept=accept), BASE + DESCRIPTION
        )
        assert {subject for subject, _, _ in description} == {SERVER}


async def test_nobody_learns_from_it_whose_pods_there_are(server: Server) -> None:
    """P-36: unless the operator says so, it is the same whatever is stored, and for everyone."""
    before = await server.public.get(DESCRIPTION)
    made = await server.public.post("/.pods", '{"name": "carol"}', "application/json")
    assert made.status == 201
    for client in (server.public, server.alice):
        after = await client.get(DESCRIPTION)
        assert (after.body, after.header("etag")) == (before.body, before.header("etag"))
        for name in ("alice", "bob", "carol"):
            assert name not in after.text


async def test_an_operator_may_have_the_storages_named(start: Start) -> None:
    """P-36."""
    server = await start(list_storages=True)
    first = await server.public.get(DESCRIPTION, accept=JSON_LD)
    assert storages(first) == {f"{BASE}/alice/", f"{BASE}/bob/"}
    assert (
        await server.public.post("/.pods", '{"name": "carol"}', "application/json")
    ).status == 201
    second = await server.public.get(DESCRIPTION, accept=JSON_LD)
    assert storages(second) - storages(first) == {f"{BASE}/carol/"}
    assert second.header("etag") != first.header("etag")


async def test_the_storages_named_have_a_bound(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_LISTED_STORAGES == 1000, "the setting's documentation says so"
    monkeypatch.setattr("podstead.web.description_endpoints.MAX_LISTED_STORAGES", 1)
    server = await start(list_storages=True)
    assert storages(await server.public.get(DESCRIPTION)) == {f"{BASE}/alice/"}


async def test_nobody_writes_it(server: Server) -> None:
    """P-36, P-9."""
    for method in ("PUT", "POST", "PATCH", "DELETE", "TRACE"):
        answer = await server.alice.request(
            method, DESCRIPTION, headers={"Content-Type": TURTLE}, body=b"<> <#a> 1 ."
        )
        assert (answer.status, answer.header("allow")) == (405, "OPTIONS, GET, HEAD")
    for path in (f"{DESCRIPTION}/", f"{DESCRIPTION}/x", f"{DESCRIPTION}.acl", "/.well-known/x"):
        assert (await server.alice.put(path, "x", "text/plain")).status == 404


async def test_a_browser_application_may_read_it(server: Server) -> None:
    """P-13, P-39 to P-41."""
    preflight = await server.public.request(
        "OPTIONS",
        DESCRIPTION,
        headers={"Origin": ORIGIN, "Access-Control-Request-Method": "GET"},
    )
    assert (preflight.status, preflight.body) == (204, b"")
    assert "GET" in (preflight.header("access-control-allow-methods") or "")
    read = await server.public.get(DESCRIPTION, origin=ORIGIN)
    for answer in (preflight, read):
        assert answer.header("access-control-allow-origin") == ORIGIN
        assert "ETag" in (answer.header("access-control-expose-headers") or "")
        assert (answer.header("vary") or "").startswith(
            "Accept, Accept-Encoding, Authorization, Origin"
        )


@pytest.mark.parametrize("path", [DESCRIPTION, "/alice/.well-known/solid"])
async def test_head_is_get_without_the_body(server: Server, path: str) -> None:
    """P-15."""
    for accept in (TURTLE, JSON_LD):
        read = await server.public.get(path, accept=accept)
        head = await server.public.head(path, accept=accept)
        assert (head.status, head.headers, head.body) == (200, read.headers, b"")


@pytest.mark.parametrize("path", [DESCRIPTION, "/alice/.well-known/solid"])
async def test_a_client_with_the_current_representation_gets_304(server: Server, path: str) -> None:
    """P-23, P-24: each form has its own tag, and conditions by time mean nothing here."""
    read = await server.public.get(path)
    tag = read.header("etag") or ""
    assert (tag[0], tag[-1]) == ('"', '"')
    assert read.header("cache-control") == "no-cache"
    same = await server.public.get(path, if_none_match=tag, origin=ORIGIN)
    assert (same.status, same.body, same.header("etag")) == (304, b"", tag)
    assert same.header("cache-control") == "no-cache"
    assert same.header("vary") == read.header("vary")
    assert same.header("access-control-allow-origin") == ORIGIN
    assert (await server.public.head(path, if_none_match=tag)).status == 304
    other = await server.public.get(path, if_none_match=tag, accept=JSON_LD)
    assert (other.status, other.header("etag") != tag) == (200, True)
    later = "Fri, 01 Jan 2100 00:00:00 GMT"
    assert (await server.public.get(path, if_modified_since=later)).status == 200
    earlier = "Thu, 01 Jan 1970 00:00:00 GMT"
    assert (await server.public.get(path, if_unmodified_since=earlier)).status == 200
    assert (await server.public.get(path, if_match='"other"')).status == 412
    assert (await server.public.get(path, if_match=tag)).status == 200


@pytest.mark.parametrize("path", [DESCRIPTION, "/alice/.well-known/solid"])
async def test_a_type_that_it_has_not_is_406(server: Server, path: str) -> None:
    """R-5."""
    refused = await server.public.get(path, accept="image/png")
    assert refused.status == 406
    assert TURTLE in refused.text


async def test_a_credential_that_is_not_valid_is_refused_here_too(server: Server) -> None:
    """A-5."""
    assert (await server.public.with_token("nonsense").get(DESCRIPTION)).status == 401
