"""The solid-0.1 socket at /.notifications, which ``Updates-Via`` names (L-1 to L-12).

What is said is for ``notifications/solid_0_1.py`` to know, and what the client asks for is done in
``updates_listener.py``. Here its lines are read, and what waits in the mailbox is sent, answers and
notices alike, so that a client always has the ``ack`` of a URL before its first ``pub``.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from podstead.core.clock import Clock
from podstead.core.identity import Identity
from podstead.notifications.history import History
from podstead.notifications.hub import Hub
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
from podstead.notifications.subscriber_queue import EndReason, QueueClosed, SubscriberQueue
from podstead.web import websocket
from podstead.web.asgi import Headers
from podstead.web.authentication import LimitedAuthentication
from podstead.web.open_sockets import OpenSockets
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.updates_listener import Arrivals, LineSender, Listener
from podstead.web.websocket import SocketClosed, WebSocket

SEND_TIMEOUT_S = 30.0
"""How long a client may take nothing at all."""

_CLOSE_TIMEOUT_S = 5.0
_CLOSE_CODES = {
    EndReason.SLOW: websocket.TRY_AGAIN_LATER,
    EndReason.STOPPING: websocket.GOING_AWAY,
    EndReason.EXPIRED: websocket.POLICY_VIOLATION,
    EndReason.REVOKED: websocket.POLICY_VIOLATION,
    EndReason.CLOSED: websocket.NORMAL,
}
_EXPLANATION = b"This is a WebSocket that speaks solid-0.1. Connect to it, and send: sub <URL>\n"


@dataclass(frozen=True, slots=True)
class SocketRules:
    """How sockets of solid-0.1 behave: ``is_open`` lets them watch what they may not read (L-10);
    ``heartbeat_s`` is how often an idle one hears something; ``is_alone`` says that no other worker
    commits changes."""

    heartbeat_s: float
    is_open: bool
    is_alone: bool = True


class UpdatesSocket:
    """Answers at the address of the socket."""

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
        self._base_url = base_url
        self._hub = hub
        self._history = history
        self._authentication = authentication
        self._sockets = sockets
        self._clock = clock
        self._rules = rules

    async def get(self, request: Request, _agent: Identity | None) -> Response:
        """Tell who does not ask for a WebSocket that this is one (RFC 9110 section 15.5.22)."""
        headers: Headers = [
            (b"upgrade", b"websocket"),
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"cache-control", b"no-store"),
        ]
        return Response(426, headers, b"" if request.method == "HEAD" else _EXPLANATION)

    async def connect(self, socket: WebSocket, request: Request, agent: Identity | None) -> None:
        """Serve one socket to its end. Raises RateLimited before it is taken up."""
        with self._sockets.admit(request.client_address, agent) as queue:
            offer = offer_of(socket.offered)
            opened_after = None if self._rules.is_alone else await self._hub.newest_sequence()
            arrivals = Arrivals(self._hub, self._clock, opened_after)
            with contextlib.suppress(SocketClosed):
                await socket.accept(PROTOCOL if offer is SubprotocolOffer.THIS else None)
                if offer is SubprotocolOffer.OTHERS:
                    await socket.send(UNKNOWN_PROTOCOL)
                    await socket.close(websocket.PROTOCOL_ERROR, "unknown protocol")
                    return
                origin = request.fields.get(b"origin")
                subscriber = Subscriber(agent, origin, is_unchecked=self._rules.is_open)
                await self._serve(socket, request, subscriber, queue, arrivals)

    async def _serve(
        self,
        socket: WebSocket,
        request: Request,
        subscriber: Subscriber,
        queue: SubscriberQueue,
        arrivals: Arrivals,
    ) -> None:
        scheme = self._base_url.partition(":")[0]
        conversation = Conversation(
            origin=self._base_url,
            aliases=[f"{scheme}://{request.host}"],
        )
        listener = Listener(
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
        reading = asyncio.create_task(listener.run())
        try:
            ending = await self._speak(socket, listener, queue, subscriber)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if ending is not EndReason.CLOSED:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    await socket.close(_CLOSE_CODES[ending], ending.value)

    async def _speak(
        self, socket: WebSocket, listener: Listener, queue: SubscriberQueue, subscriber: Subscriber
    ) -> EndReason:
        """Send what there is to say until something ends it. Raises SocketClosed."""
        await socket.send(GREETING)
        while True:
            try:
                async with asyncio.timeout(self._silence_s(subscriber)):
                    lines = listener.lines_of(await queue.next())
            except QueueClosed as closed:
                return closed.ending
            except TimeoutError:
                lines = [HEARTBEAT]
            if subscriber.has_expired(self._clock.now_ms()):
                return EndReason.EXPIRED
            try:
                for line in lines:
                    async with asyncio.timeout(SEND_TIMEOUT_S):
                        await socket.send(line)
            except TimeoutError:
                return EndReason.SLOW

    def _silence_s(self, subscriber: Subscriber) -> float:
        """How long nothing need be said: until the next heartbeat, or the credential expires."""
        agent = subscriber.agent
        if agent is None or agent.expires_at_s is None:
            return self._rules.heartbeat_s
        left_s = agent.expires_at_s - self._clock.now_ms() / 1000
        return min(self._rules.heartbeat_s, max(left_s, 0.0))
