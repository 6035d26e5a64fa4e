"""``GET /.well-known/solid``: what is this server, to a program that knows only its name? (P-36)

Anyone may read it. The names of pods are their owners' affair: unless the operator has decided to
name the storages, the document does not tell how many there are, nor whether there are any.
"""

from __future__ import annotations

from podstead.core.identity import Identity
from podstead.notifications.channel_types import GATEWAY
from podstead.pods.description import server_description
from podstead.storage.protocol import PodRegistry
from podstead.web.generated_document import GeneratedDocument, generated_document
from podstead.web.request import Request
from podstead.web.response import Response

MOST_NAMED = 1000
"""Storages that are named, the first by name: the document is made in memory, and read whole."""


class ServerDescriptionEndpoint:
    """Describes the server."""

    def __init__(self, *, base_url: str, named_storages: PodRegistry | None) -> None:
        """``named_storages`` are those to be named to everybody, ``None`` to name none."""
        self._base_url = base_url
        self._named_storages = named_storages

    async def get(self, request: Request, agent: Identity | None) -> Response:
        """Raises NotAcceptable, PreconditionFailed and StorageError."""
        urls = [self._base_url + root for root in await self._roots()]
        graph = server_description(
            f"{self._base_url}/",
            storage_urls=urls,
            notification_gateway=self._base_url + GATEWAY,
        )
        return generated_document(request, agent, GeneratedDocument(graph))

    async def _roots(self) -> list[str]:
        if self._named_storages is None:
            return []
        pods = await self._named_storages.list_pods()
        return [pod.root for pod in pods[:MOST_NAMED]]
