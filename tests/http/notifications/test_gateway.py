"""The gateway of @inrupt/solid-client-notifications, which knows nothing else (N-25)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rdflib

from tests.support.application import BASE, Server
from tests.support.asgi import Answer, Client
from tests.support.notification_channels import NOTES, TURTLE, path_of
from tests.support.rdf import said

GATEWAY = "/.notifications/gateway"
PREDICATE = rdflib.URIRef("http://www.w3.org/ns/solid/terms#notificationGateway")
JSON = "application/json"


async def post(client: Client, path: str, sent: object) -> Answer:
    return await client.post(path, json.dumps(sent), JSON)


async def opened(client: Client, **features: Any) -> Answer:  # noqa: ANN401 - of any kind
    """Negotiate, and ask the endpoint for a socket."""
    asked = {"protocols": ["ws"], "features": list(features)}
    negotiated = (await post(client, GATEWAY, asked)).json()
    return await post(client, path_of(negotiated["endpoint"]), {"topic": BASE + NOTES, **features})


@pytest.mark.parametrize("document", ["/.well-known/solid", "/alice/.well-known/solid"])
async def test_descriptions_name_the_gateway(server: Server, document: str) -> None:
    """N-25: of the server, where the client looks first, and of storages."""
    graph = said(await server.public.get(document, accept=TURTLE), BASE + document)
    assert [o for _, p, o in graph if p == PREDICATE] == [rdflib.URIRef(BASE + GATEWAY)]


async def test_the_gateway_lists_the_protocols(server: Server) -> None:
    asked = {"protocols": ["ws", "carrier-pigeon"], "features": ["filter", "rate", "state"]}
    answer = await post(server.public, GATEWAY, asked)
    assert (answer.status, answer.header("content-type")) == (200, JSON)
    negotiated = answer.json()
    assert negotiated.pop("endpoint").startswith(f"{BASE}/.notifications/")
    assert negotiated == {"protocol": "ws", "features": ["state", "rate"]}


async def test_a_socket_is_a_channel(server: Server) -> None:
    """N-20, N-25: no sub-protocol, since the client would insist on it."""
    answer = await opened(server.public, rate=10, ttl=60, state="x")
    assert answer.status == 200, answer.text
    connection = answer.json()
    assert connection.keys() == {"endpoint", "protocol"}
    assert connection["endpoint"].startswith("ws://localhost:3000/.notifications/WebSocketChannel")
    described = await server.public.get(path_of(connection["endpoint"]).removesuffix("/messages"))
    assert (described.json()["rate"], described.json()["state"]) == ("PT10S", "x")


async def test_agents_without_read_access_get_no_socket(server: Server) -> None:
    """N-30."""
    sent = {"topic": f"{BASE}/alice/private/"}
    for client, status in ((server.public, 401), (server.bob, 403), (server.alice, 200)):
        assert (await post(client, f"{GATEWAY}/sockets", sent)).status == status


@pytest.mark.parametrize(
    ("path", "sent", "status"),
    [
        (GATEWAY, [], 400),
        (GATEWAY, {}, 422),
        (GATEWAY, {"protocols": "ws"}, 422),
        (GATEWAY, {"protocols": ["carrier-pigeon"]}, 422),
        (f"{GATEWAY}/sockets", {}, 422),
        (f"{GATEWAY}/sockets", {"topic": "https://elsewhere.example/"}, 422),
        (f"{GATEWAY}/sockets", {"topic": BASE + NOTES, "rate": "10"}, 422),
        (f"{GATEWAY}/sockets", {"topic": BASE + NOTES, "rate": True}, 422),
        (f"{GATEWAY}/sockets", {"topic": BASE + NOTES, "ttl": -1}, 422),
        (f"{GATEWAY}/sockets", {"topic": BASE + NOTES, "ttl": 0}, 422),
        (f"{GATEWAY}/sockets", {"topic": BASE + NOTES, "ttl": 1e300}, 422),
        (f"{GATEWAY}/sockets", {"topic": BASE + NOTES, "state": 1}, 422),
    ],
)
async def test_what_makes_no_sense_is_refused(
    server: Server, path: str, sent: object, status: int
) -> None:
    assert (await post(server.public, path, sent)).status == status
