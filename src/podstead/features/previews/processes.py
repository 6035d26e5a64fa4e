"""Renders content in processes with limits, one for each rendering, and stores thumbnails in files.

A rendering that crashes, uses too much or takes too long has no result, and nobody else notices.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from podstead.app.adapters.child_processes import ChildProcess
from podstead.app.adapters.fair_semaphore import FairSemaphore
from podstead.core.clock import Clock
from podstead.core.identifiers import ResourcePath
from podstead.features.previews.rendering import Content
from podstead.storage.records import Version

logger = logging.getLogger("podstead.previews")

TIME_LIMIT_S: Final = 10
"""On a loaded machine, a process gets less of a processor than it could use."""
MAX_PROCESSES: Final = 4
_MAX_WAITING: Final = 256
_WAIT_FOR_SLOT_S: Final = 30
"""A page can show a hundred thumbnails, which are asked for at once."""
MAX_RESULT_BYTES: Final = 16 * 1024 * 1024


class RenderingProcesses:
    """Renders content (:class:`podstead.features.previews.rendering.ContentRenderer`)."""

    def __init__(
        self, *, max_processes: int = MAX_PROCESSES, time_limit_s: float = TIME_LIMIT_S
    ) -> None:
        """At most ``max_processes`` run at once, half of them for one requester."""
        self._time_limit_s = time_limit_s
        self._slots = FairSemaphore(
            max_processes,
            wait_s=_WAIT_FOR_SLOT_S,
            refusal="Too many previews are being made; try again later",
            max_waiting=_MAX_WAITING,
        )

    async def render(
        self, task: str, arguments: Mapping[str, str], content: Content, *, requester: str
    ) -> bytes | None:
        """The result, ``None`` if there is none. Raises Overloaded, and what reading raises."""
        await self._slots.acquire(requester)
        try:
            read = content if isinstance(content, bytes) else await content()
            return await self._result(task, arguments, read)
        finally:
            self._slots.release(requester)

    async def _result(
        self, task: str, arguments: Mapping[str, str], content: bytes
    ) -> bytes | None:
        try:
            child = await ChildProcess.start("podstead.features.previews.rendering", task)
        except OSError:
            logger.warning("The process that renders previews could not be started", exc_info=True)
            return None
        try:
            async with asyncio.timeout(self._time_limit_s):
                sent = json.dumps(dict(arguments)).encode() + b"\n" + content
                result = await child.communicate(sent)
        except TimeoutError:
            return None
        finally:
            await child.end()
        if child.status != 0 or len(result) > MAX_RESULT_BYTES:
            logger.info("A %s was not rendered (status %s)", task, child.status)
            return None
        return result


MAX_BYTES: Final = 128 * 1024 * 1024
_FAILURE_KEPT_S: Final = 24 * 3600
_PUTS_BETWEEN_SWEEPS: Final = 64


class ThumbnailFiles:
    """Stores thumbnails by the path and the version of the picture."""

    def __init__(self, folder: Path, *, clock: Clock, max_bytes: int = MAX_BYTES) -> None:
        """``folder`` is created with the first thumbnail."""
        self._folder = folder
        self._clock = clock
        self._max_bytes = max_bytes
        self._puts = 0

    async def get(self, path: ResourcePath, version: Version) -> bytes | None:
        """The thumbnail, empty if the picture has none; ``None`` if it is not here."""
        return await asyncio.to_thread(self._read, self._file(path, version))

    async def put(self, path: ResourcePath, version: Version, content: bytes) -> None:
        """Store a thumbnail, or by empty content that there is none."""
        sweeps = self._puts % _PUTS_BETWEEN_SWEEPS == 0
        self._puts += 1
        await asyncio.to_thread(self._write, self._file(path, version), content, sweeps)

    def _file(self, path: ResourcePath, version: Version) -> Path:
        return self._folder / hashlib.sha256(f"{version} {path}".encode()).hexdigest()

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
