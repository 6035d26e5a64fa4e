"""How long does a task wait for a client? One timer watches all waits of an event loop.

A timeout of its own for each wait, as in ``asyncio.timeout``, creates and cancels a timer for each
message, although nearly all messages arrive at once. Here, beginning and ending a wait is an entry
in a dictionary, and a timer looks through the entries every ``LOOK_PERIOD_S`` as long as there are
any. So a wait ends with a timeout within that period after its deadline, never before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

LOOK_PERIOD_S: Final = 0.5


class Deadlines:
    """The deadlines of the tasks of one event loop."""

    __slots__ = ("_now_s", "_pending", "_period_s", "_timer")

    def __init__(
        self, *, period_s: float = LOOK_PERIOD_S, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._now_s = now_s
        self._period_s = period_s
        self._pending: set[Wait] = set()
        self._timer: asyncio.TimerHandle | None = None

    def wait(self, timeout_s: float) -> Wait:
        """A context in which the current task may wait for ``timeout_s``. After that, ``with``
        raises TimeoutError."""
        return Wait(self, self._now_s() + timeout_s)

    def begin(self, wait: Wait) -> None:
        """Watch a wait until it ends."""
        self._pending.add(wait)
        if self._timer is None:
            self._look_later()

    def end(self, wait: Wait) -> None:
        """Stop watching a wait."""
        # The timer is left alone: cancelling it for each wait would cost what this module saves.
        self._pending.discard(wait)

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._period_s, self._look)

    def _look(self) -> None:
        now_s = self._now_s()
        for wait in [each for each in self._pending if each.until_s <= now_s]:
            self._pending.discard(wait)
            wait.expire()
        self._timer = None
        if self._pending:
            self._look_later()


class Wait:
    """One wait of a task, which is cancelled if it takes too long (as in ``asyncio.Timeout``)."""

    __slots__ = ("_cancelling", "_deadlines", "_expired", "_task", "until_s")

    def __init__(self, deadlines: Deadlines, until_s: float) -> None:
        self._deadlines = deadlines
        self.until_s = until_s
        self._expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("Only a task can wait")
        self._task = task
        self._cancelling = task.cancelling()
        self._deadlines.begin(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._expired:
            self._deadlines.end(self)
        # If others have cancelled the task as well, the cancellation is theirs and goes on.
        elif self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def expire(self) -> None:
        """Cancel the task, because the time is over."""
        self._expired = True
        self._task.cancel()
