"""Subscription services: found, asked, refused (N-1 to N-11, N-31, N-32)."""

from __future__ import annotations

import json
import re

import pytest
import rdflib

from tests.support.application import BASE, Server, Start
from tests.support.clock import FakeClock
from tests.support.features import LEFT_OUT
from tests.support.notification_channels import (
    CONTEXT,
    JSON_LD,
    NOTES,
    NOTIFY,
    TURTLE,
    channel,
    path_of,
    request,
    service,
    subscribe,
)
from tests.support.rdf import said

TYPES = ["WebSocketChannel2023", "EventSourceChannel2023", "StreamingHTTPChannel2023"]
ALL_TYPES = TYPES if "webhooks" in LEFT_OUT else [*TYPES, "WebhookChannel2023"]
NS = rdflib.Namespace(NOTIFY)
ORIGIN = "https://app.example"
DAY_MS = 86_400_000
START_MS = 1_700_000_000_000
"""2023-11-14T22:13:20Z."""


@pytest.mark.parametrize("accept", [TURTLE, JSON_LD, "application/n-triples"])
async def test_the_storage_description_names_every_service(server: Server, accept: str) -> None:
    """N-1, N-2: in a form that needs no context to be fetched."""
    document = "/alice/.well-known/solid"
    graph = said(await server.public.get(document, accept=accept), BASE + document)
    services = {o for s, p, o in graph if (str(s), p) == (f"{BASE}/alice/", NS.subscription)}
    assert {str(each) for each in services} == {BASE + service(each) for each in ALL_TYPES}
    types = {(s, o) for s, p, o in graph if p == NS.channelType}
    assert types == {(rdflib.URIRef(BASE + service(each)), NS[each]) for each in ALL_TYPES}


async def test_the_storage_description_reads_as_json(server: Server) -> None:
    """N-2: by the names of the protocol's description resource."""
    answer = await server.public.get("/alice/.well-known/solid", accept=JSON_LD)
    described = answer.json()
    assert described["id"] == f"{BASE}/alice/"
    names = ["accept", "endAt", "rate", "startAt", "state"]
    assert {each["id"]: each for each in described["subscription"]} == {
        BASE + service(each): {
            "id": BASE + service(each),
            "channelType": NOTIFY + each,
            "feature": [NOTIFY + name for name in names],
        }
        for each in ALL_TYPES
    }


@pytest.mark.parametrize("channel_type", ALL_TYPES)
async def test_a_service_describes_itself(server: Server, channel_type: str) -> None:
    """N-4."""
    answer = await server.public.get(service(channel_type), accept=JSON_LD)
    assert (answer.status, answer.header("content-type")) == (200, JSON_LD)
    assert answer.json()["@context"] == [CONTEXT]
    assert answer.json()["channelType"] == NOTIFY + channel_type
    turtle = await server.public.get(service(channel_type), accept=TURTLE)
    channel_types = {o for _, p, o in said(turtle, BASE) if p == NS.channelType}
    assert channel_types == {NS[channel_type]}
    head = await server.public.head(service(channel_type))
    assert (head.status, head.header("content-type"), head.body) == (200, JSON_LD, b"")
    options = await server.public.request("OPTIONS", service(channel_type))
    assert options.header("allow") == head.header("allow") == "OPTIONS, GET, HEAD, POST"


@pytest.mark.parametrize("channel_type", TYPES)
async def test_a_channel_is_answered_with_what_was_agreed_on(
    server: Server, channel_type: str
) -> None:
    """N-9, N-10: normalised, and where to receive from."""
    answer = await subscribe(
        server.public,
        channel_type,
        NOTES,
        startAt="2023-01-01T00:00:00+01:00",
        rate="PT90s",
        state="opaque",
        accept="text/turtle, */*;q=0.1",
    )
    assert (answer.status, answer.header("content-type")) == (200, JSON_LD)
    assert answer.header("cache-control") == "no-store"
    made = answer.json()
    receive_from, url, end_at = made.pop("receiveFrom"), made.pop("id"), made.pop("endAt")
    assert made == {
        "@context": [CONTEXT],
        "type": NOTIFY + channel_type,
        "topic": BASE + NOTES,
        "startAt": "2022-12-31T23:00:00.000Z",
        "rate": "PT1M30S",
        "state": "opaque",
        "accept": "text/turtle",
    }
    assert url.startswith(BASE + service(channel_type))
    assert receive_from.startswith("ws:" if channel_type.startswith("WebS") else "http:")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", end_at)


