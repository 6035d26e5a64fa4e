"""Feeds a worker with the rows of the change log, in order, each once, without polling.

The log is authoritative: a row is committed with its write, so it exists if and only if the change
does (N-19). The feed remembers the last sequence number that it delivered. When the engine signals
that there may be new rows, the feed reads those after that number, in pages of limited size. A feed
begins at the end of the log; earlier changes are read from the log itself (see ``Hub.watch``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from podstead.core.errors import StorageError
from podstead.storage.protocol import ChangeSignal
from podstead.storage.records import LoggedChange

logger = logging.getLogger("podstead.notifications")

PAGE = 256
"""How many rows are read and delivered in one step; requests wait for it."""


class ChangeLog(Protocol):
    """The change log; every resource store has one."""

    def listen(self) -> ChangeSignal: ...

    async def newest_sequence(self) -> int: ...

    async def changes_after(self, sequence: int, *, limit: int) -> Sequence[LoggedChange]: ...


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
        except StorageError:
            logger.exception("The change log could not be read; trying again")
            return False
        for row in rows:
            self._position = row.sequence
            self._publish(row)
        await asyncio.sleep(0)  # lets requests and deliveries proceed
        return len(rows) == PAGE
