"""Whose request is it, and under which name? Laws of hosts, proxies and limits (A-11, A-12)."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from hypothesis import example, given
from hypothesis import strategies as st

from podstead.core.errors import BadRequest, Misdirected
from podstead.web.asgi import HeaderFields
from podstead.web.authority import Authorities, served_hosts
from podstead.web.limits import address_key, is_loopback_client

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
INSIDE = st.ip_addresses(v=4, network="10.0.0.0/8") | st.ip_addresses(v=6, network="fd00::/8")
OUTSIDE = st.ip_addresses().filter(lambda address: not any(address in net for net in PROXIES))
HOSTS = served_hosts("https://pods.example", port=3000, aliases=("alias.example:8443",))
header_text = st.text(st.characters(max_codepoint=255), max_size=40)
addresses = st.ip_addresses().map(str) | st.sampled_from(
    ["", "unknown", "1.2.3.4:56", "[::1]:5", "fe80::1%eth0", "::ffff:1.2.3.4", "_hidden"]
)


def fields(**headers: str) -> HeaderFields:
    return HeaderFields(
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, value in headers.items()
    )


@given(header_text)
def test_a_host_is_a_known_one_or_refused(host: str) -> None:
    ours = Authorities(HOSTS)
    try:
        ours.check_host(fields(host=host), peer="192.0.2.1")
    except (BadRequest, Misdirected):
        assert host.lower() not in HOSTS
    else:
        assert host.lower() in HOSTS


@given(header_text, header_text, OUTSIDE.map(str))
def test_forwarding_headers_of_untrusted_peers_are_ignored(
    host: str, forwarded: str, peer: str
) -> None:
    """A-12."""
    for trusted in ((), PROXIES):
        asked = Authorities(HOSTS, trusted)
        sent = fields(
            host="pods.example", x_forwarded_host=host, x_forwarded_for=forwarded,
            forwarded=f"for={forwarded};host={host}", x_forwarded_proto=host, x_real_ip=forwarded,
        )  # fmt: skip
        asked.check_host(sent, peer=peer)
        assert asked.client_address(sent, peer=peer) == peer


@given(st.lists(header_text, max_size=3), OUTSIDE, st.lists(INSIDE, max_size=3), INSIDE)
def test_behind_proxies_the_client_is_the_last_address_that_is_not_a_proxy(
    claimed: list[str],
    client: IPv4Address | IPv6Address,
    between: list[IPv4Address | IPv6Address],
    peer: IPv4Address | IPv6Address,
) -> None:
    """A-12: whatever it claims itself stands before what the first proxy adds."""
    chain = ", ".join([*claimed, str(client), *map(str, between)])
    asked = Authorities(HOSTS, PROXIES)
    assert asked.client_address(fields(x_forwarded_for=chain), peer=str(peer)) == str(client)


@given(st.lists(INSIDE.map(str), max_size=3), INSIDE.map(str))
def test_proxies_alone_are_their_own_clients(chain: list[str], peer: str) -> None:
    asked = Authorities(HOSTS, PROXIES)
    address = asked.client_address(fields(x_forwarded_for=", ".join(chain)), peer=peer)
    assert address == (chain[0] if chain else peer)


@given(addresses)
@example("fe80::1%eth0")
def test_any_address_has_a_key(address: str) -> None:
    key = address_key(address)
    assert address_key(key.removesuffix("/64")) == key
    assert isinstance(is_loopback_client(address), bool)


@given(st.ip_addresses(v=6), st.integers(0, 2**64 - 1))
def test_a_network_of_64_bits_is_one_customer(address: IPv6Address, host: int) -> None:
    """A-180: but for IPv4 written as IPv6, where each address is one."""
    neighbour = IPv6Address((int(address) >> 64 << 64) | host)
    if address.ipv4_mapped is None and neighbour.ipv4_mapped is None:
        assert address_key(str(neighbour)) == address_key(str(address))
    other = IPv6Address(int(address) ^ (1 << 64))
    if address.ipv4_mapped is None and other.ipv4_mapped is None:
        assert address_key(str(other)) != address_key(str(address))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_the_same_on_a_socket_for_both_families(address: IPv4Address) -> None:
    mapped = f"::ffff:{address}"
    assert address_key(mapped) == address_key(str(address)) == str(address)
    assert (
        is_loopback_client(mapped)
        is is_loopback_client(str(address))
        is ip_address(address).is_loopback
    )
    trusted = Authorities(HOSTS, (ip_network(f"{address}/32"),))
    sent = fields(x_forwarded_for="192.0.2.77")
    assert trusted.client_address(sent, peer=mapped) == "192.0.2.77"
