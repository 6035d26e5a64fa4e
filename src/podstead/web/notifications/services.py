"""``/.notifications/<type>/``: how does a client subscribe? (N-4, N-5, N-9, N-11)

A GET returns the description of the service. A POST describes a channel and creates it. Agents that
may read the topic may subscribe to it: the gate decides, as for a GET.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import (
    BadRequest,
    NotAuthenticated,
    Unprocessable,
    UnsupportedMediaType,
)
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD, RDF_TYPES, parse_media_type
from podstead.core.vocab import NOTIFICATION_CONTEXTS
from podstead.notifications.channel_documents import (
    PREFIXES,
    ChannelRequest,
    DescribedChannel,
    channel_description,
    read_channel_request,
    service_description,
)
from podstead.notifications.channel_types import ChannelType
from podstead.notifications.channels import Channels
from podstead.notifications.readers import Readers, Subscriber
from podstead.rdf.errors import UnavailableContext, UnknownContext
from podstead.rdf.graph import Graph
from podstead.storage.protocol import ChangeLog
from podstead.web.generated_document import GeneratedDocument, generated_document
from podstead.web.json_bodies import MAX_JSON_BYTES
from podstead.web.limits import network_key
from podstead.web.notifications.addresses import Addresses
from podstead.web.request import Request
from podstead.web.response import NO_STORE, Response, content_response

FORMS: Final = (JSON_LD, *(each for each in RDF_TYPES if each != JSON_LD))
"""The media types of services and channels; JSON-LD is what the protocol prefers."""

_JSON_LD_FORMS: Final = ("expanded", "compacted", "flattened")
# The protocol's own, and the forms of JSON-LD, all of which are understood (JSON-LD 1.1, 10).
_PROFILES: Final = frozenset(
    (*NOTIFICATION_CONTEXTS, *(f"http://www.w3.org/ns/json-ld#{form}" for form in _JSON_LD_FORMS))
)
_ALLOW: Final = "OPTIONS, GET, HEAD, POST"

Parse = Callable[[bytes, str, str], Awaitable[Graph]]
"""Reads content of a media type with a base IRI. Raises BadRequest, UnsupportedMediaType,
UnknownContext."""
CheckReceiver = Callable[[str], Awaitable[None]]
"""Raises Unprocessable for a URL that this server sends nothing to."""


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """What all subscription services share."""

    channels: Channels
    readers: Readers
    log: ChangeLog
    parse: Parse
    addresses: Addresses
    check_receiver: CheckReceiver

    async def subscribe(
        self, wanted: ChannelRequest, request: Request, agent: Identity | None
    ) -> DescribedChannel:
        """Create a channel, if the agent may read its topic.

        Raises NotAuthenticated, AccessDenied, Unprocessable, TooManyChannels, ServerTrouble.
        """
        if wanted.channel_type.is_pushed and agent is None:
            raise NotAuthenticated  # WebhookChannel2023 section 3: MUST
        subscriber = Subscriber(agent, request.fields.get(b"origin"))
        await self.readers.check(wanted.topic, subscriber)
        if wanted.send_to is not None:
            await self.check_receiver(wanted.send_to)
        counted_as = agent.iri if agent else f"public {network_key(request.client_address)}"
        began = await self.log.newest_sequence()
        opened = await self.channels.open(wanted, subscriber, counted_as=counted_as, began=began)
        return self.addresses.describe(opened.key, opened.channel)


class SubscriptionService:
    """The service for channels of one type."""

    def __init__(self, channel_type: ChannelType, subscriptions: Subscriptions) -> None:
        self._type = channel_type
        self._with = subscriptions
        description = service_description(channel_type, base_url=subscriptions.addresses.base_url)
        self._document = GeneratedDocument(description.graph, description.json, PREFIXES, FORMS)

    async def get(self, request: Request, agent: Identity | None) -> Response:
        """Raises NotAcceptable and PreconditionFailed."""
        return generated_document(request, agent, self._document, allow=_ALLOW)

    async def post(self, request: Request, agent: Identity | None) -> Response:
        """Create a channel.

        Raises BadRequest, UnsupportedMediaType, Unprocessable, NotAuthenticated, AccessDenied,
        NotAcceptable, TooManyChannels, ServerTrouble.
        """
        media_type = self._document.choose(request.fields.get(b"accept"))
        wanted = await self._wanted(request)
        description = channel_description(await self._with.subscribe(wanted, request, agent))
        content = GeneratedDocument(description.graph, description.json, PREFIXES).content(
            media_type
        )
        return content_response(content, media_type, method=request.method, headers=[NO_STORE])

    async def _wanted(self, request: Request) -> ChannelRequest:
        base_url = self._with.addresses.base_url
        content_type = request.fields.get(b"content-type")
        if content_type is None:
            raise BadRequest(f"The body must describe the channel, with Content-Type: {JSON_LD}")
        _check_profile(content_type)
        content = await request.body.read(limit_bytes=MAX_JSON_BYTES)
        try:
            graph = await self._with.parse(content, content_type, base_url + request.path)
        except UnavailableContext:
            raise
        except UnknownContext as unknown:
            raise Unprocessable(str(unknown)) from unknown
        return read_channel_request(graph, expected=self._type, base_url=base_url)


def _check_profile(content_type: str) -> None:
    """Refuse a body with a profile that is not supported (N-5)."""
    profile = parse_media_type(content_type).parameter("profile")
    if profile is not None and not _PROFILES.issuperset(profile.split()):
        raise UnsupportedMediaType(f"The profile '{profile}' is not supported")
