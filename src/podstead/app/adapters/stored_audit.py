"""How do the events of a worker get into the log that operators read in the console? (A-184)

Events are noted where nobody may wait for a write, so a task stores them within a second, several
in one write. A worker that is killed loses those of that second. What operators do in the console
is part of the write that does it, and is not stored here again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from podstead.app.adapters.audit import LogAudit
from podstead.core.errors import ServerTrouble
from podstead.core.request_context import requester_address
from podstead.idp.administration.audit_log import (
    AuditLog,
    CausedBy,
    LoggedEvent,
    acting_operator,
    cause_of,
)
from podstead.idp.audit import AuditEvent
from podstead.storage.record_store import RecordStore

logger = logging.getLogger("podstead.app")

STORE_S: Final = 1
"""How often events are stored."""
AGAIN_S: Final = 30
"""How long to wait after an error."""
MAX_WAITING: Final = 1000
"""How many events wait at most; in a flood, the oldest are left out, and are only in the log of the
process."""
_BATCH: Final = 200
_TRIM_AFTER: Final = 500


class StoredAudit(LogAudit):
    """Logs events as :class:`LogAudit` does, and stores them."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._log = AuditLog(records)
        self._waiting: deque[tuple[CausedBy, LoggedEvent]] = deque(maxlen=MAX_WAITING)
        self._stored = _TRIM_AFTER

    def note(self, event: AuditEvent, *, account_id: str | None = None, **facts: str) -> None:
        """Log an event, with the operator whose action it is, and have it stored."""
        operator = acting_operator()
        if operator is not None:
            super().note(event, account_id=account_id, operator=operator.name, **facts)
            return
        super().note(event, account_id=account_id, **facts)
        logged = LoggedEvent(
            at_ms=self._records.now_ms(),
            what=event.value,
            account=account_id or "",
            address=requester_address() or "",
            facts=facts,
        )
        self._waiting.append((cause_of(event), logged))

    async def store(self) -> None:
        """Store what waits. Raises StorageError, Overloaded."""
        while self._waiting:
            batch = [self._waiting[index] for index in range(min(_BATCH, len(self._waiting)))]
            await self._records.commit(self._log.logging(*each) for each in batch)
            for each in batch:
                # In a flood, the oldest may have been left out during the write.
                if self._waiting and self._waiting[0] is each:
                    self._waiting.popleft()
            self._stored += len(batch)
        if self._stored >= _TRIM_AFTER:
            await self._log.trim()
            self._stored = 0


async def store_regularly(*stores: Callable[[], Awaitable[None]]) -> None:
    """Call the ``stores``, which store what waits. Runs forever, also after errors, and stores the
    rest when it is cancelled; to be run in its own task."""
    try:
        while True:
            wait_s = STORE_S
            try:
                for store in stores:
                    await store()
            except ServerTrouble:
                logger.exception("Events could not be stored; it is tried again")
                wait_s = AGAIN_S
            await asyncio.sleep(wait_s)
    finally:
        try:
            for store in stores:
                await store()
        except ServerTrouble:
            logger.exception("The last events could not be stored")
