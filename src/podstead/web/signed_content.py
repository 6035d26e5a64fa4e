"""Is this the content that was signed? It is hashed as it arrives, before it takes effect.

A write stages its content piece by piece and commits it after the end. A wrong hash ends the
content with an error, like a client that disconnects, so nothing of it is stored (A-145).
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

from msgspec.structs import replace

from podstead.core.errors import NotAuthenticated
from podstead.core.operation import RequestBody
from podstead.web.request import METHODS_WITH_BODY, Request

MAX_UNUSED_BYTES = 64 * 1024
"""The maximum size of the content of a request whose method does not use any."""


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


async def with_checked_content(request: Request, digest: bytes) -> Request:
    """The request, with its content checked as it is received.

    If the method does not use content, nothing would receive it, so it is checked at once. Raises
    NotAuthenticated, and the errors of bodies.
    """
    by_password = request.fields.authorization[0].lstrip().lower().startswith(b"basic")
    scheme = "Basic" if by_password else "Nostr"
    content = SignedContent(request.body, digest=digest, scheme=scheme)
    if request.method not in METHODS_WITH_BODY:
        await content.read(limit_bytes=MAX_UNUSED_BYTES)
    return replace(request, body=content)
