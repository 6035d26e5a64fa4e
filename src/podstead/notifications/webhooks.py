"""Sends the messages of webhooks from the worker that holds the lease (N-21).

It finds channels that other workers have created by checking the store's state mark, which costs
nothing while nothing changes. When the worker with the lease stops, another one continues at once;
when it is killed, another one continues as soon as the lease has expired.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from podstead.core.errors import ServerTrouble
from podstead.notifications.webhook_lines import Line, Sending
from podstead.notifications.webhook_records import WEBHOOKS

logger = logging.getLogger("podstead.notifications")

LOOK_S: Final = 1.0
"""The time between two checks for new channels."""
UNFORESEEN_S: Final = 60.0
"""How long sending on a channel pauses after an unexpected error, which may well repeat."""
_STOP_S: Final = 5.0
_TROUBLE_S: Final = 5.0


class Webhooks:
    """Sends on all channels while this worker holds the lease. For one event loop."""

    def __init__(self, sending: Sending) -> None:
        self._with = sending
        self._channels: dict[str, asyncio.Task[None]] = {}
        self._attempts: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._mark: int | None = None

    def start(self) -> None:
        """Begin. Idempotent."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Let attempts in progress finish, for some seconds, and release the lease."""
        if self._task is None:
            return
        tasks = [self._task, *self._channels.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._attempts:
            await asyncio.wait(self._attempts, timeout=_STOP_S)
        self._task = None
        try:
            await self._with.lease.release()
        except ServerTrouble:
            logger.exception("The lease of webhooks could not be released")

    async def _run(self) -> None:
        while True:
            try:
                await self._look()
            except ServerTrouble:
                logger.exception("Webhooks could not be looked up; trying again")
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        """Start and stop sending on channels, if this worker holds the lease."""
        store, lease = self._with.records.store, self._with.lease
        mark = store.data_version()
        unchanged = mark is not None and mark == self._mark
        if unchanged and (not self._channels or await lease.hold()):
            return
        wanted = await self._wanted()
        if not wanted or not await lease.hold():
            await self._drop(set(self._channels))
            self._mark = mark if not wanted else None
            return
        await self._drop(self._channels.keys() - wanted)
        for key in wanted - self._channels.keys():
            self._channels[key] = asyncio.create_task(self._serve(key))
        self._mark = mark

    async def _wanted(self) -> set[str]:
        """The keys of the channels on which messages are to be sent."""
        wanted: set[str] = set()
        after, records = "", self._with.records
        now_ms = records.now_ms()
        while page := await WEBHOOKS.page(records.store, after=after, now_ms=now_ms):
            wanted |= {stored.key for stored in page if stored.value.given_up is None}
            after = page[-1].key
        return wanted

    async def _drop(self, keys: set[str]) -> None:
        tasks = [self._channels.pop(key) for key in keys]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, key: str) -> None:
        """Send on one channel until it ends."""
        while True:
            try:
                if not await Line(key, self._with, self._attempts).run():
                    return
            except ServerTrouble:
                logger.exception("A webhook could not be served; trying again")
                await asyncio.sleep(_TROUBLE_S)
            except Exception:
                logger.exception("Unexpected error while serving a webhook; trying again")
                await asyncio.sleep(UNFORESEEN_S)
