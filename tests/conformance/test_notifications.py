"""Subscribing to changes and receiving notifications (N-1 to N-26, N-30 to N-32)."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
import rdflib

from tests.conformance.agents import EVERYONE, SOLID, Agent, Response, Rule, create_agent
from tests.support.features import LEFT_OUT
from tests.support.rdf import JSON_LD, TURTLE, triples
from tests.support.server import DEADLINE_S, ServerProcess, server_fixture
from tests.support.webhook_receiver import running_receiver

CONTEXT = "https://www.w3.org/ns/solid/notification/v1"
OTHER_CONTEXT = "https://www.w3.org/ns/solid/notifications-context/v1"
NOTIFY = rdflib.Namespace("http://www.w3.org/ns/solid/notifications#")
SOCKET = "WebSocketChannel2023"
EVENTS = "EventSourceChannel2023"
STREAM = "StreamingHTTPChannel2023"
WEBHOOK = "WebhookChannel2023"
TYPES = (SOCKET, EVENTS, STREAM, *(() if "webhooks" in LEFT_OUT else (WEBHOOK,)))
STREAM_REL = f"{SOLID}updatesViaStreamingHttp2023"
ORIGIN = "https://app.example"
ENDS_IN_S = 5
"""Long enough for a busy machine to make a channel and listen to it before."""

_numbers = itertools.count()


@pytest.fixture
def topic(alice: Agent, container: str) -> str:
    """The path of a resource that only Alice may read."""
    return alice.create(f"{container}notes.ttl", "<> a <#Note>.")


def request(channel_type: str, topic: str, **members: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"@context": [CONTEXT], "type": channel_type, "topic": topic, **members}


def post(agent: Agent, channel_type: str, sent: object, **headers: str) -> Response:
    content = sent if isinstance(sent, str) else json.dumps(sent)
    fields = {"Content-Type": JSON_LD, **{k.replace("_", "-"): v for k, v in headers.items()}}
    return agent.request("POST", f"/.notifications/{channel_type}/", content, fields)


def subscribe(agent: Agent, channel_type: str, topic: str, **members: Any) -> Response:  # noqa: ANN401
    return post(agent, channel_type, request(channel_type, agent.url(topic), **members))


def channel(agent: Agent, channel_type: str, topic: str, **members: Any) -> dict[str, Any]:  # noqa: ANN401
    """A new channel, as it is described."""
    response = subscribe(agent, channel_type, topic, **members)
    assert response.status == 200, response.text
    described: dict[str, Any] = json.loads(response.body)
    return described


class Heard:
    """The messages of one event stream."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.last_id = ""

    async def next(self) -> dict[str, Any] | None:
        """The next message, ``None`` at the end."""
        async with asyncio.timeout(DEADLINE_S):
            async for line in self._response.content:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "id":
                    self.last_id = value
                elif name == "data":
                    message: dict[str, Any] = json.loads(value)
                    return message
        return None

    async def types(self, count: int) -> list[str]:
        return [(await self.next() or {})["type"] for _ in range(count)]


@asynccontextmanager
async def listening(url: str, *, last_id: str | None = None) -> AsyncIterator[Heard]:
    """An event stream, opened without any credential."""
    headers = {} if last_id is None else {"Last-Event-ID": last_id}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        assert response.status == 200, await response.text()
        yield Heard(response)


@asynccontextmanager
async def heard(
    agent: Agent,
    topic: str,
    **members: Any,  # noqa: ANN401 - features of any kind
) -> AsyncIterator[Heard]:
    """What is told of a topic from now on."""
    made = channel(agent, EVENTS, topic, **members)
    async with listening(made["receiveFrom"]) as events:
        yield events


