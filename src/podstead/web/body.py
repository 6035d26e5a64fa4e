"""Receives request bodies, with limits on size and time, and never truncated unnoticed.

The HTTP server reports truncation as ``http.disconnect``, and checks neither sizes nor pauses. This
module does all three. It also receives the rest of a body after an early response.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

from podstead.core.clock import Clock
from podstead.core.codes import CoreCodes
from podstead.core.errors import BadRequest, BodyTimeout, BodyTooLarge, NotAuthenticated
from podstead.core.operation import RequestBody
from podstead.web.asgi import HeaderFields, Message, Receive, Scope
from podstead.web.codes import WebCodes

# Deadlines of waits for clients. One timer watches all waits of an event loop.
#
# A timeout of its own for each wait, as in ``asyncio.timeout``, creates and cancels a timer for
# each message, although nearly all messages arrive at once. Here, beginning and ending a wait is an
# entry in a dictionary, and a timer looks through the entries every ``LOOK_PERIOD_S`` as long as
# there are any. So a wait ends with a timeout within that period after its deadline, never before.

LOOK_PERIOD_S: Final = 0.5


class Deadlines:
    """The deadlines of the tasks of one event loop."""

    __slots__ = ("_now_s", "_pending", "_period_s", "_timer")

    def __init__(
        self, *, period_s: float = LOOK_PERIOD_S, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._now_s = now_s
        self._period_s = period_s
        self._pending: set[Wait] = set()
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, timeout_s: float) -> Wait:
        """A context in which the current task may wait for ``timeout_s``. After that, ``with``
        raises TimeoutError."""
        return Wait(self, self._now_s() + timeout_s)

    def begin(self, wait: Wait) -> None:
        """Watch a wait until it ends."""
        self._pending.add(wait)
        if self._timer is None:
            self._look_later()

    def end(self, wait: Wait) -> None:
        """Stop watching a wait."""
        # The timer is left alone: cancelling it for each wait would cost what this module saves.
        self._pending.discard(wait)

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._period_s, self._look)

    def _look(self) -> None:
        now_s = self._now_s()
        for wait in [each for each in self._pending if each.until_s <= now_s]:
            self._pending.discard(wait)
            wait.expire()
        self._timer = None
        if self._pending:
            self._look_later()


class Wait:
    """One wait of a task, which is cancelled if it takes too long (as in ``asyncio.Timeout``)."""

    __slots__ = ("_cancelling", "_deadlines", "_expired", "_task", "until_s")

    def __init__(self, deadlines: Deadlines, until_s: float) -> None:
        self._deadlines = deadlines
        self.until_s = until_s
        self._expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("Only a task can wait")
        self._task = task
        self._cancelling = task.cancelling()
        self._deadlines.begin(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._expired:
            self._deadlines.end(self)
        # If others have cancelled the task as well, the cancellation is theirs and goes on.
        elif self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """Cancel the task, because the time is over."""
        self._expired = True
        self._task.cancel()


LINGER_S = 5.0
"""How long the server waits for the rest of a body after the response."""
LINGER_BYTES = 4 * 1024 * 1024
"""How much of such a rest the server receives before it closes the connection."""

_MAX_LENGTH_DIGITS = 19
"""No body is that long, and Python refuses to parse numbers with far more digits."""

_BODY_HEADERS = (b"content-length", b"transfer-encoding")


MIN_BYTES_PER_S = 100
"""A client that sends a body more slowly holds the connection on purpose or will never finish."""


class RequestReceiver:
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


# Credentials are checked before the server reads the body, and a large body may take hours to
# arrive. So they are checked again when the body is complete, before it is stored, in case they
# have been revoked. Something that receives the body piece by piece may act on it before the end,
# so they are also checked before pieces, at intervals.

RECHECK_AFTER_MS: Final = 1000
"""The minimum time between two checks. A request could have arrived this much earlier anyway."""


class RecheckedBody:
    """A body that has the credentials checked again if it takes long (:class:`RequestBody`).

    Both ways of receiving it raise what ``check_again`` raises.
    """

    __slots__ = ("_body", "_checked_ms", "_clock", "_recheck", "announced", "size_bytes")

    def __init__(
        self, body: RequestBody, *, check_again: Callable[[], Awaitable[None]], clock: Clock
    ) -> None:
        """``check_again`` is called when the body is complete and, until then, once a second."""
        self._body = body
        self._recheck = check_again
        self._clock = clock
        self._checked_ms = clock.now_ms()
        self.announced = body.announced
        self.size_bytes = body.size_bytes

    async def read(self, *, limit_bytes: int) -> bytes:
        """Receive the whole body."""
        content = await self._body.read(limit_bytes=limit_bytes)
        await self._check()
        return content

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        """Receive the body piece by piece."""
        async for chunk in self._body.chunks(limit_bytes=limit_bytes):
            await self._check()
            yield chunk
        await self._check()

    async def _check(self) -> None:
        now_ms = self._clock.now_ms()
        # If the clock was set back, the elapsed time is unknown, so the check is repeated, too.
        if not 0 <= now_ms - self._checked_ms < RECHECK_AFTER_MS:
            await self._recheck()
            self._checked_ms = now_ms


# Content that was signed is hashed as it arrives, before it takes effect. A write stages its
# content piece by piece and commits it after the end. A wrong hash ends the content with an error,
# like a client that disconnects, so nothing of it is stored.


class SignedContent:
    """A body that must have the SHA-256 hash that was signed
    (:class:`~podstead.core.operation.RequestBody`).

    Both ways of receiving it raise NotAuthenticated if it has a different hash.
    """

    __slots__ = ("_body", "_digest", "_scheme", "announced", "size_bytes")

    def __init__(self, body: RequestBody, *, digest: bytes, scheme: str) -> None:
        """``scheme`` is the scheme of the credential, for the challenge."""
        self._body = body
        self._scheme = scheme
        self._digest = digest
        self.announced = body.announced
        self.size_bytes = body.size_bytes

    async def read(self, *, limit_bytes: int) -> bytes:
        """Receive the whole body."""
        content = await self._body.read(limit_bytes=limit_bytes)
        self._check(hashlib.sha256(content).digest())
        return content

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        """Receive the body piece by piece."""
        hashed = hashlib.sha256()
        async for chunk in self._body.chunks(limit_bytes=limit_bytes):
            hashed.update(chunk)
            yield chunk
        self._check(hashed.digest())

    def _check(self, digest: bytes) -> None:
        if digest != self._digest:
            raise NotAuthenticated(
                "The event was signed for different content", invalid=True, scheme=self._scheme
            )
