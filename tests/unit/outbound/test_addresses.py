"""Which IP addresses may be connected to (A-188)."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podstead.outbound import requests
from podstead.outbound.errors import CircuitOpen, Refusal, Refused, TooSlow, Unreachable
from podstead.outbound.foreign_documents import Circuit, CircuitBreaker, Purpose
from podstead.outbound.guard import Destination, Guard, SystemResolver
from podstead.outbound.requests import http_form
from podstead.outbound.transport import Connector
from podstead.outbound.urls import (
    AddressScope,
    IPAddress,
    Origin,
    Target,
    UrlRules,
    is_loopback,
    may_be_reached,
)
from tests.support.certificates import holder
from tests.support.peer import Peer, ScriptedResolver
from tests.support.processes import REPOSITORY
from tests.support.server import DEADLINE_S

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


# --- Each step of the SSRF guard alone, so that none leans on another (A-187) ------------------


def guard(
    names: dict[str, Sequence[Sequence[str]]] | None = None, *, loopback: bool = False
) -> Guard:
    """A guard whose names are scripted."""
    return Guard(UrlRules(loopback_allowed=loopback), ScriptedResolver(names or {}))


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["fd12::1"],
        ["::ffff:10.0.0.1"],
        ["8.8.8.8", "10.0.0.1"],
        ["10.0.0.1", "8.8.8.8"],
        ["2606:4700::1111", "8.8.8.8", "::1"],
    ],
)
async def test_a_name_with_any_forbidden_address_is_refused(addresses: list[str]) -> None:
    """A-187: reject if *any* address is forbidden."""
    strict = guard({"pod.example": [addresses]})
    with pytest.raises(Refused) as caught:
        await strict.vet(strict.admit("https://pod.example/"))
    assert caught.value.refusal is Refusal.ADDRESS


async def test_a_name_with_public_addresses_is_pinned_to_them() -> None:
    """A-187, connect to the vetted address."""
    public = ["2606:4700::1111", "8.8.8.8"]
    strict = guard({"pod.example": [public]})
    destination = await strict.vet(strict.admit("https://pod.example/"))
    assert [str(address) for address in destination.addresses] == public


@pytest.mark.parametrize("names", [{}, {"pod.example": [[]]}])
async def test_a_name_that_does_not_resolve_never_passes(
    names: dict[str, Sequence[Sequence[str]]],
) -> None:
    """A-187: a failed look-up is no answer without forbidden addresses."""
    strict = guard(names)
    with pytest.raises(Unreachable):
        await strict.vet(strict.admit("https://pod.example/"))


@pytest.mark.parametrize("host", ["10.0.0.1", "[::ffff:7f00:1]", "[::ffff:127.0.0.1]", "[fe90::1]"])
async def test_a_forbidden_literal_is_refused(host: str) -> None:
    """Literals are never looked up."""
    strict = guard()
    with pytest.raises(Refused) as caught:
        await strict.vet(strict.admit(f"https://{host}/"))
    assert caught.value.refusal is Refusal.ADDRESS


async def test_loopback_names_are_not_resolved() -> None:
    """RFC 6761 section 6.3: no name server decides where ``localhost`` is."""
    names = ScriptedResolver({"localhost": [["8.8.8.8"]]})
    loopback = Guard(UrlRules(loopback_allowed=True), names)
    destination = await loopback.vet(loopback.admit("http://localhost:1/"))
    assert [str(address) for address in destination.addresses] == ["127.0.0.1", "::1"]
    assert names.asked == []


async def test_another_name_may_not_lead_to_loopback_even_in_a_loopback_deployment() -> None:
    """A-190: loopback names and addresses only."""
    loopback = guard({"pod.example": [["127.0.0.1"]]}, loopback=True)
    with pytest.raises(Refused):
        await loopback.vet(loopback.admit("https://pod.example/"))


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["::ffff:127.0.0.1"], ["127.0.0.1", "::1"]])
async def test_the_socket_is_refused_although_the_earlier_steps_were_fooled(
    peer: Peer, addresses: list[str]
) -> None:
    """A-187, rebinding: a check that concluded otherwise opens no connection."""
    target = Target(
        url=f"https://pod.example:{peer.port}/",
        scheme="https",
        host="pod.example",
        port=peer.port,
        literal=None,
        reach=AddressScope.PUBLIC,
    )
    fooled = Destination(target, tuple(ip_address(address) for address in addresses))
    connector = Connector(guard(), ssl.create_default_context(), 600)
    with pytest.raises(Refused) as caught:
        async with connector.exchange(fooled, {}):
            pass
    assert caught.value.refusal is Refusal.ADDRESS
    assert peer.connections == 0


async def test_the_system_resolver_knows_the_hosts_of_this_machine() -> None:
    """A-187: the resolver a connection would use, hosts file included."""
    resolver = SystemResolver()
    try:
        addresses = await resolver.resolve("localhost")
        assert ip_address("127.0.0.1") in addresses or ip_address("::1") in addresses
        assert len(addresses) == len(set(addresses))
    finally:
        resolver.close()


# --- long lived --------------------------------------------------------------------------------
#
# What lasts is limited until it is open, and not afterwards; WebSockets are asked for by HTTP.


LIMIT_S = 0.3
ADDRESS = "https://93.184.216.34/"


def connections() -> requests.LongLivedConnections:
    return requests.LongLivedConnections(guard(), tls=ssl.create_default_context())


@asynccontextmanager
async def open_at_once() -> AsyncIterator[str]:
    yield "open"


@asynccontextmanager
async def open_never() -> AsyncIterator[str]:
    await asyncio.Event().wait()
    yield "never"


async def test_what_is_open_lasts_longer_than_opening_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "OPEN_TIMEOUT_S", LIMIT_S)
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(2 * LIMIT_S, over.set)
    async with connections()._opened(ADDRESS, lambda _: open_at_once()) as opened:
        await over.wait()
        assert opened == "open"


async def test_what_does_not_open_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "OPEN_TIMEOUT_S", 0.0)
    with pytest.raises(TooSlow):
        async with connections()._opened(ADDRESS, lambda _: open_never()):
            pytest.fail("it is not open")


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("ws://pods.example/x", "http://pods.example/x"),
        ("wss://pods.example/x", "https://pods.example/x"),
        ("WSS://pods.example/x", "https://pods.example/x"),
        ("https://pods.example/ws://x", "https://pods.example/ws://x"),
    ],
)
def test_the_http_response_requires_a_web_socket(url: str, form: str) -> None:
    """RFC 6455 section 3."""
    assert http_form(url) == form


# --- When a failing origin gets no more requests (A-191) ---------------------------------------


ORIGIN = Origin("https://peer.example")
CIRCUIT = Circuit(Purpose.WEB_ID, ORIGIN)


def broken(failures: int, now_ms: int = 0) -> CircuitBreaker:
    """A breaker that saw the origin fail this often."""
    circuit = CircuitBreaker(max_failures=5, pause_s=60)
    for _ in range(failures):
        circuit.check(CIRCUIT, now_ms)
        circuit.failed(CIRCUIT, now_ms)
    return circuit


def test_four_failures_leave_the_circuit_closed_and_five_open_it() -> None:
    """A-191, at the limit and one before it."""
    broken(4).check(CIRCUIT, 0)
    with pytest.raises(CircuitOpen):
        broken(5).check(CIRCUIT, 0)


@pytest.mark.parametrize(
    "other",
    [
        Circuit(Purpose.WEB_ID, Origin("https://other.example")),
        Circuit(Purpose.WEB_ID, Origin("https://peer.example:8443")),
        Circuit(Purpose.WEB_ID, Origin("http://peer.example")),
        *(Circuit(each, ORIGIN) for each in Purpose if each is not Purpose.WEB_ID),
    ],
    ids=str,
)
def test_another_origin_or_purpose_is_not_affected(other: Circuit) -> None:
    """A-191, per origin and purpose: a dead port of a host says nothing about its other ports."""
    broken(5).check(other, 0)


def test_an_open_circuit_says_how_long_it_stays_open() -> None:
    circuit = broken(5)
    for now_ms, retry_after_s in ((0, 60), (1, 60), (59_999, 1)):
        with pytest.raises(CircuitOpen) as caught:
            circuit.check(CIRCUIT, now_ms)
        assert caught.value.retry_after_s == retry_after_s


def test_a_success_in_between_resets_the_count() -> None:
    """A-191: failures in a row."""
    circuit = broken(4)
    circuit.succeeded(CIRCUIT)
    for _ in range(4):
        circuit.failed(CIRCUIT, 0)
    circuit.check(CIRCUIT, 0)


def test_the_circuit_stays_open_for_exactly_the_pause() -> None:
    """A-191, 60 s."""
    with pytest.raises(CircuitOpen):
        broken(5).check(CIRCUIT, 59_999)
    broken(5).check(CIRCUIT, 60_000)


def test_after_the_pause_a_single_fetch_tries() -> None:
    """A-191: an origin that is still down costs one attempt per pause."""
    circuit = broken(5)
    circuit.check(CIRCUIT, 60_000)
    with pytest.raises(CircuitOpen):
        circuit.check(CIRCUIT, 60_001)


def test_a_successful_trial_closes_the_circuit() -> None:
    """A-191."""
    circuit = broken(5)
    circuit.check(CIRCUIT, 60_000)
    circuit.succeeded(CIRCUIT)
    circuit.check(CIRCUIT, 60_001)
    circuit.failed(CIRCUIT, 60_001)
    circuit.check(CIRCUIT, 60_001)


def test_a_failed_trial_opens_it_again() -> None:
    """A-191."""
    circuit = broken(5)
    circuit.check(CIRCUIT, 60_000)
    circuit.failed(CIRCUIT, 61_000)
    with pytest.raises(CircuitOpen):
        circuit.check(CIRCUIT, 120_999)
    circuit.check(CIRCUIT, 121_000)


# --- How the HTTP client library is loaded, in a process of its own ----------------------------


_PROGRAM = """
import os, ssl, sys
read = []

def note(name):
    genuine = getattr(ssl.SSLContext, name)
    def reading(context, *arguments):
        genuine(context, *arguments)
        read.append(context.cert_store_stats()["x509"])
    setattr(ssl.SSLContext, name, reading)

note("load_default_certs")
note("set_default_verify_paths")
from podstead.outbound.fetch import trusted_certificates
print(sum(read), trusted_certificates().cert_store_stats()["x509"], os.environ.get("SSL_CERT_FILE"))
"""


@pytest.mark.parametrize("is_set", [True, False])
def test_authorities_are_read_for_our_own_connections_only(tmp_path: Path, *, is_set: bool) -> None:
    """Reading them again, for connections that nobody opens, takes longer than a start may."""
    certificate, _key = holder("https://pod.example/card#me").write(tmp_path)
    environment = {key: text for key, text in os.environ.items() if key != "SSL_CERT_FILE"}
    if is_set:
        environment["SSL_CERT_FILE"] = str(certificate)
    said = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
        cwd=REPOSITORY,
        env=environment,
    )
    of_the_library, of_ours, variable = said.stdout.split()
    assert of_the_library == "0"
    if is_set:
        assert (of_ours, variable) == ("1", str(certificate))
    else:
        assert variable == "None"
