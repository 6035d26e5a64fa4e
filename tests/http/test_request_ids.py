"""A response has the id that the log lines about its request have."""

from __future__ import annotations

import logging
import socket
from ipaddress import ip_network

import pytest

from podstead.app.process.logs import RequestIdFilter
from podstead.storage.sqlite import SqliteStore
from tests.support.application import Server, Start
from tests.support.clock import FakeClock
from tests.support.peer import Peer
from tests.support.provider import running_provider
from tests.support.signing import set_to


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.handler.addFilter(RequestIdFilter())
    caplog.set_level(logging.INFO)
    return caplog


async def test_an_ordinary_response_has_none(server: Server) -> None:
    """It would cost time, and nothing in the log refers to it."""
    answer = await server.public.request("GET", "/", headers={"X-Request-Id": "mine"})
    assert answer.header("X-Request-Id") is None


async def test_an_error_has_the_id_of_its_line(
    server: Server, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(SqliteStore, "read_metadata", fail)
    ids = []
    for _ in range(2):
        logged.clear()
        answer = await server.alice.request("GET", "/alice/x", headers={"X-Request-Id": "forged"})
        assert answer.status == 500
        (record,) = [each for each in logged.records if each.name == "podstead.web"]
        assert answer.header("X-Request-Id") == record.__dict__["request_id"]
        ids.append(answer.header("X-Request-Id"))
    assert len({*ids, "forged"}) == 3


@pytest.mark.parametrize(
    ("sent", "taken"), [("abc-1", True), ("x" * 129, False), ("a b", False), ("a(b", False)]
)
async def test_the_id_of_a_trusted_proxy_is_taken(
    start: Start, monkeypatch: pytest.MonkeyPatch, sent: str, *, taken: bool
) -> None:
    server = await start(trusted_proxies=(ip_network("127.0.0.1"),))

    def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(SqliteStore, "read_metadata", fail)
    logging.getLogger("podstead.web").addFilter(named := RequestIdFilter())
    try:
        answer = await server.alice.request("GET", "/alice/x", headers={"X-Request-Id": sent})
        other = await server.alice.request(
            "GET", "/alice/x", headers={"X-Request-Id": sent}, peer="192.0.2.1"
        )
    finally:
        logging.getLogger("podstead.web").removeFilter(named)
    assert (answer.header("X-Request-Id") == sent) == taken
    assert other.header("X-Request-Id") not in (None, sent)


async def test_ids_of_proxies_do_not_empty_the_response_cache(start: Start) -> None:
    server = await start(trusted_proxies=(ip_network("127.0.0.1"),))
    await server.alice.put("/alice/a.txt", b"x", content_type="text/plain")
    for number in range(3):
        await server.alice.request("GET", "/alice/a.txt", headers={"X-Request-Id": str(number)})
    tallies = dict(server.application.requests.tallies())
    assert tallies["resources", "GET", 200].cached == 2


# --- Requests are counted by route, and nothing that clients choose becomes a label ------------


def counts(server: Server) -> dict[tuple[str, str, int], int]:
    tallies = server.application.requests.tallies()
    return {key: tally.made + tally.cached for key, tally in tallies}


async def test_each_response_is_counted_once(server: Server) -> None:
    before = counts(server)
    await server.alice.put("/alice/a.txt", b"x", content_type="text/plain")
    for _ in range(3):
        assert (await server.alice.get("/alice/a.txt")).status == 200
    assert (await server.public.get("/alice/a.txt")).status == 401
    after = counts(server)
    more = {key: count - before.get(key, 0) for key, count in after.items()}
    assert {key: count for key, count in more.items() if count} == {
        ("resources", "PUT", 201): 1,
        ("resources", "GET", 200): 3,
        ("resources", "GET", 401): 1,
    }
    tallies = dict(server.application.requests.tallies())
    assert tallies["resources", "GET", 200].cached == 2
    durations = {key: sum(buckets) for key, buckets, _ in server.application.requests.durations()}
    assert durations["resources", "GET"] == sum(
        count
        for (route, method, _), count in after.items()
        if (route, method) == ("resources", "GET")
    )


async def test_paths_and_methods_of_clients_are_no_labels(server: Server) -> None:
    paths = [f"/alice/{number}" for number in range(20)]
    paths += [f"/.env{number}" for number in range(20)]
    paths += [f"/p{number}/.well-known/solid-storage" for number in range(20)]
    paths += [f"/.notifications/{number}" for number in range(20)]
    paths += ["/%", "//", "/a/../b", "/.pages/files/" + "x" * 50]
    for path in paths:
        await server.public.request("GET", path)
    for method in ("BREW", "SECRET", "X" * 30):
        await server.public.request(method, "/alice/")
    await server.public.request("GET", "/", headers={"Host": "elsewhere.example"})
    known = {route.label for route in server.application.routes.services}
    known |= {"resources", "storage description", "unreadable"}
    seen = counts(server)
    assert {route for route, _, _ in seen} <= known
    assert {method for _, method, _ in seen} <= {"GET", "PUT", "POST", "other"}
    assert len(seen) < 20


# --- outgoing requests -------------------------------------------------------------------------
#
# Where a token's issuer may be: nowhere that strangers should not make a server ask.


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
