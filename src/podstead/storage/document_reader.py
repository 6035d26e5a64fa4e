"""Reads what stored documents say, once for each version.

ACLs, group documents, WebID documents and the keys in profiles are all read here: the reader opens
the body of the version that a snapshot names, has it interpreted, and caches the result under that
version. A version never changes, so a cached result can be forgotten but never be out of date.

Each caller brings its own ``interpret``, which parses the bytes and decides what a failure means.
Its result is cached, even if that says that the document is malformed. An exception is not cached:
it is for trouble that may pass.
"""

from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from functools import partial
from typing import Final, Generic, TypeVar

from podstead.core.caches import BoundedCache
from podstead.core.errors import BodyTooLarge, Overloaded
from podstead.core.identifiers import ResourcePath
from podstead.storage.open_body import OpenBody, whole_body
from podstead.storage.protocol import DocumentSource, Snapshot
from podstead.storage.records import Metadata, Version

T = TypeVar("T")
_Result = TypeVar("_Result")

MAX_ATTEMPTS: Final = 8
"""How often documents are read again because they changed between the snapshot and the reading."""


class Superseded(Exception):
    """The version to be read is no longer the current one: take a new snapshot."""


class ChangingTooFast(Overloaded):
    """Every attempt met a document that had just been replaced."""


async def open_version(source: DocumentSource, metadata: Metadata) -> OpenBody:
    """Open the body of this version. Raises Superseded and StorageError."""
    body = await source.open_body(metadata)
    if body is None:
        raise Superseded
    return body


class DocumentReader(Generic[T]):
    """Reads one kind of document, and caches what each version says.

    Results are looked up by a name and a version. The name is the document's path or, where the
    result depends on the IRI by which the document was found, that IRI.
    """

    def __init__(
        self,
        source: DocumentSource,
        interpret: Callable[[str, Metadata, bytes], Awaitable[T]],
        *,
        kind: str,
        weigh: Callable[[Metadata, T], int],
        max_weight: int,
        max_bytes: int | None = None,
    ) -> None:
        """``kind`` names the documents in the plural, for an error message. ``weigh`` returns the
        weight of a result without its name; all cached results together weigh at most
        ``max_weight``. A document of more than ``max_bytes`` is not read."""
        self._source = source
        self._interpret = interpret
        self._kind = kind
        self._weigh = weigh
        self._max_bytes = max_bytes
        self._cache: BoundedCache[tuple[str, Version], T] = BoundedCache(max_weight)

    def over(self, source: DocumentSource) -> "DocumentReader[T]":
        """The same reader on another source of the same versions, with the same cache."""
        other = copy(self)
        other._source = source  # noqa: SLF001 - of this class
        return other

    def cached(self, name: str, metadata: Metadata) -> T | None:
        """What this version says, if that is in the cache."""
        return self._cache.get((name, metadata.version))

    async def read(self, name: str, metadata: Metadata) -> T:
        """Read this version and cache the result.

        Raises Superseded, BodyTooLarge, StorageError, and whatever ``interpret`` raises.
        """
        if self._max_bytes is not None and metadata.size_bytes > self._max_bytes:
            raise BodyTooLarge("The document is too large to be read")
        content = await whole_body(await open_version(self._source, metadata))
        result = await self._interpret(name, metadata, content)
        weight = len(name) + self._weigh(metadata, result)
        self._cache.put((name, metadata.version), result, weight=weight)
        return result

    async def current(self, name: str, path: ResourcePath) -> T | None:
        """What the document at the path says now; ``None`` if it does not exist.

        Raises ChangingTooFast, and otherwise what :meth:`read` raises.
        """
        snapshot = await self._source.read_metadata([path])
        metadata = snapshot[path]
        if metadata is None:
            return None
        result = self.cached(name, metadata)
        if result is not None:
            return result
        return await self.retry([path], partial(self._read_at, name, path), snapshot)

    async def _read_at(self, name: str, path: ResourcePath, snapshot: Snapshot) -> T | None:
        metadata = snapshot[path]
        return None if metadata is None else await self.read(name, metadata)

    async def retry(
        self,
        paths: Iterable[ResourcePath],
        read: Callable[[Snapshot], Awaitable[_Result]],
        snapshot: Snapshot | None = None,
    ) -> _Result:
        """Call ``read`` with a snapshot of the paths, and as long as it raises Superseded with a
        newer one, so that its result is of one moment.

        The first call gets ``snapshot``, if there is one. Raises ChangingTooFast, StorageError, and
        otherwise what ``read`` raises.
        """
        for _ in range(MAX_ATTEMPTS):
            if snapshot is None:
                snapshot = await self._source.read_metadata(paths)
            try:
                return await read(snapshot)
            except Superseded:
                snapshot = None
        raise ChangingTooFast(f"The {self._kind} are changing too fast to be read; try again")