@asynccontextmanager
async def socket_to(url: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
        yield socket


# --- discovery ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_n_1_responses_lead_to_the_services(alice: Agent, topic: str, method: str) -> None:
    document = alice.request(method, topic).target(f"{SOLID}storageDescription")
    described = alice.read(document, TURTLE).triples
    assert {str(o) for _, p, o in described if p == NOTIFY.channelType} == {
        str(NOTIFY[each]) for each in TYPES
    }


@pytest.mark.parametrize("accept", [TURTLE, JSON_LD])
def test_n_2_the_storage_description_names_services_types_and_features(
    alice: Agent, public: Agent, accept: str
) -> None:
    described = public.read(f"{alice.pod}.well-known/solid", accept).triples
    storage = rdflib.URIRef(alice.url(alice.pod))
    services = {o for s, p, o in described if (s, p) == (storage, NOTIFY.subscription)}
    assert len(services) == len(TYPES)
    for service in services:
        assert len([o for s, p, o in described if (s, p) == (service, NOTIFY.channelType)]) == 1
        features = {o for s, p, o in described if (s, p) == (service, NOTIFY.feature)}
        assert features == {
            NOTIFY[name] for name in ("accept", "endAt", "rate", "startAt", "state")
        }


def test_n_2_the_storage_description_reads_as_json(alice: Agent, public: Agent) -> None:
    described = json.loads(public.read(f"{alice.pod}.well-known/solid", JSON_LD).body)
    assert described["id"] == alice.url(alice.pod)
    assert all({"id", "channelType", "feature"} <= set(each) for each in described["subscription"])


@pytest.mark.parametrize("channel_type", TYPES)
def test_n_3_types_and_features_are_whole_iris(public: Agent, channel_type: str) -> None:
    described = json.loads(public.read(f"/.notifications/{channel_type}/", JSON_LD).body)
    assert described["channelType"] == str(NOTIFY[channel_type])
    assert all(each.startswith(str(NOTIFY)) for each in described["feature"])


@pytest.mark.parametrize("channel_type", TYPES)
def test_n_4_a_service_describes_itself(public: Agent, channel_type: str) -> None:
    path = f"/.notifications/{channel_type}/"
    allowed = {"GET", "HEAD", "OPTIONS", "POST"}
    assert public.request("OPTIONS", path).listed("Allow") == allowed
    for accept in (JSON_LD, TURTLE):
        response = public.read(path, accept)
        assert (response.status, response.media_type) == (200, accept)
        assert response.listed("Allow") == allowed
    assert json.loads(public.get(path).body)["id"] == public.url(path)
    assert public.head(path).media_type == JSON_LD


def test_n_4_a_client_may_subscribe_in_turtle(alice: Agent, topic: str) -> None:
    sent = f"[] a <{NOTIFY[SOCKET]}>; <{NOTIFY.topic}> <{alice.url(topic)}>."
    response = post(alice, SOCKET, sent, Content_Type=TURTLE, Accept=TURTLE)
    assert (response.status, response.media_type) == (200, TURTLE)
    assert {o for _, p, o in response.triples if p == NOTIFY.topic} == {
        rdflib.URIRef(alice.url(topic))
    }


# --- requests -------------------------------------------------------------------------------------


def test_n_5_an_unknown_profile_is_refused(alice: Agent, topic: str) -> None:
    sent = request(SOCKET, alice.url(topic))
    unknown = f'{JSON_LD}; profile="https://example.org/unknown"'
    assert post(alice, SOCKET, sent, Content_Type=unknown).status == 415
    known = f'{JSON_LD}; profile="{OTHER_CONTEXT}"'
    assert post(alice, SOCKET, sent, Content_Type=known).status == 200


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"@context": "https://example.org/unknown"}, 422),
        ({"topic": []}, 422),
        ({"topic": ["http://localhost/a", "http://localhost/b"]}, 422),
        ({"type": EVENTS}, 422),
        ({"sendTo": "https://example.org/"}, 422),
        ({"rate": ["PT1S", "PT2S"]}, 422),
    ],
)
def test_n_5_what_cannot_be_made_is_refused(
    alice: Agent, topic: str, changes: dict[str, Any], status: int
) -> None:
    assert post(alice, SOCKET, {**request(SOCKET, alice.url(topic)), **changes}).status == status


def test_n_5_what_is_not_json_is_refused(alice: Agent) -> None:
    assert post(alice, SOCKET, "{").status == 400


@pytest.mark.parametrize("context", [CONTEXT, OTHER_CONTEXT, [OTHER_CONTEXT]])
def test_n_6_both_contexts_are_understood(alice: Agent, topic: str, context: object) -> None:
    response = post(alice, SOCKET, {**request(SOCKET, alice.url(topic)), "@context": context})
    assert response.status == 200
    assert json.loads(response.body)["@context"] == [CONTEXT]


