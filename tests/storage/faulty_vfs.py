"""A file system for SQLite whose operations fail on demand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import apsw

_numbers = count(1)


class FaultyVfs(apsw.VFS):
    """Passes everything on to the real one, but for operations that are made to fail."""

    def __init__(self) -> None:
        self.vfs_name = f"faulty-{next(_numbers)}"
        self._faults: dict[str, type[apsw.Error]] = {}
        super().__init__(self.vfs_name, "")

    @contextmanager
    def failing(self, operation: str, error: type[apsw.Error]) -> Iterator[None]:
        """Let every ``read``, ``write`` or ``sync`` fail meanwhile."""
        self._faults[operation] = error
        try:
            yield
        finally:
            del self._faults[operation]

    def check(self, operation: str) -> None:
        if operation in self._faults:
            raise self._faults[operation](f"injected failure of {operation}")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _FaultyFile(self, name, flags)


class _FaultyFile(apsw.VFSFile):
    def __init__(
        self, vfs: FaultyVfs, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._vfs = vfs
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._vfs.check("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._vfs.check("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._vfs.check("sync")
        super().xSync(flags)
