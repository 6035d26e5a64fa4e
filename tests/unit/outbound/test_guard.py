"""Each step of the SSRF guard alone, so that none leans on another (A-187)."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from podstead.outbound.errors import Refusal, Refused, Unreachable
from podstead.outbound.guard import Destination, Guard, SystemResolver
from podstead.outbound.transport import exchange
from podstead.outbound.urls import AddressScope, Target, UrlRules
from tests.support.peer import Peer, ScriptedResolver

pytestmark = pytest.mark.anyio


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
    strict = guard()
    with pytest.raises(Refused) as caught:
        async with exchange(
            fooled,
            headers={},
            connect_timeout_s=600,
            open_socket=lambda address: strict.open_socket(address, target.reach),
            tls=ssl.create_default_context(),
        ):
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
