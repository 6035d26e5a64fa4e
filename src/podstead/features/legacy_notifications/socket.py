"""The endpoint of solid-0.1 at /.notifications, and the header field that names it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from podstead.core import identifiers, identity
from podstead.features import WorkerFeature
from podstead.features.legacy_notifications import LegacyNotificationSettings, protocol
from podstead.features.legacy_notifications import session as updates_session
from podstead.notifications.deliveries import EndReason, QueueClosed, QueueItem, SubscriberQueue
from podstead.notifications.listening import Ended
from podstead.notifications.readers import Subscriber
from podstead.web import authentication, response, routes, websocket
from podstead.web.request import Request

if TYPE_CHECKING:
    from podstead.app.services import Services
    from podstead.config import Settings

UPDATES_PATH: Final = identifiers.ResourcePath("/.notifications")

_EXPLANATION = b"This is a WebSocket that speaks solid-0.1. Connect to it, and send: sub <URL>\n"


class LegacyNotificationsInWorker(WorkerFeature):
    """The socket of one worker."""

    def __init__(self, services: Services) -> None:
        socket = UpdatesSocket(services)
        methods = {"GET": socket.get, "HEAD": socket.get}
        self.routes = (
            routes.Route(UPDATES_PATH, methods, routes.Access.PUBLIC, socket=socket.connect),
        )
        self.resource_headers = (updates_via(services.settings),)


def updates_via(settings: Settings) -> response.HeaderField:
    """The field with the URL of the socket (L-1): wss for https, ws for http."""
    base_url = settings.sockets_base_url or settings.base_url
    return b"updates-via", f"ws{base_url.removeprefix('http')}{UPDATES_PATH}".encode("ascii")


def commits_alone(settings: Settings) -> bool:
    """Whether a worker learns of each commit when it makes it: it has no others beside it, neither
    in its server nor on another node."""
    return settings.workers == 1 and settings.database is None


class UpdatesSocket(websocket.SocketEndpoint):
    """Sends notifications of changes over WebSockets that speak solid-0.1.

    With the setting ``legacy-notifications-open`` a client may subscribe to resources that it
    cannot read (L-10).
    """

    def __init__(self, services: Services) -> None:
        super().__init__(services.live_updates.sockets, explanation=_EXPLANATION)
        settings = services.settings
        self._services = services
        self._base_url = services.base_url
        self._clock = services.clock
        self._heartbeat_s = settings.heartbeat_s
        self._is_open = settings.of(LegacyNotificationSettings).legacy_notifications_open
        self._is_alone = commits_alone(settings)

    @cached_property
    def _authentication(self) -> authentication.LimitedAuthentication:
        return self._services.limited_authentication()

    async def connect(
        self, socket: websocket.WebSocket, request: Request, agent: identity.Identity | None
    ) -> None:
        """Serve one socket to its end. Raises RateLimited before it accepts the socket."""
        with self._sockets.admit(request.client_address, agent) as queue:
            offer = protocol.offer_of(socket.offered)
            live_updates = self._services.live_updates
            opened_after = None if self._is_alone else await live_updates.hub.newest_sequence()
            if offer is protocol.SubprotocolOffer.OTHERS:
                await _reject(socket)
                return
            sender = websocket.SocketSender(socket, queue)
            origin = request.fields.get(b"origin")
            subscriber = Subscriber(agent, origin, is_unchecked=self._is_open)
            arrivals = updates_session.ArrivalTimes(live_updates.hub, self._clock, opened_after)
            session = self._session(socket, request, subscriber, queue, arrivals)
            sender.send_at_once(partial(self._lines_at_once, session, subscriber))
            await self._serve(
                sender,
                self._messages(session, queue, subscriber, sender),
                read=session.run,
                protocol=protocol.PROTOCOL if offer is protocol.SubprotocolOffer.THIS else None,
            )

    def _session(
        self,
        socket: websocket.WebSocket,
        request: Request,
        subscriber: Subscriber,
        queue: SubscriberQueue,
        arrivals: updates_session.ArrivalTimes,
    ) -> updates_session.UpdatesSession:
        scheme = self._base_url.partition(":")[0]
        conversation = protocol.Conversation(
            origin=self._base_url,
            aliases=[f"{scheme}://{request.host}"],
        )
        return updates_session.UpdatesSession(
            socket,
            queue,
            conversation,
            hub=self._services.live_updates.hub,
            history=self._services.live_updates.history,
            sender=updates_session.LineAuthentication(
                self._authentication,
                base_url=self._base_url,
                opener=subscriber,
                client_address=request.client_address,
            ),
            arrivals=arrivals,
        )

    async def _messages(
        self,
        session: updates_session.UpdatesSession,
        queue: SubscriberQueue,
        subscriber: Subscriber,
        sender: websocket.SocketSender,
    ) -> AsyncGenerator[str | Ended, None]:
        """The lines to send until something ends the socket, without those sent at once."""
        yield protocol.GREETING
        while True:
            try:
                async with asyncio.timeout(self._patience_s(subscriber, sender)):
                    lines: Sequence[str] = session.lines_of(await queue.next())
            except QueueClosed as closed:
                yield Ended(closed.ending)
                return
            except TimeoutError:
                lines = [protocol.HEARTBEAT] if sender.silent_s >= self._heartbeat_s else ()
            if subscriber.has_expired(self._clock.now_ms()):
                yield Ended(EndReason.EXPIRED)
                return
            for line in lines:
                yield line

    def _lines_at_once(
        self,
        session: updates_session.UpdatesSession,
        subscriber: Subscriber,
        item: QueueItem,
    ) -> Sequence[str] | None:
        if subscriber.agent is not None and subscriber.has_expired(self._clock.now_ms()):
            return None  # which ends the socket
        return session.lines_of(item)

    def _patience_s(self, subscriber: Subscriber, sender: websocket.SocketSender) -> float:
        """The time until the next heartbeat or until the credential expires."""
        silence_s = self._heartbeat_s - sender.silent_s
        agent = subscriber.agent
        if agent is not None and agent.expires_at_s is not None:
            silence_s = min(silence_s, agent.expires_at_s - self._clock.now_ms() / 1000)
        return max(silence_s, 0.0)


async def _reject(socket: websocket.WebSocket) -> None:
    """Tell a client that it offered only sub-protocols that are not supported."""
    with contextlib.suppress(websocket.SocketClosed):
        await socket.accept()
        await socket.send(protocol.UNKNOWN_PROTOCOL)
        await socket.close(websocket.PROTOCOL_ERROR, "unknown protocol")
