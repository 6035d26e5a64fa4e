"""Decides whether this server may connect to an IP address.

The forbidden networks are an explicit list (A-188), because ``ipaddress.is_global`` differs between
Python versions and is true for NAT64 forms of loopback, multicast and site-local addresses. An IPv6
address that stands for an IPv4 address is treated as the IPv4 address that packets would reach.
Pure: names are resolved elsewhere.
"""

from __future__ import annotations

from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network


class AddressScope(Enum):
    """Which part of the network an origin may lead to."""

    PUBLIC = "public"
    """The public Internet only: the rule for every origin that is not an exception."""
    LOOPBACK = "loopback"
    """This machine only: for loopback names and addresses in a loopback deployment (A-190)."""
    PRIVATE = "private"
    """Public and private networks: for origins that the operator has listed (A-190)."""


def _networks(*texts: str) -> tuple[IPNetwork, ...]:
    return tuple(ip_network(text) for text in texts)


FORBIDDEN_NETWORKS = _networks(
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # carrier-grade NAT
    "127.0.0.0/8",  # loopback
    "169.254.0.0/16",  # link-local, cloud metadata
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # IETF protocol assignments
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # 6to4 relay anycast
    "192.168.0.0/16",  # private
    "198.18.0.0/15",  # benchmarking
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, limited broadcast
    "::/96",  # unspecified, loopback, IPv4-compatible
    "64:ff9b:1::/48",  # local-use NAT64
    "100::/64",  # discard
    "2001::/23",  # IETF protocol assignments, Teredo
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4
    "3fff::/20",  # documentation
    "5f00::/16",  # segment routing
    "fc00::/7",  # unique local
    "fe80::/10",  # link-local
    "fec0::/10",  # site-local
    "ff00::/8",  # multicast
)
"""A-188. Mapped and well-known NAT64 addresses are treated as their IPv4 address instead."""

PRIVATE_NETWORKS = _networks(
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "::1/128",
    "fc00::/7",
)
"""What an operator can permit by listing an origin; link-local (cloud metadata) stays forbidden."""

LOOPBACK_NETWORKS = _networks("127.0.0.0/8", "::1/128")

# IPv6 forms that reach an IPv4 host: the kernel translates the first (RFC 4291 section 2.5.5.2), a
# NAT64 the second (RFC 6052 section 2.1). In networks with DNS64 every IPv4-only host is reached by
# the second form, so it cannot be forbidden as a whole. Tunnels (6to4, Teredo) and the deprecated
# IPv4-compatible form have no such use and are forbidden entirely.
_STANDS_FOR_IPV4 = _networks("::ffff:0:0/96", "64:ff9b::/96")


def is_loopback(address: IPAddress) -> bool:
    """Whether the address is a loopback address in its own notation, not an embedded one."""
    return _in_any(address, LOOPBACK_NETWORKS)


def may_be_reached(address: IPAddress, reach: AddressScope) -> bool:
    """Whether a connection may be opened to the address (A-188)."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return False
    reached = _reached(address)
    if reach is AddressScope.LOOPBACK:
        return is_loopback(address)
    if not _in_any(reached, FORBIDDEN_NETWORKS):
        return True
    # Not embedded addresses: 64:ff9b::7f00:1 is the loopback address of the NAT64, not ours.
    return reach is AddressScope.PRIVATE and _in_any(address, PRIVATE_NETWORKS)


def _reached(address: IPAddress) -> IPAddress:
    """The IPv4 address that an IPv6 address stands for; any other address itself."""
    if _in_any(address, _STANDS_FOR_IPV4):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _in_any(address: IPAddress, networks: tuple[IPNetwork, ...]) -> bool:
    return any(address in network for network in networks)
