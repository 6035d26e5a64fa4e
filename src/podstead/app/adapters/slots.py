"""Who may use a scarce resource next? A bounded number at once, half of them for one requester.

Git processes and threads that hash passwords are such resources. A requester that holds its slots
as long as it can, or requests more at once, leaves the other half to everybody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from podstead.core.errors import Overloaded


@dataclass(slots=True)
class _Share:
    """The slots of one requester that holds or awaits any."""

    free: asyncio.Semaphore
    requests: int = field(default=0)


class Slots:
    """The slots of one worker."""

    def __init__(
        self, capacity: int, *, wait_s: float, refusal: str, max_waiting: int | None = None
    ) -> None:
        """``capacity`` slots can be taken at once. Later requests wait up to ``wait_s`` seconds and
        are then refused with the message ``refusal``. With ``max_waiting``, a request is refused
        immediately while that many hold or await a slot, or half as many of one requester."""
        self._free = asyncio.Semaphore(capacity)
        self._max_per_requester = _half(capacity)
        self._wait_s = wait_s
        self._refusal = refusal
        self._max_waiting = max_waiting
        self._shares: dict[str, _Share] = {}
        self._requests = 0

    async def take(self, requester: str) -> None:
        """Take a slot, which :meth:`give_back` returns. Raises Overloaded."""
        self._check_room(requester)
        share = self._shares.setdefault(
            requester, _Share(asyncio.Semaphore(self._max_per_requester))
        )
        share.requests += 1
        self._requests += 1
        try:
            async with asyncio.timeout(self._wait_s), _kept(share.free):
                await self._free.acquire()
        except BaseException as error:
            self._leave(requester, share)
            if isinstance(error, TimeoutError):
                raise Overloaded(self._refusal) from error
            raise

    def give_back(self, requester: str) -> None:
        """Return a slot that the requester has taken."""
        share = self._shares[requester]
        self._free.release()
        share.free.release()
        self._leave(requester, share)

    def _check_room(self, requester: str) -> None:
        if self._max_waiting is None:
            return
        share = self._shares.get(requester)
        own = 0 if share is None else share.requests
        if self._requests >= self._max_waiting or own >= _half(self._max_waiting):
            raise Overloaded(self._refusal)

    def _leave(self, requester: str, share: _Share) -> None:
        share.requests -= 1
        self._requests -= 1
        if share.requests == 0:
            del self._shares[requester]


@asynccontextmanager
async def _kept(semaphore: asyncio.Semaphore) -> AsyncIterator[None]:
    """Acquire a semaphore, and release it only if the work within the context fails."""
    await semaphore.acquire()
    try:
        yield
    except BaseException:
        semaphore.release()
        raise


def _half(number: int) -> int:
    return (number + 1) // 2
