"""Reads the change log: feeds a worker with its new rows, and finds the notifications that a
receiver has missed (N-23).

The log is authoritative: a row is committed with its write, so it exists if and only if the change
does (N-19). The feed delivers each row once and in order, without polling: it remembers the last
sequence number that it delivered, and reads on when the engine signals that there may be new rows.
It begins at the end of the log; earlier changes are read from the log itself (see ``Hub.watch``).

A receiver states the sequence number of the last change that it knows. If the log still reaches
back to that change, the receiver gets everything since then in order. If not, it is notified of the
gap and has to fetch the resource.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Final

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.notifications.messages import Activity, Notification, notifications_of
from podstead.notifications.readers import ReadCheck, Readers, Subscriber
from podstead.storage.protocol import ChangeLog
from podstead.storage.records import LoggedChange, Metadata, Version

logger = logging.getLogger("podstead.notifications")


class Feed:
    """Delivers the rows of the log while it runs. For one event loop."""

    def __init__(self, log: ChangeLog, publish: Callable[[LoggedChange], None]) -> None:
        """``publish`` is called with each row; it neither waits nor raises."""
        self._log = log
        self._publish = publish
        self._position = 0
        self._begun: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin at the end of the log. Idempotent."""
        if self._task is None:
            self._begun = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._begun))

    def stop(self) -> None:
        """Deliver nothing more. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def boundary(self) -> int:
        """The sequence number of the newest row. No later one has been delivered yet.

        The feed must have been started.
        """
        if self._begun is None:
            raise StorageError("The change log is not being read")
        await asyncio.shield(self._begun)
        newest = await self._log.newest_sequence()
        while newest < self._position:
            newest = await self._log.newest_sequence()
        return newest

    async def _run(self, begun: asyncio.Future[None]) -> None:
        signal = self._log.listen()
        try:
            try:
                self._position = await self._log.newest_sequence()
            except StorageError as error:
                self._task = None
                begun.set_exception(error)
                return
            begun.set_result(None)
            while True:
                if not await self._advance():
                    await signal.wait()
        finally:
            signal.close()

    async def _advance(self) -> bool:
        """Deliver one page; True if there may be more to read at once."""
        try:
            rows = await self._log.changes_after(self._position, limit=PAGE)
        except Exception:
            logger.exception("The change log could not be read; trying again")
            return False
        for row in rows:
            self._position = row.sequence
            self._publish(row)
        await asyncio.sleep(0)  # lets requests and deliveries proceed
        return len(rows) == PAGE


PAGE: Final = 256
"""How many rows are read in one step; other requests wait for it."""
MAX_ROWS: Final = 100_000
"""How many changes of the whole server are searched for one receiver; more are a gap."""


class HistoryLost(Exception):
    """The change log does not reach back to the last change that the receiver knows."""


@dataclass(frozen=True, slots=True)
class History:
    """Reads past notifications; ``state_of`` returns the entity tag of a resource."""

    log: ChangeLog
    readers: Readers
    state_of: Callable[[Metadata], str]

    async def between(
        self, after: int, up_to: int, *, topic: ResourcePath, subscriber: Subscriber
    ) -> AsyncIterator[Notification]:
        """The notifications of a topic after ``after`` and up to ``up_to`` that the subscriber may
        receive now.

        Raises HistoryLost before the first of them.
        """
        await self._check(after, up_to)
        async for notification in self.read(after, up_to, topic=topic, subscriber=subscriber):
            if notification.is_for_channels:
                yield notification

    async def read(
        self, after: int, up_to: int, *, topic: ResourcePath, subscriber: Subscriber
    ) -> AsyncIterator[Notification]:
        """The same with all notifications, as far back as the log reaches."""
        position = after
        while position < up_to:
            rows = await self.log.changes_after(position, limit=PAGE)
            if not rows:
                return
            for row in rows:
                if row.sequence > up_to:
                    return
                for notification in notifications_of(row):
                    if notification.topic == topic:
                        told = await self._told(notification, subscriber)
                        if told is not None:
                            yield told
            position = rows[-1].sequence
            await asyncio.sleep(0)  # requests come first

    async def _check(self, after: int, up_to: int) -> None:
        """Raise HistoryLost if rows after ``after`` have left the log; the row itself leaves
        first."""
        if after > up_to:
            raise HistoryLost  # the number is of the log from before a backup was restored
        if after == up_to:
            return
        rows = await self.log.changes_after(after - 1, limit=1)
        first = max(after, 1)  # there is nothing before it if the log was empty
        if not rows or rows[0].sequence != first or up_to - after > MAX_ROWS:
            raise HistoryLost

    async def may_hear(self, notification: Notification, subscriber: Subscriber) -> bool:
        """Whether a subscriber may receive a notification now."""
        view = await self.readers.view(notification)
        return await view.may_read(subscriber) is ReadCheck.YES

    async def _told(
        self, notification: Notification, subscriber: Subscriber
    ) -> Notification | None:
        view = await self.readers.view(notification)
        if await view.may_read(subscriber) is not ReadCheck.YES:
            return None
        if view.metadata is None or notification.activity is Activity.DELETE:
            return notification
        return replace(notification, state=self.state_of(view.metadata))

    async def difference(
        self, state: str, topic: ResourcePath, *, sequence: int, now_ms: int
    ) -> Notification | None:
        """A notification for a receiver that knows the topic in ``state`` (N-14); ``None`` if that
        is its current state.

        ``state`` is an entity tag of any representation of the topic, or a state from a message; an
        empty one is never current.
        """
        notification = Notification(
            sequence=sequence,
            write=Version(""),
            topic=topic,
            activity=Activity.UPDATE,
            object=topic,
            target=None,
            at_ms=now_ms,
        )
        metadata = (await self.readers.view(notification)).metadata
        if metadata is None:
            return replace(notification, activity=Activity.DELETE)
        tag = self.state_of(metadata)
        if _version_of(tag) == _version_of(state):
            return None
        return replace(notification, write=metadata.version, state=tag)


def _version_of(tag: str) -> str:
    """The part of an entity tag that identifies the state, without the representation (P-24)."""
    version, _, _ = tag.strip().removeprefix("W/").strip('"').rpartition("-")
    return version
