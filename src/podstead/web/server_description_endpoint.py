"""``GET /.well-known/solid``: what can a program find out that knows only the host? (P-36)

Anyone may read the description of the server. The names of pods are private to their owners: unless
the operator has decided to publish the storages, the document reveals neither how many there are
nor whether there are any.
"""

from __future__ import annotations

from podstead.core.identity import Identity
from podstead.notifications.channel_types import GATEWAY
from podstead.pods.template import server_description
from podstead.storage.protocol import PodRegistry
from podstead.web.generated_document import GeneratedDocument, generated_document
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.routes import Access, route

MAX_LISTED_STORAGES = 1000
"""The maximum number of storages listed, in the order of their names. The document is created in
memory, and clients read it as a whole."""


class ServerDescriptionEndpoint:
    """Describes the server."""

    def __init__(self, *, base_url: str, named_storages: PodRegistry | None) -> None:
        """``named_storages`` lists the storages to publish; with ``None``, none is published."""
        self._base_url = base_url
        self._named_storages = named_storages

    @route("/.well-known/solid", "GET", "HEAD", access=Access.PUBLIC)
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
        pods = await self._named_storages.list_pods(limit=MAX_LISTED_STORAGES)
        return [pod.root for pod in pods]
