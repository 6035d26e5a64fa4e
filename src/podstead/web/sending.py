"""How do the bytes of a response get out? Whole, as a file by the server, or piece by piece.

After a client has gone the server goes on taking pieces, so a stream watches for the disconnect
itself and ends; nothing is read any more, and what was open for reading is closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator

from podstead.core.errors import PodsteadError
from podstead.web.asgi import Receive, Scope, Send
from podstead.web.response import Response

logger = logging.getLogger("podstead.web")

_FILE_EXTENSION = "http.response.pathsend"


async def send_response(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send one response."""
    start = {
        "type": "http.response.start",
        "status": response.status,
        "headers": response.headers,
    }
    body = response.body
    await send(start)
    if isinstance(body, bytes):
        whole = body if response.last is None else body[response.first : response.last + 1]
        await send({"type": "http.response.body", "body": whole})
        return
    if isinstance(body, AsyncIterator):
        await _stream(body, receive, send)
        return
    if body.content is not None:
        end = None if response.last is None else response.last + 1
        await send({"type": "http.response.body", "body": body.content[response.first : end]})
    elif response.last is None and body.file_path and _FILE_EXTENSION in scope["extensions"]:
        await send({"type": _FILE_EXTENSION, "path": body.file_path})
    else:
        end = None if response.last is None else response.last + 1
        await _stream(body.chunks(response.first, end), receive, send)


async def _stream(pieces: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        async for piece in pieces:
            if gone.done():
                return
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except PodsteadError:
        # The status is out already. Not ending the body lets the client see that it is cut.
        logger.exception("A body could not be sent to its end")
        raise
    finally:
        gone.cancel()
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
    await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