@pytest.mark.parametrize(
    "spelled",
    [
        SOCKET,
        f"notify:{SOCKET}",
        str(NOTIFY[SOCKET]),
        f"http://www.w3.org/ns/solid/notification#{SOCKET}",
    ],
)
def test_n_7_the_type_is_understood_in_each_spelling(
    alice: Agent, topic: str, spelled: str
) -> None:
    response = post(alice, SOCKET, {**request(SOCKET, alice.url(topic)), "type": spelled})
    assert response.status == 200
    assert json.loads(response.body)["type"] == str(NOTIFY[SOCKET])


@pytest.mark.parametrize(
    "topic",
    ["https://elsewhere.example/", "relative", "#fragment", "?query"],
)
def test_n_8_the_topic_is_a_resource_of_this_server(alice: Agent, topic: str) -> None:
    elsewhere = topic if topic.startswith("https") else f"{alice.url('/x')}{topic}" * 2
    assert post(alice, SOCKET, request(SOCKET, elsewhere)).status == 422


def test_n_9_a_channel_is_answered_as_it_was_understood(alice: Agent, topic: str) -> None:
    made = channel(
        alice, EVENTS, topic, rate="pt10s", startAt="2026-01-01T01:00:00+01:00", state="x"
    )
    assert made["topic"] == alice.url(topic)
    assert (made["rate"], made["startAt"], made["state"]) == (
        "PT10S",
        "2026-01-01T00:00:00.000Z",
        "x",
    )
    assert made["accept"] == JSON_LD
    assert made["receiveFrom"].startswith("http://")
    assert channel(alice, SOCKET, topic)["receiveFrom"].startswith("ws://")


@pytest.mark.feature("webhooks")
def test_n_9_a_webhook_is_described_with_its_sender(alice: Agent, topic: str) -> None:
    hook = channel(alice, WEBHOOK, topic, sendTo="http://localhost:9/")
    assert "receiveFrom" not in hook
    assert hook["sender"].startswith(alice.server.base_url)


def test_n_10_a_channel_lasts_two_weeks_at_most(alice: Agent, topic: str) -> None:
    latest = datetime.now(UTC) + timedelta(days=14, seconds=DEADLINE_S)
    for members in ({}, {"endAt": "2999-01-01T00:00:00Z"}):
        end_at = datetime.fromisoformat(channel(alice, SOCKET, topic, **members)["endAt"])
        assert latest - timedelta(minutes=10) < end_at < latest


def test_n_10_the_url_of_a_channel_is_enough_to_close_it(
    alice: Agent, public: Agent, topic: str
) -> None:
    made = channel(alice, SOCKET, topic)
    assert json.loads(public.get(made["id"]).body) == made
    assert public.request("DELETE", made["id"]).status == 204
    assert public.get(made["id"]).status == 404
    assert public.request("DELETE", made["id"]).status == 404


@pytest.mark.parametrize("channel_type", [SOCKET, EVENTS, STREAM])
def test_n_11_agents_that_may_read_may_subscribe(
    alice: Agent, bob: Agent, public: Agent, topic: str, channel_type: str
) -> None:
    for agent in (bob, public):
        assert subscribe(agent, channel_type, topic).status == agent.get(topic).status
    alice.grant(topic, Rule(EVERYONE, "Read"))
    for agent in (alice, bob, public):
        assert subscribe(agent, channel_type, topic).status == 200


# --- features -------------------------------------------------------------------------------------


async def test_n_12_nothing_is_sent_before_the_start(alice: Agent, topic: str) -> None:
    start_at = (datetime.now(UTC) + timedelta(seconds=0.3)).isoformat()
    async with heard(alice, topic, startAt=start_at) as events:
        message = asyncio.create_task(events.next())
        while not message.done():
            await asyncio.to_thread(alice.put, topic, f"<> a <#N{next(_numbers)}>.")
        told = datetime.fromisoformat((await message or {})["published"])
        # Times are told in milliseconds.
        assert told >= datetime.fromisoformat(start_at) - timedelta(milliseconds=1)


