"""Delivers the notifications of one topic into the queues of its subscribers, checking the access
of each again: with each notification, and when a condition of the rules begins or ends to hold.

Each topic has its own deliveries, so a topic whose rules take long to evaluate, because they name
documents of other servers, delays no other. Access is decided once for all watches of one identity,
and once for all of them if everyone may read the topic.

Deliveries never wait. The queue of a subscriber is bounded, and closes itself when it is full,
because a subscriber that cannot keep up would otherwise miss notifications without knowing it
(N-31).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from podstead.core.clock import Clock
from podstead.core.errors import AccessDenied, NotAuthenticated, ServerTrouble
from podstead.core.identifiers import ResourcePath
from podstead.notifications.messages import Activity, Notification
from podstead.notifications.readers import ReadCheck, Readers, Subscriber, TopicView
from podstead.storage.records import Metadata

logger = logging.getLogger("podstead.notifications")

CAPACITY: Final = 1000
"""The maximum number of messages that may wait for a slow client. When it is exceeded, the server
closes the connection: a client that misses messages on an open connection would not notice."""


MAX_PENDING = 10_000
"""How many notifications of one topic may wait; one more ends its watches as SLOW."""

RETRY_S = 1.0
"""The time between attempts to read the rules. Until one succeeds, notifications wait."""

_MAX_WAIT_S = 3600.0
"""The clock may be set while a check waits for its time."""

_DECISIONS_AT_ONCE = 50
_SENDS_AT_ONCE = 100
"""The number of messages after which other requests come first: each may go to its socket at
once."""


class EndReason(Enum):
    """Why a watch or a queue ended."""

    REVOKED = "the topic may no longer be read"
    EXPIRED = "the credential is no longer valid"
    SLOW = "messages were not taken fast enough"
    FAILED = "the answer could not be determined"
    STOPPING = "the server stops"
    CLOSED = "the listener left"


@dataclass(frozen=True, slots=True)
class WatchEnded:
    """The watch of a topic has ended; other watches of the queue continue."""

    topic: ResourcePath
    ending: EndReason


QueueItem = Notification | WatchEnded | str
"""A string is another message to the subscriber, in its place among the notifications."""


class QueueClosed(Exception):
    """The queue is closed, and its items have been dropped."""

    def __init__(self, ending: EndReason) -> None:
        super().__init__(ending.value)
        self.ending = ending


class SubscriberQueue:
    """The items for one subscriber, of all its watches, in order."""

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        """The queue holds up to ``capacity`` items; one more closes it as SLOW."""
        self._capacity = capacity
        self._items: deque[QueueItem] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._sources: set[Watch] = set()
        self.ending: EndReason | None = None
        """Why the queue is closed; ``None`` while it is open."""
        self.hand_over: Callable[[QueueItem], bool] | None = None
        """Takes an item in place of the reader, if it returns True. It is called only while the
        reader waits and nothing is in the queue, so that items keep their order."""

    async def next(self) -> QueueItem:
        """Wait for the next item. For one reader at a time. Raises QueueClosed."""
        while self.ending is None:
            if self._items:
                return self._items.popleft()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        raise QueueClosed(self.ending)

    def put(self, item: QueueItem) -> None:
        """Add an item; does nothing if the queue is closed."""
        if self.ending is not None:
            return
        if self._is_awaited() and self.hand_over is not None and self.hand_over(item):
            return
        if len(self._items) >= self._capacity:
            self.close(EndReason.SLOW)
            return
        self._items.append(item)
        self._wake()

    def close(self, ending: EndReason = EndReason.CLOSED) -> None:
        """Drop all items and close every source of the queue. Idempotent."""
        if self.ending is not None:
            return
        self.ending = ending
        self._items.clear()
        for source in tuple(self._sources):
            source.close()
        self._wake()

    def attach(self, source: Watch) -> None:
        """Close ``source`` when the queue is closed, at once if it already is."""
        if self.ending is None:
            self._sources.add(source)
        else:
            source.close()

    def detach(self, source: Watch) -> None:
        """Undo :meth:`attach`. Idempotent."""
        self._sources.discard(source)

    def _is_awaited(self) -> bool:
        """Whether the reader has handled every item and waits for the next one."""
        return self._waiter is not None and not self._waiter.done()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


_PUBLIC = Subscriber()
_ENDINGS = {ReadCheck.NO: EndReason.REVOKED, ReadCheck.EXPIRED: EndReason.EXPIRED}


@dataclass(eq=False, slots=True)
class Watch:
    """One subscriber's watch of one topic, until it is closed.

    ``since`` is the sequence number of the last change before the watch began. The queue gets every
    later change and none up to this one, so earlier changes can be read from the log without a gap.
    """

    topic: ResourcePath
    subscriber: Subscriber
    queue: SubscriberQueue
    since: int
    _forget: Callable[[Watch], None]
    state: str | None = None
    """The answer that is known to the subscriber, of a topic that is a live query; with ``None``,
    the first one is not told."""
    is_open: bool = field(default=True, init=False)
    """Whether it has been neither closed nor ended."""

    def close(self) -> None:
        """End the watch; items already in the queue stay there. Idempotent."""
        self._forget(self)


@dataclass(slots=True)
class DeliveryTally:
    """How many notifications have been put into the queues of watches, for metrics."""

    delivered: int = 0


@dataclass(frozen=True, slots=True)
class DeliveryState:
    """The state that all deliveries of a worker share; ``state_of`` returns the entity tag of a
    resource, without quotes."""

    readers: Readers
    clock: Clock
    state_of: Callable[[Metadata], str]
    tally: DeliveryTally = field(default_factory=DeliveryTally)


class Deliveries:
    """The watches of one topic, and the notifications on their way to them."""

    def __init__(self, topic: ResourcePath, delivering: DeliveryState) -> None:
        self._topic = topic
        self._with = delivering
        self._watches: dict[Subscriber, set[Watch]] = {}
        self._pending: deque[Notification] = deque()
        self._task: asyncio.Task[None] | None = None
        self._check_at_ms: int | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._check: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there are no watches."""
        return not self._watches

    def add(self, watch: Watch) -> None:
        self._watches.setdefault(watch.subscriber, set()).add(watch)

    def remove(self, watch: Watch) -> None:
        alike = self._watches[watch.subscriber]
        alike.discard(watch)
        if not alike:
            del self._watches[watch.subscriber]

    def put(self, notification: Notification) -> None:
        """Deliver a notification after all earlier ones."""
        if len(self._pending) >= MAX_PENDING:
            self._give_up()
            return
        self._pending.append(notification)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def check_again_at(self, at_ms: int | None) -> None:
        """Check the access of all watches when this time has come; ``None`` for never."""
        if at_ms is None or not self._watches:
            return
        if self._check_at_ms is None or at_ms < self._check_at_ms:
            self._check_at_ms = at_ms
            self._wait_for_check()

    def stop_checking(self) -> None:
        """Forget the time of the next check."""
        self._check_at_ms = None
        if self._timer is not None:
            self._timer.cancel()

    def _wait_for_check(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait_s = ((self._check_at_ms or 0) - self._with.clock.now_ms()) / 1000
        if wait_s > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(wait_s, _MAX_WAIT_S), self._wait_for_check)
            return
        self._check_at_ms = None
        self._check = asyncio.create_task(self._check_all())

    async def _check_all(self) -> None:
        for subscriber in tuple(self._watches):
            try:
                self.check_again_at(await self._with.readers.check(self._topic, subscriber))
            except (NotAuthenticated, AccessDenied):
                self._end(subscriber, EndReason.REVOKED)
            except ServerTrouble:
                logger.exception("Access rules could not be read; tried again")
                self.check_again_at(self._with.clock.now_ms() + int(RETRY_S * 1000))

    def _end(self, subscriber: Subscriber, ending: EndReason) -> None:
        for watch in tuple(self._watches.get(subscriber, ())):
            watch.close()
            watch.queue.put(WatchEnded(self._topic, ending))

    def _give_up(self) -> None:
        self._pending.clear()
        for watch in self._all():
            watch.queue.close(EndReason.SLOW)

    def _all(self) -> list[Watch]:
        return [watch for alike in self._watches.values() for watch in alike]

    async def _run(self) -> None:
        try:
            while self._pending and self._watches:
                # Taken immediately, since all waiting ones may be discarded meanwhile.
                await self._deliver_surely(self._pending.popleft())
        except Exception:
            logger.exception("Notifications could not be delivered")
            self._give_up()
        finally:
            self._task = None

    async def _deliver_surely(self, notification: Notification) -> None:
        while True:
            try:
                return await self._deliver(notification)
            except ServerTrouble:
                logger.exception("Access rules could not be read for a notification; tried again")
            await asyncio.sleep(RETRY_S)

    async def _deliver(self, notification: Notification) -> None:
        """Decide for all watches, then deliver. Raises ServerTrouble before any delivery."""
        view = await self._with.readers.view(notification)
        verdicts = await self._verdicts(view)
        self.check_again_at(view.until_ms)
        notification = self._with_state(notification, view.metadata)
        told = 0
        for subscriber, verdict in verdicts.items():
            ending = _ENDINGS.get(verdict)
            if ending is None and verdict is not ReadCheck.YES:
                continue
            for watch in tuple(self._watches.get(subscriber, ())):
                if watch.since >= notification.sequence or not watch.is_open:
                    continue
                if ending is None:
                    watch.queue.put(notification)
                else:
                    watch.close()
                    watch.queue.put(WatchEnded(self._topic, ending))
                told += 1
                self._with.tally.delivered += 1
                if told % _SENDS_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _verdicts(self, view: TopicView) -> dict[Subscriber, ReadCheck]:
        """A decision for each subscriber; later watches do not get the notification."""
        now_ms = self._with.clock.now_ms()
        for_all = await view.may_read(_PUBLIC)
        by_identity: dict[Hashable, ReadCheck] = {}
        verdicts: dict[Subscriber, ReadCheck] = {}
        for subscriber in tuple(self._watches):
            if subscriber.has_expired(now_ms):
                verdict = ReadCheck.EXPIRED
            elif for_all is ReadCheck.YES:
                verdict = ReadCheck.YES
            elif subscriber.identity in by_identity:
                verdict = by_identity[subscriber.identity]
            else:
                verdict = by_identity[subscriber.identity] = await view.may_read(subscriber)
                if len(by_identity) % _DECISIONS_AT_ONCE == 0:
                    await asyncio.sleep(0)  # requests come first
            verdicts[subscriber] = verdict
        return verdicts

    def _with_state(self, notification: Notification, metadata: Metadata | None) -> Notification:
        if metadata is None or notification.activity is Activity.DELETE:
            return notification
        return replace(notification, state=self._with.state_of(metadata))


