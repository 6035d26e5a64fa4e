"""Messages go to a socket at once where that is possible, in their order, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from podstead.notifications.deliveries import (
    EndReason,
    QueueClosed,
    QueueItem,
    SubscriberQueue,
)
from podstead.web import websocket
from podstead.web.asgi import Message
from podstead.web.websocket import SocketClosed, SocketSender, WebSocket


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
