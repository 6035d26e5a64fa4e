"""Which IP addresses may be connected to (A-188)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podstead.outbound.urls import AddressScope, IPAddress, is_loopback, may_be_reached

# First and last address of every network of A-188, and cloud metadata services.
FORBIDDEN = [
    *("0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255"),
    *("100.64.0.0", "100.127.255.255", "127.0.0.0", "127.0.0.1", "127.255.255.255"),
    *("169.254.0.0", "169.254.169.254", "169.254.255.255", "172.16.0.0", "172.31.255.255"),
    *("192.0.0.0", "192.0.0.255", "192.0.2.0", "192.0.2.255", "192.88.99.0", "192.88.99.255"),
    *("192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255"),
    *("198.51.100.0", "198.51.100.255", "203.0.113.0", "203.0.113.255"),
    *("224.0.0.0", "225.1.2.3", "239.255.255.255", "240.0.0.0", "241.1.2.3", "255.255.255.255"),
    *("::", "::1", "::7f00:1", "::127.0.0.1", "::8.8.8.8"),
    *("64:ff9b:1::", "64:ff9b:1::1", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
    *("100::", "100::ffff:ffff:ffff:ffff", "2001::", "2001:1ff:ffff::1"),
    *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::", "2001:db8:ffff::1"),
    *("2002::", "2002:7f00:1::", "2002:808:808::1", "2002:ffff:ffff::1"),
    *("3fff::", "3fff:fff:ffff::1", "5f00::", "5f00:ffff::1"),
    *("fc00::", "fd12::1", "fd00:ec2::254", "fdff:ffff::1", "fe80::", "fe90::1", "febf:ffff::1"),
    *("fec0::", "fec0::1", "feff:ffff::1", "ff00::", "ff02::1", "ffff:ffff::1"),
]

# The neighbours of those networks that no list holds, and well-known public hosts.
PERMITTED = [
    *("1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
    *("126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255"),
    *("172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255"),
    *("192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
    *("198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255"),
    *("2001:200::", "2001:4860:4860::8888", "2606:4700::1111", "2a00::1", "2400::1"),
    *("::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b::808:808"),
]


@pytest.mark.parametrize("text", FORBIDDEN)
def test_an_address_of_a_forbidden_network_is_refused(text: str) -> None:
    """A-188."""
    assert not may_be_reached(ip_address(text), AddressScope.PUBLIC)


@pytest.mark.parametrize("text", PERMITTED)
def test_a_public_address_is_permitted(text: str) -> None:
    """A-188: the list is exact, its neighbours are reachable."""
    assert may_be_reached(ip_address(text), AddressScope.PUBLIC)


@pytest.mark.parametrize("text", [text for text in FORBIDDEN if ":" not in text])
@pytest.mark.parametrize("prefix", ["::ffff:0:0", "64:ff9b::", "::"])
def test_an_embedded_forbidden_ipv4_address_is_refused(prefix: str, text: str) -> None:
    """A-188: mapped, NAT64 and IPv4-compatible forms hide nothing."""
    embedding = IPv6Address(int(IPv6Address(prefix)) | int(IPv4Address(text)))
    assert not may_be_reached(embedding, AddressScope.PUBLIC)


@given(st.ip_addresses())
@example(IPv6Address("64:ff9b::7f00:1"))
@example(IPv6Address("fec0::1"))
@example(IPv4Address("192.88.99.1"))
def test_nothing_that_the_standard_library_calls_private_is_permitted(address: IPAddress) -> None:
    """A-188 against a second list: ours is the stricter one."""
    stands_for_ipv4 = any(
        address in ip_network(network) for network in ("::ffff:0:0/96", "64:ff9b::/96")
    )
    if may_be_reached(address, AddressScope.PUBLIC) and not stands_for_ipv4:
        assert address.is_global
        assert not address.is_multicast


@pytest.mark.parametrize("text", ["127.0.0.1", "127.8.9.10", "::1"])
def test_a_loopback_reach_leads_to_loopback(text: str) -> None:
    """A-190."""
    assert may_be_reached(ip_address(text), AddressScope.LOOPBACK)


@pytest.mark.parametrize(
    "text",
    [
        *("8.8.8.8", "10.0.0.1", "169.254.169.254", "192.168.1.1", "fd00::1", "0.0.0.0"),
        *("::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::"),
    ],
)
def test_a_loopback_reach_leads_nowhere_else(text: str) -> None:
    """A-190: all other private ranges stay blocked, and no embedded form counts as loopback."""
    assert not may_be_reached(ip_address(text), AddressScope.LOOPBACK)


@pytest.mark.parametrize(
    "text", ["8.8.8.8", "10.1.2.3", "172.16.0.1", "192.168.1.1", "127.0.0.1", "::1", "fd00::1"]
)
def test_a_listed_origin_may_lead_to_private_networks(text: str) -> None:
    """A-190, --allow-private-origin."""
    assert may_be_reached(ip_address(text), AddressScope.PRIVATE)


@pytest.mark.parametrize(
    "text", ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fe80::1", "ff02::1", "64:ff9b::10.0.0.1"]
)
def test_a_listed_origin_may_not_lead_to_link_local_or_special_addresses(text: str) -> None:
    """A-190: an intranet test needs no cloud metadata."""
    assert not may_be_reached(ip_address(text), AddressScope.PRIVATE)


@pytest.mark.parametrize("text", ["2606:4700::1111%eth0", "::1%lo", "fe80::1%1"])
@pytest.mark.parametrize("reach", list(AddressScope))
def test_an_address_with_a_zone_is_refused(text: str, reach: AddressScope) -> None:
    """A zone names an interface of this machine; no foreign document is behind one."""
    assert not may_be_reached(ip_address(text), reach)


@given(st.ip_addresses())
def test_only_loopback_networks_are_loopback(address: IPAddress) -> None:
    """A-190, against the standard library; mapped forms are not loopback by themselves."""
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    assert is_loopback(address) == (address.is_loopback and not mapped)
