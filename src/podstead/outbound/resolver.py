"""Which addresses does a name have? The operating system's answer, hosts file included.

Look-ups block a thread each and cannot be cancelled, so they run in threads of their own: a slow
name server must not hold up the rest of the server's thread pool. One requester takes a part of
them at most, so that names of slow name servers do not keep others from look-ups.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address
from typing import Protocol

from podstead.core.requester import requester
from podstead.outbound.addresses import IPAddress
from podstead.outbound.errors import Congested

MAX_LOOKUP_THREADS = 32
MAX_LOOKUPS_PER_REQUESTER = 8


class Resolver(Protocol):
    """Resolves names; tests script it."""

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        """Every address of the name, best first. Raises OSError if it does not resolve, and
        Congested if the requester waits for too many already."""


class SystemResolver:
    """Asks ``getaddrinfo``, as a connection by name would."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(
            max_workers=MAX_LOOKUP_THREADS, thread_name_prefix="podstead-lookup"
        )
        self._running: Counter[str] = Counter()

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        """Every address of the name, best first. Raises OSError if it does not resolve, and
        Congested."""
        asker, loop = requester(), asyncio.get_running_loop()
        if self._running[asker] >= MAX_LOOKUPS_PER_REQUESTER:
            raise Congested
        look_up = self._threads.submit(_look_up, host)
        self._running[asker] += 1
        # Who waits for it may give up earlier, and the thread is taken until it ends.
        look_up.add_done_callback(lambda _: _soon(loop, partial(self._ended, asker)))
        return await asyncio.wrap_future(look_up)

    def _ended(self, asker: str) -> None:
        self._running[asker] -= 1
        if not self._running[asker]:
            del self._running[asker]

    def close(self) -> None:
        """Accept no further look-ups; running ones end on their own."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Have the event loop make a call, unless it is closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


def _look_up(host: str) -> Sequence[IPAddress]:
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    # A dict keeps the system's order and drops repetitions.
    return tuple(dict.fromkeys(ip_address(str(info[4][0])) for info in infos))
