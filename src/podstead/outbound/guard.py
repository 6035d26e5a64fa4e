"""Decides whether a connection may be opened: every step of the SSRF guard (A-187).

1. The text of the URL is checked (``urls``).
2. Its name is resolved once, and *all* addresses must be permitted (``addresses``): a name with one
   public and one private address is refused.
3. The connection is made to exactly the addresses that were checked (pinned), so a name server that
   returns other addresses later (DNS rebinding) has no effect.
4. The socket itself is opened only for a permitted address, whatever the result of steps 1 to 3.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from podstead.outbound.addresses import AddressScope, IPAddress, may_be_reached
from podstead.outbound.errors import Refusal, Refused, Unreachable
from podstead.outbound.resolver import Resolver
from podstead.outbound.urls import Target, UrlRules

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


def address_family(address: IPAddress) -> socket.AddressFamily:
    """The socket family of an address."""
    return socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