async def test_a_channel_ends_after_two_weeks_at_the_latest(start: Start) -> None:
    """N-10, N-12: and is gone when its time is over."""
    clock = FakeClock(START_MS)
    server = await start(clock=clock)
    made = await channel(server.alice, TYPES[0], NOTES, endAt="2100-01-01T00:00:00Z")
    assert made["endAt"] == "2023-11-28T22:13:20.000Z"
    clock.time_ms += 14 * DAY_MS - 1
    assert (await server.public.get(path_of(made["id"]))).status == 200
    clock.time_ms += 1
    for method in ("GET", "DELETE"):
        assert (await server.public.request(method, path_of(made["id"]))).status == 404


async def test_a_client_may_speak_turtle(server: Server) -> None:
    """N-2, N-4: as @solid-notifications/subscription does."""
    sent = f"_:n3-0 a <{NOTIFY}{TYPES[0]}>; <{NOTIFY}topic> <{BASE}{NOTES}> ."
    answer = await server.public.post(service(TYPES[0]), sent, TURTLE, accept=TURTLE)
    assert (answer.status, answer.header("content-type")) == (200, TURTLE)
    graph = said(answer, BASE + service(TYPES[0]))
    assert {o for _, p, o in graph if p == NS.topic} == {rdflib.URIRef(BASE + NOTES)}
    assert len({s for s, _, _ in graph}) == 1


async def test_the_profiles_of_the_protocol_are_understood_and_no_others(server: Server) -> None:
    """N-5, N-6."""
    sent = json.dumps(request(TYPES[0], NOTES))
    for context in (CONTEXT, "https://www.w3.org/ns/solid/notifications-context/v1"):
        answer = await server.public.post(
            service(TYPES[0]), sent, f'{JSON_LD}; profile="{context}"'
        )
        assert answer.status == 200, answer.text
    refused = await server.public.post(
        service(TYPES[0]), sent, f'{JSON_LD}; profile="https://example.org/x {CONTEXT}"'
    )
    assert refused.status == 415


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        ("{", JSON_LD, 400),
        ("not Turtle", TURTLE, 400),
        ("{}", "application/json", 415),
        ("{}", "text/html", 415),
        ("{}", None, 400),
        ("{}", JSON_LD, 422),
        ("[]", JSON_LD, 422),
        ("", JSON_LD, 400),
        (json.dumps({**request(TYPES[0], NOTES), "@context": "https://x.example/c"}), JSON_LD, 422),
        (json.dumps(request(TYPES[1], NOTES)), JSON_LD, 422),
        (json.dumps({**request(TYPES[0], NOTES), "topic": "https://x.example/"}), JSON_LD, 422),
        (json.dumps(request(TYPES[0], NOTES, endAt="2000-01-01T00:00:00Z")), JSON_LD, 422),
        (json.dumps(request(TYPES[0], NOTES, state="x" * 70_000)), JSON_LD, 413),
    ],
)
async def test_what_cannot_be_processed_is_refused(
    server: Server, body: str, content_type: str | None, status: int
) -> None:
    """N-5."""
    answer = await server.public.post(service(TYPES[0]), body, content_type)
    assert answer.status == status, answer.text


@pytest.mark.parametrize("channel_type", TYPES)
async def test_agents_without_read_access_cannot_subscribe(
    server: Server, channel_type: str
) -> None:
    """N-11, N-30: 401 or 403 as a GET, whether or not something is there."""
    for topic in ("/alice/private/", "/alice/private/x", "/alice/public/notes.ttl.acl"):
        assert (await subscribe(server.public, channel_type, topic)).status == 401
        assert (await subscribe(server.bob, channel_type, topic)).status == 403
        assert (await subscribe(server.alice, channel_type, topic)).status == 200
    answer = await subscribe(server.public, channel_type, "/alice/private/")
    assert answer.header_lines("www-authenticate")


async def test_pages_of_any_origin_may_subscribe(server: Server) -> None:
    """N-32: the preflight passes without credentials."""
    preflight = await server.public.request(
        "OPTIONS",
        service(TYPES[0]),
        headers={"Origin": ORIGIN, "Access-Control-Request-Method": "POST"},
    )
    assert preflight.status == 204
    sent = json.dumps(request(TYPES[0], NOTES))
    answer = await server.public.post(service(TYPES[0]), sent, JSON_LD, origin=ORIGIN)
    for each in (preflight, answer):
        assert each.header("access-control-allow-origin") == ORIGIN


async def test_the_url_of_a_channel_is_enough_to_read_and_close_it(server: Server) -> None:
    """N-10."""
    made = await channel(server.alice, TYPES[0], "/alice/private/")
    url = path_of(made["id"])
    for accept in (JSON_LD, TURTLE):
        shown = await server.public.get(url, accept=accept)
        assert (shown.status, shown.header("content-type")) == (200, accept)
    assert (await server.public.get(url)).json() == made
    assert (await server.public.delete(url)).status == 204
    for method in ("GET", "DELETE"):
        assert (await server.public.request(method, url)).status == 404