async def test_n_12_a_channel_ends(alice: Agent, topic: str) -> None:
    end_at = (datetime.now(UTC) + timedelta(seconds=ENDS_IN_S)).isoformat()
    made = channel(alice, EVENTS, topic, endAt=end_at)
    async with listening(made["receiveFrom"]) as events:
        assert await events.next() is None
    assert alice.get(made["id"]).status == 404


async def test_n_13_of_changes_above_the_rate_the_last_is_sent(alice: Agent, topic: str) -> None:
    async with heard(alice, topic, rate="PT1S") as events:
        tags = [alice.put(topic, f"<> a <#N{n}>.").header("ETag") for n in range(10)]
        states: list[str] = []
        began = time.monotonic()
        while not states or f'"{states[-1]}"' != tags[-1]:
            states.append((await events.next() or {})["state"])
        took = time.monotonic() - began
    assert len(states) <= 2 + took
    assert len(states) < len(tags)


async def test_n_14_a_changed_state_is_notified_at_once(alice: Agent, topic: str) -> None:
    current = alice.get(topic).header("ETag") or ""
    async with heard(alice, topic, state="another") as events:
        message = await events.next() or {}
        assert (message["type"], message["state"]) == ("Update", current.strip('"'))
    async with heard(alice, topic, state=current) as events:
        alice.request("DELETE", topic)
        assert await events.types(1) == ["Delete"]


async def test_n_15_messages_are_in_turtle_on_request(alice: Agent, topic: str) -> None:
    made = channel(alice, SOCKET, topic, accept=TURTLE)
    async with socket_to(made["receiveFrom"]) as socket:
        alice.put(topic, "<> a <#Changed>.")
        said = triples(await socket.receive_str(), TURTLE, alice.url("/"))
    types = {str(o) for _, p, o in said if p == rdflib.RDF.type}
    assert types == {"https://www.w3.org/ns/activitystreams#Update"}


# --- messages -------------------------------------------------------------------------------------


async def test_n_16_a_message_says_what_changed_when_and_the_state(
    alice: Agent, topic: str
) -> None:
    async with heard(alice, topic) as events, heard(alice, topic) as others:
        written = alice.put(topic, "<> a <#Changed>.")
        message = await events.next() or {}
        assert message == await others.next()
    assert message.pop("id").startswith("urn:uuid:")
    told = datetime.fromisoformat(message.pop("published"))
    assert abs(datetime.now(UTC) - told) < timedelta(seconds=DEADLINE_S)
    assert message == {
        "@context": ["https://www.w3.org/ns/activitystreams", CONTEXT],
        "type": "Update",
        "object": alice.url(topic),
        "state": (written.header("ETag") or "").strip('"'),
    }


async def test_n_17_a_container_notifies_of_its_members(alice: Agent, container: str) -> None:
    async with heard(alice, container) as events:
        path = alice.create(f"{container}a", "<> a <#A>.")
        alice.put(path, "<> a <#B>.")
        alice.create(f"{container}deep/b", "<> a <#A>.")
        alice.request("DELETE", path)
        told = [await events.next() or {} for _ in range(3)]
    assert [(each["type"], each["object"]) for each in told] == [
        ("Add", alice.url(path)),
        ("Add", alice.url(f"{container}deep/")),
        ("Remove", alice.url(path)),
    ]
    assert {each["target"] for each in told} == {alice.url(container)}


async def test_n_17_access_rules_notify_of_themselves_only(
    alice: Agent, container: str, topic: str
) -> None:
    async with heard(alice, f"{topic}.acl") as rules, heard(alice, topic) as resource:
        alice.grant(topic)
        assert await rules.types(1) == ["Create"]
        alice.put(topic, "<> a <#Changed>.")
        assert await resource.types(1) == ["Update"]


async def test_n_18_agents_that_could_read_are_notified_of_a_deletion(
    alice: Agent, bob: Agent, topic: str
) -> None:
    alice.grant(topic, Rule(bob.named, "Read"))
    async with heard(bob, topic) as events:
        alice.request("DELETE", topic)
        assert await events.types(1) == ["Delete"]


