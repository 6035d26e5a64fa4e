"""Delivers the notifications of one topic, checking the access of each subscriber again.

Each topic has its own deliveries, so a topic whose rules take long to evaluate, because they name
documents of other servers, delays no other. Access is decided once for all watches of one identity,
and once for all of them if everyone may read the topic.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Protocol

from podstead.core.clock import Clock
from podstead.core.errors import ServerTrouble
from podstead.core.identifiers import ResourcePath
from podstead.notifications.notification import Activity, Notification
from podstead.notifications.readers import ReadCheck, Readers, Subscriber, View
from podstead.notifications.subscriber_queue import EndReason, SubscriberQueue, WatchEnded
from podstead.storage.records import Metadata

logger = logging.getLogger("podstead.notifications")

MAX_PENDING = 10_000
"""How many notifications of one topic may wait; one more ends its watches as SLOW."""

RETRY_S = 1.0
"""The time between attempts to read the rules. Until one succeeds, notifications wait."""

_DECISIONS_AT_ONCE = 50
_SENDS_AT_ONCE = 100
"""The number of messages after which other requests come first: each may go to its socket at
once."""
_PUBLIC = Subscriber()
_ENDINGS = {ReadCheck.NO: EndReason.REVOKED, ReadCheck.EXPIRED: EndReason.EXPIRED}


class Watcher(Protocol):
    """The part of a watch that deliveries use."""

    @property
    def subscriber(self) -> Subscriber: ...

    @property
    def queue(self) -> SubscriberQueue: ...

    @property
    def since(self) -> int: ...

    @property
    def is_open(self) -> bool: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class DeliveryTally:
    """How many notifications have been put into the queues of watches, for metrics."""

    delivered: int = 0


@dataclass(frozen=True, slots=True)
class Delivering:
    """The state that all deliveries of a worker share; ``state_of`` returns the entity tag of a
    resource, without quotes."""

    readers: Readers
    clock: Clock
    state_of: Callable[[Metadata], str]
    tally: DeliveryTally = field(default_factory=DeliveryTally)


class Deliveries:
    """The watchers of one topic, and the notifications on their way to them."""

    def __init__(self, topic: ResourcePath, delivering: Delivering) -> None:
        self._topic = topic
        self._with = delivering
        self._watchers: dict[Subscriber, set[Watcher]] = {}
        self._pending: deque[Notification] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether there are no watches."""
        return not self._watchers

    def add(self, watcher: Watcher) -> None:
        self._watchers.setdefault(watcher.subscriber, set()).add(watcher)

    def remove(self, watcher: Watcher) -> None:
        alike = self._watchers[watcher.subscriber]
        alike.discard(watcher)
        if not alike:
            del self._watchers[watcher.subscriber]

    def put(self, notification: Notification) -> None:
        """Deliver a notification after all earlier ones."""
        if len(self._pending) >= MAX_PENDING:
            self._give_up()
            return
        self._pending.append(notification)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def _give_up(self) -> None:
        self._pending.clear()
        for watcher in self._all():
            watcher.queue.close(EndReason.SLOW)

    def _all(self) -> list[Watcher]:
        return [watcher for alike in self._watchers.values() for watcher in alike]

    async def _run(self) -> None:
        try:
            while self._pending and self._watchers:
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
        notification = self._with_state(notification, view.metadata)
        told = 0
        for subscriber, verdict in verdicts.items():
            ending = _ENDINGS.get(verdict)
            if ending is None and verdict is not ReadCheck.YES:
                continue
            for watcher in tuple(self._watchers.get(subscriber, ())):
                if watcher.since >= notification.sequence or not watcher.is_open:
                    continue
                if ending is None:
                    watcher.queue.put(notification)
                else:
                    watcher.close()
                    watcher.queue.put(WatchEnded(self._topic, ending))
                told += 1
                self._with.tally.delivered += 1
                if told % _SENDS_AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def _verdicts(self, view: View) -> dict[Subscriber, ReadCheck]:
        """A decision for each subscriber; later watches do not get the notification."""
        now_ms = self._with.clock.now_ms()
        for_all = await view.may_read(_PUBLIC)
        by_identity: dict[Hashable, ReadCheck] = {}
        verdicts: dict[Subscriber, ReadCheck] = {}
        for subscriber in tuple(self._watchers):
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
