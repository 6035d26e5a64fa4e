"""Reads the notifications that a receiver has missed from the change log (N-23).

A receiver states the sequence number of the last change that it knows. If the log still reaches
back to that change, the receiver gets everything since then in order. If not, it is notified of the
gap and has to fetch the resource.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.notifications.feed import ChangeLog
from podstead.notifications.notification import Activity, Notification, notifications_of
from podstead.notifications.readers import ReadCheck, Readers, Subscriber
from podstead.storage.records import Metadata, Version

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

        Raises HistoryLost before the first of them, ServerTrouble.
        """
        await self._check(after, up_to)
        async for notification in self.read(after, up_to, topic=topic, subscriber=subscriber):
            if notification.is_for_channels:
                yield notification

    async def read(
        self, after: int, up_to: int, *, topic: ResourcePath, subscriber: Subscriber
    ) -> AsyncIterator[Notification]:
        """The same with all notifications, as far back as the log reaches. Raises ServerTrouble."""
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
        """Whether a subscriber may receive a notification now. Raises ServerTrouble."""
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
