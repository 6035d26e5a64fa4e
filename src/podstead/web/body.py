"""How is a request body received? With limits on size and time, and never truncated unnoticed.

The HTTP server reports truncation as ``http.disconnect``, and checks neither sizes nor pauses. This
module does all three. It also receives the rest of a body after an early response.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from podstead.core.codes import CoreCodes
from podstead.core.errors import BadRequest, BodyTimeout, BodyTooLarge
from podstead.web.asgi import Message, Receive, Scope
from podstead.web.codes import WebCodes
from podstead.web.deadlines import Deadlines
from podstead.web.fields import HeaderFields

LINGER_S = 5.0
"""How long the server waits for the rest of a body after the response."""
LINGER_BYTES = 4 * 1024 * 1024
"""How much of such a rest the server receives before it closes the connection."""

_MAX_LENGTH_DIGITS = 19
"""No body is that long, and Python refuses to parse numbers with far more digits."""

_BODY_HEADERS = (b"content-length", b"transfer-encoding")


MIN_BYTES_PER_S = 100
"""A client that sends a body more slowly holds the connection on purpose or will never finish."""


class Incoming:
    """Receives the messages of one request, and knows whether more of its body is to come.

    The HTTP server reports the end of a body in a message of its own, which passes through three
    threads. But an HTTP/1.1 body that has its Content-Length is complete (RFC 9112 section 6.3):
    whatever follows on the connection is the next request. So the message with its last byte is the
    last one.
    """

    __slots__ = ("_ended", "_missing_bytes", "_receive", "_scope", "_started")

    def __init__(self, receive: Receive, scope: Scope) -> None:
        self._receive = receive
        self._scope = scope
        self._missing_bytes: int | None = None
        """How much of a body with a known length is still to come."""
        self._started = False
        self._ended = False

    async def __call__(self) -> Message:
        """The next message (:data:`podstead.web.asgi.Receive`)."""
        if not self._started:
            self._missing_bytes = _length_that_ends(self._scope)
        self._started = self._ended = True  # remains so if waiting is cancelled
        message = await self._receive()
        more = message.get("more_body", False)
        if more and self._missing_bytes is not None:
            self._missing_bytes -= len(message["body"])
            if not self._missing_bytes:
                more = message["more_body"] = False
        self._ended = not more
        return message

    async def linger(self) -> None:
        """Receive and discard the rest of a body after an early response.

        Closing the connection while the client is still sending resets it, and the client may lose
        the response. A client that waits for ``100 Continue`` is not asked to send its body.
        """
        if self._ended or not (self._started or _is_sending(self._scope)):
            return
        received_bytes = 0
        more = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while more and received_bytes < LINGER_BYTES:
                    message = await self()
                    received_bytes += len(message.get("body", b""))
                    more = message.get("more_body", False)


def _length_that_ends(scope: Scope) -> int | None:
    """The Content-Length, if it alone says where the body ends: in HTTP/2, a flag of the last frame
    does, and in HTTP/1.1, Transfer-Encoding takes precedence."""
    length = None
    for name, value in scope["headers"]:
        if name == b"content-length":
            length = value
        elif name == b"transfer-encoding":
            return None
    if length is None or not _is_length(length) or scope["http_version"] == "2":
        return None
    return int(length)


def _is_sending(scope: Scope) -> bool:
    """Whether a body follows the headers without waiting for ``100 Continue``."""
    names = [name for name, _ in scope["headers"]]
    return any(name in names for name in _BODY_HEADERS) and b"expect" not in names


@dataclass(frozen=True, slots=True)
class BodyPace:
    """How slowly a body may arrive: it may pause for ``idle_timeout_s``, and must otherwise arrive
    at ``min_bytes_per_s``; with 0 there is no minimum rate.

    If the timeout began anew with each piece, a client could hold a connection for any time by
    sending a byte now and then. So each piece only restores as much time as its size allows.

    All bodies of a worker share the ``deadlines``.
    """

    idle_timeout_s: float
    min_bytes_per_s: float = MIN_BYTES_PER_S
    deadlines: Deadlines = field(default_factory=Deadlines, compare=False)

    def patience_s(self, before_s: float, *, waited_s: float, received_bytes: int) -> float:
        """How long to wait for the next piece, after one that could take ``before_s``; negative if
        that one was too late."""
        left_s = before_s - waited_s
        if left_s < 0:
            return left_s
        if not self.min_bytes_per_s:
            return self.idle_timeout_s
        return min(self.idle_timeout_s, left_s + received_bytes / self.min_bytes_per_s)


class AsgiBody:
    """The body of one request (:class:`podstead.core.operation.RequestBody`)."""

    __slots__ = (
        "_ended",
        "_first",
        "_now_s",
        "_pace",
        "_patience_s",
        "_receive",
        "_received_bytes",
        "announced",
        "size_bytes",
    )

    def __init__(
        self,
        receive: Receive,
        fields: HeaderFields,
        *,
        pace: BodyPace,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises BadRequest for a Content-Length that is not a number, and for a Transfer-Encoding
        other than ``chunked``."""
        self._receive = receive
        self._pace = pace
        self._now_s = now_s
        self._patience_s = pace.idle_timeout_s
        self._first: Message | None = None
        self._received_bytes = 0
        self._ended = False
        self.size_bytes = _content_length(fields)
        self.announced = (self.size_bytes or 0) > 0 or _is_chunked(fields)

    async def look_ahead(self) -> None:
        """Find out whether content follows if no header says so (HTTP/2 without a length)."""
        self._first = await self._next_message()
        self.announced = bool(self._first.get("body")) or bool(self._first.get("more_body"))

    async def read(self, *, limit_bytes: int) -> bytes:
        """Receive the whole body; see :class:`~podstead.core.operation.RequestBody`."""
        pieces = []
        while not self._ended:
            pieces.append(await self._next_piece(limit_bytes))
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        """Receive the body piece by piece."""
        while not self._ended:
            piece = await self._next_piece(limit_bytes)
            if piece:
                yield piece

    async def _next_piece(self, limit_bytes: int) -> bytes:
        """The content of the next message. Checks the limit and, after the last message, the
        announced length."""
        size_bytes = self.size_bytes
        if size_bytes is not None and size_bytes > limit_bytes:
            raise _too_large(limit_bytes)
        message = self._first or await self._next_message()
        self._first = None
        piece: bytes = message.get("body", b"")
        self._received_bytes += len(piece)
        if self._received_bytes > limit_bytes:
            raise _too_large(limit_bytes)
        self._ended = not message.get("more_body", False)
        if self._ended and size_bytes is not None and self._received_bytes != size_bytes:
            raise BadRequest(WebCodes.BODY_LENGTH_DIFFERS)
        return piece

    async def _next_message(self) -> Message:
        asked_s = self._now_s()
        try:
            with self._pace.deadlines.wait(self._patience_s):
                message = await self._receive()
        except TimeoutError as error:
            raise self._too_slow() from error
        self._patience_s = self._pace.patience_s(
            self._patience_s,
            waited_s=self._now_s() - asked_s,
            received_bytes=len(message.get("body", b"")),
        )
        if self._patience_s < 0:
            raise self._too_slow()
        if message["type"] == "http.disconnect":
            raise BadRequest(WebCodes.BODY_ENDED_EARLY)
        return message

    def _too_slow(self) -> BodyTimeout:
        rate = self._pace.min_bytes_per_s
        if not rate:
            return BodyTimeout(WebCodes.BODY_TIMEOUT)
        return BodyTimeout(WebCodes.BODY_TOO_SLOW, number=f"{rate:g}")


def _content_length(fields: HeaderFields) -> int | None:
    value = fields.get_raw(b"content-length")
    if value is None:
        return None
    if not _is_length(value):
        raise BadRequest("Content-Length must be a number")
    return int(value)


def _is_length(value: bytes) -> bool:
    return value.isdigit() and len(value) <= _MAX_LENGTH_DIGITS


def _is_chunked(fields: HeaderFields) -> bool:
    """Whether the body is chunked. The coding must be applied exactly once (RFC 9112 section 6.1),
    and the server supports no other transfer coding."""
    codings = fields.get(b"transfer-encoding")
    if codings is None:
        return False
    if codings.strip().lower() != "chunked":
        raise BadRequest("Transfer-Encoding must be chunked, exactly once")
    return True


def _too_large(limit_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(CoreCodes.TOO_LARGE, limit_bytes=limit_bytes)
