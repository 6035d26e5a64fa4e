"""Where clients learn what a storage is (P-32, P-34)."""

from __future__ import annotations

import pytest
import rdflib

from tests.support.application import BASE, Server
from tests.support.rdf import JSON_LD, N_TRIPLES, TURTLE, media_type, said

DESCRIPTION = "/alice/.well-known/solid"
REL = "http://www.w3.org/ns/solid/terms#storageDescription"
PIM = rdflib.Namespace("http://www.w3.org/ns/pim/space#")


@pytest.mark.parametrize("path", ["/alice/", "/alice/private/", "/alice/private/x", "/alice/.acl"])
async def test_every_answer_in_a_storage_links_to_its_description(
    server: Server, path: str
) -> None:
    """P-32: also refusals, so that a client can find out whose storage it meets."""
    link = f'<{BASE}{DESCRIPTION}>; rel="{REL}"'
    for method in ("GET", "HEAD", "OPTIONS"):
        for client in (server.alice, server.public):
            answer = await client.request(method, path)
            assert link in (answer.header("link") or ""), (method, answer.status)


@pytest.mark.parametrize("accept", [None, TURTLE, JSON_LD, N_TRIPLES])
async def test_anyone_may_read_that_it_is_a_storage(server: Server, accept: str | None) -> None:
    """P-32, W-43."""
    answer = await server.public.get(DESCRIPTION, **({"accept": accept} if accept else {}))
    assert answer.status == 200
    assert media_type(answer) == (accept or TURTLE)
    storage = (rdflib.URIRef(f"{BASE}/alice/"), rdflib.RDF.type, PIM.Storage)
    assert storage in said(answer, BASE + DESCRIPTION)


async def test_nobody_writes_it(server: Server) -> None:
    """It is made by the server: not even the owner puts something in its place."""
    for method in ("PUT", "POST", "PATCH", "DELETE"):
        answer = await server.alice.request(
            method, DESCRIPTION, headers={"Content-Type": "text/turtle"}, body=b"<> <#a> 1 ."
        )
        assert answer.status == 405
        assert answer.header("allow") == "OPTIONS, GET, HEAD"
    under_it = await server.alice.put(f"{DESCRIPTION}/x", "x", "text/plain")
    listed = (await server.alice.get("/alice/")).text
    assert under_it.status == 404
    assert ".well-known" not in listed


async def test_there_is_none_where_no_storage_is(server: Server) -> None:
    assert (await server.public.get("/nobody/.well-known/solid")).status == 404
    assert (await server.public.get("/idp/.well-known/solid")).status == 404
