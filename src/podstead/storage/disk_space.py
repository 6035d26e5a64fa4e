"""The free disk space: a minimum for new content, and a reserve for the database.

New content is refused while less than a minimum is free. The rest is for deletions and revocations.
Other programs may use up even that, so a reserve file holds back some space. The engine releases
the reserve when a write fails because the disk is full; it is restored once there is enough space
again.
"""

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from podstead.core.errors import DiskFull, Overloaded, StorageError

DEFAULT_FLOOR_BYTES: Final = 64 * 1024 * 1024
"""The minimum free space on a large file system."""

DEFAULT_FLOOR_SHARE: Final = 100
"""On a small file system, the minimum is its size divided by this."""

MAX_RESERVE_BYTES: Final = 20 * 1024 * 1024
"""Enough for opening the database, and for the file of the database to take what is in its log,
after which the log can be used again and need not grow."""

RESERVE_SHARE: Final = 32
"""On a small file system, the reserve is its size divided by this."""

READING_VALID_S: Final = 0.2
"""How long one reading of the free space is valid."""

READING_VALID_BYTES: Final = 4 * 1024 * 1024
"""How much may be stored before the next reading: a fast disk can fill within one interval."""

USELESS_BYTES: Final = 4 * 1024 * 1024
USELESS_FOR_S: Final = 600
"""How long nothing dispensable is removed after so much of it was without freeing anything:
something else fills the disk, or removed files are still in use."""

_EXHAUSTED_BYTES: Final = 1024 * 1024
_PRIVATE_FILE: Final = 0o600
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """The size of a file system, and how much of it this account can still use."""

    total_bytes: int
    free_bytes: int


def read_disk_usage(place: Path) -> DiskUsage:
    """Read the usage from the system. Raises OSError."""
    status = os.statvfs(place)
    return DiskUsage(status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize)


