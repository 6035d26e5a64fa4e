"""Views of the store for asking the gate: with another ACL, to find what that would mean, and as of
one moment, to ask much without reading anything twice."""

from __future__ import annotations

from collections.abc import Iterable

from podstead.core.identifiers import ResourcePath
from podstead.storage.blobs.body_store import ContentBody
from podstead.storage.open_body import OpenBody
from podstead.storage.protocol import DocumentSource, Snapshot
from podstead.storage.records import Metadata, ResourceKind, Version


class OneMoment:
    """The store as it is when it is first read, as far as that is enough.

    If a requested body has been replaced since, everything is read again.
    """

    def __init__(self, store: DocumentSource, paths: Iterable[ResourcePath]) -> None:
        """``paths`` are read together when one of them is wanted."""
        self._store = store
        self._paths = tuple(paths)
        self._snapshot: Snapshot | None = None

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        wanted = tuple(paths)
        if not set(wanted).issubset(self._paths):
            return await self._store.read_metadata(wanted)
        if self._snapshot is None:
            self._snapshot = await self._store.read_metadata(self._paths)
        return self._snapshot

    async def open_body(self, metadata: Metadata) -> OpenBody | None:
        body = await self._store.open_body(metadata)
        if body is None:
            self._snapshot = None
        return body


class HypotheticalRules:
    """A store in which one ACL has other content, or does not exist.

    ``version`` must be new, because parsed ACLs are cached by version.
    """

    def __init__(
        self,
        store: DocumentSource,
        acl: ResourcePath,
        *,
        content: bytes | None,
        content_type: str,
        version: Version,
    ) -> None:
        self._store = store
        self._acl = acl
        self._content = b"" if content is None else content
        self._metadata: Metadata | None = None
        if content is not None:
            self._metadata = Metadata(
                acl, ResourceKind.ACL, version, content_type, len(content), 0, 0
            )

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        """The metadata of what is stored, and of the ACL as it would be."""
        wanted = tuple(paths)
        snapshot = await self._store.read_metadata(wanted)
        return {**snapshot, self._acl: self._metadata} if self._acl in wanted else snapshot

    async def open_body(self, metadata: Metadata) -> OpenBody | None:
        """The body of a version, that of the ACL as it would be included."""
        if self._metadata is not None and metadata.version == self._metadata.version:
            return ContentBody(self._content)
        return await self._store.open_body(metadata)
