"""How is a resource watched for as long as one likes? Over one connection after the other.

A connection that is lost is opened again, with growing waits while the server is away. Where the
protocol can, what happened meanwhile is told then: events by the id of the last one (N-23), other
channels by the state that was known (N-14).
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Final

from podstead.rdf.jsonld_contexts import ContextSource
from podstead.watch.changes import ReceivedChange
from podstead.watch.discovery import Protocol
from podstead.watch.errors import Interrupted, NotServed, WatchError
from podstead.watch.receiving import (
    ChannelReceiver,
    Connected,
    Missed,
    Reception,
    ResumePoint,
)
from podstead.watch.server import Server
from podstead.watch.subscribing import (
    RemoteChannel,
    SubscriptionClient,
    Topic,
    check,
)

FIRST_WAIT_S: Final = 1.0
"""Before the first attempt to come back, if the server does not say."""
MIN_WAIT_S: Final = 0.1
MAX_WAIT_S: Final = 30.0
LEAVING_TIMEOUT_S: Final = 5.0

_PROVEN_AFTER_S: Final = 30.0
_MAX_FAILURES: Final = 10
_CHANNEL_IS_OVER: Final = frozenset({400, 404, 410})


@dataclass(frozen=True, slots=True)
class WatchStarted:
    """Changes are heard from now on. ``is_gapless`` tells, when it is not the first time, whether
    everything that happened meanwhile is told."""

    topic: Topic
    again: bool
    is_gapless: bool


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection is lost; it is tried again."""


WatchEvent = WatchStarted | Disconnected | ReceivedChange | Missed


@dataclass
class ReconnectDelay:
    """How long to wait before the next attempt: a random share is added, so that the many who lost
    one server do not come back all at once."""

    failures: int = 0
    first_s: float = FIRST_WAIT_S
    randomness: random.Random = field(default_factory=random.SystemRandom)

    def next_s(self) -> float:
        """The seconds to wait; more each time."""
        wait_s = min(self.first_s * math.ldexp(1.0, self.failures), MAX_WAIT_S)
        self.failures = min(self.failures + 1, _MAX_FAILURES)
        return wait_s * self.randomness.uniform(1.0, 1.25)

    def set_first(self, retry_ms: int | None) -> None:
        """The server has asked for this wait, if for any; it is taken within reason."""
        if retry_ms is not None:
            self.first_s = min(max(retry_ms / 1000, MIN_WAIT_S), MAX_WAIT_S)

    def reset(self) -> None:
        """The connection was good."""
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
        self._place = ResumePoint()
        self._delay = delay or ReconnectDelay()
        self._has_started = False

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        """Everything, without an end. Raises WatchError if it cannot begin, AccessLost if the
        resource may not be read any more, WatchError if the server makes no sense any more."""
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
        """What is told over one connection."""
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

    async def _receiver(self) -> tuple[Topic, ChannelReceiver]:
        topic, channel = self._topic, self._channel
        # Only events can be heard again at the same address.
        if topic is None or channel is None or topic.way.protocol is not Protocol.EVENT_SOURCE:
            again = self._has_started
            await self._unsubscribe()
            topic = self._topic = await self._subscriber.discover(self._url, again=again)
            channel = self._channel = await self._subscriber.subscribe(
                topic, state=self._place.state, again=again
            )
        receiver = ChannelReceiver(
            self._server,
            topic.way.protocol,
            topic_url=topic.url,
            receive_from=channel.receive_from,
            place=self._place,
        )
        return topic, receiver

    def _event(self, topic: Topic, received: Reception) -> WatchEvent:
        if isinstance(received, Connected):
            again, self._has_started = self._has_started, True
            return WatchStarted(
                topic, again, is_gapless=topic.way.protocol is Protocol.EVENT_SOURCE
            )
        self._delay.reset()
        if isinstance(received, ReceivedChange) and received.state is not None:
            self._place.state = received.state
        return received

    async def _refused(self, refused: NotServed, topic: Topic) -> None:
        """A new channel is asked for if this one is over. Raises WatchError otherwise."""
        if not self._has_started:
            raise refused
        if refused.status in _CHANNEL_IS_OVER:
            await self._unsubscribe()
            return
        check(refused.status, topic.url, has_token=self._server.has_token, again=True)
        raise refused

    async def _unsubscribe(self) -> None:
        """End the channel, or leave it to end by itself if that does not go quickly."""
        channel, self._channel = self._channel, None
        if channel is not None:
            with suppress(WatchError, TimeoutError):
                async with asyncio.timeout(LEAVING_TIMEOUT_S):
                    await self._subscriber.unsubscribe(channel)
