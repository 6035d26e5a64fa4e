"""The record of blobs, in the transactions of the writer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from podstead.storage.records import BlobId
from podstead.storage.sqlite import maintenance
from podstead.storage.sqlite.writer import Writer


class Ledger:
    """Implements :class:`~podstead.storage.blobs.staging.BlobLedger`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def record(self, blobs: Sequence[BlobId]) -> None:
        await self._writer.run(partial(maintenance.stage_blobs, blobs=blobs))

    async def renew(self, blobs: Sequence[BlobId]) -> None:
        await self._writer.run(partial(maintenance.renew_blobs, blobs=blobs))

    async def discard(self, blobs: Sequence[BlobId]) -> Sequence[BlobId]:
        return await self._writer.run(partial(maintenance.discard_blobs, blobs=blobs))

    async def discard_unclaimed(self, *, staged_before_ms: int) -> None:
        await self._writer.run(
            partial(maintenance.discard_unclaimed_blobs, staged_before_ms=staged_before_ms)
        )

    async def find_garbage(self, *, dropped_before_ms: int) -> Sequence[BlobId]:
        return await self._writer.run(
            partial(maintenance.find_garbage, dropped_before_ms=dropped_before_ms)
        )

    async def forget(self, blobs: Sequence[BlobId]) -> None:
        await self._writer.run(partial(maintenance.delete_garbage_rows, blobs=blobs))
