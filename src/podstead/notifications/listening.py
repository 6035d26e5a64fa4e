"""Sends one connected receiver its notifications, by the history and the terms of its channel.

A receiver first gets what it missed, if it requested that, and then each change as it is committed,
at the rate and within the times of its channel (N-12 to N-14). After a while without a message it
gets a :class:`Idle`, so that the connection can be kept alive.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, replace

from podstead.core.clock import Clock
from podstead.core.identifiers import ResourcePath
from podstead.notifications import deliveries
from podstead.notifications.answers import is_live_query
from podstead.notifications.history import History, HistoryLost
from podstead.notifications.hub import Hub
from podstead.notifications.messages import Notification
from podstead.notifications.readers import Subscriber


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a subscription; times and durations are in milliseconds (N-12 to N-14)."""

    topic: ResourcePath
    subscriber: Subscriber
    start_ms: int | None = None
    end_ms: int | None = None
    rate_ms: int | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Idle:
    """There has been no message for ``after_s`` seconds."""

    after_s: float


@dataclass(frozen=True, slots=True)
class ChangesLost:
    """The changes since the receiver disconnected are no longer known; the current state of the
    topic follows."""


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything up to ``sequence`` has been sent."""

    sequence: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing follows. ``ending`` is ``None`` if the channel has ended as agreed."""

    ending: deliveries.EndReason | None


Heard = Notification | Idle | ChangesLost | CaughtUp | Ended


class Listening:
    """One connected receiver."""

    def __init__(
        self,
        terms: Terms,
        watch: deliveries.Watch,
        *,
        history: History,
        clock: Clock,
        heartbeat_s: float,
        after: int | None,
    ) -> None:
        self.since = watch.since
        """The sequence number of the last change before the receiver connected."""
        self._terms = terms
        self._queue = watch.queue
        self._history = history
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._after = after
        self._pace = deliveries.Throttle(terms.rate_ms)

    async def heard(self) -> AsyncGenerator[Heard, None]:
        """Everything in order, an Ended last. Can be iterated once."""
        try:
            async for known in self._past():
                for each in self._paced(known):
                    yield each
            if self._pace.due_ms is None:
                yield CaughtUp(self.since)
            while True:
                item = await self._next_item()
                if isinstance(item, Ended):
                    yield item
                    return
                for each in self._paced(item):
                    yield each
                due = self._pace.release(now_ms=_steady_ms())
                if due is not None:
                    yield due
        finally:
            self.close()

    def close(self) -> None:
        """Stop listening. Idempotent."""
        self._queue.close()

    @property
    def is_immediate(self) -> bool:
        """Whether a notification that comes now may be sent at once: there is no rate, by which it
        might be held back, and the channel has not ended."""
        terms = self._terms
        return not terms.rate_ms and (terms.end_ms is None or self._clock.now_ms() < terms.end_ms)

    def concerns(self, notification: Notification) -> bool:
        """Whether a receiver of this channel gets a notification (N-12)."""
        return notification.is_for_channels and notification.at_ms >= (self._terms.start_ms or 0)

    async def _past(self) -> AsyncIterator[Notification | ChangesLost]:
        terms, known_state = self._terms, self._terms.state
        if self._after is not None:
            try:
                async for notification in self._history.between(
                    self._after, self.since, topic=terms.topic, subscriber=terms.subscriber
                ):
                    known_state = None  # the last notification has the current state
                    yield notification
            except HistoryLost:
                known_state = ""
                yield ChangesLost()
        if known_state is not None:
            difference = await self._history.difference(
                known_state, terms.topic, sequence=self.since, now_ms=self._clock.now_ms()
            )
            if difference is not None:
                yield difference

    def _paced(self, item: Notification | ChangesLost | Idle | None) -> Iterator[Heard]:
        """The part of an item that may be sent now."""
        if isinstance(item, Notification):
            if not self.concerns(item):
                return
            now = self._pace.offer(item, now_ms=_steady_ms())
            if now is not None:
                yield now
        elif item is not None:
            yield item

    async def _next_item(self) -> Notification | Idle | Ended | None:
        """The next item; ``None`` when the notification held back is due."""
        wait_s, otherwise = self._patience()
        try:
            async with asyncio.timeout(wait_s):
                item = await self._queue.next()
        except TimeoutError:
            return otherwise
        except deliveries.QueueClosed as closed:
            return Ended(closed.ending)
        if isinstance(item, deliveries.WatchEnded):
            return Ended(item.ending)
        return item if isinstance(item, Notification) else None

    def _patience(self) -> tuple[float, Idle | Ended | None]:
        """How many seconds to wait for an item, and what to return if there is none."""
        quiet = Idle(self._heartbeat_s)
        waits: list[tuple[float, Idle | Ended | None]] = [(self._heartbeat_s, quiet)]
        if self._pace.due_ms is not None:
            waits.append(((self._pace.due_ms - _steady_ms()) / 1000, None))
        if self._terms.end_ms is not None:
            waits.append(((self._terms.end_ms - self._clock.now_ms()) / 1000, Ended(None)))
        return min(waits, key=_seconds)


class Listeners:
    """Creates a :class:`Listening` for each receiver."""

    def __init__(self, *, hub: Hub, history: History, clock: Clock, heartbeat_s: float) -> None:
        """After ``heartbeat_s`` without a message a receiver gets a Quiet."""
        self._hub = hub
        self._history = history
        self._clock = clock
        self._heartbeat_s = heartbeat_s

    async def listen(
        self,
        terms: Terms,
        *,
        queue: deliveries.SubscriberQueue | None = None,
        after: int | None = None,
    ) -> Listening:
        """Begin to listen, after the change ``after`` if it is given, otherwise from now on.

        Raises NotAuthenticated and AccessDenied if the subscriber may not read the topic.
        """
        queue = queue or deliveries.SubscriberQueue()
        watch = await self._hub.watch(terms.topic, terms.subscriber, queue, state=terms.state)
        if is_live_query(terms.topic):  # the hub compares its answers itself
            terms, after = replace(terms, state=None), None
        return Listening(
            terms,
            watch,
            history=self._history,
            clock=self._clock,
            heartbeat_s=self._heartbeat_s,
            after=after,
        )


def _steady_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)


def _seconds(wait: tuple[float, object]) -> float:
    return wait[0]
