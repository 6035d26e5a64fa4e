"""JSON-LD contexts, fetched and refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.config import Settings
from podstead.outbound.urls import parse_origin
from tests.support.application import BASE, Server, Start, running
from tests.support.clock import FakeClock
from tests.support.peer import Peer, answer
from tests.support.rdf import JSON_LD, N_TRIPLES, TURTLE, said

#
# JSON-LD contexts by URL: bundled ones are known, and no other is fetched unless it may be.


PATH = "/alice/private/doc"
ACTIVITY_STREAMS = "https://www.w3.org/ns/activitystreams"
NAMES = b'{"@context": {"name": "http://xmlns.com/foaf/0.1/name"}}'


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A foreign server that counts connections and has a context at /names."""
    peer = Peer()
    await peer.start()
    peer.replies["/names"] = answer(body=NAMES, content_type=JSON_LD)
    yield peer
    await peer.stop()


def document(context: str) -> str:
    return f'{{"@context":  "{context}", "@id": "#me", "name": "Alice"}}'


async def test_a_bundled_context_needs_no_network(server: Server) -> None:
    """R-11."""
    assert ACTIVITY_STREAMS in bundled_contexts()
    note = f'{{"@context": "{ACTIVITY_STREAMS}", "type": "Note", "content": "hi"}}'
    assert (await server.alice.put(PATH, note, JSON_LD)).status == 201
    answer = await server.alice.get(PATH, accept=TURTLE)
    terms = {str(term) for triple in said(answer, BASE + PATH) for term in triple}
    assert f"{ACTIVITY_STREAMS}#Note" in terms
    assert f"{ACTIVITY_STREAMS}#content" in terms


async def test_a_document_with_an_unknown_context_is_stored_as_sent_and_not_converted(
    server: Server, peer: Peer
) -> None:
    """R-11: nothing is fetched, on writes as on reads, and the context is named."""
    content = document(peer.url("/names"))
    assert (await server.alice.put(PATH, content, JSON_LD)).status == 201
    for wanted in ({}, {"accept": JSON_LD}, {"accept": "*/*"}):
        stored = await server.alice.get(PATH, **wanted)
        assert (stored.status, stored.text) == (200, content)
    for accept in (TURTLE, N_TRIPLES):
        refused = await server.alice.get(PATH, accept=accept)
        assert refused.status == 406
        assert peer.url("/names") in refused.json()["message"]
    posted = await server.alice.post("/alice/private/", content, JSON_LD)
    assert posted.status == 201
    assert (await server.alice.put(PATH, content + " ", JSON_LD)).status == 204
    assert peer.connections == 0


@pytest.mark.parametrize("target", [f"{PATH}.acl", "/alice/private/", "/alice/.meta"])
async def test_what_must_be_understood_is_refused_with_an_unknown_context(
    server: Server, peer: Peer, target: str
) -> None:
    """R-11: ACLs, and containers because their triples are part of the listing."""
    await server.alice.put(PATH, "x", "text/plain")
    before = await server.alice.get(target)
    refused = await server.alice.put(target, document(peer.url("/names")), JSON_LD)
    assert refused.status == 400
    assert peer.url("/names") in refused.json()["message"]
    assert (await server.alice.get(target)).body == before.body
    assert peer.connections == 0


async def test_a_context_of_a_listed_origin_is_fetched_once(start: Start, peer: Peer) -> None:
    """R-11, A-190: through the guard, which lets a server on this machine ask this machine."""
    server = await start(context_origins=(parse_origin(peer.url()),))
    content = document(peer.url("/names"))
    assert (await server.alice.put(PATH, content, JSON_LD)).status == 201
    answer = await server.alice.get(PATH, accept=TURTLE)
    assert answer.status == 200
    ((_, predicate, name),) = said(answer, BASE + PATH)
    assert (str(predicate), str(name)) == ("http://xmlns.com/foaf/0.1/name", "Alice")
    assert (await server.alice.get(PATH)).text == content
    assert [request.path for request in peer.requests] == ["/names"]
    assert "authorization" not in peer.requests[0].headers


async def test_a_context_that_is_temporarily_unavailable_can_be_tried_again(
    start: Start, peer: Peer
) -> None:
    """Nothing is wrong with the document, so it is no 400, 406 or 409 that one gets."""
    clock = FakeClock()
    server = await start(context_origins=(parse_origin(peer.url()),), clock=clock)
    sound = peer.replies["/names"]
    peer.replies["/names"] = answer("503 No")
    content = document(peer.url("/names"))
    assert (await server.alice.put(PATH, content, JSON_LD)).status == 201
    assert (await server.alice.get(PATH)).text == content
    insert = {"Content-Type": "application/sparql-update"}
    for refused in (
        await server.alice.get(PATH, accept=TURTLE),
        await server.alice.put(f"{PATH}.acl", content, JSON_LD),
        await server.alice.request(
            "PATCH", PATH, headers=insert, body=b"INSERT DATA { <#a> <#b> <#c> }"
        ),
    ):
        assert refused.status == 503, refused.text
        assert int(refused.header("retry-after") or 0) > 0
        assert peer.url("/names") in refused.json()["message"]
    peer.replies["/names"] = sound
    clock.advance(seconds=61)
    assert (await server.alice.get(PATH, accept=TURTLE)).status == 200


