"""Where a token's issuer may be: nowhere that strangers should not make a server ask."""

from __future__ import annotations

import socket

import pytest

from tests.support.application import Start
from tests.support.clock import FakeClock
from tests.support.peer import Peer
from tests.support.provider import running_provider
from tests.support.signing import set_to

BASE = "https://pod.example"
DOC = "/alice/private/"
PLAIN = "The token has no valid issuer or no valid WebID"
MISNAMED = "The WebID leads to this server but does not begin with its base URL"
UNVERIFIABLE = "The token's issuer could not be verified"


NOWHERE = [
    "https://127.0.0.1:{port}",
    "https://localhost:{port}",
    "https://pod.localhost:{port}",
    "https://2130706433:{port}",
    "https://0x7f.0.0.1:{port}",
    "https://0177.1:{port}",
    "https://127.1:{port}",
    "https://[::1]:{port}",
    "https://[::ffff:7f00:1]:{port}",
    "https://[::ffff:127.0.0.1]:{port}",
    "https://[64:ff9b::7f00:1]:{port}",
    "https://0.0.0.0:{port}",
    "https://169.254.169.254",
    "https://10.0.0.1",
    "https://192.168.0.1",
    "https://[fd00:ec2::254]",
    "https://[fe80::1%25eth0]",
    "https://pod.example",
    "https://name-of-this-machine.example:{port}",
    "http://127.0.0.1:{port}",
    "http://idp.example:{port}",
    "https://idp.example:22",
]


@pytest.mark.parametrize("issuer", NOWHERE)
async def test_an_issuer_in_a_place_that_is_nobodys_business_is_refused_unasked(
    start: Start, peer: Peer, monkeypatch: pytest.MonkeyPatch, issuer: str
) -> None:
    """A-187, A-188: in a deployment that is not on loopback."""

    def look_up(_host: str, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    clock = FakeClock()
    server = await start(base_url=BASE, clock=clock)
    now_s = clock.now_s()
    with running_provider() as signer:
        named = set_to("iss", issuer.format(port=peer.port))
        app = signer.app(server.alice_web_id, named, now_s=now_s)
        fields = app.fields("GET", BASE + DOC)
        answer = await server.public.request("GET", DOC, headers=fields)
        assert signer.asked == []
    assert answer.status == 401
    plain = issuer.startswith("http:")
    assert answer.json() == {"error": "Unauthorized", "message": PLAIN if plain else UNVERIFIABLE}
    assert peer.connections == 0


OWN_NAMES = [
    "http://localhost",
    "http://127.0.0.1",
    "http://[::1]",
    "https://127.0.0.2",
    "http://pod.localhost",
    "http://LOCALHOST",
]


@pytest.mark.parametrize("name", OWN_NAMES)
@pytest.mark.parametrize("base_port", ["", ":8081"])
async def test_a_webid_of_another_name_of_this_machine_gets_an_explanation(
    start: Start, name: str, base_port: str, peer: Peer
) -> None:
    """A-190: at the port that the server listens on, which a proxy may hide behind another."""
    clock = FakeClock()
    base_url = f"http://localhost{base_port}"
    server = await start(clock=clock, base_url=base_url, port=peer.port)
    now_s = clock.now_s()
    with running_provider() as provider:
        app = provider.app(f"{name}:{peer.port}/alice/#me", now_s=now_s)
        fields = app.fields("GET", f"{base_url}{DOC}")
        answer = await server.public.request("GET", DOC, headers=fields)
    assert (answer.status, answer.json()["message"]) == (401, MISNAMED)
    assert peer.connections == 0, "nobody was asked where the server listens"
