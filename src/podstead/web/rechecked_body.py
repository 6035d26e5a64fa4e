"""Is the sender of a body that took long to arrive still who they were when it began?

A credential is looked at before anything of a body is taken in, and a large one may take hours. So
one that was revoked meanwhile is noticed when the body is complete, and before it is stored. What
is handed on piece by piece may be acted on before it has ended, as git does with a push: so the
sender is asked about before pieces as well, now and then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from podstead.core.clock import Clock
from podstead.core.operation import RequestBody

RECHECK_AFTER_MS: Final = 1000
"""What comes within so long of the last look might as well have come before the revocation."""


class RecheckedBody:
    """A body whose sender is asked about again if it took long (:class:`RequestBody`).

    Both ways of receiving it raise what ``check_again`` does.
    """

    __slots__ = ("_body", "_clock", "_looked_ms", "_recheck", "announced", "size_bytes")

    def __init__(
        self, body: RequestBody, *, check_again: Callable[[], Awaitable[None]], clock: Clock
    ) -> None:
        """``check_again`` is asked when the body is complete, and meanwhile once a second."""
        self._body = body
        self._recheck = check_again
        self._clock = clock
        self._looked_ms = clock.now_ms()
        self.announced = body.announced
        self.size_bytes = body.size_bytes

    async def read(self, *, limit_bytes: int) -> bytes:
        """Receive the whole body."""
        content = await self._body.read(limit_bytes=limit_bytes)
        await self._look()
        return content

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        """Receive the body piece by piece."""
        async for chunk in self._body.chunks(limit_bytes=limit_bytes):
            await self._look()
            yield chunk
        await self._look()

    async def _look(self) -> None:
        now_ms = self._clock.now_ms()
        # A clock that was set back tells nothing, so the sender is asked about as well.
        if not 0 <= now_ms - self._looked_ms < RECHECK_AFTER_MS:
            await self._recheck()
            self._looked_ms = now_ms
