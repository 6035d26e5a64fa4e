"""Resolves names to addresses as the operating system does, hosts file included.

Each look-up blocks a thread and cannot be cancelled, so look-ups have a thread pool of their own: a
slow name server must not delay the other work of the server. One requester can use only some of the
threads, so that slow name servers named by one do not prevent the look-ups of others.
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

from podstead.core.request_context import requester
from podstead.outbound.addresses import IPAddress
from podstead.outbound.errors import Congested

MAX_LOOKUP_THREADS = 32
MAX_LOOKUPS_PER_REQUESTER = 8


class Resolver(Protocol):
    """Resolves names."""

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        """Every address of the name, best first. Raises OSError if it does not resolve, and
        Congested if the requester already waits for too many names."""


class SystemResolver:
    """Resolves names with ``getaddrinfo``."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(
            max_workers=MAX_LOOKUP_THREADS, thread_name_prefix="podstead-lookup"
        )
        self._running: Counter[str] = Counter()

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        """Every address of the name, best first. Raises OSError if it does not resolve, and
        Congested."""
        client, loop = requester(), asyncio.get_running_loop()
        if self._running[client] >= MAX_LOOKUPS_PER_REQUESTER:
            raise Congested
        look_up = self._threads.submit(_look_up, host)
        self._running[client] += 1
        # The caller may stop waiting, but the thread is in use until the look-up ends.
        look_up.add_done_callback(lambda _: _soon(loop, partial(self._ended, client)))
        return await asyncio.wrap_future(look_up)

    def _ended(self, client: str) -> None:
        self._running[client] -= 1
        if not self._running[client]:
            del self._running[client]

    def close(self) -> None:
        """Accept no more look-ups; running ones end on their own."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Schedule a call in the event loop, unless it is closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


def _look_up(host: str) -> Sequence[IPAddress]:
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    # A dict keeps the system's order and drops repetitions.
    return tuple(dict.fromkeys(ip_address(str(info[4][0])) for info in infos))
