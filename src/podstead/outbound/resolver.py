"""Which addresses does a name have? The operating system's answer, hosts file included.

Look-ups block a thread each and cannot be cancelled, so they run in threads of their own: a slow
name server must not hold up the rest of the server's thread pool.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Protocol

from podstead.outbound.addresses import IPAddress

MAX_LOOKUP_THREADS = 8


class Resolver(Protocol):
    """Resolves names; tests script it."""

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        """Every address of the name, best first. Raises OSError if it does not resolve."""


class SystemResolver:
    """Asks ``getaddrinfo``, as a connection by name would."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(
            max_workers=MAX_LOOKUP_THREADS, thread_name_prefix="podstead-lookup"
        )

    async def resolve(self, host: str) -> Sequence[IPAddress]:
        """Every address of the name, best first. Raises OSError if it does not resolve."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, _look_up, host)

    def close(self) -> None:
        """Accept no further look-ups; running ones end on their own."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str) -> Sequence[IPAddress]:
    infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    # A dict keeps the system's order and drops repetitions.
    return tuple(dict.fromkeys(ip_address(str(info[4][0])) for info in infos))
