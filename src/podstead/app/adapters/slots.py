"""Whose turn is it to use something of which there is little? So many at once, half for one asker.

Processes of git and threads that hash passwords are such things. An asker that keeps what it has
for as long as it likes, or comes back for more at once, leaves the other half to everybody else.
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

    def __init__(
        self, most: int, *, wait_s: float, refusal: str, most_waiting: int | None = None
    ) -> None:
        """``most`` are taken at once; later askers wait up to ``wait_s`` seconds and are then
        refused with the sentence ``refusal``. With ``most_waiting``, an asker is refused at once
        while so many of all askers, or half as many of its own, hold or await a slot."""
        self._free = asyncio.Semaphore(most)
        self._most_of_one = _half(most)
        self._wait_s = wait_s
        self._refusal = refusal
        self._most_waiting = most_waiting
        self._shares: dict[str, _Share] = {}
        self._askers = 0

    async def take(self, asker: str) -> None:
        """Take a slot, which :meth:`give_back` ends. Raises Overloaded."""
        self._check_room(asker)
        share = self._shares.setdefault(asker, _Share(asyncio.Semaphore(self._most_of_one)))
        share.askers += 1
        self._askers += 1
        try:
            async with asyncio.timeout(self._wait_s), _kept(share.free):
                await self._free.acquire()
        except BaseException as error:
            self._leave(asker, share)
            if isinstance(error, TimeoutError):
                raise Overloaded(self._refusal) from error
            raise

    def give_back(self, asker: str) -> None:
        """End the use of a slot that the asker has taken."""
        share = self._shares[asker]
        self._free.release()
        share.free.release()
        self._leave(asker, share)

    def _check_room(self, asker: str) -> None:
        if self._most_waiting is None:
            return
        share = self._shares.get(asker)
        own = 0 if share is None else share.askers
        if self._askers >= self._most_waiting or own >= _half(self._most_waiting):
            raise Overloaded(self._refusal)

    def _leave(self, asker: str, share: _Share) -> None:
        share.askers -= 1
        self._askers -= 1
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


def _half(number: int) -> int:
    return (number + 1) // 2
