"""``/.notifications/<type>/<key>``: read the description of a channel, or close it (N-10).

Whoever knows the URL of a channel may read and close it: only the subscriber gets the URL.
"""

from __future__ import annotations

from podstead.core.errors import NotFound
from podstead.core.identity import Identity
from podstead.notifications.channel_documents import PREFIXES, channel_description
from podstead.notifications.channels import Channels
from podstead.web.generated_document import GeneratedDocument, generated_document
from podstead.web.notifications.addresses import Addresses
from podstead.web.notifications.services import FORMS
from podstead.web.request import Request
from podstead.web.response import Response, empty_response


class ChannelEndpoint:
    """Describes and closes channels."""

    def __init__(self, *, channels: Channels, addresses: Addresses) -> None:
        self._channels = channels
        self._addresses = addresses

    async def get(self, request: Request, agent: Identity | None) -> Response:
        """Raises NotFound, NotAcceptable, PreconditionFailed, StorageError."""
        type_name, key = request.path.split("/")[-2:]
        channel = await self._channels.find(key)
        if channel is None or channel.channel_type != type_name:
            raise NotFound("There is no such channel; it may have ended")
        given_up = await self._channels.given_up(key)
        described = self._addresses.describe(key, channel, given_up=given_up)
        description = channel_description(described)
        document = GeneratedDocument(description.graph, description.json, PREFIXES, FORMS)
        response = generated_document(request, agent, document, allow="OPTIONS, GET, HEAD, DELETE")
        response.of_stored_state = False  # it ends without anything being stored
        return response

    async def delete(self, request: Request, _: Identity | None) -> Response:
        """Unsubscribe. Raises NotFound, StorageError, Overloaded."""
        type_name, key = request.path.split("/")[-2:]
        channel = await self._channels.find(key)
        if channel is None or channel.channel_type != type_name:
            raise NotFound("There is no such channel; it may have ended")
        await self._channels.close(key)
        return empty_response(204)
