"""A body that is generated while it is sent: in pieces, as long as the client reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from podstead.web.asgi import Message, Scope
from podstead.web.response import Response
from podstead.web.sending import send_response

SCOPE: Scope = {"extensions": {}}


class Pieces:
    """Numbers, and whether anybody may still ask for more of them."""

    def __init__(self) -> None:
        self.made = 0
        self.closed = False

    async def make(self) -> AsyncIterator[bytes]:
        try:
            while self.made < 10:
                self.made += 1
                yield b"%d" % self.made
        finally:
            self.closed = True


class Client:
    """Takes what is sent, and leaves, or breaks down, at some message."""

    def __init__(self, *, leaves_at: int = 99, breaks_at: int = 99) -> None:
        self.taken: list[Message] = []
        self._leaves_at, self._breaks_at = leaves_at, breaks_at
        self._gone = asyncio.Event()

    async def receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.taken.append(message)
        if len(self.taken) >= self._breaks_at:
            raise ConnectionResetError
        if len(self.taken) >= self._leaves_at:
            self._gone.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_every_piece_and_the_end_are_sent() -> None:
    pieces, client = Pieces(), Client()
    await send_response(Response(200, [], pieces.make()), SCOPE, client.receive, client.send)
    start, *body, end = client.taken
    assert (start["type"], start["status"]) == ("http.response.start", 200)
    assert [(m["body"], m["more_body"]) for m in body] == [
        (b"%d" % number, True) for number in range(1, 11)
    ]
    assert (end["body"], end.get("more_body", False)) == (b"", False)
    assert pieces.closed


@pytest.mark.parametrize("leaves_at", [2, 5])
async def test_nothing_is_created_for_a_disconnected_client_and_open_files_are_closed(
    leaves_at: int,
) -> None:
    pieces, client = Pieces(), Client(leaves_at=leaves_at)
    body = pieces.make()  # held here, so that nothing but the sender closes it
    await send_response(Response(200, [], body), SCOPE, client.receive, client.send)
    await asyncio.sleep(0)  # where a cancellation that came too late would strike
    assert len(client.taken) == leaves_at, "an end would say that the body was whole"
    assert pieces.made <= leaves_at
    assert pieces.closed


async def test_who_leaves_while_nothing_is_to_be_sent_ends_the_wait() -> None:
    """As on a stream of notifications, which may be quiet for long."""
    client, closed = Client(leaves_at=2), asyncio.Event()

    async def make() -> AsyncIterator[bytes]:
        try:
            yield b"1"
            await asyncio.Event().wait()
        finally:
            closed.set()

    body = make()
    await send_response(Response(200, [], body), SCOPE, client.receive, client.send)
    assert [message.get("body") for message in client.taken] == [None, b"1"]
    assert closed.is_set()
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling(), "what comes after the response is not cancelled"


async def test_a_stream_that_is_cancelled_by_others_is_cancelled() -> None:
    client, waiting = Client(), asyncio.Event()

    async def make() -> AsyncIterator[bytes]:
        yield b"1"
        waiting.set()
        await asyncio.Event().wait()

    body = make()
    sending = send_response(Response(200, [], body), SCOPE, client.receive, client.send)
    task = asyncio.create_task(sending)
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Held(AsyncIterator[bytes]):
    """Pieces that hold something from the beginning."""

    def __init__(self) -> None:
        self.closed = False

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed = True


async def test_what_was_open_is_closed_though_nothing_was_ever_sent() -> None:
    pieces, client = Held(), Client(breaks_at=1)
    with pytest.raises(ConnectionResetError):
        await send_response(Response(200, [], pieces), SCOPE, client.receive, client.send)
    assert pieces.closed


async def test_a_connection_that_breaks_closes_what_was_open_too() -> None:
    pieces, client = Pieces(), Client(breaks_at=3)
    body = pieces.make()
    with pytest.raises(ConnectionResetError):
        await send_response(Response(200, [], body), SCOPE, client.receive, client.send)
    assert (pieces.made, pieces.closed) == (2, True)


async def test_a_client_that_reads_nothing_is_treated_as_disconnected() -> None:
    class Stalled(Client):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if len(self.taken) == 3:
                await asyncio.Event().wait()

    pieces, client = Pieces(), Stalled()
    await send_response(
        Response(200, [], pieces.make()), SCOPE, client.receive, client.send, take_timeout_s=0.01
    )
    assert len(client.taken) == 3, "an end would say that the body was whole"
    assert pieces.closed
