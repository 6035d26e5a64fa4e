"""Tells those who watch a live query when its answer changes for them.

A live query is a topic whose address has a query, such as a search below a container. What answers
it does so as its reader, each time something below the container, or a rule above it, has changed,
and now and then, because groups, conditions and credentials change without that.

Nobody learns of a change that they could not have asked about. So the moments of evaluations do not
depend on what happens: they follow each other at fixed intervals from when the reader connected,
and those at which nothing has changed are left out. Messages have the time and the newest change of
the moment at which they are made.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from podstead.core import errors, identity
from podstead.core.clock import Clock
from podstead.core.identifiers import ResourcePath, acl_of, ancestors, is_container, storage_root
from podstead.core.request_context import limit_key, requester
from podstead.notifications.deliveries import DeliveryTally, EndReason, Watch, WatchEnded
from podstead.notifications.messages import Activity, Notification
from podstead.notifications.readers import Readers, Subscriber
from podstead.storage import protocol, records
from podstead.storage.keyed_semaphores import KeyedSemaphores

logger = logging.getLogger("podstead.notifications")

MAX_LIVE_QUERIES: Final = 16
"""How many live queries one reader may watch at a time, at one worker."""
INTERVAL_S: Final = 2.0
"""The time between two evaluations of a live query, at least."""
RECHECK_S: Final = 300.0
"""The time after which a live query is evaluated although nothing was changed."""
_AT_ONCE: Final = 8
_PAUSE: Final = 4
"""Evaluations of one reader take this part of the time at most: 1 / (1 + 4)."""
_MAX_PAUSE_S: Final = 10.0
_LAG_S: Final = 0.5
_PATIENCE_S: Final = 10.0
"""How long an answer is waited for that has the latest changes."""
_TROUBLE_S: Final = 5.0
_MAX_WAIT_S: Final = 60.0


class AnswerState(NamedTuple):
    """What is remembered of an answer: a state that is another one if and only if the answer is,
    and what it depends on, if the source knows that."""

    state: str
    basis: Hashable = None


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A live query of somebody, by an address ``…{container}?{query}``. The answer has all changes
    up to the row ``after`` of the change log."""

    container: ResourcePath
    query: str
    agent: identity.Identity | None
    origin: str | None
    after: int = 0


class AnswerSource(Protocol):
    """Answers the live queries whose addresses begin with ``address``."""

    address: str

    async def answer(self, watched: AskedQuery, known: AnswerState | None) -> AnswerState | None:
        """The answer as its reader gets it; ``None`` if it does not have all changes yet. It is
        ``known`` if nothing that it depends on has changed since.

        Raises RequestRefused, for what is no such query among others, and ServerTrouble.
        """


@dataclass(frozen=True, slots=True)
class LiveQueries:
    """What answers all live queries of a worker."""

    sources: Iterable[AnswerSource] = ()

    def found(self, topic: ResourcePath) -> tuple[AnswerSource, ResourcePath, str]:
        """What answers a live query, its container and its query. Raises Unprocessable."""
        address, _, query = topic.partition("?")
        for source in self.sources:
            container = ResourcePath(address.removeprefix(source.address))
            if (
                address.startswith(f"{source.address}/")
                and is_container(container)
                and storage_root(container) is not None
            ):
                return source, container, query
        raise errors.Unprocessable("The topic is neither the URL of a resource nor of a question")

    def ruled_by(self, topic: ResourcePath) -> ResourcePath:
        """The resource that whoever watches a topic must be able to read: that of a live query is
        its container. Raises Unprocessable."""
        return self.found(topic)[1] if is_live_query(topic) else topic


def is_live_query(topic: str) -> bool:
    """Whether a topic is a live query: the path of a resource has no query."""
    return "?" in topic


