"""How is a request sent that changes something at another server? Guarded, once, and bounded.

Nothing is followed, remembered or tried again: who asked for the change gets the answer as it is.
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
from podstead.outbound.transport import exchange

CONNECT_TIMEOUT_S = 5.0
TOTAL_TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Submission:
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    content: bytes


async def submit(submission: Submission, guard: Guard, *, tls: ssl.SSLContext) -> Reply:
    """Send a request and wait for its answer, of any status. Raises FetchFailed."""
    try:
        async with asyncio.timeout(TOTAL_TIMEOUT_S):
            return await _send(submission, guard, tls)
    except TimeoutError as error:
        raise TooSlow from error


async def _send(submission: Submission, guard: Guard, tls: ssl.SSLContext) -> Reply:
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
        content = await read_body(
            answer.chunks,
            content_coding=answer.headers.get("Content-Encoding", ""),
            max_wire_bytes=MAX_ANSWER_BYTES,
            max_content_bytes=MAX_ANSWER_BYTES,
        )
        return Reply(answer.status, content)
