"""Renders content in processes with limits, and stores thumbnails in files."""

import asyncio
import hashlib
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from podstead.app.adapters.guarded_processes import MAX_PROCESSES, GuardedProcesses
from podstead.core.clock import Clock
from podstead.core.identifiers import ResourcePath
from podstead.storage.records import Version

MEMORY_MIB: Final = 1024
PROCESSOR_S: Final = 5
TIME_LIMIT_S: Final = 10


class RenderingProcesses(GuardedProcesses):
    """Renders content (:mod:`podstead.features.previews.rendering`)."""

    def __init__(
        self, *, max_processes: int = MAX_PROCESSES, time_limit_s: float = TIME_LIMIT_S
    ) -> None:
        super().__init__(
            "podstead.features.previews.rendering",
            refusal="Too many previews are being made; try again later",
            memory_mib=MEMORY_MIB,
            processor_s=PROCESSOR_S,
            time_limit_s=time_limit_s,
            max_processes=max_processes,
        )


MAX_BYTES: Final = 128 * 1024 * 1024
_FAILURE_KEPT_S: Final = 24 * 3600
_PUTS_BETWEEN_SWEEPS: Final = 64


class ThumbnailFiles:
    """Stores thumbnails by the path and the version of the picture, and by ``kind`` where a picture
    has several."""

    def __init__(self, folder: Path, *, clock: Clock, max_bytes: int = MAX_BYTES) -> None:
        """``folder`` is created with the first thumbnail."""
        self._folder = folder
        self._clock = clock
        self._max_bytes = max_bytes
        self._puts = 0

    async def get(self, path: ResourcePath, version: Version, kind: str = "") -> bytes | None:
        """The thumbnail, empty if the picture has none; ``None`` if it is not here."""
        return await asyncio.to_thread(self._read, self._file(path, version, kind))

    async def put(
        self, path: ResourcePath, version: Version, content: bytes, kind: str = ""
    ) -> None:
        """Store a thumbnail, or by empty content that there is none."""
        sweeps = self._puts % _PUTS_BETWEEN_SWEEPS == 0
        self._puts += 1
        await asyncio.to_thread(self._write, self._file(path, version, kind), content, sweeps)

    def _file(self, path: ResourcePath, version: Version, kind: str) -> Path:
        return self._folder / hashlib.sha256(f"{kind}{version} {path}".encode()).hexdigest()

    def _read(self, file: Path) -> bytes | None:
        try:
            content = file.read_bytes()
            if not content:
                age_s = self._clock.now_ms() / 1000 - file.stat().st_mtime
                return None if age_s > _FAILURE_KEPT_S else content
        except OSError:
            return None
        return content

    def _write(self, file: Path, content: bytes, sweeps: bool) -> None:  # noqa: FBT001
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            # Renamed when it is complete, so that no other worker reads half of it.
            partial = self._folder / f".{file.name}.{os.getpid()}.{threading.get_ident()}"
            partial.write_bytes(content)
            partial.replace(file)
            if sweeps:
                self._sweep()

    def _sweep(self) -> None:
        """Remove the oldest files while all together are larger than allowed."""
        with os.scandir(self._folder) as entries:
            files = [(entry.stat(), entry.path) for entry in entries]
        total = sum(max(status.st_size, 512) for status, _ in files)
        for status, path in sorted(files, key=lambda file: file[0].st_mtime):
            if total <= self._max_bytes:
                return
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 - of an entry of scandir
            total -= max(status.st_size, 512)
