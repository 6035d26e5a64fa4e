"""Carries out tasks on content in processes with limits, one for each task.

The process runs ``python -I -m <module> <task> <MiB> <seconds>``, gets a line of JSON with the
arguments and then the content from standard input, and writes the result to standard output. It
limits itself to so much memory and processor time (``guarded_child.py``). A task that crashes,
uses too much or takes too long has no result, and nobody else notices.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from podstead.app.adapters.child_processes import ChildProcess
from podstead.app.adapters.fair_semaphore import FairSemaphore

logger = logging.getLogger("podstead.processes")

Content = bytes | Callable[[], Awaitable[bytes]]
"""The content of a task, or a function that reads it once a process is free."""

MAX_PROCESSES: Final = 4
_MAX_WAITING: Final = 256
_WAIT_FOR_SLOT_S: Final = 30
"""A page can show a hundred thumbnails, which are asked for at once."""
MAX_RESULT_BYTES: Final = 16 * 1024 * 1024


class GuardedProcesses:
    """Carries out the tasks of one module."""

    def __init__(
        self,
        module: str,
        *,
        refusal: str,
        memory_mib: int,
        processor_s: int,
        time_limit_s: float,
        max_processes: int = MAX_PROCESSES,
    ) -> None:
        """At most ``max_processes`` run at once, half of them for one requester; who has waited too
        long for one is refused with the message ``refusal``. On a loaded machine, a process gets
        less of a processor than it could use, so ``time_limit_s`` is more than ``processor_s``."""
        self._module = module
        self._limits = str(memory_mib), str(processor_s)
        self._time_limit_s = time_limit_s
        self._slots = FairSemaphore(
            max_processes, wait_s=_WAIT_FOR_SLOT_S, refusal=refusal, max_waiting=_MAX_WAITING
        )

    async def carry_out(
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
            child = await ChildProcess.start(self._module, task, *self._limits)
        except OSError:
            logger.warning("A process of %s could not be started", self._module, exc_info=True)
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
            logger.info("A %s has no result (status %s)", task, child.status)
            return None
        return result
