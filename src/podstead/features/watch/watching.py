"""Watching a resource over any number of successive connections.

A lost connection is opened again, with increasing delays while the server is unavailable. If the
protocol supports it, missed changes are received then: events by the ID of the last one (N-23),
other channels by the last known state (N-14).
"""

import asyncio
import math
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.core.errors import BadRequest
from podstead.features.watch import receiving
from podstead.features.watch.changes import ReceivedChange
from podstead.features.watch.discovery import Protocol
from podstead.features.watch.server import Interrupted, NotServed, Server, WatchError
from podstead.features.watch.subscribing import RemoteChannel, SubscriptionClient, Topic, check
from podstead.outbound.errors import Refused
from podstead.outbound.fetch import trusted_certificates
from podstead.outbound.guard import opened_guard
from podstead.outbound.urls import Target, UrlRules, is_loopback_host, origin_of_url
from podstead.rdf.jsonld_contexts import ContextSource

FIRST_WAIT_S: Final = 1.0
"""The delay before the first attempt to reconnect, unless the server specifies one."""
MIN_WAIT_S: Final = 0.1
MAX_WAIT_S: Final = 30.0
LEAVING_TIMEOUT_S: Final = 5.0

_PROVEN_AFTER_S: Final = 30.0
_MAX_FAILURES: Final = 10
_CHANNEL_IS_OVER: Final = frozenset({400, 404, 410})


