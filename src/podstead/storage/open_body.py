"""The bytes of one version of a resource, open for reading."""

from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable


class OpenBody(Protocol):
    """The bytes of one version of a resource, readable even after the resource has changed."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def content(self) -> bytes | None:
        """The whole body if it is small and in memory, else ``None``."""

    @property
    def file_path(self) -> str | None:
        """A local file that contains exactly the body and exists for as long as this object does;
        ``None`` if there is none."""

    def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Stream the bytes from ``start`` up to, not including, ``end``. Raises StorageError."""


@runtime_checkable
class AddressedBody(OpenBody, Protocol):
    """A body that others can read elsewhere, at a URL that they are given."""

    async def address(self, content_type: str, *, lasts_s: int) -> str | None:
        """A URL at which anybody can read it for that time; ``None`` if it is not sent there with
        that type. Raises StorageError."""


class StreamedBody:
    """What is the same in each OpenBody that can only be streamed."""

    __slots__ = ()

    @property
    def content(self) -> None:
        return None

    @property
    def file_path(self) -> None:
        return None


async def whole_body(body: OpenBody) -> bytes:
    """All bytes of a body that is known to be small, such as that of an RDF document.

    Raises StorageError.
    """
    if body.content is not None:
        return body.content
    return b"".join([chunk async for chunk in body.chunks()])
