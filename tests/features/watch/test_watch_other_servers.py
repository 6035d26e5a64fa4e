"""How other servers are watched: one that says exactly what each test has it say.

The server is that of another library, which also speaks the WebSocket protocol by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import WSMsgType, web

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.features.watch import receiving, watching
from podstead.features.watch.changes import ReceivedChange
from podstead.features.watch.discovery import Protocol
from podstead.features.watch.receiving import ChangesMissed
from podstead.features.watch.server import AccessLost, Interrupted, Server, WatchError
from podstead.features.watch.watching import (
    Disconnected,
    ReconnectDelay,
    WatchEvent,
    Watching,
    WatchStarted,
)
from podstead.outbound.fetch import trusted_certificates
from podstead.outbound.guard import Guard, SystemResolver
from podstead.outbound.urls import UrlRules, parse_origin
from tests.support.server import DEADLINE_S

NOTIFY = "http://www.w3.org/ns/solid/notifications#"
STORAGE_DESCRIPTION = "http://www.w3.org/ns/solid/terms#storageDescription"
STREAMS = "http://www.w3.org/ns/solid/terms#updatesViaStreamingHttp2023"
TOKEN = "a.good.token"
AUTHORIZED = f"Bearer {TOKEN}"

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class OtherServer:
    """A server whose answers a test gives; it notes what it is asked."""

    base_url: str = ""
    head: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    """By path, for every method."""
    asked: list[web.Request] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)

    @property
    def topic(self) -> str:
        return f"{self.base_url}/notes/"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        if request.method == "POST":
            self.contents.append(await request.read())
        answer = self.answers.get(request.path)
        if answer is not None:
            return await answer(request)
        if request.path == "/notes/":
            return web.Response(headers=self.head)
        return web.Response(status=404)

    def offers(self, channel_type: str, *features: str, service: str = "/service") -> None:
        """A description with a service for channels, which are received at ``/receive``."""
        self.head["Link"] = f'</description>; rel="{STORAGE_DESCRIPTION}"'
        named = "".join(f"; <{NOTIFY}feature> <{NOTIFY}{each}>" for each in features)
        text = f"<{service}> <{NOTIFY}channelType> <{NOTIFY}{channel_type}>{named}."
        self.says("/description", text, "text/turtle")
        self.says("/service", json.dumps({"receiveFrom": f"{self.base_url}/receive"}))

    def says(
        self, path: str, text: str = "", media_type: str = "application/ld+json", status: int = 200
    ) -> None:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(text=text, content_type=media_type, status=status)

        self.answers[path] = answer

    def streams(self, path: str, *connections: list[bytes], media_type: str) -> None:
        """One list of pieces for each connection, after the last of which it stays open."""
        following = iter(connections)
        last = len(connections)

        async def answer(request: web.Request) -> web.StreamResponse:
            nonlocal last
            response = web.StreamResponse(headers={"Content-Type": media_type})
            await response.prepare(request)
            for piece in next(following):
                await response.write(piece)
            last -= 1
            if last == 0:
                await asyncio.Event().wait()
            return response

        self.answers[path] = answer

    def talks(self, path: str, *connections: list[str], protocols: tuple[str, ...] = ()) -> None:
        """Likewise with the texts of a WebSocket, the first of which waits for one if it says so:
        ``<sub …`` is expected of the client, not sent."""
        following = iter(connections)
        last = len(connections)

        async def answer(request: web.Request) -> web.WebSocketResponse:
            nonlocal last
            socket = web.WebSocketResponse(protocols=protocols)
            await socket.prepare(request)
            for text in next(following):
                if text.startswith("<"):
                    assert await socket.receive_str() == text[1:]
                else:
                    await socket.send_str(text)
            last -= 1
            if last == 0:
                assert (await socket.receive()).type in {WSMsgType.CLOSE, WSMsgType.CLOSED}
            return socket

        self.answers[path] = answer


@pytest.fixture
async def other() -> AsyncIterator[OtherServer]:
    server = OtherServer()
    async with running(server):
        yield server


@contextlib.asynccontextmanager
async def running(server: OtherServer) -> AsyncIterator[None]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.base_url = f"http://localhost:{runner.addresses[0][1]}"
    try:
        yield
    finally:
        await runner.cleanup()


async def told(other: OtherServer, count: int, *, url: str | None = None) -> list[WatchEvent]:
    """The first things that are told; attempts follow without waiting."""
    resolver = SystemResolver()
    server = Server(
        Guard(UrlRules(loopback_allowed=True), resolver),
        tls=trusted_certificates(),
        origin=parse_origin(other.base_url),
        token=TOKEN,
    )
    patience = ReconnectDelay(first_s=0.0)
    watched = Watching(server, bundled_contexts(), url or other.topic, delay=patience)
    found: list[WatchEvent] = []
    try:
        async with asyncio.timeout(DEADLINE_S), contextlib.aclosing(watched.events()) as everything:
            async for each in everything:
                found.append(each)
                if len(found) == count:
                    break
    finally:
        resolver.close()
    return found


def message(number: int, **members: str) -> str:
    said: dict[str, Any] = {"type": "Update", "object": f"https://pods.example/{number}"}
    return json.dumps({**said, **members})


def turtle(number: int, state: str) -> bytes:
    return (
        f"@prefix as: <https://www.w3.org/ns/activitystreams#>.\n"
        f"<urn:uuid:{number}> a as:Update; as:object <https://pods.example/{number}>;"
        f' <{NOTIFY}state> "{state}".\n'
    ).encode()


def event(number: int) -> bytes:
    return f"id: {number}\ndata: {message(number)}\n\n".encode()


def numbers(found: list[WatchEvent]) -> list[int | type]:
    """The number of each change, the class of anything else."""
    return [
        int(each.resource.rpartition("/")[2]) if isinstance(each, ReceivedChange) else type(each)
        for each in found
    ]


async def test_a_socket_sends_changes_and_a_reconnect_compares_the_known_state(
    other: OtherServer,
) -> None:
    """N-14, N-20; and what no message is, is not taken for one."""
    other.offers("WebSocketChannel2023", "state")
    other.talks("/receive", [message(1), "ping", message(2, state="s2")], [message(3)])
    found = await told(other, 7)
    assert numbers(found) == [WatchStarted, 1, ChangesMissed, 2, Disconnected, WatchStarted, 3]
    assert isinstance(found[5], WatchStarted)
    assert (found[5].again, found[5].is_gapless) == (True, False)
    first, second = map(json.loads, other.contents)
    assert first["type"] == f"{NOTIFY}WebSocketChannel2023"
    assert first["topic"] == other.topic
    assert "state" not in first
    assert second == {**first, "state": "s2"}


async def test_a_service_that_knows_no_states_is_not_sent_any(other: OtherServer) -> None:
    other.offers("WebSocketChannel2023")
    other.talks("/receive", [message(1, state="s1")], [message(2)])
    assert numbers(await told(other, 5)) == [WatchStarted, 1, Disconnected, WatchStarted, 2]
    assert all("state" not in json.loads(content) for content in other.contents)


async def test_events_continue_after_the_last_one_sent(other: OtherServer) -> None:
    """N-23."""
    other.offers("EventSourceChannel2023")
    other.streams(
        "/receive",
        [b"retry: 0\n\n", event(1), event(2)[:9], event(2)[9:], b"id: 5\n\n", event(6)[:-1]],
        [event(7)],
        media_type="text/event-stream",
    )
    found = await told(other, 6)
    assert numbers(found) == [WatchStarted, 1, 2, Disconnected, WatchStarted, 7]
    assert isinstance(found[4], WatchStarted)
    assert found[4].is_gapless
    received = [request for request in other.asked if request.path == "/receive"]
    assert [request.headers.get("Last-Event-ID") for request in received] == [None, "5"]
    assert len(other.contents) == 1, "the channel is there still"


async def test_a_channel_that_is_over_is_followed_by_another_that_goes_on(
    other: OtherServer,
) -> None:
    other.offers("EventSourceChannel2023")
    others = iter(range(2))
    other.streams("/receive/0", [event(1)], media_type="text/event-stream")
    other.streams("/receive/1", [event(2)], media_type="text/event-stream")

    async def service(_: web.Request) -> web.Response:
        return web.json_response({"receiveFrom": f"{other.base_url}/receive/{next(others)}"})

    async def cut_off(request: web.Request) -> web.StreamResponse:
        other.says("/receive/0", status=404)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(event(1))
        return response

    other.answers |= {"/service": service, "/receive/0": cut_off}
    assert numbers(await told(other, 5)) == [WatchStarted, 1, Disconnected, WatchStarted, 2]
    assert other.asked[-1].headers["Last-Event-ID"] == "1"


async def test_lost_events_are_reported(other: OtherServer) -> None:
    other.offers("EventSourceChannel2023")
    content = b"event: lost\ndata: x\n\n" + event(1)
    other.streams("/receive", [content], media_type="text/event-stream")
    assert numbers(await told(other, 3)) == [WatchStarted, ChangesMissed, 1]


async def test_the_first_message_of_a_resource_stream_is_not_a_change(
    other: OtherServer,
) -> None:
    """N-22: the first message is news only if the state is another than the one that was known."""
    other.head["Link"] = f'</stream>; rel="{STREAMS}"'
    now, change = turtle(1, "s1"), turtle(2, "s2")
    other.streams(
        "/stream",
        [now, change[:50], change[50:]],
        [turtle(3, "s2")],
        [turtle(4, "s4"), turtle(5, "s5") + turtle(6, "s6")],
        media_type="text/turtle",
    )
    found = await told(other, 9)
    assert numbers(found) == [
        WatchStarted,
        2,
        Disconnected,
        WatchStarted,
        Disconnected,
        WatchStarted,
        4,
        5,
        6,
    ]
    assert other.asked[-1].headers["Authorization"] == AUTHORIZED


async def test_a_stream_that_is_subscribed_to_is_read_as_json(other: OtherServer) -> None:
    other.offers("StreamingHTTPChannel2023")
    lines = f"{message(1)}\n{message(2)}\n{message(3)}\n".encode()
    other.streams("/receive", [lines[:100], lines[100:]], media_type="application/ld+json")
    assert numbers(await told(other, 4)) == [WatchStarted, 1, 2, 3]


async def test_an_older_server_is_watched_by_its_socket(other: OtherServer) -> None:
    """L-1 to L-5; lines that nobody knows are passed over, what is not watched as well."""
    other.head["Updates-Via"] = f"{other.base_url.replace('http', 'ws')}/socket"
    subscribed = [f"<sub {other.topic}", "protocol solid-0.1", f"ack {other.topic}"]
    other.talks(
        "/socket",
        [*subscribed, "warning x", "pub https://pods.example/1"],
        [*subscribed, "pub https://pods.example/2"],
        protocols=("solid-0.1",),
    )
    found = await told(other, 5)
    assert numbers(found) == [WatchStarted, 1, Disconnected, WatchStarted, 2]
    assert isinstance(found[0], WatchStarted)
    assert found[0].topic.way.protocol is Protocol.SOLID_0_1
    assert other.asked[-1].headers["Authorization"] == AUTHORIZED


async def test_an_older_server_may_refuse(other: OtherServer) -> None:
    other.head["Updates-Via"] = f"{other.base_url.replace('http', 'ws')}/socket"
    other.talks("/socket", [f"<sub {other.topic}", f"err {other.topic} forbidden"])
    with pytest.raises(WatchError, match=f"refused: {other.topic} forbidden"):
        await told(other, 1)


@pytest.mark.parametrize(
    ("lines", "sentence"), [([], "did not respond in time"), (["<"], "closed the connection")]
)
async def test_an_older_server_that_does_not_acknowledge_is_not_waited_for(
    other: OtherServer, monkeypatch: pytest.MonkeyPatch, lines: list[str], sentence: str
) -> None:
    """L-4. The time is over at once for one that says nothing."""
    other.head["Updates-Via"] = f"{other.base_url.replace('http', 'ws')}/socket"
    if lines:
        other.talks("/socket", [f"<sub {other.topic}"], [])
    else:
        monkeypatch.setattr(receiving, "ACK_TIMEOUT_S", 0.0)
        other.talks("/socket", [f"<sub {other.topic}", "<nothing"])
    with pytest.raises(Interrupted, match=sentence):
        await told(other, 1)


async def test_a_token_goes_to_the_server_that_is_watched_and_to_no_other(
    other: OtherServer,
) -> None:
    """A foreign service is asked without it, and addresses made for one receiver need none."""
    foreign = OtherServer()
    async with running(foreign):
        other.offers("WebSocketChannel2023", service=f"{foreign.base_url}/service")
        foreign.offers("WebSocketChannel2023")
        foreign.talks("/receive", [message(1)])
        assert numbers(await told(other, 2)) == [WatchStarted, 1]
        assert all("Authorization" not in request.headers for request in foreign.asked)
        assert [request.path for request in foreign.asked] == ["/service", "/receive"]
        assert {request.headers["Authorization"] for request in other.asked} == {AUTHORIZED}


async def test_a_token_does_not_follow_a_redirect_to_another_server(other: OtherServer) -> None:
    foreign = OtherServer()
    async with running(foreign):

        async def moved(_: web.Request) -> web.Response:
            raise web.HTTPMovedPermanently(foreign.topic)

        other.answers["/notes/"] = moved
        foreign.offers("WebSocketChannel2023")
        foreign.talks("/receive", [message(1)])
        found = await told(other, 2)
        assert isinstance(found[0], WatchStarted)
        assert found[0].topic.url == foreign.topic
        assert all("Authorization" not in request.headers for request in foreign.asked)


async def test_redirects_without_an_end_are_given_up(other: OtherServer) -> None:
    async def around(_: web.Request) -> web.Response:
        raise web.HTTPFound("/notes/")

    other.answers["/notes/"] = around
    with pytest.raises(WatchError, match="redirects too many times"):
        await told(other, 1)


async def test_a_page_that_is_on_no_solid_server_is_refused(other: OtherServer) -> None:
    other.head["Link"] = '</style.css>; rel="preload"'
    with pytest.raises(WatchError, match="is not on a Solid server"):
        await told(other, 1)


@pytest.mark.parametrize(
    ("status", "text", "media_type"),
    [
        (200, "", "text/turtle"),
        (200, "<x> <y>", "text/turtle"),
        (200, "<html>", "text/html"),
        (200, "{}", "application/ld+json"),
        (404, "", "text/turtle"),
        (200, f"<s> <{NOTIFY}channelType> <{NOTIFY}WebhookChannel2023>.", "text/turtle"),
    ],
)
async def test_a_server_without_notifications_is_refused(
    other: OtherServer, status: int, text: str, media_type: str
) -> None:
    other.offers("WebSocketChannel2023")
    other.says("/description", text, media_type, status)
    with pytest.raises(WatchError, match="offers no type of notifications"):
        await told(other, 1)


@pytest.mark.parametrize("channel_type", ["EventSourceChannel2023", "WebSocketChannel2023"])
@pytest.mark.parametrize("path", ["/notes/", "/description", "/service", "/receive"])
async def test_an_error_at_the_beginning_is_reported_and_not_taken_for_a_response(
    other: OtherServer, channel_type: str, path: str
) -> None:
    other.offers(channel_type)
    other.says(path, status=503)
    with pytest.raises(WatchError, match="503"):
        await told(other, 1)


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (401, "rejected the token"),
        (403, "agent of the token may not read"),
        (404, "service .* does not exist"),
        (405, "responded with 405"),
        (422, "responded with 422"),
    ],
)
async def test_a_service_that_refuses_is_understood(
    other: OtherServer, status: int, sentence: str
) -> None:
    other.offers("EventSourceChannel2023")
    other.says("/service", status=status)
    with pytest.raises(WatchError, match=sentence):
        await told(other, 1)


@pytest.mark.parametrize("channel_type", ["EventSourceChannel2023", "WebSocketChannel2023"])
async def test_a_channel_is_ended_when_it_is_not_needed_any_more(
    other: OtherServer, channel_type: str
) -> None:
    """N-10: else it would count against what one agent may have."""
    other.offers(channel_type)
    described = {"id": f"{other.base_url}/channel", "receiveFrom": f"{other.base_url}/receive"}
    other.says("/service", json.dumps(described))
    other.streams("/receive", [event(1)], media_type="text/event-stream")
    if channel_type == "WebSocketChannel2023":
        other.talks("/receive", [message(1)])
    assert numbers(await told(other, 2)) == [WatchStarted, 1]
    assert (other.asked[-1].method, other.asked[-1].path) == ("DELETE", "/channel")


async def test_a_server_that_does_not_say_goodbye_is_not_waited_for(
    other: OtherServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LEAVING_TIMEOUT_S", 0.1)
    other.offers("EventSourceChannel2023")
    described = {"id": f"{other.base_url}/channel", "receiveFrom": f"{other.base_url}/receive"}
    other.says("/service", json.dumps(described))
    other.streams("/receive", [event(1)], media_type="text/event-stream")

    async def silent(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    other.answers["/channel"] = silent
    assert numbers(await told(other, 2)) == [WatchStarted, 1]


async def test_a_channel_that_another_follows_is_ended(other: OtherServer) -> None:
    other.offers("WebSocketChannel2023")
    described = {"id": f"{other.base_url}/channel", "receiveFrom": f"{other.base_url}/receive"}
    other.says("/service", json.dumps(described))
    other.talks("/receive", [message(1)], [message(2)])
    assert numbers(await told(other, 5)) == [WatchStarted, 1, Disconnected, WatchStarted, 2]
    methods = [request.method for request in other.asked]
    assert (methods.count("POST"), methods.count("DELETE")) == (2, 2)


async def test_headers_are_understood_also_of_a_server_that_compresses(other: OtherServer) -> None:
    """A HEAD has no content, whatever its coding would be."""
    other.head["Content-Encoding"] = "gzip"
    other.offers("EventSourceChannel2023")
    other.streams("/receive", [event(1)], media_type="text/event-stream")
    assert numbers(await told(other, 2)) == [WatchStarted, 1]


async def test_messages_are_not_held_back_to_be_compressed(other: OtherServer) -> None:
    other.offers("EventSourceChannel2023")
    other.streams("/receive", [event(1)], media_type="text/event-stream")
    await told(other, 2)
    [received] = [request for request in other.asked if request.path == "/receive"]
    assert received.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("path", ["/notes/", "/description", "/service", "/receive"])
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_trouble_later_on_is_waited_for(other: OtherServer, path: str, status: int) -> None:
    other.offers("WebSocketChannel2023")
    other.talks("/receive", [message(1)], [message(2)])
    working = other.answers.get(path)
    troubles = iter([None, status, status, None])

    async def answer(request: web.Request) -> web.StreamResponse:
        trouble = next(troubles)
        if trouble is not None:
            return web.Response(status=trouble)
        if working is None:
            return web.Response(headers=other.head)
        return await working(request)

    other.answers[path] = answer
    assert numbers(await told(other, 5)) == [WatchStarted, 1, Disconnected, WatchStarted, 2]


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/notes/", 401, "You may no longer read"),
        ("/notes/", 403, "You may no longer read"),
        ("/notes/", 404, "no longer exists"),
        ("/notes/", 410, "no longer exists"),
        ("/service", 401, "You may no longer read"),
        ("/service", 403, "You may no longer read"),
    ],
)
async def test_a_right_that_is_taken_away_ends_it(
    other: OtherServer, path: str, status: int, sentence: str
) -> None:
    other.offers("WebSocketChannel2023")

    async def last_words(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        other.says(path, status=status)
        return socket

    other.answers["/receive"] = last_words
    with pytest.raises(AccessLost, match=sentence):
        await told(other, 3)


@pytest.mark.parametrize("content", [b"data: " + b"x" * 2_000_000, b"data:\n" * 300_000])
async def test_an_event_without_end_is_not_collected(other: OtherServer, content: bytes) -> None:
    other.offers("EventSourceChannel2023")
    other.streams("/receive", [content], media_type="text/event-stream")
    with pytest.raises(WatchError, match="Cannot read"):
        await told(other, 2)


async def test_a_message_without_end_is_not_collected(other: OtherServer) -> None:
    other.offers("StreamingHTTPChannel2023")
    other.streams("/receive", [b"{" * 2_000_000], media_type="application/ld+json")
    with pytest.raises(WatchError, match="Cannot read"):
        await told(other, 2)


@pytest.mark.parametrize("media_type", ["text/html", "text/plain; charset=utf-8"])
async def test_a_response_of_another_type_is_not_read_as_an_event_stream(
    other: OtherServer, media_type: str
) -> None:
    other.offers("EventSourceChannel2023")
    other.streams("/receive", [event(1)], media_type=media_type)
    with pytest.raises(WatchError, match="Cannot read"):
        await told(other, 1)


@pytest.mark.parametrize("receive_from", ["http://10.0.0.1/x", "https://10.0.0.1/x", "file:///x"])
async def test_a_server_cannot_lead_into_private_networks(
    other: OtherServer, receive_from: str
) -> None:
    """A-187."""
    other.offers("EventSourceChannel2023")
    other.says("/service", json.dumps({"receiveFrom": receive_from}))
    with pytest.raises(WatchError, match="no connection is allowed"):
        await told(other, 1)


async def test_a_service_that_does_not_say_where_is_refused(other: OtherServer) -> None:
    other.offers("EventSourceChannel2023")
    other.says("/service", "{}")
    with pytest.raises(WatchError, match="does not say where"):
        await told(other, 1)


async def test_a_service_may_answer_with_another_context(other: OtherServer) -> None:
    """As RDF it says the same."""
    other.offers("EventSourceChannel2023")
    answer = {
        "@id": f"{other.base_url}/channel",
        f"{NOTIFY}receiveFrom": {"@id": f"{other.base_url}/receive"},
    }
    other.says("/service", json.dumps(answer))
    other.streams("/receive", [event(1)], media_type="text/event-stream")
    assert numbers(await told(other, 2)) == [WatchStarted, 1]


async def test_a_server_that_is_away_at_the_beginning_is_named(other: OtherServer) -> None:
    with pytest.raises(Interrupted, match="No server is listening at localhost:1"):
        await told(other, 1, url="http://localhost:1/notes/")


def test_waits_grow_up_to_a_limit_and_restart_after_a_good_connection() -> None:
    patience = ReconnectDelay(first_s=2.0)
    waits = [patience.next_s() for _ in range(12)]
    for expected, wait in zip([2, 4, 8, 16, *[30] * 8], waits, strict=True):
        assert expected <= wait <= expected * 1.25
    patience.reset()
    assert patience.next_s() <= 2.5


@pytest.mark.parametrize(
    ("retry_ms", "least_s", "most_s"),
    [(0, 0.1, 0.125), (5000, 5.0, 6.25), (10**9, 30.0, 37.5), (None, 1.0, 1.25)],
)
def test_a_server_may_ask_for_another_wait_within_reason(
    retry_ms: int | None, least_s: float, most_s: float
) -> None:
    """A server cannot have itself asked without a pause, nor put a client off for days."""
    patience = ReconnectDelay()
    patience.set_first(retry_ms)
    assert least_s <= patience.next_s() <= most_s
