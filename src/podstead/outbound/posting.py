"""Sends content to other servers with POST, through the same guard as every fetch.

No redirect is followed. Of the response to a notification only the status is used and no body is
read, so nobody can use this server to explore the network around it (A-187). The response of a
provider is read within a limit, and shown to nobody.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from podstead.core.request_context import requester
from podstead.outbound.bodies import read_body
from podstead.outbound.circuit_breaker import Circuit
from podstead.outbound.errors import FetchFailed, TooSlow
from podstead.outbound.fetch import USER_AGENT
from podstead.outbound.fetch_limits import FetchLimits, Share
from podstead.outbound.foreign_documents import Purpose
from podstead.outbound.guard import Guard
from podstead.outbound.outcomes import Outcomes
from podstead.outbound.transport import RemoteResponse, exchange
from podstead.outbound.urls import Origin

MAX_RESPONSE_BYTES = 64 * 1024
"""The largest response of a provider that is read."""


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
        self._tls = tls
        self._limits = limits
        self._slots = FetchLimits()
        self.outcomes = Outcomes()

    async def check(self, url: str) -> None:
        """Raises Refused if the text of the URL shows that nothing may be sent to it."""
        target = self._guard.admit(url)
        if target.literal is not None:
            await self._guard.vet(target)

    def _shares(self, purpose: Purpose, origin: Origin) -> list[Share]:
        limits, client = self._limits, requester()
        shares = [Share(Circuit(purpose, origin), limits.max_concurrent_per_origin)]
        if client:
            shares.append(Share((client, purpose), limits.max_concurrent_per_requester))
        return [*shares, Share(purpose, limits.max_concurrent)]

    async def ask(self, url: str, content: bytes, headers: Mapping[str, str]) -> PostReply:
        """Send the content to a provider and return the response. Raises FetchFailed."""
        async with self._sending(url, content, headers, Purpose.PROVIDER) as response:
            body = await read_body(
                response.chunks,
                content_coding=response.headers.get("Content-Encoding", ""),
                max_wire_bytes=MAX_RESPONSE_BYTES,
                max_content_bytes=MAX_RESPONSE_BYTES,
            )
            fields = {name.lower(): value for name, value in response.headers.items()}
            return PostReply(response.status, body, fields)

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        """Send the content and return the status of the response. Raises FetchFailed."""
        async with self._sending(url, content, headers, Purpose.WEBHOOK) as response:
            return response.status

    @asynccontextmanager
    async def _sending(
        self, url: str, content: bytes, headers: Mapping[str, str], purpose: Purpose
    ) -> AsyncIterator[RemoteResponse]:
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
    ) -> AsyncIterator[RemoteResponse]:
        target = self._guard.admit(url)
        limits = self._limits
        deadline_s = asyncio.get_running_loop().time() + limits.total_timeout_s
        async with self._slots.hold(self._shares(purpose, target.origin), deadline_s):
            try:
                async with asyncio.timeout_at(deadline_s):
                    destination = await self._guard.vet(target)
                    async with exchange(
                        destination,
                        headers={**headers, "User-Agent": USER_AGENT},
                        connect_timeout_s=limits.connect_timeout_s,
                        open_socket=partial(self._guard.open_socket, reach=target.reach),
                        tls=self._tls,
                        method="POST",
                        content=content,
                    ) as response:
                        yield response
            except TimeoutError as error:
                raise TooSlow from error
