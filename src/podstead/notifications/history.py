"""What has a receiver missed that was away for a while? Read again from the change log (N-23).

A receiver tells the sequence number of the last change that it knows. If the log still reaches back
to it, everything since then is told in order; if not, that is said, since only the resource itself
can then tell what became of it.
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
"""Rows that are read in one step, which requests wait for."""
MOST_ROWS: Final = 100_000
"""Changes of the whole server that are looked through for one receiver; more are a gap."""


class HistoryLost(Exception):
    """The change log does not reach back to where the receiver was."""


@dataclass(frozen=True, slots=True)
class History:
    """Reads notices of the past; ``state_of`` gives the entity tag of what is stored."""

    log: ChangeLog
    readers: Readers
    state_of: Callable[[Metadata], str]

    async def between(
        self, after: int, up_to: int, *, topic: ResourcePath, subscriber: Subscriber
    ) -> AsyncIterator[Notification]:
        """The notices of a topic from behind ``after`` up to ``up_to``, as far as the subscriber
        may hear of them now.

        Raises HistoryLost before the first of them, ServerTrouble.
        """
        await self._check(after, up_to)
        async for notification in self.read(after, up_to, topic=topic, subscriber=subscriber):
            if notification.is_for_channels:
                yield notification

    async def read(
        self, after: int, up_to: int, *, topic: ResourcePath, subscriber: Subscriber
    ) -> AsyncIterator[Notification]:
        """The same, of all notices, from as far back as the log reaches. Raises ServerTrouble."""
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
        """Whether nothing behind ``after`` has left the log: then its own row is still there."""
        if after > up_to:
            raise HistoryLost  # of a log that was there before the data came back from a backup
        if after == up_to:
            return
        rows = await self.log.changes_after(after - 1, limit=1)
        first = max(after, 1)  # with nothing before it where the log was empty
        if not rows or rows[0].sequence != first or up_to - after > MOST_ROWS:
            raise HistoryLost

    async def may_hear(self, notification: Notification, subscriber: Subscriber) -> bool:
        """Whether a subscriber may hear of a notice now. Raises ServerTrouble."""
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
        """What tells a receiver that knows the topic in ``state`` how it is now (N-14); ``None`` if
        it is still so.

        ``state`` may be an entity tag of any form of the topic, or what messages say; an empty one
        is never the topic's. Raises StorageError.
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
    """What an entity tag says of the state, whatever the form (P-24)."""
    version, _, _ = tag.strip().removeprefix("W/").strip('"').rpartition("-")
    return version
