"""Reads the requests for access that wait for an owner, once for each state of the inbox.

Every page tells owners how many there are, so they are kept until the inbox or the profile that
names it changes.
"""

from __future__ import annotations

from typing import Final

from podstead.core.caches import BoundedCache
from podstead.core.errors import RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.resources.entity_tags import state_version
from podstead.resources.sharing.access_requests import AccessRequest, AccessRequests
from podstead.storage.protocol import ResourceStore

_KEPT_REQUESTS: Final = 10_000

_State = tuple[str | None, ...]


class WaitingRequests:
    """Reads the requests in the inboxes of owners."""

    def __init__(self, requests: AccessRequests, store: ResourceStore) -> None:
        self._requests = requests
        self._store = store
        self._cached: BoundedCache[
            tuple[str, ResourcePath], tuple[ResourcePath, _State, tuple[AccessRequest, ...]]
        ] = BoundedCache(_KEPT_REQUESTS)

    async def of(self, owner: Identity, pod: ResourcePath) -> tuple[AccessRequest, ...]:
        """The requests for access to a pod of this owner; none without a readable inbox. Raises
        ServerTrouble."""
        cached = self._cached.get((owner.iri, pod))
        if cached is not None and cached[1] == await self._state(pod, cached[0]):
            return cached[2]
        try:
            inbox = await self._requests.inbox_of(owner, pod)
            state = await self._state(pod, inbox)
            found = await self._requests.pending(owner, pod)
        except RequestRefused:
            return ()
        self._cached.put((owner.iri, pod), (inbox, state, found), weight=len(found) + 1)
        return found

    async def _state(self, pod: ResourcePath, inbox: ResourcePath) -> _State:
        """A state that changes with the requests. The profile that names the inbox may be anywhere
        in the pod; mostly it is the root."""
        snapshot = await self._store.read_metadata((pod, inbox))
        root = snapshot[pod]
        listing = snapshot[inbox]
        return (
            None if root is None else root.version,
            None if listing is None else state_version(listing),
        )
