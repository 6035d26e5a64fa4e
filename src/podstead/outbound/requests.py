"""Sends requests that fetch no document to other servers, through the same guard as every fetch."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from podstead.core.request_context import requester
from podstead.outbound import transport
from podstead.outbound.errors import FetchFailed, TooSlow
from podstead.outbound.fetch import USER_AGENT, ConcurrencyLimit, ConcurrencyLimiter, Outcomes
from podstead.outbound.foreign_documents import Circuit, Purpose
from podstead.outbound.guard import Destination, Guard
from podstead.outbound.urls import Origin

# Content is sent to other servers with POST. No redirect is followed. Of the response to a
# notification only the status is used and no body is read, so nobody can use this server to explore
# the network around it. The response of a provider or a push service is read within a
# limit, and shown to nobody.

MAX_RESPONSE_BYTES = 64 * 1024
"""The largest response that is read."""


@dataclass(frozen=True, slots=True)
class PostLimits:
    """Limits for all POST requests of this process together."""

    connect_timeout_s: float = 3.0
    total_timeout_s: float = 10.0
    """For everything, including the wait for a slot."""
    max_concurrent: int = 64
    max_concurrent_per_requester: int = 16
    max_concurrent_per_origin: int = 4


@dataclass(frozen=True, slots=True)
class PostReply:
    """A response as it is, whatever its status; the names of ``fields`` are in lower case."""

    status: int
    content: bytes
    fields: Mapping[str, str]


class Poster:
    """Sends POST requests to other servers. Belongs to one event loop."""

    def __init__(self, guard: Guard, *, tls: ssl.SSLContext, limits: PostLimits) -> None:
        self._guard = guard
        self._connector = transport.Connector(guard, tls, limits.connect_timeout_s)
        self._limits = limits
        self._limiter = ConcurrencyLimiter()
        self.outcomes = Outcomes()

    async def check(self, url: str) -> None:
        """Raises Refused if the text of the URL shows that nothing may be sent to it."""
        target = self._guard.admit(url)
        if target.literal is not None:
            await self._guard.vet(target)

    def _limits_of(self, purpose: Purpose, origin: Origin) -> list[ConcurrencyLimit]:
        limits, client = self._limits, requester()
        within = [ConcurrencyLimit(Circuit(purpose, origin), limits.max_concurrent_per_origin)]
        if client:
            within.append(ConcurrencyLimit((client, purpose), limits.max_concurrent_per_requester))
        return [*within, ConcurrencyLimit(purpose, limits.max_concurrent)]

    async def ask(
        self, url: str, content: bytes, headers: Mapping[str, str], purpose: Purpose
    ) -> PostReply:
        """Send the content to a provider or a push service and return the response. Raises
        FetchFailed."""
        async with self._sending(url, content, headers, purpose) as response:
            body = await _content(response)
            fields = {name.lower(): value for name, value in response.headers.items()}
            return PostReply(response.status, body, fields)

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        """Send the content and return the status of the response. Raises FetchFailed."""
        async with self._sending(url, content, headers, Purpose.WEBHOOK) as response:
            return response.status

    @asynccontextmanager
    async def _sending(
        self, url: str, content: bytes, headers: Mapping[str, str], purpose: Purpose
    ) -> AsyncIterator[transport.RemoteResponse]:
        try:
            async with self._exchanged(url, content, headers, purpose) as response:
                yield response
        except FetchFailed as failure:
            self.outcomes.note(purpose, failure)
            raise
        self.outcomes.note(purpose, None)

    @asynccontextmanager
    async def _exchanged(
        self, url: str, content: bytes, headers: Mapping[str, str], purpose: Purpose
    ) -> AsyncIterator[transport.RemoteResponse]:
        target = self._guard.admit(url)
        limits = self._limits
        deadline_s = asyncio.get_running_loop().time() + limits.total_timeout_s
        async with self._limiter.acquire(self._limits_of(purpose, target.origin), deadline_s):
            try:
                async with asyncio.timeout_at(deadline_s):
                    destination = await self._guard.vet(target)
                    async with self._connector.exchange(
                        destination,
                        {**headers, "User-Agent": USER_AGENT},
                        method="POST",
                        content=content,
                    ) as response:
                        yield response
            except TimeoutError as error:
                raise TooSlow from error


# For commands: one request is sent and its response returned. No redirect is followed, and nothing
# is remembered or retried.

CONNECT_TIMEOUT_S: Final = 5.0
TOTAL_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class ReceivedResponse:
    """The response to one request."""

    status: int
    content: bytes
    fields: tuple[tuple[str, str], ...] = ()
    """The headers in their order, repeated ones included; names in lower case."""

    def field(self, name: str) -> str:
        """The value of the first header with this name (in lower case); empty if there is none."""
        return next((value for each, value in self.fields if each == name), "")


async def submit(
    submission: OutgoingRequest, guard: Guard, *, tls: ssl.SSLContext
) -> ReceivedResponse:
    """Send a request and wait for the response, whatever its status. Raises FetchFailed."""
    try:
        async with asyncio.timeout(TOTAL_TIMEOUT_S):
            return await _send(submission, guard, tls)
    except TimeoutError as error:
        raise TooSlow from error


async def _send(submission: OutgoingRequest, guard: Guard, tls: ssl.SSLContext) -> ReceivedResponse:
    async with transport.Connector(guard, tls, CONNECT_TIMEOUT_S).exchange(
        await guard.vet(guard.admit(submission.url)),
        {"Accept-Encoding": "gzip", **submission.headers},
        method=submission.method,
        content=submission.content,
    ) as response:
        content = b"" if submission.method == "HEAD" else await _content(response)
        fields = tuple((name.lower(), value) for name, value in response.headers.items())
        return ReceivedResponse(response.status, content, fields)


async def _content(response: transport.RemoteResponse) -> bytes:
    return await transport.read_body(
        response.chunks,
        content_coding=response.headers.get("Content-Encoding", ""),
        max_wire_bytes=MAX_RESPONSE_BYTES,
        max_content_bytes=MAX_RESPONSE_BYTES,
    )


# Opens long-lived connections for streams without an end, guarded like any other.
#
# Neither time nor the number of messages is limited; the reader limits the size of one message.
# Probes detect that the other end is gone (RFC 9293 section 3.8.4; pings of WebSockets).

OPEN_TIMEOUT_S: Final = 30.0
"""From the start until the head of the response has arrived."""

_FORMS: Final = {"ws://": "http://", "wss://": "https://"}
# After a minute of silence, three probes at intervals of ten seconds.
_PROBES: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))

_T = TypeVar("_T")


class LongLivedConnections:
    """Opens streams and WebSockets. Belongs to one event loop."""

    def __init__(self, guard: Guard, *, tls: ssl.SSLContext) -> None:
        self._guard = guard
        self._connector = transport.Connector(guard, tls, CONNECT_TIMEOUT_S, _probe)

    def stream(
        self, url: str, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[transport.RemoteResponse]:
        """The response to a GET, of any status, whose chunks arrive over time. Raises FetchFailed,
        also while it is read."""
        return self._opened(url, partial(self._connector.exchange, headers=headers))

    def web_socket(
        self, url: str, headers: Mapping[str, str], *, protocols: Sequence[str] = ()
    ) -> AbstractAsyncContextManager[transport.ClientWebSocket]:
        """A WebSocket at a URL with ``ws``, ``wss``, ``http`` or ``https``. Raises FetchFailed, and
        BadStatus if the server does not open one."""
        connect = partial(self._connector.web_socket, headers=headers, protocols=protocols)
        return self._opened(http_form(url), connect)

    @asynccontextmanager
    async def _opened(
        self, url: str, connect: Callable[[Destination], AbstractAsyncContextManager[_T]]
    ) -> AsyncIterator[_T]:
        """Open something within ``OPEN_TIMEOUT_S``. Raises TooSlow."""
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S) as patience:
                async with connect(await self._guard.vet(self._guard.admit(url))) as opened:
                    patience.reschedule(None)
                    yield opened
        except TimeoutError as error:
            raise TooSlow from error


def _probe(opened: socket.socket) -> None:
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES:
        if hasattr(socket, name):  # not on every system
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def http_form(url: str) -> str:
    """The URL of the request that opens a WebSocket (RFC 6455 section 3)."""
    for scheme, form in _FORMS.items():
        if url[: len(scheme)].lower() == scheme:
            return form + url[len(scheme) :]
    return url
