"""WebSocketChannel2023: one message a frame, for whoever has the URL (N-20, N-30, N-31)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podstead.app.adapters.system import SystemClock
from podstead.config import Settings
from podstead.core import vocab
from podstead.core.date_times import write_time
from podstead.notifications.deliveries import (
    EndReason,
    QueueClosed,
    QueueItem,
    SubscriberQueue,
)
from podstead.web import websocket
from podstead.web.asgi import Message
from podstead.web.websocket import SocketClosed, SocketSender, WebSocket
from tests.support.application import BASE, Server, Start, running
from tests.support.asgi_sockets import Closed, Refused, Socket, connected
from tests.support.notification_channels import NOTES, TURTLE, channel, path_of
from tests.support.rdf import triples

TYPE = "WebSocketChannel2023"


@asynccontextmanager
async def listening_to(
    server: Server,
    made: dict[str, Any],
    **how: Any,  # noqa: ANN401 - of any kind
) -> AsyncIterator[Socket]:
    """A socket on a channel, opened without any credential."""
    target = path_of(made["receiveFrom"])
    async with asyncio.timeout(60), connected(server.application, target, **how) as socket:
        yield socket


async def put(server: Server, body: str = "") -> None:
    assert (await server.alice.put(NOTES, body, TURTLE)).status in (201, 204)


async def told(socket: Socket, count: int) -> list[str]:
    """The types of the next messages."""
    return [json.loads(message)["type"] for message in await socket.receive_all(count)]


async def test_each_message_is_a_frame(server: Server) -> None:
    """N-16, N-20."""
    made = await channel(server.alice, TYPE, NOTES)
    async with listening_to(server, made) as socket:
        assert socket.protocol is None
        await put(server)
        message = json.loads(await socket.receive())
        assert (message["type"], message["object"]) == ("Create", BASE + NOTES)
        await put(server, "<> a <#A> .")
        await server.alice.delete(NOTES)
        assert await told(socket, 2) == ["Update", "Delete"]


async def test_a_move_is_a_deletion_here_and_a_creation_there(server: Server) -> None:
    """Also of what is in a container, at both of its addresses."""
    old, new = "/alice/private/old/", "/alice/private/new/"
    assert (await server.alice.put(f"{old}note", "x", "text/plain")).status == 201
    there = await channel(server.alice, TYPE, f"{old}note")
    here = await channel(server.alice, TYPE, f"{new}note")
    async with listening_to(server, there) as gone, listening_to(server, here) as came:
        headers = {"Destination": new}
        assert (await server.alice.request("MOVE", old, headers=headers)).status == 201
        assert await told(gone, 1) == ["Delete"]
        message = json.loads(await came.receive())
        assert (message["type"], message["object"]) == ("Create", f"{BASE}{new}note")


async def test_subprotocols_are_neither_needed_nor_echoed(server: Server) -> None:
    """N-20: the draft's example names the type, which no browser would send."""
    made = await channel(server.alice, TYPE, NOTES)
    async with listening_to(server, made, protocols=["anything", "solid-0.1"]) as socket:
        assert socket.protocol is None
        await socket.send("what a client says is not looked at")
        await socket.send(b"\x00")
        await put(server)
        assert await told(socket, 1) == ["Create"]


async def test_several_sockets_may_be_open_on_a_channel(server: Server) -> None:
    """N-20."""
    made = await channel(server.alice, TYPE, NOTES)
    async with listening_to(server, made) as one, listening_to(server, made) as two:
        await put(server)
        assert await one.receive() == await two.receive()


async def test_messages_can_be_turtle(server: Server) -> None:
    """N-15."""
    made = await channel(server.alice, TYPE, NOTES, accept=TURTLE)
    async with listening_to(server, made) as socket:
        await put(server)
        assert triples(await socket.receive(), TURTLE, BASE)


async def test_there_is_no_socket_where_there_is_no_channel(server: Server) -> None:
    """N-20, N-10: told in HTTP, before the socket is taken up."""
    made = await channel(server.alice, TYPE, NOTES)
    await server.alice.delete(path_of(made["id"]))
    other = await channel(server.alice, "EventSourceChannel2023", NOTES)
    key = other["id"].rpartition("/")[2]
    for target in (
        path_of(made["receiveFrom"]),
        f"/.notifications/{TYPE}/{key}/messages",
        path_of(other["receiveFrom"]),
    ):
        with pytest.raises(Refused) as refused:
            async with connected(server.application, target):
                pass
        assert refused.value.status == 404


