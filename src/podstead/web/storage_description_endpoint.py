"""``GET /<pod>/.well-known/solid``: what is this storage, and what can it do? (P-32, W-43, N-1)

Anyone may read it, because clients look for it before they have any access. It is generated, not
stored. Its JSON-LD contains its context, so that reading it takes no further request. Its members
have the names that the Solid Notifications Protocol gives to those of a description resource (N-2,
N-3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podstead.core.errors import NotFound
from podstead.core.identifiers import storage_root
from podstead.core.identity import Identity
from podstead.core.vocab import PIM, PIM_STORAGE_CLASS, SOLID, SOLID_NOTIFICATION_GATEWAY
from podstead.notifications.channel_documents import (
    DESCRIPTION_TERMS,
    PREFIXES,
    Json,
    services_json,
    services_of_storage,
)
from podstead.notifications.channel_types import GATEWAY, ChannelType
from podstead.pods.template import storage_description
from podstead.storage.protocol import ResourceStore
from podstead.web.generated_document import GeneratedDocument, generated_document
from podstead.web.request import Request
from podstead.web.response import Response

_TERMS: Final[Json] = {
    "notificationGateway": {"@id": SOLID_NOTIFICATION_GATEWAY, "@type": "@id"},
}
_PREFIXES: Final = {"pim": PIM, "solid": SOLID, **PREFIXES}


class StorageDescriptionEndpoint:
    """Describes storages."""

    def __init__(
        self, *, base_url: str, store: ResourceStore, channel_types: Sequence[ChannelType]
    ) -> None:
        """``channel_types`` are the types that clients can subscribe to."""
        self._base_url = base_url
        self._store = store
        self._channel_types = channel_types

    async def get(self, request: Request, agent: Identity | None) -> Response:
        """Raises NotFound if there is no storage, NotAcceptable and PreconditionFailed."""
        root = storage_root(request.path)
        if root is None or (await self._store.read_metadata([root]))[root] is None:
            raise NotFound("There is no storage at this URL")
        return generated_document(request, agent, self._document(self._base_url + root))

    def _document(self, root_url: str) -> GeneratedDocument:
        base_url, types = self._base_url, self._channel_types
        gateway = base_url + GATEWAY
        services = services_of_storage(types, root_url=root_url, base_url=base_url)
        json_ld: Json = {
            "@context": {**DESCRIPTION_TERMS, **_TERMS},
            "id": root_url,
            "type": PIM_STORAGE_CLASS,
            "notificationGateway": gateway,
            "subscription": services_json(types, base_url=base_url),
        }
        graph = storage_description(root_url, notification_gateway=gateway) | services
        return GeneratedDocument(graph, json_ld, _PREFIXES)
