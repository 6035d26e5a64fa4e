"""The hub of one worker, which passes changes to the subscribers of the watched topics.

The feed passes every row of the change log to the hub in order (see ``history.py``). The hub finds
the topics that are watched, each of which has its own deliveries (see ``deliveries.py``). The feed
runs only while at least one topic is watched, so a worker without subscribers does no work.
"""

from podstead.core.errors import Overloaded
from podstead.core.identifiers import ResourcePath
from podstead.notifications import deliveries as notifications_deliveries
from podstead.notifications.answers import LiveQueryService, WatchedQueries, is_live_query
from podstead.notifications.history import Feed
from podstead.notifications.messages import notifications_of, topics_of
from podstead.notifications.readers import Subscriber
from podstead.storage import protocol, records

MAX_WATCHES = 100_000
"""The maximum number of subscriptions of all kinds at each worker. Each uses about a kilobyte of
memory."""
_MOST_RECENT = 256
"""How many of the newest changes are searched for those of a given moment."""


class Hub:
    """Delivers each change to the watches of its topics. Used from one event loop only."""

    def __init__(
        self,
        *,
        log: protocol.ChangeLog,
        delivering: notifications_deliveries.DeliveryState,
        answering: LiveQueryService | None = None,
        max_watches: int = MAX_WATCHES,
    ) -> None:
        """At most ``max_watches`` are open at the same time. ``answering`` answers live queries, if
        there can be any."""
        self._log = log
        self._feed = Feed(log, self._publish)
        self._delivering = delivering
        self._max_watches = max_watches
        self._count = 0
        self._topics: dict[ResourcePath, notifications_deliveries.Deliveries] = {}
        self._live_queries = None if answering is None else WatchedQueries(answering)
        self._watches: set[notifications_deliveries.Watch] = set()
        self._closed = False

    @property
    def watch_count(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    @property
    def delivered(self) -> int:
        """How many notifications were passed on to watches so far, one for each watch."""
        return self._delivering.tally.delivered

    async def newest_sequence(self) -> int:
        """The sequence number of the newest change, delivered or not."""
        return await self._log.newest_sequence()

    async def newest_sequence_at(self, at_ms: int) -> int:
        """The newest sequence number at a moment that has just passed, or a later one if many
        changes have been committed since."""
        newest = await self._log.newest_sequence()
        latest = await self._log.changes_after(newest - 1, limit=1)
        if not latest or latest[0].at_ms < at_ms:  # the usual case
            return newest
        recent = await self._log.changes_after(newest - _MOST_RECENT, limit=_MOST_RECENT)
        return min((row.sequence - 1 for row in recent if row.at_ms >= at_ms), default=newest)

    async def watch(
        self,
        topic: ResourcePath,
        subscriber: Subscriber,
        queue: notifications_deliveries.SubscriberQueue,
        *,
        state: str | None = None,
    ) -> notifications_deliveries.Watch:
        """Put every change from now on into ``queue``, if the subscriber may read the topic; of a
        live query, each answer that is another one than the last, which was ``state`` at first.

        Access is checked again for each notification, and when a condition of the rules ends. A
        subscriber that has lost it, or whose credential has expired, gets a WatchEnded instead, and
        the watch ends. Raises NotAuthenticated, AccessDenied, TargetTooLong, Overloaded if there
        are too many watches, and for a live query Unprocessable and RateLimited.
        """
        if self._closed or self._count >= self._max_watches:
            raise Overloaded("This server has too many subscriptions")
        self._count += 1
        self._feed.start()
        try:
            until_ms = await self._delivering.readers.check(topic, subscriber)
            boundary = await self._feed.boundary()
            watch = notifications_deliveries.Watch(
                topic, subscriber, queue, boundary, self.forget, state
            )
            if self._live_queries is not None and is_live_query(topic):
                self._live_queries.add(watch)
        except BaseException:
            self._leave()
            raise
        # Nothing is awaited between the boundary and this, so that no change falls in between.
        self._watches.add(watch)
        if not is_live_query(topic):
            deliveries = self._topics.setdefault(
                topic, notifications_deliveries.Deliveries(topic, self._delivering)
            )
            deliveries.add(watch)
            deliveries.check_again_at(until_ms)
        queue.attach(watch)
        return watch

    def forget(self, watch: notifications_deliveries.Watch) -> None:
        """Close a watch. Idempotent."""
        if not watch.is_open:
            return
        watch.is_open = False
        self._watches.discard(watch)
        watch.queue.detach(watch)
        if self._live_queries is not None and is_live_query(watch.topic):
            self._live_queries.remove(watch)
        else:
            deliveries = self._topics[watch.topic]
            deliveries.remove(watch)
            if deliveries.is_idle:
                deliveries.stop_checking()
                del self._topics[watch.topic]
        self._leave()

    def close(self) -> None:
        """Close every watch and its queue, and accept no more: the server is stopping."""
        self._closed = True
        for watch in tuple(self._watches):
            watch.queue.close(notifications_deliveries.EndReason.STOPPING)

    async def ended(self) -> None:
        """Wait until nothing is evaluated any more for watches that are closed."""
        if self._live_queries is not None:
            await self._live_queries.ended()

    def _leave(self) -> None:
        self._count -= 1
        if self._count == 0:
            self._feed.stop()

    def _publish(self, logged: records.LoggedChange) -> None:
        if self._live_queries is not None:
            self._live_queries.note(logged.change.path)
        topics = self._topics
        if not any(topic in topics for topic in topics_of(logged.change.path)):
            return
        for notification in notifications_of(logged):
            deliveries = topics.get(notification.topic)
            if deliveries is not None:
                deliveries.put(notification)
