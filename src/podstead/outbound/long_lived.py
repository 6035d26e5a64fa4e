"""Opens long-lived connections for streams without an end, guarded like any other.

Neither time nor the number of messages is limited; the reader limits the size of one message.
Probes detect that the other end is gone (RFC 9293 section 3.8.4; pings of WebSockets).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final, TypeVar

from podstead.outbound.addresses import AddressScope
from podstead.outbound.errors import TooSlow
from podstead.outbound.guard import Guard
from podstead.outbound.transport import ClientWebSocket, RemoteResponse, exchange, open_web_socket

CONNECT_TIMEOUT_S: Final = 5.0
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
        self._tls = tls

    @asynccontextmanager
    async def stream(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[RemoteResponse]:
        """The response to a GET, of any status, whose chunks arrive over time. Raises FetchFailed,
        also while it is read."""
        async with _opened(self._stream(url, headers)) as response:
            yield response

    @asynccontextmanager
    async def web_socket(
        self, url: str, headers: Mapping[str, str], *, protocols: Sequence[str] = ()
    ) -> AsyncIterator[ClientWebSocket]:
        """A WebSocket at a URL with ``ws``, ``wss``, ``http`` or ``https``. Raises FetchFailed, and
        BadStatus if the server does not open one."""
        async with _opened(self._web_socket(url, headers, protocols)) as opened:
            yield opened

    @asynccontextmanager
    async def _stream(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[RemoteResponse]:
        target = self._guard.admit(url)
        async with exchange(
            await self._guard.vet(target),
            headers=headers,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            open_socket=partial(self._open_socket, reach=target.reach),
            tls=self._tls,
        ) as response:
            yield response

    @asynccontextmanager
    async def _web_socket(
        self, url: str, headers: Mapping[str, str], protocols: Sequence[str]
    ) -> AsyncIterator[ClientWebSocket]:
        target = self._guard.admit(http_form(url))
        async with open_web_socket(
            await self._guard.vet(target),
            headers=headers,
            protocols=protocols,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            open_socket=partial(self._open_socket, reach=target.reach),
            tls=self._tls,
        ) as opened:
            yield opened

    def _open_socket(self, address: str, reach: AddressScope) -> socket.socket:
        opened = self._guard.open_socket(address, reach)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _PROBES:
            if hasattr(socket, name):  # not on every system
                opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        return opened


def http_form(url: str) -> str:
    """The URL of the request that opens a WebSocket (RFC 6455 section 3)."""
    for scheme, form in _FORMS.items():
        if url[: len(scheme)].lower() == scheme:
            return form + url[len(scheme) :]
    return url


@asynccontextmanager
async def _opened(opening: AbstractAsyncContextManager[_T]) -> AsyncIterator[_T]:
    """Open something within ``OPEN_TIMEOUT_S``. Raises TooSlow."""
    try:
        async with asyncio.timeout(OPEN_TIMEOUT_S) as patience, opening as opened:
            patience.reschedule(None)
            yield opened
    except TimeoutError as error:
        raise TooSlow from error
