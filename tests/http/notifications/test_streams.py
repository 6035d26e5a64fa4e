"""StreamingHTTPChannel2023: one message a chunk, on channels and on every resource (N-22)."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest

from tests.support.application import BASE, Server, Start
from tests.support.notification_channels import JSON_LD, NOTES, TURTLE, channel, path_of
from tests.support.rdf import triples
from tests.support.streams import Stream, opened

TYPE = "StreamingHTTPChannel2023"
REL = "http://www.w3.org/ns/solid/terms#updatesViaStreamingHttp2023"
AS = "https://www.w3.org/ns/activitystreams#"


async def next_type(stream: Stream, media_type: str = JSON_LD) -> str:
    """The type of the message in the next chunk, which is a document by itself."""
    chunk = await stream.piece()
    assert chunk is not None
    if media_type == JSON_LD:
        return str(json.loads(chunk)["type"])
    types = [str(o) for _, p, o in triples(chunk, TURTLE, BASE) if str(p).endswith("#type")]
    assert len(types) == 1
    return types[0].removeprefix(AS)


@pytest.mark.parametrize("media_type", [JSON_LD, TURTLE])
async def test_a_channel_sends_one_message_a_chunk(server: Server, media_type: str) -> None:
    """N-22 (a)."""
    made = await channel(server.public, TYPE, NOTES, accept=media_type)
    async with opened(server.public, path_of(made["receiveFrom"])) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, media_type)
        assert stream.headers["x-accel-buffering"] == "no"
        await server.alice.put(NOTES, "", TURTLE)
        await server.alice.delete(NOTES)
        assert await next_type(stream, media_type) == "Create"
        assert await next_type(stream, media_type) == "Delete"


@pytest.mark.parametrize("path", [NOTES, "/alice/public/caf%C3%A9%20x", "/alice/"])
async def test_every_resource_names_its_stream(server: Server, path: str) -> None:
    """N-22 (b): found by its Link, heard with nothing but the right to read."""
    await server.put_acl("/alice/", ("acl:agentClass foaf:Agent", "+Read"))
    if not path.endswith("/"):
        assert (await server.alice.put(path, "", TURTLE)).status == 201
    links = {
        (await server.public.request(method, path)).header("link") for method in ("GET", "HEAD")
    }
    matched = re.search(rf'<([^>]+)>; rel="{REL}"', links.pop() or "")
    assert matched is not None
    assert not links
    url = matched[1]
    assert url == f"{BASE}/.notifications/{TYPE}/{quote(BASE + path, safe='')}"
    async with opened(server.public, path_of(url)) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, TURTLE)
        assert await next_type(stream, TURTLE) == "Update"
        if path.endswith("/"):
            await server.alice.put(f"{path}new", "", TURTLE)
            assert await next_type(stream, TURTLE) == "Add"
        else:
            await server.alice.delete(path)
            assert await next_type(stream, TURTLE) == "Delete"


async def test_the_first_message_has_the_current_state(server: Server) -> None:
    """N-22 (b), N-14."""
    stream_path = f"/.notifications/{TYPE}/{quote(BASE + NOTES, safe='')}"
    async with opened(server.public, stream_path, {"Accept": JSON_LD}) as stream:
        assert stream.headers["content-type"] == JSON_LD
        assert await next_type(stream) == "Delete"
    etag = (await server.alice.put(NOTES, "", TURTLE)).header("etag") or ""
    async with opened(server.public, stream_path, {"Accept": JSON_LD}) as stream:
        chunk = await stream.piece()
        assert chunk is not None
        assert json.loads(chunk)["state"] == etag.strip('"')


async def test_the_stream_of_a_resource_requires_read_access(server: Server) -> None:
    """N-22 (b), N-30: checked when it begins, and with each message."""
    private = "/alice/private/x"
    stream_path = f"/.notifications/{TYPE}/{quote(BASE + private, safe='')}"
    assert (await server.public.get(stream_path)).status == 401
    assert (await server.bob.get(stream_path)).status == 403
    await server.alice.put(private, "", TURTLE)
    await server.put_acl(private, (f"acl:agent <{server.bob_web_id}>", "Read"))
    async with opened(server.bob, stream_path) as stream:
        assert await next_type(stream, TURTLE) == "Update"
        await server.put_acl(private)
        await server.alice.put(private, "<> a <#A> .", TURTLE)
        assert await stream.piece() is None


@pytest.mark.parametrize("topic", ["https://elsewhere.example/", f"{BASE}/alice/x#y", "x:"])
async def test_urls_of_other_servers_have_no_stream(server: Server, topic: str) -> None:
    answer = await server.alice.get(f"/.notifications/{TYPE}/{quote(topic, safe='')}")
    assert answer.status == 422


async def test_nothing_is_sent_but_messages(start: Start) -> None:
    """N-22: what keeps the connection alive must not break parsers, so there is nothing."""
    server = await start(heartbeat_s=0.0)
    made = await channel(server.public, TYPE, NOTES)
    async with opened(server.public, path_of(made["receiveFrom"])) as stream:
        for path in (f"{NOTES}2", f"{NOTES}3", NOTES):  # which take a while
            await server.alice.put(path, "", TURTLE)
        assert await next_type(stream) == "Create"


async def test_only_the_channel_that_it_is_of_is_streamed(server: Server) -> None:
    made = await channel(server.public, "EventSourceChannel2023", NOTES)
    key = made["id"].rpartition("/")[2]
    assert (await server.public.get(f"/.notifications/{TYPE}/{key}/messages")).status == 404
    head = await server.public.head(path_of(made["receiveFrom"]))
    assert (head.status, head.body, head.header("content-type")) == (200, b"", "text/event-stream")
