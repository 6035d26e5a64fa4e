"""Are the credentials of a request still valid when its body has arrived?

Credentials are checked before the server reads the body, and a large body may take hours to arrive.
So they are checked again when the body is complete, before it is stored, in case they have been
revoked. Something that receives the body piece by piece may act on it before the end, as git does
with a push, so they are also checked before pieces, at intervals.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from podstead.core.clock import Clock
from podstead.core.operation import RequestBody

RECHECK_AFTER_MS: Final = 1000
"""The minimum time between two checks. A request could have arrived this much earlier anyway."""


class RecheckedBody:
    """A body that has the credentials checked again if it takes long (:class:`RequestBody`).

    Both ways of receiving it raise what ``check_again`` raises.
    """

    __slots__ = ("_body", "_checked_ms", "_clock", "_recheck", "announced", "size_bytes")

    def __init__(
        self, body: RequestBody, *, check_again: Callable[[], Awaitable[None]], clock: Clock
    ) -> None:
        """``check_again`` is called when the body is complete and, until then, once a second."""
        self._body = body
        self._recheck = check_again
        self._clock = clock
        self._checked_ms = clock.now_ms()
        self.announced = body.announced
        self.size_bytes = body.size_bytes

    async def read(self, *, limit_bytes: int) -> bytes:
        """Receive the whole body."""
        content = await self._body.read(limit_bytes=limit_bytes)
        await self._check()
        return content

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        """Receive the body piece by piece."""
        async for chunk in self._body.chunks(limit_bytes=limit_bytes):
            await self._check()
            yield chunk
        await self._check()

    async def _check(self) -> None:
        now_ms = self._clock.now_ms()
        # If the clock was set back, the elapsed time is unknown, so the check is repeated, too.
        if not 0 <= now_ms - self._checked_ms < RECHECK_AFTER_MS:
            await self._recheck()
            self._checked_ms = now_ms