async def test_nobody_finds_a_channel_without_its_url(server: Server) -> None:
    """N-10: not under another type, and not by its record."""
    made = await channel(server.alice, TYPES[0], "/alice/private/")
    key = made["id"].rpartition("/")[2]
    assert re.fullmatch(r"[0-9a-f]{32}", key)
    for path in (service(TYPES[1]) + key, service(TYPES[0]) + key[:-1], service(TYPES[0])[:-1]):
        assert (await server.alice.get(path)).status == 404


async def test_a_channel_outlives_a_restart(start: Start) -> None:
    """N-10."""
    server = await start()
    made = await channel(server.public, TYPES[0], NOTES)
    await server.application.lifespan.stop()
    await server.application.lifespan.start()
    assert (await server.public.get(path_of(made["id"]))).json() == made


async def test_an_agent_has_a_limited_number_of_channels(start: Start) -> None:
    """N-31: told when there will be room again; each agent by itself."""
    clock = FakeClock(START_MS)
    server = await start(clock=clock, channels_per_agent=2)
    first = await channel(server.alice, TYPES[0], NOTES, endAt="2023-11-14T22:14:20Z")
    await channel(server.alice, TYPES[1], NOTES)
    refused = await subscribe(server.alice, TYPES[0], NOTES)
    assert (refused.status, refused.header("retry-after")) == (429, "60")
    assert "2 channels" in refused.json()["message"]
    await channel(server.bob, TYPES[0], NOTES)
    assert (await server.public.delete(path_of(first["id"]))).status == 204
    await channel(server.alice, TYPES[0], NOTES)


async def test_a_server_has_a_limited_number_of_channels(start: Start) -> None:
    """N-31."""
    server = await start(max_channels=1)
    await channel(server.alice, TYPES[0], NOTES)
    assert (await subscribe(server.bob, TYPES[0], NOTES)).status == 503


async def channel_from(server: Server, peer: str) -> str:
    """The path of a channel that somebody at an address has just subscribed to."""
    sent = json.dumps(request(TYPES[1], NOTES)).encode()
    headers = {"Content-Type": JSON_LD}
    answer = await server.public.request(
        "POST", service(TYPES[1]), headers=headers, body=sent, peer=peer
    )
    assert answer.status == 200, answer.text
    return path_of(answer.json()["id"])


async def kept_of(server: Server, paths: list[str]) -> list[bool]:
    """Which of the channels are still there."""
    return [(await server.public.get(each)).status == 200 for each in paths]


async def test_a_channel_of_nobody_known_ends_after_a_day(start: Start) -> None:
    clock = FakeClock(START_MS)
    server = await start(clock=clock)
    known = path_of((await channel(server.alice, TYPES[1], NOTES))["id"])
    later = "2023-11-25T00:00:00Z"
    asked = [await channel(server.public, TYPES[1], NOTES, **m) for m in ({}, {"endAt": later})]
    unknown = [path_of(each["id"]) for each in asked]
    clock.time_ms += DAY_MS - 1
    assert await kept_of(server, [known, *unknown]) == [True, True, True]
    clock.time_ms += 1
    assert await kept_of(server, [known, *unknown]) == [True, False, False]


async def test_the_oldest_unheard_channel_of_a_network_makes_room(start: Start) -> None:
    """A stranger with a whole network of addresses crowds out their own channels only."""
    clock = FakeClock(START_MS)
    server = await start(clock=clock, channels_per_agent=3)
    other = await channel_from(server, "198.51.100.1")
    own = []
    for last in range(1, 6):
        own.append(await channel_from(server, f"192.0.2.{last}"))
        clock.time_ms += 1000
        if last == 1:  # which somebody listens to
            assert (await server.public.head(f"{own[0]}/messages")).status == 200
    assert await kept_of(server, own) == [True, False, False, True, True]
    assert await kept_of(server, [other]) == [True]


async def test_strangers_cannot_use_up_all_channels(start: Start) -> None:
    """Who is known gets a channel though strangers have filled the server."""
    clock = FakeClock(START_MS)
    server = await start(clock=clock, max_channels=3)
    strange = []
    for net in range(4):
        strange.append(await channel_from(server, f"192.0.{net}.1"))
        clock.time_ms += 1000
    assert await kept_of(server, strange) == [False, True, True, True]
    await channel(server.alice, TYPES[1], NOTES)
    assert await kept_of(server, strange) == [False, False, True, True]
