"""``GET /<pod>/.well-known/solid``: what is this storage, and what can it do? (P-32, W-43)

Anyone may read it, since clients look for it before they have any right. It is made, not stored.
"""

from __future__ import annotations

from podstead.core.agents import Agent
from podstead.core.conneg import choose
from podstead.core.errors import NotAcceptable, NotFound
from podstead.core.identifiers import storage_root
from podstead.pods.description import storage_description
from podstead.rdf.codecs import serialize
from podstead.rdf.listing import LISTING_TYPES
from podstead.storage.protocol import ResourceStore
from podstead.web.request import Request
from podstead.web.response import Response


class StorageDescriptionEndpoint:
    """Describes storages."""

    def __init__(self, *, base_url: str, store: ResourceStore) -> None:
        self._base_url = base_url
        self._store = store

    async def get(self, request: Request, _: Agent) -> Response:
        """Raises NotFound where no storage is, and NotAcceptable."""
        root = storage_root(request.path)
        if root is None or (await self._store.read_metadata([root]))[root] is None:
            raise NotFound("There is no storage here")
        media_type = choose(request.fields.get(b"accept"), LISTING_TYPES)
        if media_type is None:
            raise NotAcceptable(f"This can be had as {', '.join(LISTING_TYPES)}")
        root_url = self._base_url + root
        content = serialize(storage_description(root_url), media_type)
        return Response(
            200,
            [
                (b"content-type", media_type.encode("ascii")),
                (b"content-length", str(len(content)).encode("ascii")),
                (b"cache-control", b"no-cache"),
                (b"allow", b"OPTIONS, GET, HEAD"),
            ],
            b"" if request.method == "HEAD" else content,
        )
