"""``GET /<pod>/.well-known/solid``: what is this storage, and what can it do? (P-32, W-43)

Anyone may read it, since clients look for it before they have any right. It is made, not stored.
"""

from __future__ import annotations

from podstead.core.agents import Agent
from podstead.core.errors import NotFound
from podstead.core.identifiers import storage_root
from podstead.pods.description import storage_description
from podstead.storage.protocol import ResourceStore
from podstead.web.made_document import made_document
from podstead.web.request import Request
from podstead.web.response import Response


class StorageDescriptionEndpoint:
    """Describes storages."""

    def __init__(self, *, base_url: str, store: ResourceStore) -> None:
        self._base_url = base_url
        self._store = store

    async def get(self, request: Request, agent: Agent) -> Response:
        """Raises NotFound where no storage is, NotAcceptable and PreconditionFailed."""
        root = storage_root(request.path)
        if root is None or (await self._store.read_metadata([root]))[root] is None:
            raise NotFound("There is no storage here")
        return made_document(request, agent, storage_description(self._base_url + root))
