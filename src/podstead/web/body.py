"""How is a request body received? Bounded, with a time-out, and never taken for whole when cut.

The server hands truncation over as ``http.disconnect``, and checks neither sizes nor pauses
itself; all three are done here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from podstead.core.errors import BadRequest, BodyTimeout, BodyTooLarge
from podstead.web.asgi import Message, Receive
from podstead.web.fields import HeaderFields


class AsgiBody:
    """The body of one request (:class:`podstead.core.operation.RequestBody`)."""

    __slots__ = ("_first", "_idle_timeout_s", "_receive", "announced", "size_bytes")

    def __init__(self, receive: Receive, fields: HeaderFields, *, idle_timeout_s: float) -> None:
        """Raises BadRequest for a Content-Length that is no number."""
        self._receive = receive
        self._idle_timeout_s = idle_timeout_s
        self._first: Message | None = None
        self.size_bytes = _content_length(fields)
        self.announced = (self.size_bytes or 0) > 0 or b"transfer-encoding" in fields

    async def look_ahead(self) -> None:
        """Find out whether content follows where no header tells (HTTP/2 without a length)."""
        self._first = await self._next_message()
        self.announced = bool(self._first.get("body")) or bool(self._first.get("more_body"))

    async def read(self, *, limit_bytes: int) -> bytes:
        """Receive the whole body; see :class:`~podstead.core.operation.RequestBody`."""
        parts = [chunk async for chunk in self.chunks(limit_bytes=limit_bytes)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        """Receive the body piece by piece."""
        if self.size_bytes is not None and self.size_bytes > limit_bytes:
            raise _too_large(limit_bytes)
        received_bytes = 0
        more = True
        while more:
            message = self._first or await self._next_message()
            self._first = None
            chunk: bytes = message.get("body", b"")
            more = message.get("more_body", False)
            received_bytes += len(chunk)
            if received_bytes > limit_bytes:
                raise _too_large(limit_bytes)
            if chunk:
                yield chunk
        if self.size_bytes is not None and received_bytes != self.size_bytes:
            raise BadRequest("The body is shorter or longer than its Content-Length")

    async def _next_message(self) -> Message:
        try:
            async with asyncio.timeout(self._idle_timeout_s):
                message = await self._receive()
        except TimeoutError as error:
            raise BodyTimeout("The request body did not arrive in time") from error
        if message["type"] == "http.disconnect":
            raise BadRequest("The request body ended early")
        return message


def _content_length(fields: HeaderFields) -> int | None:
    value = fields.get(b"content-length")
    if value is None:
        return None
    if not (value.isascii() and value.isdigit()):
        raise BadRequest("Content-Length must be a number")
    return int(value)


def _too_large(limit_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(f"The body is larger than the limit of {limit_bytes} bytes")
