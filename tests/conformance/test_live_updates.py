"""Notifications over the older protocol for live updates, solid-0.1 (L-1 to L-12, P-37)."""

from __future__ import annotations

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import pytest

from tests.conformance.agents import EVERYONE, Agent, Rule, create_agent
from tests.conformance.conformance_places import EXISTING, PLACES
from tests.support.live_sockets import PROTOCOL, LiveSocket, socket_to
from tests.support.server import ServerProcess, server_fixture

pytestmark = pytest.mark.feature("legacy_notifications")

STATEMENT = "<> a <#thing>."
ORIGIN = {"Origin": "https://app.example"}

_numbers = itertools.count()


talkative = server_fixture(("--legacy-notifications-open", "--heartbeat-s", "1"))
"""A server that lets everybody hear of everything, and sends signs of life each second."""


def address(server: ServerProcess) -> str:
    return f"{server.base_url}/.notifications"


def pubs(agent: Agent, *paths: str) -> Counter[str]:
    """The lines that tell of changes of these."""
    return Counter(f"pub {agent.url(path)}" for path in paths)


async def heard(agent: Agent, socket: LiveSocket) -> Counter[str]:
    """All lines up to now: a change of something else is told after them, and left out.

    So is its creation: a node of several may report what came shortly before a subscription.
    """
    sentinel = agent.create(f"{agent.pod}sentinel{next(_numbers)}", STATEMENT)
    await socket.connection.send_str(f"sub {agent.url(sentinel)}")
    lines = await socket.receive_until(f"ack {agent.url(sentinel)}")
    assert agent.put(sentinel, STATEMENT).status == 204
    lines += await socket.receive_until(f"pub {agent.url(sentinel)}")
    return Counter(line for line in lines if "/sentinel" not in line)


# --- finding the socket, and the handshake -------------------------------------------------------


