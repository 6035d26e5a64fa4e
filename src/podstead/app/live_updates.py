"""How clients receive changes: through the hub of a worker, by channels."""

from __future__ import annotations

import asyncio
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from podstead.app.adapters.engine import key_storage
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.keys import SenderKeyFolder
from podstead.core.errors import OutboundError, Unprocessable
from podstead.core.identifiers import ResourcePath
from podstead.notifications.channel_types import GATEWAY, ChannelType
from podstead.notifications.channels import ChannelLimits, Channels
from podstead.notifications.deliveries import Delivering
from podstead.notifications.history import History
from podstead.notifications.hub import Hub
from podstead.notifications.listening import Listeners
from podstead.notifications.messages import Messages
from podstead.notifications.readers import Readers
from podstead.notifications.sender import Sender
from podstead.notifications.webhook_lines import Sending
from podstead.notifications.webhooks import Webhooks
from podstead.resources.entity_tags import stored_tag
from podstead.storage.record_store import Lease
from podstead.storage.records import Metadata
from podstead.web.notifications.services import (
    ENDPOINT,
    JWKS_PATH,
    OPENID_PATH,
    SENDER,
    Addresses,
    ChannelEndpoint,
    GatewayEndpoint,
    SenderEndpoint,
    Subscriptions,
    SubscriptionService,
    channel_path,
    receiving_path,
)
from podstead.web.notifications.streams import ChannelSocket, ResourceStreams, Streams
from podstead.web.routes import Access, Endpoint, Route, SocketEndpoint
from podstead.web.websocket import OpenSockets

if TYPE_CHECKING:
    from podstead.app.services import Services

CHANNEL_TYPES: Final = (
    ChannelType.WEB_SOCKET,
    ChannelType.EVENT_SOURCE,
    ChannelType.STREAMING_HTTP,
    ChannelType.WEBHOOK,
)
"""The channel types that clients can subscribe to."""

_KEY: Final = "{key}"


