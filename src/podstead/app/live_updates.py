"""How clients receive changes: through the hub of a worker, by channels."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Final

from podstead.core.identifiers import ResourcePath
from podstead.notifications.answers import LiveQueries, LiveQueryService
from podstead.notifications.channel_types import EVENT_SOURCE, GATEWAY, STREAMING_HTTP, WEB_SOCKET
from podstead.notifications.channels import ChannelHandler, ChannelLimits, Channels
from podstead.notifications.deliveries import DeliveryState
from podstead.notifications.history import History
from podstead.notifications.hub import Hub
from podstead.notifications.listening import Listeners
from podstead.notifications.messages import Messages
from podstead.notifications.readers import Readers
from podstead.resources.entity_tags import stored_tag
from podstead.storage.records import Metadata
from podstead.web.notifications import services as notifications_services
from podstead.web.notifications.streams import ChannelSocket, ResourceStreams, Streams
from podstead.web.routes import Access, Endpoint, Route, SocketEndpoint
from podstead.web.websocket import OpenSockets

if TYPE_CHECKING:
    from podstead.app.services import Services

_KEY: Final = "{key}"


class LiveUpdates:
    """The Solid Notifications Protocol, of one worker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.sockets = OpenSockets(per_address=services.settings.sockets_per_address)
        self._addresses = notifications_services.Addresses(
            services.base_url, services.settings.sockets_base_url
        )
        self.messages = Messages(base_url=services.base_url)

    @cached_property
    def _readers(self) -> Readers:
        services = self._services
        return Readers(
            store=services.store,
            gate=services.gate,
            identity_status=services.identity_status,
            ruled_by=self._live_queries.ruled_by,
        )

    @cached_property
    def _live_queries(self) -> LiveQueries:
        features = self._services.features
        return LiveQueries([source for each in features for source in each.live_queries])

    @cached_property
    def _answering(self) -> LiveQueryService:
        services = self._services
        return LiveQueryService(
            live_queries=self._live_queries,
            readers=self._readers,
            log=services.store,
            clock=services.clock,
            base_url=services.base_url,
        )

    @cached_property
    def hub(self) -> Hub:
        """Delivers changes to subscribers."""
        return Hub(
            log=self._services.store,
            delivering=DeliveryState(
                readers=self._readers,
                clock=self._services.clock,
                state_of=state_tag,
                tally=self._answering.tally,
            ),
            answering=self._answering,
        )

    @cached_property
    def history(self) -> History:
        """Reads notifications of the past from the change log."""
        return History(self._services.store, self._readers, state_tag)

    @cached_property
    def _channels(self) -> Channels:
        settings = self._services.settings
        limits = ChannelLimits(per_agent=settings.channels_per_agent, in_all=settings.max_channels)
        own = map(ChannelHandler, (WEB_SOCKET, EVENT_SOURCE, STREAMING_HTTP))
        of_features = (channels for each in self._services.features for channels in each.channels)
        return Channels(
            records=self._services.records, limits=limits, handlers=(*own, *of_features)
        )

    @property
    def handlers(self) -> Collection[ChannelHandler]:
        """What serves the channels of each type that clients can subscribe to."""
        return self._channels.handlers.values()

    @cached_property
    def listeners(self) -> Listeners:
        """Creates what sends notifications to one receiver."""
        return Listeners(
            hub=self.hub,
            history=self.history,
            clock=self._services.clock,
            heartbeat_s=self._services.settings.heartbeat_s,
        )

    @cached_property
    def _subscriptions(self) -> notifications_services.Subscriptions:
        return notifications_services.Subscriptions(
            channels=self._channels,
            readers=self._readers,
            answering=self._answering,
            log=self._services.store,
            parse=self._services.parse,
            addresses=self._addresses,
        )

    @cached_property
    def streams(self) -> Streams:
        """The streams of changes over HTTP."""
        return Streams(
            base_url=self._services.base_url,
            channels=self._channels,
            listeners=self.listeners,
            sockets=self.sockets,
            messages=self.messages,
        )

    @property
    def open_sockets(self) -> int:
        """How many WebSockets and streams are open."""
        return self.sockets.count

    def start(self) -> None:
        """Begin to send messages to receivers. The store must be open."""
        for each in self.handlers:
            each.start()

    async def drain(self) -> None:
        """End all subscriptions, because the server stops. Idempotent."""
        await asyncio.gather(*(each.stop() for each in self.handlers), self._leave())
        await self.hub.ended()

    async def _leave(self) -> None:
        self.hub.close()
        await self.sockets.drain()

    def routes(self) -> tuple[Route, ...]:
        """The routes of all endpoints for notifications, and of their descriptions."""
        gateway = notifications_services.GatewayEndpoint(
            subscriptions=self._subscriptions, clock=self._services.clock
        )
        channel = notifications_services.ChannelEndpoint(
            channels=self._channels, addresses=self._addresses
        )
        # The streams of resources have the same path prefix as the channels of this type (N-22).
        get = {STREAMING_HTTP: ResourceStreams(self.streams, otherwise=channel.get).get}
        routes = []
        for each in self.handlers:
            service = notifications_services.SubscriptionService(each.type, self._subscriptions)
            channels = notifications_services.channel_path(each.type, _KEY)
            routes += [
                _route(each.type.service, service.get, POST=service.post),
                _route(channels, get.get(each.type, channel.get), DELETE=channel.delete),
            ]
        return (
            *routes,
            *self._stream_routes(),
            Route(GATEWAY, {"POST": gateway.negotiate}, Access.PUBLIC),
            Route(notifications_services.ENDPOINT, {"POST": gateway.open}, Access.PUBLIC),
        )

    def _stream_routes(self) -> tuple[Route, ...]:
        socket = ChannelSocket(
            channels=self._channels,
            listeners=self.listeners,
            sockets=self.sockets,
            messages=self.messages,
        )
        return (
            _route(
                notifications_services.receiving_path(WEB_SOCKET, _KEY),
                socket.get,
                socket=socket.connect,
            ),
            _route(notifications_services.receiving_path(EVENT_SOURCE, _KEY), self.streams.events),
            _route(
                notifications_services.receiving_path(STREAMING_HTTP, _KEY), self.streams.stream
            ),
        )


def _route(
    path: ResourcePath, get: Endpoint, *, socket: SocketEndpoint | None = None, **others: Endpoint
) -> Route:
    """A public route that answers GET and HEAD, and ``others`` by their method."""
    return Route(path, {"GET": get, "HEAD": get, **others}, Access.PUBLIC, socket=socket)


def state_tag(metadata: Metadata) -> str:
    """The state in notifications: the entity tag of the stored resource, without quotes."""
    return stored_tag(metadata).strip('"')
