"""Whose turn is it to have git answer? So many at once, and half of them at most for one asker.

Whoever sends or reads slowly holds what answers them for as long as they like. Without a share of
their own to do that in, one stranger would keep git from everybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from podstead.core.errors import Overloaded


@dataclass(slots=True)
class _Share:
    """What one asker may have, while they have or want any."""

    free: asyncio.Semaphore
    askers: int = field(default=0)


class Slots:
    """Slots of one worker."""

    def __init__(self, most: int, *, wait_s: float) -> None:
        """``most`` are taken at once; who comes later waits so long."""
        self._free = asyncio.Semaphore(most)
        self._most_of_one = (most + 1) // 2
        self._wait_s = wait_s
        self._shares: dict[str, _Share] = {}

    async def take(self, asker: str) -> None:
        """Take a slot, which :meth:`give_back` ends. Raises Overloaded."""
        share = self._shares.setdefault(asker, _Share(asyncio.Semaphore(self._most_of_one)))
        share.askers += 1
        try:
            async with asyncio.timeout(self._wait_s), _kept(share.free):
                await self._free.acquire()
        except BaseException as error:
            self._leave(asker, share)
            if isinstance(error, TimeoutError):
                raise Overloaded("Too many ask git at this moment: try again") from error
            raise

    def give_back(self, asker: str) -> None:
        """End the use of a slot that the asker has taken."""
        share = self._shares[asker]
        self._free.release()
        share.free.release()
        self._leave(asker, share)

    def _leave(self, asker: str, share: _Share) -> None:
        share.askers -= 1
        if share.askers == 0:
            del self._shares[asker]


@asynccontextmanager
async def _kept(semaphore: asyncio.Semaphore) -> AsyncIterator[None]:
    """Acquire a semaphore, and release it again only if what is done then fails."""
    await semaphore.acquire()
    try:
        yield
    except BaseException:
        semaphore.release()
        raise