@dataclass(frozen=True, slots=True)
class WatchStarted:
    """Changes are received from now on. After a reconnection (``again``), ``is_gapless`` means that
    no changes were missed."""

    topic: Topic
    again: bool
    is_gapless: bool


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection was lost; the client tries to reconnect."""


WatchEvent = WatchStarted | Disconnected | ReceivedChange | receiving.ChangesMissed


@dataclass
class ReconnectDelay:
    """The delay before the next attempt. It is randomized, so that many clients of one server do
    not reconnect at the same time."""

    failures: int = 0
    first_s: float = FIRST_WAIT_S
    randomness: random.Random = field(default_factory=random.SystemRandom)

    def next_s(self) -> float:
        """The delay in seconds, which increases each time."""
        wait_s = min(self.first_s * math.ldexp(1.0, self.failures), MAX_WAIT_S)
        self.failures = min(self.failures + 1, _MAX_FAILURES)
        return wait_s * self.randomness.uniform(1.0, 1.25)

    def set_first(self, retry_ms: int | None) -> None:
        """Use the delay that the server requests, if any, within bounds."""
        if retry_ms is not None:
            self.first_s = min(max(retry_ms / 1000, MIN_WAIT_S), MAX_WAIT_S)

    def reset(self) -> None:
        """Start again with the first delay, because the connection worked."""
        self.failures = 0


class Watching:
    """Watches one resource."""

    def __init__(
        self,
        server: Server,
        contexts: ContextSource,
        url: str,
        *,
        delay: ReconnectDelay | None = None,
    ) -> None:
        self._server = server
        self._subscriber = SubscriptionClient(server, contexts)
        self._url = url
        self._topic: Topic | None = None
        self._channel: RemoteChannel | None = None
        self._place = receiving.ResumePoint()
        self._delay = delay or ReconnectDelay()
        self._has_started = False

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        """All events, without an end.

        Raises WatchError if watching cannot start or the server's responses become unusable, and
        AccessLost if the resource may no longer be read.
        """
        try:
            async with aclosing(self._connections()) as events:
                async for each in events:
                    yield each
        finally:
            await self._unsubscribe()

    async def _connections(self) -> AsyncGenerator[WatchEvent, None]:
        is_away = False
        while True:
            try:
                async with aclosing(self._connection()) as connection:
                    async for each in connection:
                        is_away = False
                        yield each
            except Interrupted:
                if not self._has_started:
                    raise
            if not is_away:
                is_away = True
                yield Disconnected()
            await asyncio.sleep(self._delay.next_s())

    async def _connection(self) -> AsyncGenerator[WatchEvent, None]:
        """The events of one connection."""
        topic, receiver = await self._receiver()
        began_s = asyncio.get_running_loop().time()
        try:
            async with aclosing(receiver.receive()) as received:
                async for each in received:
                    yield self._event(topic, each)
        except NotServed as refused:
            await self._refused(refused, topic)
        finally:
            if asyncio.get_running_loop().time() - began_s > _PROVEN_AFTER_S:
                self._delay.reset()
            self._delay.set_first(self._place.retry_ms)

    async def _receiver(self) -> tuple[Topic, receiving.ChannelReceiver]:
        topic, channel = self._topic, self._channel
        # Only an event source can be resumed at the same address.
        if topic is None or channel is None or topic.way.protocol is not Protocol.EVENT_SOURCE:
            again = self._has_started
            await self._unsubscribe()
            topic = self._topic = await self._subscriber.discover(self._url, again=again)
            channel = self._channel = await self._subscriber.subscribe(
                topic, state=self._place.state, again=again
            )
        receiver = receiving.ChannelReceiver(
            self._server,
            topic.way.protocol,
            topic_url=topic.url,
            receive_from=channel.receive_from,
            place=self._place,
        )
        return topic, receiver

    def _event(self, topic: Topic, received: receiving.Reception) -> WatchEvent:
        if isinstance(received, receiving.Connected):
            again, self._has_started = self._has_started, True
            return WatchStarted(
                topic, again, is_gapless=topic.way.protocol is Protocol.EVENT_SOURCE
            )
        self._delay.reset()
        if isinstance(received, ReceivedChange) and received.state is not None:
            self._place.state = received.state
        return received

    async def _refused(self, refused: NotServed, topic: Topic) -> None:
        """Discard the channel if it has ended, so that a new one is created; else raise
        WatchError."""
        if not self._has_started:
            raise refused
        if refused.status in _CHANNEL_IS_OVER:
            await self._unsubscribe()
            return
        check(refused.status, topic.url, has_token=self._server.has_token, again=True)
        raise refused

    async def _unsubscribe(self) -> None:
        """End the channel, or let it expire if that does not succeed quickly."""
        channel, self._channel = self._channel, None
        if channel is not None:
            with suppress(WatchError, TimeoutError):
                async with asyncio.timeout(LEAVING_TIMEOUT_S):
                    await self._subscriber.unsubscribe(channel)


class NoSuchAddress(BadRequest):
    """The URL cannot be watched."""


@asynccontextmanager
async def watching(url: str, *, token: str | None) -> AsyncIterator[AsyncIterator[WatchEvent]]:
    """The changes of the resource at ``url``, without an end.

    Raises NoSuchAddress, and WatchError during the iteration.
    """
    target, rules = _admitted(url)
    with opened_guard(rules) as guard:
        server = Server(guard, tls=trusted_certificates(), origin=target.origin, token=token)
        told = Watching(server, bundled_contexts(), target.url).events()
        async with aclosing(told):
            yield told


def _admitted(url: str) -> tuple[Target, UrlRules]:
    """The parsed URL, and the rules for requests while it is watched."""
    try:
        # The user of the command chose the server, which may be in a private network.
        rules = UrlRules(private_origins=frozenset({origin_of_url(url)}))
        target = rules.admit(url)
    except Refused as refused:
        raise _no_address(url) from refused
    if is_loopback_host(target.host):
        return target, UrlRules(loopback_allowed=True)
    if target.scheme != "https":
        raise _no_address(url)
    return target, rules


def _no_address(url: str) -> NoSuchAddress:
    return NoSuchAddress(
        f"Cannot watch '{url}': it must be the absolute URL of a resource and begin with https:// "
        "(or with http:// for a server on this machine), such as "
        "https://pods.example/alice/notes/."
    )