async def test_n_19_one_message_for_each_change_in_order(alice: Agent, topic: str) -> None:
    async with heard(alice, topic) as events:
        tags = []
        for number in range(10):
            tags.append(alice.put(topic, f"<> a <#N{number}>.").header("ETag"))
            assert alice.put(topic, "not Turtle").status == 400
            assert alice.put(topic, "<> a <#X>.", headers={"If-Match": '"x"'}).status == 412
        messages = [await events.next() or {} for _ in tags]
    assert len({each["id"] for each in messages}) == len(tags)
    assert f'"{messages[-1]["state"]}"' == tags[-1]
    times = [each["published"] for each in messages]
    assert times == sorted(times)


# --- channel types --------------------------------------------------------------------------------


async def test_n_20_a_socket_needs_only_its_url(alice: Agent, topic: str) -> None:
    made = channel(alice, SOCKET, topic)
    async with socket_to(made["receiveFrom"]) as one, socket_to(made["receiveFrom"]) as two:
        assert one.protocol is None
        alice.put(topic, "<> a <#Changed>.")
        assert await one.receive_str() == await two.receive_str()
    alice.request("DELETE", made["id"])
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with socket_to(made["receiveFrom"]):
            pass
    assert refused.value.status == 404


async def test_n_20_a_socket_says_why_it_is_closed(alice: Agent, bob: Agent, topic: str) -> None:
    alice.grant(topic, Rule(bob.named, "Read"))
    end_at = (datetime.now(UTC) + timedelta(seconds=ENDS_IN_S)).isoformat()
    ending, losing = channel(alice, SOCKET, topic, endAt=end_at), channel(bob, SOCKET, topic)
    async with socket_to(ending["receiveFrom"]) as ended, socket_to(losing["receiveFrom"]) as lost:
        assert (await ended.receive()).type is aiohttp.WSMsgType.CLOSE
        assert ended.close_code == 1000
        alice.grant(topic)
        alice.put(topic, "<> a <#Changed>.")
        assert (await lost.receive()).type is aiohttp.WSMsgType.CLOSE
        assert lost.close_code == 1008


@pytest.mark.feature("webhooks")
async def test_n_21_a_webhook_is_sent_to_until_it_takes_a_message(alice: Agent, topic: str) -> None:
    async with running_receiver() as receiver:
        receiver.answers.append(500)
        made = channel(alice, WEBHOOK, topic, sendTo=receiver.url)
        alice.put(topic, "<> a <#Changed>.")
        first, second = await receiver.next(), await receiver.next()
        alice.request("DELETE", made["id"])
    assert first.json() == second.json()
    assert first.headers["content-type"] == JSON_LD
    assert first.headers["authorization"].startswith("DPoP ")
    assert first.headers["dpop"] != second.headers["dpop"]
    said = alice.get(made["sender"].partition("#")[0]).triples
    issuers = {str(o) for s, p, o in said if str(p) == f"{SOLID}oidcIssuer"}
    assert issuers == {alice.server.base_url}


@pytest.mark.feature("webhooks")
@pytest.mark.parametrize(
    "send_to", ["http://example.org/", "https://10.0.0.1/", "ftp://a.example/"]
)
def test_n_21_nothing_is_sent_to_where_it_must_not_be(
    alice: Agent, topic: str, send_to: str
) -> None:
    assert subscribe(alice, WEBHOOK, topic, sendTo=send_to).status == 422


async def test_n_22_a_resource_has_a_stream_without_subscribing(alice: Agent, topic: str) -> None:
    url = alice.head(topic).target(STREAM_REL)
    assert url == alice.url(f"/.notifications/{STREAM}/{quote(alice.url(topic), safe='')}")
    assert Agent(alice.server).get(url).status == 401
    headers = {"Authorization": f"Bearer {alice.token}"}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
        assert response.content_type == TURTLE
        for expected in ("Update", "Delete"):
            chunk, _ = await response.content.readchunk()
            types = {str(o) for _, p, o in triples(chunk, TURTLE, url) if p == rdflib.RDF.type}
            assert types == {f"https://www.w3.org/ns/activitystreams#{expected}"}
            alice.request("DELETE", topic)


