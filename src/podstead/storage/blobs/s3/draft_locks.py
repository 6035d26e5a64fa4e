"""The locks of the drafts of resumable uploads, for requests to any node.

A lock is a record that expires, renewed by whoever holds it. Whoever takes one writes the record of
the upload anew in the same transaction: a holder whose lock has expired meanwhile, because its node
was slow or its clock is wrong, then cannot record anything for the upload any more.

A request that waits says so in another record, which the holder is expected to look for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final

import msgspec

from podstead.core.errors import Overloaded, StorageError
from podstead.storage.record_store import RecordStore
from podstead.storage.registry import RecordKind, Versioned
from podstead.storage.uploads import UPLOADS, DraftGone

logger = logging.getLogger("podstead.storage")

LOCK_WAIT_S: Final = 10.0
"""How long a request waits for another one that uses the same draft."""

LASTS_MS: Final = 20_000
"""How long a lock lasts without being renewed: so long a draft is locked after a node died."""

_RENEWAL_S: Final = 5.0
_RETRY_S: Final = 0.25
_WANTED_PERIOD_S: Final = 0.5
_WANTED_MS: Final = 3_000
_HOLDER_BYTES: Final = 8
_TAKEN: Final = "Another request is using this upload; try again"


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock, or waits for one."""

    holder: str


LOCKS: Final = RecordKind("upload-lock", Holder)
WANTED: Final = RecordKind("upload-wanted", Holder)


class DraftLocks:
    """The locks as one worker takes them."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[DraftLock]:
        """Hold the lock of a draft. Raises DraftGone if there is no such upload, Overloaded if it
        stays locked, StorageError."""
        lock = DraftLock(name, self._records)
        try:
            await lock.take()
            renewing = asyncio.create_task(lock.renew())
            try:
                yield lock
            finally:
                renewing.cancel()
        finally:
            await lock.release()


class DraftLock:
    """A lock that one request holds."""

    def __init__(self, name: str, records: RecordStore) -> None:
        self._name = name
        self._records = records
        self._holder = Holder(records.randomness.token_hex(_HOLDER_BYTES))
        self._until_ms = 0
        self._may_be_held = False

    async def take(self) -> None:
        """Wait for the lock."""
        end_s = monotonic() + LOCK_WAIT_S
        while not await self._try():
            if monotonic() >= end_s:
                raise Overloaded(_TAKEN)
            await asyncio.sleep(_RETRY_S)

    async def _try(self) -> bool:
        upload = await self._records.read(UPLOADS, self._name)
        if upload is None:
            raise DraftGone
        until_ms = self._records.now_ms() + LASTS_MS
        self._may_be_held = True
        taken = await self._records.try_commit(
            [
                LOCKS.put(self._name, self._holder, expires_ms=until_ms),
                WANTED.drop(self._name),
                UPLOADS.replace(upload, upload.value),
            ],
            [LOCKS.absent(self._name), upload.unchanged],
        )
        if taken:
            self._until_ms = until_ms
            return True
        self._may_be_held = False
        wanted_ms = self._records.now_ms() + _WANTED_MS
        await self._records.try_commit([WANTED.put(self._name, self._holder, expires_ms=wanted_ms)])
        return False

    async def renew(self) -> None:
        """Renew the lock until it is lost."""
        while True:
            await asyncio.sleep(_RENEWAL_S)
            try:
                held = await self._held()
                until_ms = self._records.now_ms() + LASTS_MS
                if held is None or not await self._records.try_commit(
                    [LOCKS.put(self._name, self._holder, expires_ms=until_ms)], [held.unchanged]
                ):
                    self._until_ms = 0
                    return
                self._until_ms = until_ms
            except (StorageError, Overloaded):
                logger.warning("The lock of an upload could not be renewed", exc_info=True)

    def check(self) -> None:
        """Raise Overloaded if the lock has been lost."""
        if self._records.now_ms() >= self._until_ms:
            raise Overloaded(_TAKEN)

    async def wanted(self) -> None:
        """Wait until another request waits for the lock."""
        while True:
            await asyncio.sleep(_WANTED_PERIOD_S)
            try:
                if await self._records.read(WANTED, self._name) is not None:
                    return
            except (StorageError, Overloaded):
                logger.debug("Whether an upload is wanted could not be read", exc_info=True)

    async def release(self) -> None:
        """Let the next request have the lock. If that fails, the lock expires."""
        if not self._may_be_held:
            return
        try:
            held = await self._held()
            if held is not None:
                await self._records.try_commit([LOCKS.drop(self._name)], [held.unchanged])
        except (StorageError, Overloaded):
            logger.warning("The lock of an upload could not be released", exc_info=True)

    async def _held(self) -> Versioned[Holder] | None:
        held = await self._records.read(LOCKS, self._name)
        return held if held is not None and held.value == self._holder else None
