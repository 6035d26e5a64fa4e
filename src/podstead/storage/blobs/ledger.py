"""The record of blobs, in the transactions of an engine's writer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol

from podstead.storage.records import BlobId


class BlobStatements(Protocol):
    """The functions of an engine that run the statements on a connection."""

    stage_blobs: Callable[..., Any]
    renew_blobs: Callable[..., Any]
    discard_blobs: Callable[..., Any]
    discard_unclaimed_blobs: Callable[..., Any]
    find_garbage: Callable[..., Any]
    delete_garbage_rows: Callable[..., Any]


class Ledger:
    """Implements :class:`~podstead.storage.blobs.staging.BlobLedger`."""

    def __init__(
        self, run: Callable[[Callable[..., Any]], Awaitable[Any]], statements: BlobStatements
    ) -> None:
        """``run`` calls one of the functions with a connection, in a transaction of the writer."""
        self._run = run
        self._statements = statements

    async def record(self, blobs: Sequence[BlobId]) -> None:
        await self._run(partial(self._statements.stage_blobs, blobs=blobs))

    async def renew(self, blobs: Sequence[BlobId]) -> None:
        await self._run(partial(self._statements.renew_blobs, blobs=blobs))

    async def discard(self, blobs: Sequence[BlobId]) -> Sequence[BlobId]:
        discarded: Sequence[BlobId] = await self._run(
            partial(self._statements.discard_blobs, blobs=blobs)
        )
        return discarded

    async def discard_unclaimed(self, *, staged_before_ms: int) -> None:
        discard = self._statements.discard_unclaimed_blobs
        await self._run(partial(discard, staged_before_ms=staged_before_ms))

    async def find_garbage(self, *, dropped_before_ms: int) -> Sequence[BlobId]:
        found: Sequence[BlobId] = await self._run(
            partial(self._statements.find_garbage, dropped_before_ms=dropped_before_ms)
        )
        return found

    async def forget(self, blobs: Sequence[BlobId]) -> None:
        await self._run(partial(self._statements.delete_garbage_rows, blobs=blobs))
