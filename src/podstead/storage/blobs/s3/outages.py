"""Ends requests that went astray while S3 could not be reached, once it can be again.

What is sent into a network that drops it, or over a connection that nobody at the other end knows
any more, is not answered when the network is back. It looks like a request that takes long because
the network is slow, which must have its time. So while a request takes long, S3 is asked something
small now and then. If that fails and then succeeds, whatever was begun before is begun anew, over
new connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

LONG_S: Final = 2.0
"""How long a request may take before S3 is asked whether it is there."""

_AGAIN_S: Final = 1.0
"""How long after one answer it is asked again."""


class Outages:
    """The requests of one worker that are under way. For one event loop."""

    def __init__(
        self, is_reachable: Callable[[], Awaitable[bool]], on_return: Callable[[], None]
    ) -> None:
        """``is_reachable`` asks S3 with a limit of its own, and raises nothing. ``on_return`` is
        called before the requests are ended."""
        self._is_reachable = is_reachable
        self._on_return = on_return
        self._under_way: dict[asyncio.Timeout, float] = {}
        self._looking: asyncio.Task[None] | None = None
        self._missed_s: float | None = None
        """When it was last asked in vain."""

    @contextmanager
    def during(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Let ``limit`` end at once if what is sent in the context goes astray."""
        loop = asyncio.get_running_loop()
        watch = loop.call_later(LONG_S, self._look)
        self._under_way[limit] = loop.time()
        try:
            yield
        finally:
            watch.cancel()
            self._under_way.pop(limit, None)

    def has_ended(self, limit: asyncio.Timeout) -> bool:
        """Whether it was ended so; to be asked within :meth:`during`."""
        return limit not in self._under_way

    def _look(self) -> None:
        if self._looking is None:
            self._looking = asyncio.create_task(self._run(), name="podstead-outages")

    async def _run(self) -> None:
        """Ask until no request takes long."""
        loop = asyncio.get_running_loop()
        while any(loop.time() - begun_s > LONG_S for begun_s in self._under_way.values()):
            asked_s = loop.time()
            if not await self._is_reachable():
                self._missed_s = asked_s
            elif self._missed_s is not None:
                self._end_those_begun_before(loop.time())
                self._missed_s = None
            await asyncio.sleep(_AGAIN_S)
        self._looking = self._missed_s = None

    def _end_those_begun_before(self, now_s: float) -> None:
        self._on_return()
        for limit in list(self._under_way):
            del self._under_way[limit]
            limit.reschedule(now_s)
