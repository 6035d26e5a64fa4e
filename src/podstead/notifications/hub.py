"""Who watches what, and how does each change reach them? The hub of one worker.

The feed hands over every row of the change log in order (see ``feed.py``); the hub finds the topics
that are watched, and each of them delivers by itself (see ``deliveries.py``). The feed runs only
while something is watched, so a worker without listeners costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.errors import Overloaded
from podstead.core.identifiers import ResourcePath
from podstead.notifications.deliveries import Deliveries, Delivering
from podstead.notifications.feed import ChangeLog, Feed
from podstead.notifications.notification import notifications_of, topics_of
from podstead.notifications.readers import Subscriber
from podstead.notifications.subscriber_queue import EndReason, SubscriberQueue
from podstead.storage.records import LoggedChange

MAX_WATCHES = 100_000
"""The maximum number of subscriptions of all kinds at each worker. Each uses about a kilobyte of
memory."""
_MOST_RECENT = 256
"""Changes that are looked back at."""


@dataclass(eq=False, slots=True)
class Watch:
    """One listener's interest in one topic, until it is closed.

    ``since`` is the sequence number of the last change before it: the mailbox gets every later one
    and none up to this, so what came before can be read from the log without a gap.
    """

    topic: ResourcePath
    subscriber: Subscriber
    queue: SubscriberQueue
    since: int
    _hub: Hub

    @property
    def is_open(self) -> bool:
        """Whether it was neither closed nor ended."""
        return self._hub.knows(self)

    def close(self) -> None:
        """Hear no more of the topic; what is in the mailbox stays. Idempotent."""
        self._hub.forget(self)


class Hub:
    """Brings each change to those who watch. Used from one event loop only."""

    def __init__(
        self, *, log: ChangeLog, delivering: Delivering, max_watches: int = MAX_WATCHES
    ) -> None:
        """No more than ``max_watches`` at once."""
        self._log = log
        self._feed = Feed(log, self._publish)
        self._delivering = delivering
        self._max_watches = max_watches
        self._count = 0
        self._topics: dict[ResourcePath, Deliveries] = {}
        self._watches: set[Watch] = set()
        self._closed = False

    async def newest_sequence(self) -> int:
        """The sequence number of the newest change there is, told or not. Raises StorageError."""
        return await self._log.newest_sequence()

    async def newest_sequence_at(self, at_ms: int) -> int:
        """What it was at a moment that is hardly over, or later if there were many changes since.
        Raises StorageError."""
        newest = await self._log.newest_sequence()
        latest = await self._log.changes_after(newest - 1, limit=1)
        if not latest or latest[0].at_ms < at_ms:  # as mostly
            return newest
        recent = await self._log.changes_after(newest - _MOST_RECENT, limit=_MOST_RECENT)
        return min((row.sequence - 1 for row in recent if row.at_ms >= at_ms), default=newest)

    async def watch(
        self, topic: ResourcePath, subscriber: Subscriber, queue: SubscriberQueue
    ) -> Watch:
        """Have every change from now on told to ``queue``, if the subscriber may read the topic.

        The right is looked at again for each notice. Who has lost it, or whose credential has
        expired, gets a WatchEnded instead of the notice and hears no more. Raises NotAuthenticated,
        AccessDenied, TargetTooLong; Overloaded when too much is watched, StorageError.
        """
        if self._closed or self._count >= self._max_watches:
            raise Overloaded("This server has too many subscriptions")
        self._count += 1
        self._feed.start()
        try:
            await self._delivering.readers.check(topic, subscriber)
            watch = Watch(topic, subscriber, queue, await self._feed.boundary(), self)
        except BaseException:
            self._leave()
            raise
        # Nothing is awaited between the boundary and this, so that no change falls in between.
        self._watches.add(watch)
        self._topics.setdefault(topic, Deliveries(topic, self._delivering)).add(watch)
        queue.attach(watch)
        return watch

    def knows(self, watch: Watch) -> bool:
        """Whether a watch is open."""
        return watch in self._watches

    def forget(self, watch: Watch) -> None:
        """What closing a watch does. Idempotent."""
        if watch not in self._watches:
            return
        self._watches.discard(watch)
        watch.queue.detach(watch)
        deliveries = self._topics[watch.topic]
        deliveries.remove(watch)
        if deliveries.is_idle:
            del self._topics[watch.topic]
        self._leave()

    def close(self) -> None:
        """End every watch, with its mailbox, and accept none any more: the server stops."""
        self._closed = True
        for watch in tuple(self._watches):
            watch.queue.close(EndReason.STOPPING)

    def _leave(self) -> None:
        self._count -= 1
        if self._count == 0:
            self._feed.stop()

    def _publish(self, logged: LoggedChange) -> None:
        topics = self._topics
        if not any(topic in topics for topic in topics_of(logged.change.path)):
            return
        for notification in notifications_of(logged):
            deliveries = topics.get(notification.topic)
            if deliveries is not None:
                deliveries.put(notification)
