"""Sends responses: as a whole, as a file that the HTTP server reads, or in pieces.

The HTTP server keeps accepting pieces after the client has disconnected. So a stream watches for
the disconnect itself and ends, even while it waits for its next piece, and closes what it reads.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

from podstead.core.errors import PodsteadError
from podstead.storage.open_body import OpenBody
from podstead.web.asgi import Receive, Scope, Send
from podstead.web.response import Response

logger = logging.getLogger("podstead.web")

TAKE_TIMEOUT_S = 30.0
"""The default time for which a client may take nothing of a streamed body."""

_FILE_EXTENSION = "http.response.pathsend"

_OPENED_WITHIN_S = 1.0
"""Half of the time that the HTTP server has for opening a file."""


@runtime_checkable
class Closable(Protocol):
    """An iterator that holds resources until it is closed, such as an asynchronous generator."""

    async def aclose(self) -> None: ...


class BodyTruncated(Exception):
    """Has the HTTP server end the connection within a body. Why has been logged."""


async def send_response(
    response: Response,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    take_timeout_s: float = TAKE_TIMEOUT_S,
) -> None:
    """Send one response. A client that takes nothing of a stream for ``take_timeout_s`` is treated
    as disconnected; over HTTP/2 its connection may still be receiving other responses."""
    start = {
        "type": "http.response.start",
        "status": response.status,
        "headers": response.headers,
    }
    body = response.body
    if not isinstance(body, bytes) and isinstance(body, AsyncIterator):  # the latter is slow
        async with _closing(body):
            await send(start)
            await _stream(body, receive, send, take_timeout_s)
        return
    await send(start)
    if isinstance(body, bytes):
        whole = body if response.last is None else body[response.first : response.last + 1]
        await send({"type": "http.response.body", "body": whole})
    elif body.content is not None:
        end = None if response.last is None else response.last + 1
        await send({"type": "http.response.body", "body": body.content[response.first : end]})
    elif (
        response.last is None
        and _FILE_EXTENSION in scope["extensions"]
        and (path := body.file_path) is not None
    ):
        await send({"type": _FILE_EXTENSION, "path": path})
        _keep_until_opened(body)
    else:
        end = None if response.last is None else response.last + 1
        chunks = body.chunks(response.first, end)
        async with _closing(chunks):
            await _stream(chunks, receive, send, take_timeout_s)


def _keep_until_opened(body: OpenBody) -> None:
    """Refer to the body for a while, so that its file is not removed.

    The HTTP server opens the file after it has returned, and does not say when. The time is divided
    in two, so that there is some left for it after the process was stopped meanwhile.
    """
    loop = asyncio.get_running_loop()
    loop.call_later(_OPENED_WITHIN_S, loop.call_later, _OPENED_WITHIN_S, id, body)


@asynccontextmanager
async def _closing(pieces: AsyncIterator[bytes]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        if isinstance(pieces, Closable):
            await pieces.aclose()


async def _stream(
    pieces: AsyncIterator[bytes], receive: Receive, send: Send, take_timeout_s: float
) -> None:
    client = _Client(receive)
    try:
        async for piece in pieces:
            if client.has_left:
                return
            sending = asyncio.timeout(take_timeout_s)
            try:
                async with sending:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            except TimeoutError:
                if sending.expired():
                    return
                raise
    except asyncio.CancelledError:
        if not client.cancelled:
            raise
        client.departure_was_taken()
        return
    except PodsteadError:
        # The status has been sent. From the missing end the client sees that the body is cut.
        logger.exception("A body could not be sent to its end")
        raise BodyTruncated from None
    finally:
        client.forget()
    await send({"type": "http.response.body", "body": b""})


class _Client:
    """Cancels the current task when the client disconnects."""

    def __init__(self, receive: Receive) -> None:
        self._task = asyncio.current_task()
        self._gone = asyncio.ensure_future(_disconnected(receive))
        self._gone.add_done_callback(self._leave)
        self.cancelled = False

    @property
    def has_left(self) -> bool:
        return self._gone.done()

    def _leave(self, gone: asyncio.Future[None]) -> None:
        if self._task is not None and not gone.cancelled() and gone.exception() is None:
            self.cancelled = True
            self._task.cancel()

    def departure_was_taken(self) -> None:
        """Handle the cancellation here, so that it goes no further (as in asyncio.timeout)."""
        if self._task is not None:
            self._task.uncancel()

    def forget(self) -> None:
        """Stop watching."""
        self._task = None  # a callback that is already scheduled cannot be cancelled
        self._gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
