"""Steps that a worker repeats in the background, at intervals or when it is woken."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

AGAIN_S: Final = 60.0
"""How long the pause after an error is, unless something else is said."""


async def cancel_and_wait(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended. If the caller is cancelled meanwhile, that
    comes through; an exception of a task does not."""
    cancelled = list(tasks)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)


class Background:
    """Repeats a step in a task. An exception does not end it: it is logged, and the step is
    repeated after a pause."""

    def __init__(
        self,
        step: Callable[[], Awaitable[object]],
        logger: logging.Logger,
        failed: str,
        *,
        every_s: float | None = None,
        again_s: float = AGAIN_S,
        at_end: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """``failed`` is what the log says if there is an error. Without ``every_s``, the step waits
        to be woken. ``at_end`` is called when it is stopped."""
        self._step = step
        self._logger = logger
        self._failed = failed
        self._every_s = every_s
        self._again_s = again_s
        self._at_end = at_end
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, *, at_once: bool = True) -> None:
        """Begin, with a step ``at_once`` or after the first interval. Idempotent."""
        if self._task is None:
            if at_once:
                self.wake()
            self._task = asyncio.create_task(self._run())

    def wake(self) -> None:
        """Have a step done now, or once more after the one in progress."""
        self._woken.set()

    async def stop(self) -> None:
        """Cancel the step in progress, wait for its end, and do what is to be done last.
        Idempotent."""
        task, self._task = self._task, None
        if task is None:
            return
        await cancel_and_wait([task])
        if self._at_end is not None:
            try:
                await self._at_end()
            except Exception:
                self._logger.exception("%s at the end", self._failed)

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._woken.wait()
            self._woken.clear()
            try:
                await self._step()
            except Exception:
                self._logger.exception("%s; it is tried again", self._failed)
                await asyncio.sleep(self._again_s)
                self.wake()