async def test_a_plain_request_to_the_socket_gets_an_explanation(server: Server) -> None:
    made = await channel(server.alice, TYPE, NOTES)
    answer = await server.public.get(path_of(made["receiveFrom"]))
    assert (answer.status, answer.header("upgrade")) == (426, "websocket")


async def test_revoking_closes_the_socket(server: Server) -> None:
    """N-30: at the next change, of which nothing is told; and there is no way back."""
    await put(server)
    await server.put_acl(NOTES, (f"acl:agent <{server.bob_web_id}>", "Read"))
    made = await channel(server.bob, TYPE, NOTES)
    async with listening_to(server, made) as socket:
        await server.put_acl(NOTES)
        await put(server, "<> a <#A> .")
        with pytest.raises(Closed) as closed:
            await socket.receive()
        assert closed.value.code == 1008
    with pytest.raises(Refused) as refused:
        async with connected(server.application, path_of(made["receiveFrom"])):
            pass
    assert refused.value.status == 403


async def test_a_channel_that_ends_closes_its_sockets(server: Server) -> None:
    """N-12, N-20."""
    end_at = write_time(SystemClock().now_ms() + 300)
    made = await channel(server.alice, TYPE, NOTES, endAt=end_at)
    async with listening_to(server, made) as socket:
        with pytest.raises(Closed) as closed:
            await socket.receive()
        assert closed.value.code == 1000


async def test_a_socket_closes_when_the_rule_for_its_reader_ends(server: Server) -> None:
    """N-30: though nothing is written."""
    ends = write_time(SystemClock().now_ms() + 400)
    condition = (
        f"[ a <{vocab.ACCESS_PERIOD_CONDITION}>; <{vocab.ACCESS_ENDS}> "
        f'"{ends}"^^<http://www.w3.org/2001/XMLSchema#dateTime> ]'
    )
    await put(server)
    await server.put_acl(NOTES, (f"acl:agentClass foaf:Agent; acl:condition {condition}", "Read"))
    made = await channel(server.public, TYPE, NOTES)
    async with listening_to(server, made) as socket:
        with pytest.raises(Closed) as closed:
            await socket.receive()
        assert closed.value.code == 1008


async def test_a_server_that_stops_says_so(start: Start) -> None:
    server = await start()
    made = await channel(server.alice, TYPE, NOTES)
    async with listening_to(server, made) as socket:
        draining = asyncio.create_task(server.application.drain())
        with pytest.raises(Closed) as closed:
            await socket.receive()
        assert closed.value.code == 1001
        await draining


