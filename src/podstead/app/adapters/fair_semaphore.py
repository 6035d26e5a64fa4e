"""Shares a scarce resource fairly: a bounded number use it at once, half of them for one requester.

Child processes and threads that hash passwords are such resources. A requester that holds its slots
as long as it can, or requests more at once, leaves the other half to everybody else.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from podstead.core.errors import Overloaded


@dataclass(slots=True)
class _Share:
    """The slots of one requester, or pod, that holds or awaits any."""

    key: tuple[str, str]
    free: asyncio.Semaphore
    requests: int = field(default=0)


class FairSemaphore:
    """The slots of one worker."""

    def __init__(
        self, capacity: int, *, wait_s: float, refusal: str, max_waiting: int | None = None
    ) -> None:
        """``capacity`` slots can be held at once. Later requests wait up to ``wait_s`` seconds and
        are then refused with the message ``refusal``. With ``max_waiting``, a request is refused
        immediately while that many hold or await a slot, or half as many of one requester."""
        self._capacity = capacity
        self._free = asyncio.Semaphore(capacity)
        self._max_per_requester = _half(capacity)
        self._wait_s = wait_s
        self._refusal = refusal
        self._max_waiting = max_waiting
        self._shares: dict[tuple[str, str], _Share] = {}
        self._requests = 0

    async def acquire(self, requester: str, *, pod: str = "", wait_s: float | None = None) -> None:
        """Acquire a slot, which :meth:`release` returns. The requesters of one ``pod``, if it has
        a name, get all but one of the slots. Raises Overloaded."""
        self._check_room(requester)
        shares = self._joined(requester, pod)
        try:
            async with (
                asyncio.timeout(self._wait_s if wait_s is None else wait_s),
                AsyncExitStack() as acquired,
            ):
                for share in shares:
                    await acquired.enter_async_context(_released_on_failure(share.free))
                await self._free.acquire()
        except BaseException as error:
            self._leave(shares)
            if isinstance(error, TimeoutError):
                raise Overloaded(self._refusal) from error
            raise

    def release(self, requester: str, *, pod: str = "") -> None:
        """Return a slot that the requester has acquired."""
        shares = [self._shares[key] for key in _keys(requester, pod)]
        self._free.release()
        for share in shares:
            share.free.release()
        self._leave(shares)

    def _check_room(self, requester: str) -> None:
        if self._max_waiting is None:
            return
        share = self._shares.get(_keys(requester, "")[0])
        own = 0 if share is None else share.requests
        if self._requests >= self._max_waiting or own >= _half(self._max_waiting):
            raise Overloaded(self._refusal)

    def _joined(self, requester: str, pod: str) -> list[_Share]:
        limits = self._max_per_requester, max(self._capacity - 1, 1)
        shares = []
        # The requester first: one of many requests of the same pod does not wait for the others.
        for key, limit in zip(_keys(requester, pod), limits, strict=False):
            share = self._shares.setdefault(key, _Share(key, asyncio.Semaphore(limit)))
            share.requests += 1
            shares.append(share)
        self._requests += 1
        return shares

    def _leave(self, shares: list[_Share]) -> None:
        self._requests -= 1
        for share in shares:
            share.requests -= 1
            if share.requests == 0:
                del self._shares[share.key]


def _keys(requester: str, pod: str) -> list[tuple[str, str]]:
    return [("requester", requester), *([("pod", pod)] if pod else [])]


@asynccontextmanager
async def _released_on_failure(semaphore: asyncio.Semaphore) -> AsyncIterator[None]:
    """Acquire a semaphore, and release it only if the work within the context fails."""
    await semaphore.acquire()
    try:
        yield
    except BaseException:
        semaphore.release()
        raise


def _half(number: int) -> int:
    return (number + 1) // 2
