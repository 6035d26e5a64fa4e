"""Sends one request to another server and returns its response, guarded and limited.

No redirect is followed, and nothing is remembered or retried.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from podstead.outbound.bodies import read_body
from podstead.outbound.errors import TooSlow
from podstead.outbound.guard import Guard
from podstead.outbound.transport import RemoteResponse, exchange

CONNECT_TIMEOUT_S = 5.0
TOTAL_TIMEOUT_S = 30.0
MAX_RESPONSE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class OutgoingPost:
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class PostResponse:
    """The response to one request."""

    status: int
    content: bytes
    fields: tuple[tuple[str, str], ...] = ()
    """The headers in their order, repeated ones included; names in lower case."""

    def field(self, name: str) -> str:
        """The value of the first header with this name (in lower case); empty if there is none."""
        return next((value for each, value in self.fields if each == name), "")


async def submit(submission: OutgoingPost, guard: Guard, *, tls: ssl.SSLContext) -> PostResponse:
    """Send a request and wait for the response, whatever its status. Raises FetchFailed."""
    try:
        async with asyncio.timeout(TOTAL_TIMEOUT_S):
            return await _send(submission, guard, tls)
    except TimeoutError as error:
        raise TooSlow from error


async def _send(submission: OutgoingPost, guard: Guard, tls: ssl.SSLContext) -> PostResponse:
    target = guard.admit(submission.url)
    async with exchange(
        await guard.vet(target),
        method=submission.method,
        content=submission.content,
        headers={"Accept-Encoding": "gzip", **submission.headers},
        connect_timeout_s=CONNECT_TIMEOUT_S,
        open_socket=partial(guard.open_socket, reach=target.reach),
        tls=tls,
    ) as response:
        content = b"" if submission.method == "HEAD" else await _content(response)
        fields = tuple((name.lower(), value) for name, value in response.headers.items())
        return PostResponse(response.status, content, fields)


async def _content(response: RemoteResponse) -> bytes:
    return await read_body(
        response.chunks,
        content_coding=response.headers.get("Content-Encoding", ""),
        max_wire_bytes=MAX_RESPONSE_BYTES,
        max_content_bytes=MAX_RESPONSE_BYTES,
    )
