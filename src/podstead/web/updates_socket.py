"""The solid-0.1 socket at /.notifications, which ``Updates-Via`` names (L-1 to L-12).

What is said is for ``notifications/solid_0_1.py`` to know. Here lines come and go: one task reads
what the client asks, the other sends what waits in the mailbox, answers and notices alike, so that
a client always has the ``ack`` of a URL before its first ``pub``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass

from podstead.core.agents import Agent
from podstead.core.clock import Clock
from podstead.core.errors import RequestRefused, ServerTrouble
from podstead.core.identifiers import ResourcePath
from podstead.notifications.hub import Hub, Watch
from podstead.notifications.mailbox import Ending, Letter, Mailbox, MailboxClosed, WatchEnded
from podstead.notifications.notices import Notice
from podstead.notifications.readers import Subscriber
from podstead.notifications.solid_0_1 import (
    GREETING,
    HEARTBEAT,
    PROTOCOL,
    UNKNOWN_PROTOCOL,
    Conversation,
    Forget,
    Offer,
    Say,
    Subscribe,
    offer_of,
)
from podstead.web import websocket
from podstead.web.asgi import Headers
from podstead.web.open_sockets import OpenSockets
from podstead.web.request import Request
from podstead.web.response import Response
from podstead.web.websocket import SocketClosed, WebSocket

logger = logging.getLogger("podstead.web")

SEND_TIMEOUT_S = 30.0
"""How long a client may take nothing at all."""

_CLOSE_TIMEOUT_S = 5.0
_LONGEST_MESSAGE = 16 * 1024
_CLOSE_CODES = {
    Ending.SLOW: websocket.TRY_AGAIN_LATER,
    Ending.STOPPING: websocket.GOING_AWAY,
    Ending.EXPIRED: websocket.POLICY_VIOLATION,
    Ending.REVOKED: websocket.POLICY_VIOLATION,
    Ending.CLOSED: websocket.NORMAL,
}
_EXPLANATION = b"This is a WebSocket that speaks solid-0.1. Connect to it, and send: sub <URL>\n"


@dataclass(frozen=True, slots=True)
class SocketRules:
    """How sockets of solid-0.1 behave: ``is_open`` lets them watch what they may not read (L-10);
    ``heartbeat_s`` is how often an idle one hears something."""

    max_urls: int
    heartbeat_s: float
    is_open: bool


class UpdatesSocket:
    """Answers at the address of the socket."""

    def __init__(
        self, *, base_url: str, hub: Hub, sockets: OpenSockets, clock: Clock, rules: SocketRules
    ) -> None:
        self._base_url = base_url
        self._hub = hub
        self._sockets = sockets
        self._clock = clock
        self._rules = rules

    async def get(self, request: Request, _agent: Agent) -> Response:
        """Tell who does not ask for a WebSocket that this is one (RFC 9110 section 15.5.22)."""
        headers: Headers = [
            (b"upgrade", b"websocket"),
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"cache-control", b"no-store"),
        ]
        return Response(426, headers, b"" if request.method == "HEAD" else _EXPLANATION)

    async def connect(self, socket: WebSocket, request: Request, agent: Agent) -> None:
        """Serve one socket to its end. Raises RateLimited before it is taken up."""
        with self._sockets.admit(request.client_address, agent) as mailbox:
            offer = offer_of(socket.offered)
            with contextlib.suppress(SocketClosed):
                await socket.accept(PROTOCOL if offer is Offer.THIS else None)
                if offer is Offer.OTHERS:
                    await socket.send(UNKNOWN_PROTOCOL)
                    await socket.close(websocket.PROTOCOL_ERROR, "unknown protocol")
                    return
                origin = request.fields.get(b"origin")
                subscriber = Subscriber(agent, origin, is_unchecked=self._rules.is_open)
                await self._serve(socket, request, subscriber, mailbox)

    async def _serve(
        self, socket: WebSocket, request: Request, subscriber: Subscriber, mailbox: Mailbox
    ) -> None:
        scheme = self._base_url.partition(":")[0]
        conversation = Conversation(
            origin=self._base_url,
            aliases=[f"{scheme}://{request.host}"],
            max_urls=self._rules.max_urls,
        )
        listener = _Listener(self._hub, socket, subscriber, conversation, mailbox)
        reading = asyncio.create_task(listener.run())
        try:
            ending = await self._speak(socket, listener, mailbox, subscriber)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if ending is not Ending.CLOSED:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    await socket.close(_CLOSE_CODES[ending], ending.value)

    async def _speak(
        self, socket: WebSocket, listener: _Listener, mailbox: Mailbox, subscriber: Subscriber
    ) -> Ending:
        """Send what there is to say until something ends it. Raises SocketClosed."""
        await socket.send(GREETING)
        while True:
            try:
                async with asyncio.timeout(self._silence_s(subscriber)):
                    lines = listener.lines_of(await mailbox.next())
            except MailboxClosed as closed:
                return closed.ending
            except TimeoutError:
                lines = [HEARTBEAT]
            if subscriber.has_expired(self._clock.now_ms()):
                return Ending.EXPIRED
            try:
                for line in lines:
                    async with asyncio.timeout(SEND_TIMEOUT_S):
                        await socket.send(line)
            except TimeoutError:
                return Ending.SLOW

    def _silence_s(self, subscriber: Subscriber) -> float:
        """How long nothing need be said: until the next heartbeat, or the credential expires."""
        agent = subscriber.agent
        if agent is None or agent.expires_at_s is None:
            return self._rules.heartbeat_s
        left_s = agent.expires_at_s - self._clock.now_ms() / 1000
        return min(self._rules.heartbeat_s, max(left_s, 0.0))


class _Listener:
    """What the client of one socket asks for, and hears of."""

    def __init__(
        self,
        hub: Hub,
        socket: WebSocket,
        subscriber: Subscriber,
        conversation: Conversation,
        mailbox: Mailbox,
    ) -> None:
        self._hub = hub
        self._socket = socket
        self._subscriber = subscriber
        self._conversation = conversation
        self._mailbox = mailbox
        self._watches: dict[ResourcePath, Watch] = {}

    def lines_of(self, letter: Letter) -> list[str]:
        """What to say of a letter."""
        if isinstance(letter, Notice):
            return self._conversation.publish(letter)
        if not isinstance(letter, WatchEnded):
            return [letter]
        if self._is_watching(letter.topic):  # again already
            return []
        self._watches.pop(letter.topic, None)
        return self._conversation.end(letter.topic)

    async def run(self) -> None:
        """Do what the client asks until it has gone."""
        try:
            while True:
                message = await self._socket.receive()
                if len(message) > _LONGEST_MESSAGE:
                    self._mailbox.put("error: Message too long")
                elif isinstance(message, bytes):
                    self._mailbox.put("warning Unrecognized message (binary)")
                else:
                    for line in message.splitlines() or [""]:
                        await self._obey(line)
        except SocketClosed:
            return
        except Exception:
            logger.exception("A socket ended in an error that nothing foresaw")
        finally:
            self._mailbox.close()

    async def _obey(self, line: str) -> None:
        asked = self._conversation.read(line)
        if isinstance(asked, Say):
            self._mailbox.put(asked.line)
        elif isinstance(asked, Subscribe):
            self._mailbox.put(await self._subscribe(asked))
        elif isinstance(asked, Forget):
            watch = self._watches.pop(asked.topic, None)
            if watch is not None:
                watch.close()

    async def _subscribe(self, asked: Subscribe) -> str:
        """What to answer. Nothing is awaited between the watch and this, see the module's text."""
        topic = asked.topic
        if not self._is_watching(topic):
            try:
                self._watches[topic] = await self._hub.watch(topic, self._subscriber, self._mailbox)
            except RequestRefused:
                return self._conversation.refuse(asked)
            except ServerTrouble:
                return "error: The server cannot take this on at the moment"
        return self._conversation.accept(asked)

    def _is_watching(self, topic: ResourcePath) -> bool:
        return topic in self._watches and self._watches[topic].is_open
