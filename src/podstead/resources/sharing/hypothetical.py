"""The store as it would be with another ACL, for asking the gate what that ACL would mean."""

from __future__ import annotations

from collections.abc import Iterable

from podstead.core.identifiers import ResourcePath
from podstead.storage.blobs.bodies import ContentBody
from podstead.storage.open_body import OpenBody
from podstead.storage.protocol import ResourceStore, Snapshot
from podstead.storage.records import Metadata, ResourceKind, Version


class HypotheticalRules:
    """A store in which one ACL has other content, or does not exist.

    ``version`` must be new, because parsed ACLs are cached by version.
    """

    def __init__(
        self,
        store: ResourceStore,
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
