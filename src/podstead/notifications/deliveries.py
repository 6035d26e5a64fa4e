"""Who hears of the notices of one topic? In order, each after a new look at the right to read.

Each topic delivers by itself: one whose rules take long to find out, because they name documents of
other servers, holds up no other. Watchers of one identity are decided about together, and all of
them at once where everyone may read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Protocol

from podstead.core.clock import Clock
from podstead.core.errors import ServerTrouble
from podstead.core.identifiers import ResourcePath
from podstead.notifications.notification import Activity, Notification
from podstead.notifications.readers import ReadCheck, Readers, Subscriber, View
from podstead.notifications.subscriber_queue import EndReason, SubscriberQueue, WatchEnded
from podstead.storage.records import Metadata

logger = logging.getLogger("podstead.notifications")

MOST_PENDING = 10_000
"""Notices of one topic that may wait for its rules; one more ends its watches as SLOW."""

RETRY_S = 1.0
"""How long to wait when the rules cannot be read; nothing is delivered meanwhile, nothing lost."""

_DECISIONS_AT_ONCE = 50
_PUBLIC = Subscriber()
_ENDINGS = {ReadCheck.NO: EndReason.REVOKED, ReadCheck.EXPIRED: EndReason.EXPIRED}


class Watcher(Protocol):
    """A watch, as far as deliveries know it."""

    @property
    def subscriber(self) -> Subscriber: ...

    @property
    def queue(self) -> SubscriberQueue: ...

    @property
    def since(self) -> int: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Delivering:
    """What all deliveries of a worker share; ``state_of`` gives the entity tag of what is stored,
    without quotes."""

    readers: Readers
    clock: Clock
    state_of: Callable[[Metadata], str]


class Deliveries:
    """The watchers of one topic, and the notices on their way to them."""

    def __init__(self, topic: ResourcePath, delivering: Delivering) -> None:
        self._topic = topic
        self._with = delivering
        self._watchers: dict[Subscriber, set[Watcher]] = {}
        self._pending: deque[Notification] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nobody watches."""
        return not self._watchers

    def add(self, watcher: Watcher) -> None:
        self._watchers.setdefault(watcher.subscriber, set()).add(watcher)

    def remove(self, watcher: Watcher) -> None:
        alike = self._watchers[watcher.subscriber]
        alike.discard(watcher)
        if not alike:
            del self._watchers[watcher.subscriber]

    def put(self, notification: Notification) -> None:
        """Have a notice delivered after those before it."""
        if len(self._pending) >= MOST_PENDING:
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
                # Taken at once, since those that wait may all be given up meanwhile.
                await self._deliver_surely(self._pending.popleft())
        except Exception:
            logger.exception("Notices could not be delivered")
            self._give_up()
        finally:
            self._task = None

    async def _deliver_surely(self, notification: Notification) -> None:
        while True:
            try:
                return await self._deliver(notification)
            except ServerTrouble:
                logger.exception("Access rules could not be read for a notice; tried again")
            await asyncio.sleep(RETRY_S)

    async def _deliver(self, notification: Notification) -> None:
        """Decide about all watchers, then tell them. Raises ServerTrouble before anyone is told."""
        view = await self._with.readers.view(notification)
        verdicts = await self._verdicts(view)
        notification = self._with_state(notification, view.metadata)
        for subscriber, verdict in verdicts.items():
            for watcher in tuple(self._watchers.get(subscriber, ())):
                if watcher.since < notification.sequence:
                    self._tell(watcher, verdict, notification)

    async def _verdicts(self, view: View) -> dict[Subscriber, ReadCheck]:
        """About each who watches; who begins to watch meanwhile begins after this notice."""
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

    def _tell(self, watcher: Watcher, verdict: ReadCheck, notification: Notification) -> None:
        ending = _ENDINGS.get(verdict)
        if ending is not None:
            watcher.close()
            watcher.queue.put(WatchEnded(self._topic, ending))
        elif verdict is ReadCheck.YES:
            watcher.queue.put(notification)

    def _with_state(self, notification: Notification, metadata: Metadata | None) -> Notification:
        if metadata is None or notification.activity is Activity.DELETE:
            return notification
        return replace(notification, state=self._with.state_of(metadata))