class Throttle:
    """Holds back notifications that come too early on a channel with a rate (N-13).

    At most one message is sent in each interval. Of the notifications in between, the last is sent
    when the interval is over, so a receiver is never left with an old state. Callers pass the time,
    in milliseconds of any monotonic clock.
    """

    def __init__(self, rate_ms: int | None) -> None:
        """With a rate of ``None`` or 0, nothing is held back."""
        self._rate_ms = rate_ms or 0
        self._free_from_ms: int | None = None
        self._held: Notification | None = None

    def offer(self, notification: Notification, *, now_ms: int) -> Notification | None:
        """The notification if it may be sent now; otherwise ``None``, and it replaces the one that
        is held back."""
        if self._free_from_ms is not None and now_ms < self._free_from_ms:
            self._held = notification
            return None
        self._sent(now_ms)
        return notification

    @property
    def due_ms(self) -> int | None:
        """When the notification held back may be sent; ``None`` if there is none."""
        return None if self._held is None else self._free_from_ms

    def release(self, *, now_ms: int) -> Notification | None:
        """The notification held back, if it may be sent now."""
        held, due_ms = self._held, self.due_ms
        if held is None or due_ms is None or now_ms < due_ms:
            return None
        self._sent(now_ms)
        return held

    def _sent(self, now_ms: int) -> None:
        self._held = None
        if self._rate_ms:
            self._free_from_ms = now_ms + self._rate_ms
