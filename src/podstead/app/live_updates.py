"""How do clients receive changes? Through the hub of a worker, by solid-0.1 or by channels."""

from __future__ import annotations

import asyncio

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.channels import ChannelParts, state_tag
from podstead.authn.identity_status import IdentityStatus
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.notifications.deliveries import Delivering
from podstead.notifications.history import History
from podstead.notifications.hub import Hub
from podstead.notifications.readers import Readers
from podstead.storage.protocol import Store
from podstead.wac.gate import Gate
from podstead.web.authentication import LimitedAuthentication
from podstead.web.notifications.services import Parse
from podstead.web.notifications.streams import Streams
from podstead.web.open_sockets import OpenSockets
from podstead.web.resource_responses import UPDATES_PATH
from podstead.web.routes import Access, Route
from podstead.web.updates_socket import SocketRules, UpdatesSocket


def commits_alone(settings: Settings) -> bool:
    """Whether a worker learns of each commit when it makes it: it has no others beside it, neither
    in its server nor on another node."""
    return settings.workers == 1 and settings.database is None


class LiveUpdates:
    """solid-0.1 and the Solid Notifications Protocol, of one worker."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store,
        gate: Gate,
        identity_status: IdentityStatus,
        parse: Parse,
        foreign: ForeignDocuments,
        authentication: LimitedAuthentication,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        """``authentication`` verifies credentials that clients send on a socket."""
        readers = Readers(store=store, gate=gate, identity_status=identity_status)
        self._hub = Hub(
            log=store,
            delivering=Delivering(readers=readers, clock=clock, state_of=state_tag),
        )
        self._sockets = OpenSockets(per_address=settings.sockets_per_address)
        self._updates = UpdatesSocket(
            base_url=settings.base_url,
            hub=self._hub,
            history=History(store, readers, state_tag),
            authentication=authentication,
            sockets=self._sockets,
            clock=clock,
            rules=SocketRules(
                heartbeat_s=settings.heartbeat_s,
                is_open=settings.legacy_notifications_open,
                is_alone=commits_alone(settings),
            ),
        )
        self._channels = ChannelParts(
            settings,
            hub=self._hub,
            readers=readers,
            sockets=self._sockets,
            store=store,
            parse=parse,
            foreign=foreign,
            clock=clock,
            randomness=randomness,
        )

    def routes(self) -> tuple[Route, ...]:
        """The routes of all endpoints for notifications, and of their descriptions."""
        updates = self._updates
        methods = {"GET": updates.get, "HEAD": updates.get}
        return (
            Route(UPDATES_PATH, methods, Access.PUBLIC, socket=updates.connect),
            *self._channels.routes(),
        )

    @property
    def streams(self) -> Streams:
        """The streams of changes over HTTP."""
        return self._channels.streams

    @property
    def open_sockets(self) -> int:
        """How many WebSockets and streams are open."""
        return self._sockets.count

    @property
    def hub(self) -> Hub:
        """What delivers changes to subscribers."""
        return self._hub

    def start(self) -> None:
        """Begin to send webhooks. The store must be open."""
        self._channels.webhooks.start()

    async def drain(self) -> None:
        """End all subscriptions, because the server stops. Idempotent."""
        await asyncio.gather(self._channels.webhooks.stop(), self._leave())

    async def _leave(self) -> None:
        self._hub.close()
        await self._sockets.drain()
