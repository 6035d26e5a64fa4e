"""How is one request sent to another server for somebody who waits for its answer? Guarded, once,
and bounded.

Nothing is followed, remembered or tried again: who asked gets the answer as it is.
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
from podstead.outbound.transport import Answer, exchange

CONNECT_TIMEOUT_S = 5.0
TOTAL_TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class OutgoingPost:
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class PostResponse:
    """What came back."""

    status: int
    content: bytes
    fields: tuple[tuple[str, str], ...] = ()
    """Its headers in their order, each of a repeated one; names in lower case."""

    def field(self, name: str) -> str:
        """The first header of the name, which is in lower case; empty if there is none."""
        return next((value for each, value in self.fields if each == name), "")


async def submit(submission: OutgoingPost, guard: Guard, *, tls: ssl.SSLContext) -> PostResponse:
    """Send a request and wait for its answer, of any status. Raises FetchFailed."""
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
    ) as answer:
        content = b"" if submission.method == "HEAD" else await _content(answer)
        fields = tuple((name.lower(), value) for name, value in answer.headers.items())
        return PostResponse(answer.status, content, fields)


async def _content(answer: Answer) -> bytes:
    return await read_body(
        answer.chunks,
        content_coding=answer.headers.get("Content-Encoding", ""),
        max_wire_bytes=MAX_ANSWER_BYTES,
        max_content_bytes=MAX_ANSWER_BYTES,
    )