async def test_a_listed_origin_that_fails_leaves_the_document_as_it_is(
    start: Start, peer: Peer
) -> None:
    """R-11: never a 5xx, since that would be no other the next time."""
    server = await start(context_origins=(parse_origin(peer.url()),))
    for path in ("/missing", "/broken", "/elsewhere"):
        peer.replies["/broken"] = answer(body=b"{", content_type=JSON_LD)
        peer.replies["/elsewhere"] = answer(
            "302 Found", "Location: http://127.0.0.1:9/names", body=b""
        )
        content = document(peer.url(path))
        assert (await server.alice.put(PATH, content, JSON_LD)).status in (201, 204)
        refused = await server.alice.get(PATH, accept=TURTLE)
        assert refused.status == 406
        assert peer.url(path) in refused.json()["message"]
        acl = await server.alice.put(f"{PATH}.acl", content, JSON_LD)
        assert acl.status == 400
    assert {request.path for request in peer.requests} == {"/missing", "/broken", "/elsewhere"}


async def test_a_listed_origin_on_this_machine_gets_no_request_from_a_public_server(
    start: Start, peer: Peer
) -> None:
    """A-187, A-190: listing an origin does not switch the guard off."""
    server = await start(
        base_url="https://pods.example", context_origins=(parse_origin(peer.url()),)
    )
    assert (await server.alice.put(PATH, document(peer.url("/names")), JSON_LD)).status == 201
    assert (await server.alice.get(PATH, accept=TURTLE)).status == 406
    assert peer.connections == 0


async def test_a_document_becomes_convertible_once_its_origin_is_listed(
    settings: Settings, server: Server, peer: Peer
) -> None:
    """R-11: what was stored as sent is all there."""
    await server.alice.put(PATH, document(peer.url("/names")), JSON_LD)
    listed = replace(settings, context_origins=(parse_origin(peer.url()),))
    async with running(listed) as application:
        read = await server.alice.asking(application).get(PATH, accept=TURTLE)
    assert "Alice" in read.text


ANNOTATION = "http://www.w3.org/ns/anno.jsonld"


async def test_an_annotation_is_read_with_the_context_of_its_vocabulary(server: Server) -> None:
    """R-11, and a context whose names of keywords have a coercion, too."""
    annotation = {
        "@context": ANNOTATION,
        "id": "#it",
        "type": "Annotation",
        "body": "http://example.org/post",
        "target": {"source": "http://example.org/page", "selector": {"type": "TextQuoteSelector"}},
    }
    assert (await server.alice.put(PATH, json.dumps(annotation), JSON_LD)).status == 201
    answer = await server.alice.get(PATH, accept=TURTLE)
    terms = {str(term) for triple in said(answer, BASE + PATH) for term in triple}
    oa = "http://www.w3.org/ns/oa#"
    assert {f"{oa}Annotation", f"{oa}hasBody", f"{oa}hasSource", f"{oa}TextQuoteSelector"} <= terms


INSERTED = f"<#note> <{ACTIVITY_STREAMS}#summary> 'new' ."
SOLID = "http://www.w3.org/ns/solid/terms#"
PATCHES = {
    "text/n3": f"_:p a <{SOLID}InsertDeletePatch> ; <{SOLID}inserts> {{ {INSERTED} }} .",
    "application/sparql-update": f"INSERT DATA {{ {INSERTED} }}",
}


@pytest.mark.parametrize("media_type", PATCHES)
async def test_a_patched_document_keeps_its_context(server: Server, media_type: str) -> None:
    """X-37, R-8: also one that is named by URL."""
    note = {
        "@context": [ACTIVITY_STREAMS, {"@language": "en"}],
        "id": "#note",
        "type": "Note",
        "content": "hi",
        "to": ["as:Public"],
    }
    await server.alice.put(PATH, json.dumps(note), JSON_LD)
    patch = PATCHES[media_type].encode()
    headers = {"Content-Type": media_type}
    answer = await server.alice.request("PATCH", PATH, headers=headers, body=patch)
    assert answer.status == 204
    patched = await server.alice.get(PATH)
    assert json.loads(patched.body) == {**note, "summary": {"@value": "new"}}