class LiveUpdates:
    """The Solid Notifications Protocol, of one worker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.sockets = OpenSockets(per_address=services.settings.sockets_per_address)
        self._addresses = Addresses(services.base_url, services.settings.sockets_base_url)
        self._messages = Messages(base_url=services.base_url)
        self._sender_keys = SenderKeyFolder(key_storage(services.settings), services.clock)

    @cached_property
    def _readers(self) -> Readers:
        services = self._services
        return Readers(
            store=services.store, gate=services.gate, identity_status=services.identity_status
        )

    @cached_property
    def hub(self) -> Hub:
        """Delivers changes to subscribers."""
        return Hub(
            log=self._services.store,
            delivering=Delivering(
                readers=self._readers, clock=self._services.clock, state_of=state_tag
            ),
        )

    @cached_property
    def history(self) -> History:
        """Reads notifications of the past from the change log."""
        return History(self._services.store, self._readers, state_tag)

    @cached_property
    def _channels(self) -> Channels:
        settings = self._services.settings
        limits = ChannelLimits(per_agent=settings.channels_per_agent, in_all=settings.max_channels)
        return Channels(records=self._services.records, limits=limits)

    @cached_property
    def _listeners(self) -> Listeners:
        return Listeners(
            hub=self.hub,
            history=self.history,
            clock=self._services.clock,
            heartbeat_s=self._services.settings.heartbeat_s,
        )

    @cached_property
    def _subscriptions(self) -> Subscriptions:
        return Subscriptions(
            channels=self._channels,
            readers=self._readers,
            log=self._services.store,
            parse=self._services.parse,
            addresses=self._addresses,
            check_receiver=partial(_check_receiver, self._services.foreign),
        )

    @cached_property
    def streams(self) -> Streams:
        """The streams of changes over HTTP."""
        return Streams(
            base_url=self._services.base_url,
            channels=self._channels,
            listeners=self._listeners,
            sockets=self.sockets,
            messages=self._messages,
        )

    @cached_property
    def _webhooks(self) -> Webhooks:
        services = self._services
        return Webhooks(
            Sending(
                records=services.records,
                listeners=self._listeners,
                history=self.history,
                messages=self._messages,
                outgoing=services.foreign,
                sender=Sender(
                    issuer=services.settings.issuer,
                    web_id=self._addresses.sender,
                    keys=self._sender_keys,
                    clock=services.clock,
                    randomness=services.randomness,
                ),
                lease=Lease("webhooks", services.records),
            )
        )

    @property
    def open_sockets(self) -> int:
        """How many WebSockets and streams are open."""
        return self.sockets.count

    def start(self) -> None:
        """Begin to send webhooks. The store must be open."""
        self._webhooks.start()

    async def drain(self) -> None:
        """End all subscriptions, because the server stops. Idempotent."""
        await asyncio.gather(self._webhooks.stop(), self._leave())

    async def _leave(self) -> None:
        self.hub.close()
        await self.sockets.drain()

    def routes(self) -> tuple[Route, ...]:
        """The routes of all endpoints for notifications, and of their descriptions."""
        gateway = GatewayEndpoint(subscriptions=self._subscriptions, clock=self._services.clock)
        return (
            *(self._service_route(each) for each in CHANNEL_TYPES),
            *(self._channel_route(each) for each in CHANNEL_TYPES),
            *self._stream_routes(),
            *self._sender_routes(),
            Route(GATEWAY, {"POST": gateway.negotiate}, Access.PUBLIC),
            Route(ENDPOINT, {"POST": gateway.open}, Access.PUBLIC),
        )

    def _service_route(self, channel_type: ChannelType) -> Route:
        service = SubscriptionService(channel_type, self._subscriptions)
        return _route(channel_type.service, service.get, POST=service.post)

    def _channel_route(self, channel_type: ChannelType) -> Route:
        endpoint = ChannelEndpoint(channels=self._channels, addresses=self._addresses)
        get = endpoint.get
        if channel_type is ChannelType.STREAMING_HTTP:
            # The streams of resources have the same path prefix as the channels of this type
            # (N-22).
            get = ResourceStreams(self.streams, otherwise=endpoint.get).get
        return _route(channel_path(channel_type, _KEY), get, DELETE=endpoint.delete)

    def _sender_routes(self) -> tuple[Route, ...]:
        settings = self._services.settings
        endpoint = SenderEndpoint(
            web_id=self._addresses.sender,
            issuer=settings.issuer,
            published=self._sender_keys.published,
        )
        sender = _route(SENDER, endpoint.get)
        if settings.idp:  # whose discovery document refers to the same keys
            return (sender,)
        issuer = _route(OPENID_PATH, endpoint.issuer)
        return (sender, issuer, _route(JWKS_PATH, endpoint.key_set))

    def _stream_routes(self) -> tuple[Route, ...]:
        socket = ChannelSocket(
            channels=self._channels,
            listeners=self._listeners,
            sockets=self.sockets,
            messages=self._messages,
        )
        return (
            _route(receiving_path(ChannelType.WEB_SOCKET, _KEY), socket.get, socket=socket.connect),
            _route(receiving_path(ChannelType.EVENT_SOURCE, _KEY), self.streams.events),
            _route(receiving_path(ChannelType.STREAMING_HTTP, _KEY), self.streams.stream),
        )


def _route(
    path: ResourcePath, get: Endpoint, *, socket: SocketEndpoint | None = None, **others: Endpoint
) -> Route:
    """A public route that answers GET and HEAD, and ``others`` by their method."""
    return Route(path, {"GET": get, "HEAD": get, **others}, Access.PUBLIC, socket=socket)


def state_tag(metadata: Metadata) -> str:
    """The state in notifications: the entity tag of the stored resource, without quotes."""
    return stored_tag(metadata).strip('"')


async def _check_receiver(foreign: ForeignDocuments, url: str) -> None:
    """Raises Unprocessable for a URL that this server must not send to (A-187, A-190)."""
    try:
        await foreign.check_receiver(url)
    except OutboundError as error:
        raise Unprocessable(
            "This server sends nothing to that sendTo: give an https URL on the public internet"
        ) from error
