"""A browser sends a certificate with requests of any page (A-170)."""

from __future__ import annotations

import pytest

from tests.http.certificates.world import (
    PRIVATE,
    PUBLIC,
    World,
    assert_public,
    assert_refused,
    prepared,
)
from tests.support.application import BASE, Start
from tests.support.asgi_sockets import connected
from tests.support.clock import FakeClock

APP = "https://app.example"
OWN = [
    {},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Origin": BASE},
    {"Origin": BASE, "Sec-Fetch-Site": "same-origin"},
    {"Origin": "http://127.0.0.1:3000", "Host": "127.0.0.1:3000"},
]
OTHERS = [
    {"Origin": APP},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": f"{BASE}/"},
    {"Origin": f"{BASE}.example"},
    {"Origin": "http://localhost:3001"},
    {"Origin": "https://localhost:3000"},
    {"Origin": "http://127.0.0.1:3000"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": ""},
    {"Sec-Fetch-Site": "same-origin, cross-site"},
    {"Sec-Fetch-Site": "what-comes-next"},
    {"Origin": BASE, "Sec-Fetch-Site": "cross-site"},
    {"Origin": APP, "Sec-Fetch-Site": "same-origin"},
]


@pytest.mark.parametrize("headers", OWN)
async def test_requests_of_no_other_site_are_the_owners(
    world: World, headers: dict[str, str]
) -> None:
    assert (await world.send(headers=headers)).status == 200


@pytest.mark.parametrize("headers", OTHERS)
async def test_requests_of_another_site_are_the_publics(
    world: World, headers: dict[str, str]
) -> None:
    """A-170: to read and to write, and they are not refused for it."""
    assert_public(await world.send(headers=headers))
    assert_public(await world.send(None, "PUT", headers=headers, body=b"x"))
    answer = await world.send(headers=headers, target=PUBLIC)
    assert (answer.status, answer.header("wac-allow")) == (200, 'user="read",public="read"')
    # Nor does a bad certificate matter, which its owner's browser chose to send.
    assert (
        await world.send(world.holder(ends_s=-1000), headers=headers, target=PUBLIC)
    ).status == 200


async def test_a_websocket_is_the_publics(world: World) -> None:
    """A-170: pages of all sites open them, and what they hear is not told to them by CORS."""
    alice = world.holder().pem
    async with connected(world.server.application, protocols=["solid-0.1"], certificate=alice) as s:
        await s.receive()
        await s.send(f"sub {BASE}{PRIVATE}")
        assert await s.receive() == f"err {BASE}{PRIVATE} forbidden"
        await s.send(f"sub {BASE}{PUBLIC}")
        assert await s.receive() == f"ack {BASE}{PUBLIC}"


async def test_an_application_can_be_allowed_to_use_the_certificates_of_its_visitors(
    start: Start, clock: FakeClock
) -> None:
    """A-170: the list is the operator's."""
    world = await prepared(start, clock, client_cert_origins=(APP,))
    for headers in ({"Origin": APP}, {"Origin": APP, "Sec-Fetch-Site": "cross-site"}):
        answer = await world.send(headers=headers)
        assert answer.status == 200
        assert answer.header("access-control-allow-origin") == APP
        assert answer.header("access-control-allow-credentials") == "true"
    for headers in (
        {"Origin": f"{APP}.example"},
        {"Origin": "https://other.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert_public(await world.send(headers=headers))
    assert_refused(
        await world.send(world.holder(ends_s=-1000), headers={"Origin": APP}), "it has expired"
    )
    assert (await world.send(target=PRIVATE)).status == 200
