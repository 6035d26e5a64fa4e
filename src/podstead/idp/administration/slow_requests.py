"""Collects the requests that took long: the newest ones of all workers, for the console.

A request is slow if its response begins late; the time in which the client sent the body is part of
that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from podstead.storage.record_store import RecordKind, RecordStore

KEPT_MS: Final = 7 * 24 * 3600 * 1000
MAX_KEPT: Final = 100
_MAX_WAITING: Final = 50
"""How many requests wait to be stored; when everything is slow, the newest of them suffice."""
_MAX_PATH_CHARACTERS: Final = 300
_LAST_MS: Final = 10**15
_MARK_BYTES: Final = 8


class SlowRequest(msgspec.Struct, frozen=True):
    """A slow request, without its query."""

    at_ms: int
    method: str
    path: str
    status: int
    took_ms: int


_SLOW_REQUESTS: Final = RecordKind("slow-request", SlowRequest)


class SlowRequests:
    """Collects the slow requests of a worker, stores them, and reads those of all workers."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records
        self._waiting: deque[SlowRequest] = deque(maxlen=_MAX_WAITING)

    def note(self, method: str, path: str, status: int, took_ms: int) -> None:
        """Note a request; it is stored later."""
        now_ms = self._records.now_ms()
        self._waiting.append(SlowRequest(now_ms, method, shown_path(path), status, took_ms))

    async def store(self) -> None:
        """Store what was noted, and remove the oldest. Raises StorageError, Overloaded."""
        if not self._waiting:
            return
        waiting = list(self._waiting)
        self._waiting.clear()
        surplus = (await self._page(MAX_KEPT + _MAX_WAITING * 4))[MAX_KEPT - len(waiting) :]
        puts = [
            _SLOW_REQUESTS.put(
                f"{_LAST_MS - each.at_ms:015d}.{self._records.randomness.token_hex(_MARK_BYTES)}",
                each,
                expires_ms=each.at_ms + KEPT_MS,
            )
            for each in waiting
        ]
        await self._records.commit([*puts, *(_SLOW_REQUESTS.drop(key) for key, _ in surplus)])

    async def newest(self) -> Sequence[SlowRequest]:
        """The newest first. Raises StorageError."""
        return [each for _, each in await self._page(MAX_KEPT)]

    async def _page(self, limit: int) -> Sequence[tuple[str, SlowRequest]]:
        now_ms = self._records.now_ms()
        page = await _SLOW_REQUESTS.page(self._records.store, now_ms=now_ms, limit=limit)
        return [(each.key, each.value) for each in page]


def shown_path(path: str) -> str:
    """A path without secrets: those of the server's own pages may contain some behind the second
    segment."""
    segments = path.split("/")
    if len(segments) > 3 and (segments[1].startswith(".") or segments[1] == "idp"):
        path = "/".join([*segments[:3], "…"])
    return path[:_MAX_PATH_CHARACTERS]
