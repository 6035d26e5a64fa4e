"""Who may use a scarce resource next? A bounded number at once, half of them for one asker.

Git processes and threads that hash passwords are such resources. An asker that holds its slots as
long as it likes, or asks again at once, leaves the other half to everybody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from podstead.core.errors import Overloaded


@dataclass(slots=True)
class _Share:
    """The slots of one asker that holds or awaits any."""

    free: asyncio.Semaphore
    askers: int = field(default=0)


class Slots:
    """The slots of one worker."""

    def __init__(
        self, most: int, *, wait_s: float, refusal: str, most_waiting: int | None = None
    ) -> None:
        """At most ``most`` are taken at once. Later askers wait up to ``wait_s`` seconds and are
        then refused with the message ``refusal``. With ``most_waiting``, an asker is refused
        immediately while all askers hold or await that many slots, or it alone half as many."""
        self._free = asyncio.Semaphore(most)
        self._most_of_one = _half(most)
        self._wait_s = wait_s
        self._refusal = refusal
        self._most_waiting = most_waiting
        self._shares: dict[str, _Share] = {}
        self._askers = 0

    async def take(self, asker: str) -> None:
        """Take a slot, which :meth:`give_back` returns. Raises Overloaded."""
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
        """Return a slot that the asker has taken."""
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
    """Acquire a semaphore, and release it only if the work within the context fails."""
    await semaphore.acquire()
    try:
        yield
    except BaseException:
        semaphore.release()
        raise


def _half(number: int) -> int:
    return (number + 1) // 2
