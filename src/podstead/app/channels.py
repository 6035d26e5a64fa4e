"""How are the parts of the Solid Notifications Protocol built?"""

from __future__ import annotations

from functools import partial
from typing import Final

from podstead.app.adapters.engine import key_storage
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.notification_keys import SenderKeyFolder
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.core.errors import OutboundError, Unprocessable
from podstead.core.identifiers import ResourcePath
from podstead.notifications.channel_types import GATEWAY, ChannelType
from podstead.notifications.channels import ChannelLimits, Channels
from podstead.notifications.history import History
from podstead.notifications.hub import Hub
from podstead.notifications.listening import Listeners
from podstead.notifications.messages import Messages
from podstead.notifications.readers import Readers
from podstead.notifications.sender import Sender
from podstead.notifications.webhook_lines import Sending
from podstead.notifications.webhooks import Webhooks
from podstead.resources.entity_tags import stored_tag
from podstead.storage.lease import Lease
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from podstead.storage.records import Metadata
from podstead.web.notifications.addresses import SENDER, Addresses, channel_path, receiving_path
from podstead.web.notifications.channel_endpoint import ChannelEndpoint
from podstead.web.notifications.channel_socket import ChannelSocket
from podstead.web.notifications.gateway import ENDPOINT, GatewayEndpoint
from podstead.web.notifications.sender_endpoint import JWKS_PATH, OPENID_PATH, SenderEndpoint
from podstead.web.notifications.services import Parse, Subscriptions, SubscriptionService
from podstead.web.notifications.streams import ResourceStreams, Streams
from podstead.web.open_sockets import OpenSockets
from podstead.web.routes import Access, Endpoint, Route

CHANNEL_TYPES: Final = (
    ChannelType.WEB_SOCKET,
    ChannelType.EVENT_SOURCE,
    ChannelType.STREAMING_HTTP,
    ChannelType.WEBHOOK,
)
"""The channel types that clients can subscribe to."""

_KEY: Final = "{key}"


class ChannelParts:
    """The channels of one worker, and the endpoints and senders that deliver their messages."""

    def __init__(
        self,
        settings: Settings,
        *,
        hub: Hub,
        readers: Readers,
        sockets: OpenSockets,
        store: Store,
        parse: Parse,
        foreign: ForeignDocuments,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        base_url = settings.base_url
        self.messages = Messages(base_url=base_url)
        records = RecordStore(store, clock, randomness)
        self.channels = Channels(
            records=records,
            limits=ChannelLimits(
                per_agent=settings.channels_per_agent, in_all=settings.max_channels
            ),
        )
        history = History(store, readers, state_tag)
        self.listeners = Listeners(
            hub=hub, history=history, clock=clock, heartbeat_s=settings.heartbeat_s
        )
        addresses = Addresses(base_url, settings.sockets_base_url)
        self._subscriptions = Subscriptions(
            channels=self.channels,
            readers=readers,
            log=store,
            parse=parse,
            addresses=addresses,
            check_receiver=partial(_check_receiver, foreign),
        )
        self._endpoint = ChannelEndpoint(channels=self.channels, addresses=addresses)
        self.streams = Streams(
            base_url=base_url,
            channels=self.channels,
            listeners=self.listeners,
            sockets=sockets,
            messages=self.messages,
        )
        self._socket = ChannelSocket(
            channels=self.channels,
            listeners=self.listeners,
            sockets=sockets,
            messages=self.messages,
        )
        keys = SenderKeyFolder(key_storage(settings), clock)
        self._sender = SenderEndpoint(
            web_id=addresses.sender, issuer=settings.issuer, published=keys.published
        )
        self._has_provider = settings.idp
        self.webhooks = Webhooks(
            Sending(
                records=records,
                listeners=self.listeners,
                history=history,
                messages=self.messages,
                outgoing=foreign,
                sender=Sender(
                    issuer=settings.issuer,
                    web_id=addresses.sender,
                    keys=keys,
                    clock=clock,
                    randomness=randomness,
                ),
                lease=Lease("webhooks", records),
            )
        )
        self._gateway = GatewayEndpoint(subscriptions=self._subscriptions, clock=clock)

    def routes(self) -> tuple[Route, ...]:
        """The routes of all HTTP endpoints for notifications."""
        return (
            *(self._service_route(each) for each in CHANNEL_TYPES),
            *(self._channel_route(each) for each in CHANNEL_TYPES),
            *self._stream_routes(),
            *self._sender_routes(),
            Route(GATEWAY, {"POST": self._gateway.negotiate}, Access.PUBLIC),
            Route(ENDPOINT, {"POST": self._gateway.open}, Access.PUBLIC),
        )

    def _service_route(self, channel_type: ChannelType) -> Route:
        service = SubscriptionService(channel_type, self._subscriptions)
        methods = {"GET": service.get, "HEAD": service.get, "POST": service.post}
        return Route(channel_type.service, methods, Access.PUBLIC)

    def _channel_route(self, channel_type: ChannelType) -> Route:
        get = self._endpoint.get
        if channel_type is ChannelType.STREAMING_HTTP:
            # The streams of resources have the same path prefix as the channels of this type
            # (N-22).
            get = ResourceStreams(self.streams, otherwise=self._endpoint.get).get
        methods = {"GET": get, "HEAD": get, "DELETE": self._endpoint.delete}
        return Route(channel_path(channel_type, _KEY), methods, Access.PUBLIC)

    def _sender_routes(self) -> tuple[Route, ...]:
        def document(path: ResourcePath, get: Endpoint) -> Route:
            return Route(path, {"GET": get, "HEAD": get}, Access.PUBLIC)

        sender = document(SENDER, self._sender.get)
        if self._has_provider:  # whose discovery document refers to the same keys
            return (sender,)
        issuer = document(OPENID_PATH, self._sender.issuer)
        return (sender, issuer, document(JWKS_PATH, self._sender.key_set))

    def _stream_routes(self) -> tuple[Route, ...]:
        def path(channel_type: ChannelType) -> ResourcePath:
            return receiving_path(channel_type, _KEY)

        events, stream = self.streams.events, self.streams.stream
        return (
            Route(
                path(ChannelType.WEB_SOCKET),
                {"GET": self._socket.get, "HEAD": self._socket.get},
                Access.PUBLIC,
                socket=self._socket.connect,
            ),
            Route(path(ChannelType.EVENT_SOURCE), {"GET": events, "HEAD": events}, Access.PUBLIC),
            Route(path(ChannelType.STREAMING_HTTP), {"GET": stream, "HEAD": stream}, Access.PUBLIC),
        )


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