@dataclass(slots=True, kw_only=True)
class LiveQueryService:
    """Answers the live queries of one worker, in turn."""

    live_queries: LiveQueries
    readers: Readers
    log: protocol.ChangeLog
    clock: Clock
    base_url: str
    tally: DeliveryTally = field(default_factory=DeliveryTally)
    _own: KeyedSemaphores = field(default_factory=lambda: KeyedSemaphores(1))
    _all: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _open: dict[str, int] = field(default_factory=dict)

    async def answer(
        self, topic: ResourcePath, subscriber: Subscriber, known: AnswerState | None, *, after: int
    ) -> AnswerState | None:
        """As an :class:`AnswerSource` does, for a reader who may read the container. Raises also
        NotAuthenticated and AccessDenied."""
        source, container, query = self.live_queries.found(topic)
        await self.readers.check(topic, subscriber)
        agent = await self.readers.current(subscriber)
        async with self._all:
            watched = AskedQuery(container, query, agent, subscriber.origin, after)
            return await source.answer(watched, known)

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait until it is the turn of a live query. Those of one reader follow each other, with
        pauses."""
        now_s = asyncio.get_running_loop().time
        async with self._own.take(key):
            began_s = now_s()
            try:
                yield
            except errors.RequestRefused:
                await asyncio.sleep(min((now_s() - began_s) * _PAUSE, _MAX_PAUSE_S))
                raise
            await asyncio.sleep(min((now_s() - began_s) * _PAUSE, _MAX_PAUSE_S))

    async def first(self, topic: ResourcePath, subscriber: Subscriber) -> AnswerState | None:
        """The answer when a channel is opened: a reader has one evaluated at a time. Raises as
        :meth:`answer`."""
        async with self._own.take(self.key(subscriber)):
            return await self.answer(topic, subscriber, None, after=0)

    def key(self, subscriber: Subscriber) -> str:
        """Whom evaluations are counted for."""
        return limit_key(subscriber.agent, base_url=self.base_url)

    def open(self, key: str) -> None:
        """Note another watched query. Raises RateLimited if there are too many."""
        if self._open.get(key, 0) >= MAX_LIVE_QUERIES:
            raise errors.RateLimited(
                f"At most {MAX_LIVE_QUERIES} questions can be watched at a time",
                retry_after_s=int(_MAX_WAIT_S),
            )
        self._open[key] = self._open.get(key, 0) + 1

    def close(self, key: str) -> None:
        """Undo :meth:`open`."""
        self._open[key] -= 1
        if not self._open[key]:
            del self._open[key]


class WatchedQuery:
    """The watches of one live query by one reader."""

    def __init__(
        self, topic: ResourcePath, answering: LiveQueryService, subscriber: Subscriber
    ) -> None:
        """Raises Unprocessable, and RateLimited if the reader watches too many."""
        self._topic = topic
        self._container = answering.live_queries.ruled_by(topic)
        self._rules_above = frozenset(map(acl_of, ancestors(self._container)))
        self._with = answering
        self._subscriber = subscriber
        self._watches: set[Watch] = set()
        self._known: AnswerState | None = None
        self._changed = asyncio.Event()
        self._key = answering.key(subscriber)
        answering.open(self._key)
        self.task = asyncio.create_task(self._run())

    def add(self, watch: Watch) -> None:
        """Tell this watch as well, at once if the answer is not the one that it knows."""
        self._watches.add(watch)
        if self._known is not None:
            self._tell([watch], self._known, watch.since)

    def remove(self, watch: Watch) -> bool:
        """Whether no watch is left."""
        self._watches.discard(watch)
        if self._watches:
            return False
        self._with.close(self._key)
        self.task.cancel()
        return True

    def note(self, path: ResourcePath) -> None:
        """Note a change of the resource at a path."""
        if path.startswith(self._container) or path in self._rules_above:
            self._changed.set()

    async def _run(self) -> None:
        now_s = asyncio.get_running_loop().time
        began_s = now_s()
        try:
            while await self._evaluate():
                with suppress(TimeoutError):
                    async with asyncio.timeout(RECHECK_S):
                        await self._changed.wait()
                await asyncio.sleep((began_s - now_s()) % INTERVAL_S)
        except Exception:
            logger.exception("A live query could not be answered")
            for watch in tuple(self._watches):
                watch.queue.close(EndReason.FAILED)

    async def _evaluate(self) -> bool:
        """Tell of the answer, if it is another one; False if it may not be asked any more."""
        self._changed.clear()
        answering, subscriber = self._with, self._subscriber
        if subscriber.has_expired(answering.clock.now_ms()):
            return self._end(EndReason.EXPIRED)
        try:
            await self._answer()
        except (errors.NotAuthenticated, errors.AccessDenied):
            return self._end(EndReason.REVOKED)
        except (errors.RateLimited, errors.ServerTrouble) as trouble:
            self._changed.set()
            wait_s = getattr(trouble, "retry_after_s", None) or _TROUBLE_S
            await asyncio.sleep(min(wait_s, _MAX_WAIT_S))
        except errors.RequestRefused as refused:  # takes too long now, for example
            logger.info("A watched query has no answer: %s", refused)
        return True

    async def _answer(self) -> None:
        """The answer with all changes up to now, or after a while with those that there are."""
        answering, now_s = self._with, asyncio.get_running_loop().time
        until_s, after = now_s() + _PATIENCE_S, await answering.log.newest_sequence()
        while True:
            async with answering.turn(self._key):
                answer = await answering.answer(
                    self._topic, self._subscriber, self._known, after=after
                )
                if answer is not None:
                    self._known = answer
                    self._tell(self._watches, answer, await answering.log.newest_sequence())
            if answer is not None:
                return
            await asyncio.sleep(_LAG_S)
            if now_s() > until_s:
                after = 0

    def _tell(self, watches: Iterable[Watch], answer: AnswerState, sequence: int) -> None:
        now_ms = self._with.clock.now_ms()
        notification = Notification(
            sequence=sequence,
            write=records.Version(f"{answer.state} {now_ms}"),
            topic=self._topic,
            activity=Activity.UPDATE,
            object=self._topic,
            target=None,
            at_ms=now_ms,
            state=answer.state,
        )
        for watch in tuple(watches):
            is_known = watch.state in (None, answer.state)
            watch.state = answer.state
            if not is_known:
                watch.queue.put(notification)
                self._with.tally.delivered += 1

    def _end(self, ending: EndReason) -> bool:
        for watch in tuple(self._watches):
            watch.close()
            watch.queue.put(WatchEnded(self._topic, ending))
        return False


class WatchedQueries:
    """All watched queries of one worker. Each reader's are their own, with the network that they
    connect from: who they are decides about the answer, and who pays."""

    def __init__(self, answering: LiveQueryService) -> None:
        self._with = answering
        self._live_queries: dict[Hashable, WatchedQuery] = {}
        self._keys: dict[Watch, Hashable] = {}
        self._ending: set[asyncio.Task[None]] = set()
        """Those that were cancelled: they may have to end a process first."""

    def add(self, watch: Watch) -> None:
        """Raises Unprocessable, and RateLimited if the reader watches too many."""
        key = watch.topic, watch.subscriber, requester()
        if key not in self._live_queries:
            made = WatchedQuery(watch.topic, self._with, watch.subscriber)
            self._live_queries[key] = made
        self._keys[watch] = key
        self._live_queries[key].add(watch)

    def remove(self, watch: Watch) -> None:
        key = self._keys.pop(watch)
        query = self._live_queries[key]
        if query.remove(watch):
            del self._live_queries[key]
            self._ending.add(query.task)
            query.task.add_done_callback(self._ending.discard)

    async def ended(self) -> None:
        """Wait until those that nobody watches any more are over."""
        await asyncio.gather(*self._ending, return_exceptions=True)

    def note(self, path: ResourcePath) -> None:
        """Note a change of the resource at a path."""
        for each in self._live_queries.values():
            each.note(path)