async def test_n_22_a_channel_sends_one_message_a_chunk(alice: Agent, topic: str) -> None:
    made = channel(alice, STREAM, topic)
    async with aiohttp.ClientSession() as session, session.get(made["receiveFrom"]) as response:
        for number in range(3):
            alice.put(topic, f"<> a <#N{number}>.")
            chunk, _ = await response.content.readchunk()
            assert json.loads(chunk)["type"] == "Update"


async def test_n_23_a_receiver_that_reconnects_gets_what_it_missed(
    alice: Agent, topic: str
) -> None:
    made = channel(alice, EVENTS, topic)
    async with listening(made["receiveFrom"]) as events:
        alice.put(topic, "<> a <#A>.")
        assert await events.types(1) == ["Update"]
    alice.request("DELETE", topic)
    alice.put(topic, "<> a <#B>.")
    async with listening(made["receiveFrom"], last_id=events.last_id) as events:
        assert await events.types(2) == ["Delete", "Create"]


async def test_n_25_the_gateway_leads_to_a_socket(alice: Agent, public: Agent, topic: str) -> None:
    described = public.read("/.well-known/solid", TURTLE).triples
    [gateway] = [str(o) for _, p, o in described if str(p) == f"{SOLID}notificationGateway"]
    sent = {"Content-Type": "application/json"}
    asked = json.dumps({"protocols": ["ws"], "features": []})
    endpoint = json.loads(public.request("POST", gateway, asked, sent).body)["endpoint"]
    asked = json.dumps({"topic": alice.url(topic)})
    connection = json.loads(alice.request("POST", endpoint, asked, sent).body)
    async with socket_to(connection["endpoint"]) as socket:
        alice.put(topic, "<> a <#Changed>.")
        assert (await socket.receive_json())["type"] == "Update"


# --- authorization and limits ---------------------------------------------------------------------


async def test_n_30_agents_that_lose_access_get_nothing_more(
    alice: Agent, bob: Agent, topic: str
) -> None:
    alice.grant(topic, Rule(bob.named, "Read"))
    made = channel(bob, EVENTS, topic)
    async with listening(made["receiveFrom"]) as events:
        alice.put(topic, "<> a <#A>.")
        assert await events.types(1) == ["Update"]
        alice.grant(topic)
        alice.put(topic, "<> a <#B>.")
        assert await events.next() is None
    assert bob.get(made["receiveFrom"]).status == 403


async def test_w_44_a_subscription_needs_read_when_made_and_when_sent(
    alice: Agent, bob: Agent, topic: str
) -> None:
    assert subscribe(bob, SOCKET, topic).status == 403
    alice.grant(topic, Rule(bob.named, "Write"))
    assert subscribe(bob, SOCKET, topic).status == 403
    alice.grant(topic, Rule(bob.named, "Read"))
    made = channel(bob, SOCKET, topic)
    async with socket_to(made["receiveFrom"]) as socket:
        alice.grant(topic, Rule(bob.named, "Write"))
        alice.put(topic, "<> a <#Changed>.")
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


narrow = server_fixture(("--channels-per-agent", "1", "--sockets-per-address", "1"))
"""A server on which an agent has one channel, and an address one connection."""


async def test_n_31_channels_and_connections_are_limited(narrow: ServerProcess) -> None:
    agent = create_agent(narrow)
    made = channel(agent, EVENTS, agent.pod)
    refused = subscribe(agent, EVENTS, agent.pod)
    assert refused.status == 429
    assert int(refused.header("Retry-After") or "") > 0
    async with listening(made["receiveFrom"]):
        assert agent.get(made["receiveFrom"]).status == 429


def test_n_32_scripts_of_other_origins_may_subscribe(public: Agent) -> None:
    for path in (f"/.notifications/{SOCKET}/", "/.notifications/gateway"):
        asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
        preflight = public.request("OPTIONS", path, headers=asked)
        assert preflight.status == 204
        refused = public.request("POST", path, "{", {"Origin": ORIGIN, "Content-Type": JSON_LD})
        for response in (preflight, refused):
            assert response.header("Access-Control-Allow-Origin") == ORIGIN
