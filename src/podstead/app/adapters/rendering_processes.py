"""Runs ``podstead.previews.rendering``: one process for each rendering, with limits.

A rendering that crashes, uses too much or takes too long has no result, and nobody else notices.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Final

from podstead.app.adapters.child_processes import ChildProcess
from podstead.app.adapters.fair_semaphore import FairSemaphore
from podstead.previews.rendering import Content

logger = logging.getLogger("podstead.previews")

TIME_LIMIT_S: Final = 10
"""On a loaded machine, a process gets less of a processor than it could use."""
MAX_PROCESSES: Final = 4
_MAX_WAITING: Final = 256
_WAIT_FOR_SLOT_S: Final = 30
"""A page can show a hundred thumbnails, which are asked for at once."""
MAX_RESULT_BYTES: Final = 16 * 1024 * 1024


class RenderingProcesses:
    """Renders content (:class:`podstead.previews.rendering.ContentRenderer`)."""

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
        await self._slots.take(requester)
        try:
            read = content if isinstance(content, bytes) else await content()
            return await self._result(task, arguments, read)
        finally:
            self._slots.give_back(requester)

    async def _result(
        self, task: str, arguments: Mapping[str, str], content: bytes
    ) -> bytes | None:
        try:
            child = await ChildProcess.start("podstead.previews.rendering", task)
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