async def test_a_client_that_reads_nothing_is_disconnected(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N-31: nobody is told of less than everything without knowing it."""
    monkeypatch.setattr(websocket, "SEND_TIMEOUT_S", 0.01)
    made = await channel(server.alice, TYPE, NOTES)
    async with listening_to(server, made) as socket:
        socket.stalled = True
        await put(server)
        with pytest.raises(Closed) as closed:
            await socket.receive()
        assert closed.value.code == 1013


@pytest.mark.parametrize("channel_type", [TYPE, "EventSourceChannel2023"])
async def test_an_address_has_a_limited_number_of_listeners(
    start: Start, channel_type: str
) -> None:
    """N-31: sockets and streams together."""
    server = await start(sockets_per_address=1)
    held = await channel(server.alice, TYPE, NOTES)
    made = await channel(server.alice, channel_type, NOTES)
    async with listening_to(server, held):
        if channel_type == TYPE:
            with pytest.raises(Refused) as refused:
                async with listening_to(server, made):
                    pass
            assert refused.value.status == 429
        else:
            assert (await server.public.get(path_of(made["receiveFrom"]))).status == 429
    async with listening_to(server, held):
        pass


async def test_changes_by_other_workers_are_heard(server: Server, settings: Settings) -> None:
    """N-19."""
    made = await channel(server.alice, TYPE, NOTES)
    async with running(settings) as other, listening_to(server, made) as socket:
        assert (await server.alice.asking(other).put(NOTES, "", TURTLE)).status == 201
        assert await told(socket, 1) == ["Create"]


async def test_a_changed_state_is_notified_when_the_socket_opens(server: Server) -> None:
    """N-14."""
    await put(server)
    made = await channel(server.alice, TYPE, NOTES, state="another")
    async with listening_to(server, made) as socket:
        assert await told(socket, 1) == ["Update"]


# --- socket sender -----------------------------------------------------------------------------
#
# Messages go to a socket at once where that is possible, in their order, one at a time.


class Connection:
    """An HTTP server that passes on each message when it is told to."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.outstanding: list[asyncio.Future[None]] = []

    def send(self, message: Message) -> asyncio.Future[None]:
        """As granian does, begin to send before anything is awaited."""
        self.texts.append(message["text"])
        self.outstanding.append(asyncio.get_running_loop().create_future())
        return self.outstanding[-1]

    async def receive(self) -> Message:
        raise NotImplementedError

    def pass_on(self) -> None:
        """The client has taken the outstanding message."""
        self.outstanding[-1].set_result(None)

    def break_off(self) -> None:
        """The client has disconnected."""
        self.outstanding[-1].set_exception(RuntimeError("Transport closed"))


async def turns() -> None:
    """Let every task do what it can."""
    for _ in range(10):
        await asyncio.sleep(0)


def texts(item: QueueItem) -> list[str]:
    assert isinstance(item, str)
    return item.split()


@asynccontextmanager
async def serving(
    connection: Connection, queue: SubscriberQueue
) -> AsyncIterator[asyncio.Task[None]]:
    """A reader that sends what it gets, as the endpoints do."""
    sender = SocketSender(WebSocket({}, connection.receive, connection.send), queue)
    sender.send_at_once(texts)

    async def read() -> None:
        while True:
            for text in texts(await queue.next()):
                await sender.send(text)

    reading = asyncio.create_task(read())
    await turns()
    try:
        yield reading
    finally:
        sender.stop()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def test_a_message_goes_out_without_a_turn_of_the_loop() -> None:
    connection, queue = Connection(), SubscriberQueue()
    async with serving(connection, queue):
        queue.put("a")
        assert connection.texts == ["a"]


async def test_one_message_is_outstanding_and_the_next_ones_wait_in_order() -> None:
    """N-31: what a client does not take fills its own queue, and no buffer without a bound."""
    connection, queue = Connection(), SubscriberQueue()
    async with serving(connection, queue):
        for text in ("a b", "c", "d"):
            queue.put(text)
        await turns()
        for known in (["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]):
            assert connection.texts == known
            connection.pass_on()
            await turns()
        queue.put("e")
        assert connection.texts[-1] == "e"


async def test_a_queue_with_items_is_not_overtaken() -> None:
    connection, queue = Connection(), SubscriberQueue()
    async with serving(connection, queue):
        queue.put("a")
        queue.put("b")
        connection.pass_on()  # before the reader has had a turn to send what waits
        queue.put("c")
        assert connection.texts == ["a"]
        await turns()
        connection.pass_on()
        await turns()
        assert connection.texts == ["a", "b", "c"]


async def test_a_client_that_takes_nothing_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """N-31: also if no other message comes."""
    monkeypatch.setattr(websocket, "SEND_TIMEOUT_S", 0.01)
    connection, queue = Connection(), SubscriberQueue()
    async with serving(connection, queue) as reading:
        queue.put("a")
        with pytest.raises(QueueClosed):
            await reading
        assert queue.ending is EndReason.SLOW


async def test_the_limit_begins_with_the_outstanding_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """N-31: a later message that waits for it does not extend it."""
    monkeypatch.setattr(websocket, "SEND_TIMEOUT_S", 0.01)
    connection, queue = Connection(), SubscriberQueue()
    async with serving(connection, queue) as reading:
        queue.put("a")
        queue.put("b")
        with pytest.raises(TimeoutError):
            await reading
        assert connection.texts == ["a"]


async def test_a_client_that_takes_its_messages_is_not_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one timer of a socket is for the message that is outstanding when it rings."""
    monkeypatch.setattr(websocket, "SEND_TIMEOUT_S", 0.01)
    connection, queue = Connection(), SubscriberQueue()
    async with serving(connection, queue) as reading:
        queue.put("a")
        connection.pass_on()
        await asyncio.sleep(0.02)  # it rings
        assert queue.ending is None
        queue.put("b")
        with pytest.raises(QueueClosed):
            await reading
        assert queue.ending is EndReason.SLOW


async def test_a_client_that_has_left_is_noticed_by_the_reader() -> None:
    connection, queue = Connection(), SubscriberQueue()
    async with serving(connection, queue) as reading:
        queue.put("a")
        connection.break_off()
        queue.put("b")
        with pytest.raises(SocketClosed):
            await reading
        assert connection.texts == ["a"]


async def test_nothing_is_sent_at_once_after_the_end() -> None:
    connection, queue = Connection(), SubscriberQueue()
    async with serving(connection, queue):
        pass
    reading = asyncio.create_task(queue.next())
    await turns()
    queue.put("a")
    assert await reading == "a"
    assert connection.texts == []
