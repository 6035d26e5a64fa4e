"""The solid-0.1 socket at /.notifications, which ``Updates-Via`` names (L-1 to L-12).

``notifications/solid_0_1.py`` knows the lines of the protocol, and ``updates_session.py`` carries
out what the client requests. Replies and notifications are sent in the order of one queue, so a
client gets the ``ack`` of a URL before the first ``pub``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial

from podstead.core.clock import Clock
from podstead.core.identity import Identity
from podstead.notifications.deliveries import (
    EndReason,
    QueueClosed,
    QueueItem,
    SubscriberQueue,
)
from podstead.notifications.history import History
from podstead.notifications.hub import Hub
from podstead.notifications.listening import Ended
from podstead.notifications.readers import Subscriber
from podstead.notifications.solid_0_1 import (
    GREETING,
    HEARTBEAT,
    PROTOCOL,
    UNKNOWN_PROTOCOL,
    Conversation,
    SubprotocolOffer,
    offer_of,
)
from podstead.web import websocket
from podstead.web.authentication import LimitedAuthentication
from podstead.web.open_sockets import OpenSockets
from podstead.web.request import Request
from podstead.web.socket_endpoint import SocketEndpoint
from podstead.web.socket_sender import SocketSender
from podstead.web.updates_session import Arrivals, LineSender, UpdatesSession
from podstead.web.websocket import SocketClosed, WebSocket

_EXPLANATION = b"This is a WebSocket that speaks solid-0.1. Connect to it, and send: sub <URL>\n"


@dataclass(frozen=True, slots=True)
class SocketRules:
    """The rules for sockets of solid-0.1.

    With ``is_open`` a client may subscribe to resources that it cannot read (L-10). ``heartbeat_s``
    is the time after which an idle socket gets a message. ``is_alone`` is true if no other worker
    commits changes.
    """

    heartbeat_s: float
    is_open: bool
    is_alone: bool = True


class UpdatesSocket(SocketEndpoint):
    """Sends notifications of changes over WebSockets that speak solid-0.1."""

    def __init__(
        self,
        *,
        base_url: str,
        hub: Hub,
        history: History,
        authentication: LimitedAuthentication,
        sockets: OpenSockets,
        clock: Clock,
        rules: SocketRules,
    ) -> None:
        super().__init__(sockets, explanation=_EXPLANATION)
        self._base_url = base_url
        self._hub = hub
        self._history = history
        self._authentication = authentication
        self._clock = clock
        self._rules = rules

    async def connect(self, socket: WebSocket, request: Request, agent: Identity | None) -> None:
        """Serve one socket to its end. Raises RateLimited before it accepts the socket."""
        with self._sockets.admit(request.client_address, agent) as queue:
            offer = offer_of(socket.offered)
            opened_after = None if self._rules.is_alone else await self._hub.newest_sequence()
            if offer is SubprotocolOffer.OTHERS:
                await _reject(socket)
                return
            sender = SocketSender(socket, queue)
            origin = request.fields.get(b"origin")
            subscriber = Subscriber(agent, origin, is_unchecked=self._rules.is_open)
            arrivals = Arrivals(self._hub, self._clock, opened_after)
            session = self._session(socket, request, subscriber, queue, arrivals)
            sender.send_at_once(partial(self._lines_at_once, session, subscriber))
            await self._serve(
                sender,
                self._messages(session, queue, subscriber, sender),
                read=session.run,
                protocol=PROTOCOL if offer is SubprotocolOffer.THIS else None,
            )

    def _session(
        self,
        socket: WebSocket,
        request: Request,
        subscriber: Subscriber,
        queue: SubscriberQueue,
        arrivals: Arrivals,
    ) -> UpdatesSession:
        scheme = self._base_url.partition(":")[0]
        conversation = Conversation(
            origin=self._base_url,
            aliases=[f"{scheme}://{request.host}"],
        )
        return UpdatesSession(
            socket,
            queue,
            conversation,
            hub=self._hub,
            history=self._history,
            sender=LineSender(
                self._authentication,
                base_url=self._base_url,
                opener=subscriber,
                client_address=request.client_address,
            ),
            arrivals=arrivals,
        )

    async def _messages(
        self,
        session: UpdatesSession,
        queue: SubscriberQueue,
        subscriber: Subscriber,
        sender: SocketSender,
    ) -> AsyncGenerator[str | Ended, None]:
        """The lines to send until something ends the socket, without those sent at once."""
        yield GREETING
        while True:
            try:
                async with asyncio.timeout(self._patience_s(subscriber, sender)):
                    lines: Sequence[str] = session.lines_of(await queue.next())
            except QueueClosed as closed:
                yield Ended(closed.ending)
                return
            except TimeoutError:
                lines = [HEARTBEAT] if sender.silent_s >= self._rules.heartbeat_s else ()
            if subscriber.has_expired(self._clock.now_ms()):
                yield Ended(EndReason.EXPIRED)
                return
            for line in lines:
                yield line

    def _lines_at_once(
        self, session: UpdatesSession, subscriber: Subscriber, item: QueueItem
    ) -> Sequence[str] | None:
        if subscriber.agent is not None and subscriber.has_expired(self._clock.now_ms()):
            return None  # which ends the socket
        return session.lines_of(item)

    def _patience_s(self, subscriber: Subscriber, sender: SocketSender) -> float:
        """The time until the next heartbeat or until the credential expires."""
        silence_s = self._rules.heartbeat_s - sender.silent_s
        agent = subscriber.agent
        if agent is not None and agent.expires_at_s is not None:
            silence_s = min(silence_s, agent.expires_at_s - self._clock.now_ms() / 1000)
        return max(silence_s, 0.0)


async def _reject(socket: WebSocket) -> None:
    """Tell a client that it offered only sub-protocols that are not supported."""
    with contextlib.suppress(SocketClosed):
        await socket.accept()
        await socket.send(UNKNOWN_PROTOCOL)
        await socket.close(websocket.PROTOCOL_ERROR, "unknown protocol")