def is_full(error: BaseException | None) -> bool:
    """Whether the error, or one that caused it, means that the disk is full."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in _FULL):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


class DiskSpace:
    """Watches the free space of a data root for one process. Thread-safe."""

    def __init__(
        self,
        root: Path,
        *,
        min_free_bytes: int | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """``min_free_bytes`` must stay free; 0 for no minimum, ``None`` for the default."""
        self._root = root
        self._reserve = root / "reserve"
        self._min_free_bytes = min_free_bytes
        self._now_s = now_s
        self.give_back: Callable[[], Awaitable[None]] | None = None
        """Gives space back to the disk that the engine can do without. Raises StorageError,
        Overloaded."""
        self.dispensable: list[Callable[[], AsyncIterator[int]]] = []
        """Remove, in steps, what is only there while there is room, and give the bytes of each
        step. Raise StorageError, Overloaded."""
        self._making_room = asyncio.Lock()
        self._is_useless_until_s = 0.0
        self._is_low = False
        self._read_again_s = 0.0
        self._new_bytes = 0
        """The bytes announced since the last reading."""

    # --- new content --------------------------------------------------------------------------

    def check(self, new_bytes: int = 0) -> None:
        """Raise DiskFull if there is not enough space for new content.

        ``new_bytes`` is the number of bytes that are about to be stored.
        """
        now_s = self._now_s()
        self._new_bytes += new_bytes
        if now_s >= self._read_again_s or self._new_bytes >= READING_VALID_BYTES:
            self._is_low = self._read()
            self._read_again_s = now_s + READING_VALID_S
            self._new_bytes = 0
        if self._is_low:
            raise DiskFull

    async def make_room(self) -> None:
        """Give back what the engine can do without, and then, until there is room, what is
        dispensable. Raises DiskFull."""
        async with self._making_room:
            with suppress(StorageError, Overloaded):  # the disk is full still
                if await self._has_room():
                    return
                if self._now_s() >= self._is_useless_until_s and await self._has_removed_enough():
                    return
        self.check()

    async def _has_removed_enough(self) -> bool:
        most_free_bytes, useless_bytes = self.free_bytes(), 0
        for remove in self.dispensable:
            async for removed_bytes in remove():
                if await self._has_room():
                    return True
                free_bytes = self.free_bytes()
                if free_bytes > most_free_bytes:
                    most_free_bytes, useless_bytes = free_bytes, 0
                    continue
                # A few small rows may leave no page of the database free.
                useless_bytes += removed_bytes
                if useless_bytes >= USELESS_BYTES:
                    self._is_useless_until_s = self._now_s() + USELESS_FOR_S
                    return False
        return False

    async def _has_room(self) -> bool:
        if self.give_back is not None:
            await self.give_back()
        self.forget_reading()
        try:
            self.check()
        except DiskFull:
            return False
        return True

    def _read(self) -> bool:
        try:
            space = read_disk_usage(self._root)
        except OSError:
            return False  # the write itself will fail
        floor_bytes = self.floor_bytes(space)
        if not floor_bytes:
            return False
        # Space that the reserve has released is not available for new content.
        missing_bytes = _reserve_bytes(space) - self._held_bytes()
        if space.free_bytes < floor_bytes + missing_bytes:
            return True
        if missing_bytes > 0 and self._reserve.exists():
            self.restore()
        return False

    def _held_bytes(self) -> int:
        try:
            return self._reserve.stat().st_size
        except OSError:
            return 0

    def floor_bytes(self, space: DiskUsage) -> int:
        """The free space below which nothing new is stored."""
        if self._min_free_bytes is not None:
            return self._min_free_bytes
        return min(DEFAULT_FLOOR_BYTES, space.total_bytes // DEFAULT_FLOOR_SHARE)

    def reserve_bytes(self) -> int:
        """The size of the reserve while no space is lacking."""
        try:
            return _reserve_bytes(read_disk_usage(self._root))
        except OSError:
            return 0

    def free_bytes(self) -> int:
        """The free space for this account; 0 if it cannot be determined."""
        try:
            return read_disk_usage(self._root).free_bytes
        except OSError:
            return 0

    def is_exhausted(self) -> bool:
        """Whether hardly anything is free, so that an I/O error probably means a full disk."""
        try:
            return read_disk_usage(self._root).free_bytes < _EXHAUSTED_BYTES
        except OSError:
            return False

    def forget_reading(self) -> None:
        """Discard the last reading, because a write has just failed on a full disk."""
        self._read_again_s = 0.0

    # --- the reserve --------------------------------------------------------------------------

    def release(self) -> bool:
        """Release the reserve. Returns whether that freed space. Never raises."""
        self.forget_reading()
        held_bytes = self._held_bytes()
        try:
            os.truncate(self._reserve, 0)
        except OSError:
            return False
        return held_bytes > 0

    def release_if_low(self) -> None:
        """Release the reserve if the database might not open otherwise."""
        try:
            space = read_disk_usage(self._root)
        except OSError:
            return
        if space.free_bytes < _reserve_bytes(space):
            self.release()

    def restore(self, *, even_if_low: bool = False) -> None:
        """Allocate the reserve if enough space is free. Never raises.

        ``even_if_low`` allocates as much as possible, even below the minimum.
        """
        try:
            space = read_disk_usage(self._root)
            held_bytes = self._held_bytes()
            missing_bytes = _reserve_bytes(space) - held_bytes
            spare_bytes = space.free_bytes - (0 if even_if_low else self.floor_bytes(space))
            if missing_bytes > 0 and (spare_bytes >= missing_bytes or even_if_low):
                _allocate(self._reserve, held_bytes + min(missing_bytes, max(spare_bytes, 0)))
        except OSError:
            self.release()  # a partial reserve is useless


def _reserve_bytes(space: DiskUsage) -> int:
    return min(MAX_RESERVE_BYTES, space.total_bytes // RESERVE_SHARE)


def _allocate(path: Path, size_bytes: int) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _PRIVATE_FILE)
    try:
        if hasattr(os, "posix_fallocate"):
            if size_bytes:
                os.posix_fallocate(descriptor, 0, size_bytes)
        else:  # macOS
            os.ftruncate(descriptor, 0)
            for start in range(0, size_bytes, _EXHAUSTED_BYTES):
                os.write(descriptor, bytes(min(_EXHAUSTED_BYTES, size_bytes - start)))
    finally:
        os.close(descriptor)
