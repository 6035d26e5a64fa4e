"""A request on a resource, as the web layer passes it to the resource layer."""

from collections.abc import AsyncIterator
from typing import Final, Protocol

import msgspec

from podstead.core.codes import CoreCodes
from podstead.core.conditional import UNCONDITIONAL, Conditions
from podstead.core.errors import BodyTooLarge
from podstead.core.header_fields import NO_PREFERENCES, Preferences
from podstead.core.identifiers import ResourcePath

QUERY: Final = "QUERY"
"""The method of queries, which are safe and have content (RFC 10008)."""


class RequestBody(Protocol):
    """The body of a request, not yet received."""

    @property
    def announced(self) -> bool:
        """Whether the request announces content: a Content-Length above 0, or chunks (P-7)."""

    @property
    def size_bytes(self) -> int | None:
        """The announced length; ``None`` if it is not known in advance."""

    def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        """Receive the body. It is complete only when the iteration ends without an error.

        Raises BodyTooLarge beyond the limit, BodyTimeout if the body stops arriving, and BadRequest
        if it ends early.
        """

    async def read(self, *, limit_bytes: int) -> bytes:
        """Receive the whole body at once, with the same errors."""


class InMemoryBody:
    """A body in memory (:class:`RequestBody`)."""

    def __init__(self, content: bytes = b"") -> None:
        self._content = content
        self.announced = bool(content)
        self.size_bytes = len(content)

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        """The body in one piece. Raises BodyTooLarge."""
        yield await self.read(limit_bytes=limit_bytes)

    async def read(self, *, limit_bytes: int) -> bytes:
        """The body. Raises BodyTooLarge."""
        if len(self._content) > limit_bytes:
            raise BodyTooLarge(CoreCodes.TOO_MANY_BYTES, limit_bytes=limit_bytes)
        return self._content


NO_BODY: Final = InMemoryBody()


class Operation(msgspec.Struct, frozen=True):
    """One request on a resource, with decoded but not yet validated headers.

    COPY and MOVE have a ``destination``. ``overwrite`` is whether they may replace a document
    there, and ``with_members`` whether the members of a container are copied with it.
    ``whole_tree`` means that DELETE of a container deletes its members as well.

    ``link_types`` are the targets of Link headers with ``rel=type``. ``signed_url`` means that the
    credentials are bound to the request's URL, so that they would not survive a redirect (A-102).
    """

    method: str
    target: ResourcePath
    body: RequestBody = NO_BODY
    conditions: Conditions = UNCONDITIONAL
    accept: str | None = None
    content_type: str | None = None
    range: str | None = None
    if_range: str | None = None
    slug: bytes | None = None
    link_types: tuple[str, ...] = ()
    origin: str | None = None
    preferences: Preferences = NO_PREFERENCES
    signed_url: bool = False
    destination: ResourcePath | None = None
    overwrite: bool = True
    with_members: bool = True
    whole_tree: bool = False