@pytest.mark.parametrize("kind", [each for each in PLACES if each != "storage description"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_p_37_responses_name_the_socket(
    alice: Agent, places: dict[str, str], method: str, kind: str
) -> None:
    response = alice.request(method, places[kind], headers=ORIGIN)
    named = response.header("Updates-Via")
    assert named == alice.url("/.notifications").replace("http:", "ws:")


@pytest.mark.parametrize("kind", EXISTING)
def test_l_1_scripts_of_other_origins_may_read_where_the_socket_is(
    alice: Agent, places: dict[str, str], kind: str
) -> None:
    response = alice.request("HEAD", places[kind], headers=ORIGIN)
    assert "Updates-Via" in response.listed("Access-Control-Expose-Headers")


async def test_l_1_what_is_named_is_the_socket(alice: Agent) -> None:
    named = alice.head(alice.pod).header("Updates-Via")
    assert named is not None
    async with aiohttp.ClientSession() as session, session.ws_connect(named) as socket:
        assert await socket.receive_str() == f"protocol {PROTOCOL}"


@pytest.mark.parametrize(
    ("offered", "chosen"), [([PROTOCOL], PROTOCOL), (["x", PROTOCOL], PROTOCOL), ([], None)]
)
async def test_l_2_the_protocol_is_echoed_where_it_is_offered(
    server: ServerProcess, offered: list[str], chosen: str | None
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(address(server), protocols=offered) as socket,
    ):
        assert socket.protocol == chosen
        assert await socket.receive_str() == f"protocol {PROTOCOL}"


async def test_l_2_a_client_of_other_protocols_gets_an_error_and_is_closed(
    server: ServerProcess,
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(address(server), protocols=["x"]) as socket,
    ):
        assert await socket.receive_str() == f"error Client does not support protocol {PROTOCOL}"
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_l_3_the_server_begins_with_the_protocol(server: ServerProcess) -> None:
    async with aiohttp.ClientSession() as session, session.ws_connect(address(server)) as socket:
        assert await socket.receive_str() == "protocol solid-0.1"


# --- subscribing --------------------------------------------------------------------------------


async def test_l_4_a_subscription_is_acknowledged_as_it_was_written(
    alice: Agent, container: str
) -> None:
    written = [container, alice.url(container), f"{alice.url(container)}#it", f"{container}x"]
    async with socket_to(alice.server, token=alice.token) as socket:
        for text in written:
            await socket.connection.send_str(f"sub {text}")
            assert await socket.receive() == f"ack {text}"


@pytest.mark.parametrize(
    "text", ["https://elsewhere.example/x", "http://localhost/x", "x.ttl", "//x/y", "mailto:x"]
)
async def test_l_4_no_other_server_is_subscribed_to(alice: Agent, text: str) -> None:
    async with socket_to(alice.server, token=alice.token) as socket:
        await socket.connection.send_str(f"sub {text}")
        assert await socket.receive() == f"err {text} forbidden"


async def test_l_5_each_change_is_one_message(alice: Agent, container: str) -> None:
    path = f"{container}x.ttl"
    async with socket_to(alice.server, path, token=alice.token) as socket:
        for number in range(3):
            assert alice.put(path, f"<> <#n> {number}.").status in {201, 204}
            assert await socket.receive() == f"pub {alice.url(path)}"


# --- what is told -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH"])
async def test_l_6_a_new_resource_is_notified_at_its_url_and_its_container(
    alice: Agent, container: str, method: str
) -> None:
    inner = alice.create(f"{container}inner/")
    path = f"{inner}new.ttl"
    async with socket_to(alice.server, path, inner, container, token=alice.token) as socket:
        if method == "PUT":
            response = alice.put(path, STATEMENT)
        elif method == "POST":
            response = alice.post(inner, STATEMENT, headers={"Slug": "new.ttl"})
        else:
            response = alice.patch(path, "INSERT DATA { <> a <#thing> . }")
        assert (response.status, response.location) == (201, alice.url(path))
        assert await heard(alice, socket) == pubs(alice, path, inner)


async def test_l_6_a_change_and_a_deletion_are_notified_at_both(
    alice: Agent, container: str
) -> None:
    path = alice.create(f"{container}x.ttl", STATEMENT)
    async with socket_to(alice.server, path, container, token=alice.token) as socket:
        assert alice.put(path, "<> a <#other>.").status == 204
        assert alice.delete(path).status == 204
        assert await heard(alice, socket) == pubs(alice, *[path, container] * 2)


async def test_l_6_intermediate_containers_are_notified(alice: Agent, container: str) -> None:
    made = [f"{container}a/", f"{container}a/b/", f"{container}a/b/x.ttl"]
    async with socket_to(alice.server, container, *made, token=alice.token) as socket:
        alice.create(made[-1])
        assert await heard(alice, socket) == pubs(alice, container, *made)


async def test_l_7_ten_patches_are_ten_messages(alice: Agent, container: str) -> None:
    path = alice.create(f"{container}x.ttl", STATEMENT)
    async with socket_to(alice.server, path, container, token=alice.token) as socket:
        for number in range(10):
            assert alice.patch(path, f"INSERT DATA {{ <> <#n> {number} . }}").status == 204
        assert await heard(alice, socket) == pubs(alice, *[path, container] * 10)


async def test_l_7_of_racing_writes_the_successful_one_is_notified(
    alice: Agent, container: str
) -> None:
    path = f"{container}raced.ttl"

    def write(_number: int) -> int:
        return alice.put(path, STATEMENT, headers={"If-None-Match": "*"}).status

    async with socket_to(alice.server, path, container, token=alice.token) as socket:
        with ThreadPoolExecutor(10) as threads:
            statuses = Counter(threads.map(write, range(10)))
        assert statuses == {201: 1, 412: 9}
        assert await heard(alice, socket) == pubs(alice, path, container)


@pytest.mark.parametrize(
    "update", ["INSERT DATA { <> a <#thing> . }", "DELETE DATA { <> a <#nothing> . }"]
)
async def test_l_7_a_patch_without_effect_is_notified(
    alice: Agent, container: str, update: str
) -> None:
    path = alice.create(f"{container}x.ttl", STATEMENT)
    async with socket_to(alice.server, path, token=alice.token) as socket:
        assert alice.patch(path, update).status == 204
        assert await heard(alice, socket) == pubs(alice, path)


async def test_l_7_failed_writes_are_not_notified(alice: Agent, bob: Agent, container: str) -> None:
    path = alice.create(f"{container}x.ttl", STATEMENT)
    async with socket_to(alice.server, path, container, token=alice.token) as socket:
        assert alice.delete(container).status == 409
        assert alice.put(path, "no turtle").status == 400
        assert alice.patch(path, "INSERT DATA {").status == 400
        assert alice.put(path, STATEMENT, headers={"If-Match": '"other"'}).status == 412
        assert bob.put(path, STATEMENT).status == 403
        assert await heard(alice, socket) == Counter()


async def test_l_12_auxiliary_resources_notify_of_themselves(alice: Agent, container: str) -> None:
    path = alice.create(f"{container}x.ttl", STATEMENT)
    auxiliaries = (f"{path}.acl", f"{path}.meta")
    topics = (path, container, *auxiliaries)
    async with socket_to(alice.server, *topics, token=alice.token) as socket:
        alice.grant(path)
        alice.create(auxiliaries[1], "<x.ttl> a <#thing>.")
        assert await heard(alice, socket) == pubs(alice, *auxiliaries)
        assert alice.delete(path).status == 204
        assert await heard(alice, socket) == pubs(alice, *topics)


# --- manners ------------------------------------------------------------------------------------


async def test_l_8_unsubscribing_ends_notifications(alice: Agent, container: str) -> None:
    path = f"{container}x.ttl"
    async with socket_to(alice.server, path, container, token=alice.token) as socket:
        await socket.connection.send_str(f"unsub {alice.url(container)}")
        alice.create(path)
        assert await heard(alice, socket) == pubs(alice, path)


@pytest.mark.parametrize("said", ["hello", "sub", "", "x" * 20_000, "sub a b c", b"\0\xff"])
async def test_l_8_nothing_that_is_said_closes_the_socket(
    alice: Agent, container: str, said: str | bytes
) -> None:
    async with socket_to(alice.server, token=alice.token) as socket:
        if isinstance(said, str):
            await socket.connection.send_str(said)
        else:
            await socket.connection.send_bytes(said)
        assert (await socket.receive()).split()[0].rstrip(":") in {"warning", "error", "err"}
        await socket.subscribe(alice.url(container))


async def test_l_9_an_idle_socket_gets_a_heartbeat(talkative: ServerProcess) -> None:
    async with socket_to(talkative) as socket:
        for _ in range(2):
            assert await socket.receive() == "ping"
            await socket.connection.send_str("pong")


async def test_l_9_a_ping_is_answered(server: ServerProcess) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(address(server), autoping=False) as socket,
    ):
        assert await socket.receive_str() == f"protocol {PROTOCOL}"
        await socket.ping(b"alive?")
        answer = await socket.receive()
        assert (answer.type, answer.data) == (aiohttp.WSMsgType.PONG, b"alive?")


# --- who may hear -------------------------------------------------------------------------------


async def test_l_10_agents_without_read_access_cannot_subscribe(
    alice: Agent, bob: Agent, public: Agent, container: str
) -> None:
    path = alice.create(f"{container}x.ttl", STATEMENT)
    for agent in (bob, public):
        async with socket_to(alice.server, token=agent.token) as socket:
            for topic in (path, container, f"{container}missing", f"{path}.acl"):
                await socket.connection.send_str(f"sub {topic}")
                assert await socket.receive() == f"err {topic} forbidden"


async def test_l_10_everybody_may_watch_what_everybody_may_read(
    alice: Agent, container: str
) -> None:
    path = alice.create(f"{container}x.ttl", STATEMENT)
    alice.grant(path, Rule(EVERYONE, "Read"))
    async with socket_to(alice.server, path) as socket:
        assert alice.put(path, STATEMENT).status == 204
        assert await socket.receive() == f"pub {alice.url(path)}"


async def test_l_10_a_right_that_is_gone_ends_the_subscription_at_the_next_change(
    alice: Agent, bob: Agent, container: str
) -> None:
    path = alice.create(f"{container}x.ttl", STATEMENT)
    alice.grant(path, Rule(bob.named, "Read"))
    async with socket_to(alice.server, path, token=bob.token) as socket:
        assert alice.put(path, STATEMENT).status == 204
        assert await socket.receive() == f"pub {alice.url(path)}"
        alice.grant(path)
        assert alice.put(path, STATEMENT).status == 204
        assert await socket.receive() == f"err {alice.url(path)} forbidden"


async def test_l_10_an_invalid_credential_opens_no_socket(server: ServerProcess) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(address(server), headers={"Authorization": "Bearer x"})
        assert refused.value.status == 401
        assert refused.value.headers is not None
        assert "DPoP" in refused.value.headers["WWW-Authenticate"]


async def test_l_10_the_operator_can_permit_everybody_to_subscribe(
    talkative: ServerProcess,
) -> None:
    owner = create_agent(talkative)
    path = f"{owner.pod}private/x.ttl"
    async with socket_to(talkative, path) as socket:
        owner.create(path)
        while (line := await socket.receive()) == "ping":
            pass
        assert line == f"pub {owner.url(path)}"


async def test_l_11_urls_are_limited_in_length(alice: Agent) -> None:
    longest = f"{alice.pod}public/".ljust(2048, "x")
    async with socket_to(alice.server) as socket:
        for url, answer in ((longest, f"ack {longest}"), (f"{longest}x", "error: URL too long")):
            await socket.connection.send_str(f"sub {url}")
            assert await socket.receive() == answer


async def test_l_11_a_thousand_subscriptions_fit_and_some_number_is_too_many(
    alice: Agent,
) -> None:
    async with socket_to(alice.server) as socket:
        for number in range(1000):
            await socket.connection.send_str(f"sub {alice.pod}public/{number}")
            assert await socket.receive() == f"ack {alice.pod}public/{number}"
        answer = "ack"
        while answer.startswith("ack"):
            number += 1
            await socket.connection.send_str(f"sub {alice.pod}public/{number}")
            answer = await socket.receive()
        assert answer == "error: Subscription limit exceeded"
