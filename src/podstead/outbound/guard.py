"""Decides whether a connection may be opened: every step of the SSRF guard (A-187).

1. The text of the URL is checked (``urls``).
2. Its name is resolved once, and *all* addresses must be permitted (``urls``): a name with one
   public and one private address is refused.
3. The connection is made to exactly the addresses that were checked (pinned), so a name server that
   returns other addresses later (DNS rebinding) has no effect.
4. The socket itself is opened only for a permitted address, whatever the result of steps 1 to 3.
"""

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Protocol

from podstead.core.request_context import requester
from podstead.outbound.errors import Congested, Refusal, Refused, Unreachable
from podstead.outbound.urls import AddressScope, IPAddress, Target, UrlRules, may_be_reached

# Resolves names to addresses as the operating system does, hosts file included.
#
# Each look-up blocks a thread and cannot be cancelled, so look-ups have a thread pool of their own:
# a slow name server must not delay the other work of the server. One requester can use only some of
# the threads, so that slow name servers named by one do not prevent the look-ups of others.

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


# Loopback names are not looked up with name servers (RFC 6761 section 6.3).
_LOOPBACK_ADDRESSES: tuple[IPAddress, ...] = (IPv4Address("127.0.0.1"), IPv6Address("::1"))


@dataclass(frozen=True, slots=True)
class Destination:
    """A target, and the addresses to which its connection is pinned."""

    target: Target
    addresses: tuple[IPAddress, ...]


class Guard:
    """The rules of one deployment, and its resolver."""

    def __init__(self, urls: UrlRules, resolver: Resolver) -> None:
        self._urls = urls
        self._resolver = resolver

    def admit(self, url: str) -> Target:
        """Step 1. Raises Refused."""
        return self._urls.admit(url)

    async def vet(self, target: Target) -> Destination:
        """Steps 2 and 3. Raises Refused, and Unreachable if the name does not resolve."""
        addresses = await self._resolve(target)
        if not addresses:
            raise Unreachable
        if not all(may_be_reached(address, target.reach) for address in addresses):
            raise Refused(Refusal.ADDRESS)
        return Destination(target=target, addresses=addresses)

    def open_socket(self, address: str, reach: AddressScope) -> socket.socket:
        """Step 4: create a TCP socket for the address, not yet connected. Raises Refused."""
        parsed = ip_address(address)
        if not may_be_reached(parsed, reach):
            raise Refused(Refusal.ADDRESS)
        return socket.socket(address_family(parsed), socket.SOCK_STREAM)

    async def _resolve(self, target: Target) -> tuple[IPAddress, ...]:
        if target.literal is not None:
            return (target.literal,)
        if target.reach is AddressScope.LOOPBACK:
            return _LOOPBACK_ADDRESSES
        try:
            return tuple(await self._resolver.resolve(target.host))
        except OSError as error:
            raise Unreachable from error


@contextlib.contextmanager
def opened_guard(rules: UrlRules) -> Iterator[Guard]:
    """A guard for one command."""
    resolver = SystemResolver()
    try:
        yield Guard(rules, resolver)
    finally:
        resolver.close()


def address_family(address: IPAddress) -> socket.AddressFamily:
    """The socket family of an address."""
    return socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
