"""Where is a pod that had another name? Requests for its old URLs are redirected for as long as the
old name is reserved (:mod:`podstead.storage.pods`).

Only asked when a request would be refused: a pod that exists is never redirected. The new URL
decides who has access; that a pod was renamed is no secret, as its name is not.
"""

from __future__ import annotations

from typing import Protocol

from podstead.core.clock import Clock
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.storage.pods import new_name_of, pod_tombstone
from podstead.storage.protocol import EntryRegistry, PodRegistry
from podstead.web.response import NO_STORE, Response, empty_response

_SAFE = frozenset({"GET", "HEAD"})


class FormerPodStore(PodRegistry, EntryRegistry, Protocol):
    """What is needed of the store."""


class FormerPods:
    """Redirects requests for pods under their former names."""

    def __init__(self, store: FormerPodStore, *, base_url: str, clock: Clock) -> None:
        self._store = store
        self._base_url = base_url
        self._clock = clock

    async def redirect(self, method: str, path: ResourcePath, query: bytes) -> Response | None:
        """The redirect to the same path of the pod; ``None`` if no pod had this name. Raises
        StorageError."""
        root = storage_root(path)
        if root is None:
            return None
        name = root.strip("/")
        if await self._store.read_pod(name) is not None:
            return None
        tombstone = await self._store.read_entry(pod_tombstone(name), now_ms=self._clock.now_ms())
        new_name = None if tombstone is None else new_name_of(tombstone)
        if new_name is None:
            return None
        location = f"{self._base_url}/{new_name}/{path[len(root) :]}"
        if query:
            location += f"?{query.decode('latin-1')}"
        # RFC 9110 section 15.4.9: other methods, and their content, are sent again as they were.
        status = 301 if method in _SAFE else 308
        return empty_response(status, [(b"location", location.encode("latin-1")), NO_STORE])
