"""Subscribing to notification channels, as clients do."""

from __future__ import annotations

import json
from typing import Any

from tests.support.application import BASE
from tests.support.asgi import Answer, Client

CONTEXT = "https://www.w3.org/ns/solid/notification/v1"
NOTIFY = "http://www.w3.org/ns/solid/notifications#"
JSON_LD = "application/ld+json"
TURTLE = "text/turtle"
NOTES = "/alice/public/notes.ttl"


def service(channel_type: str) -> str:
    """The path of the service for channels of a type."""
    return f"/.notifications/{channel_type}/"


def request(channel_type: str, topic: str, **members: Any) -> dict[str, Any]:  # noqa: ANN401
    """A request for a channel; the topic is a path."""
    return {"@context": [CONTEXT], "type": channel_type, "topic": BASE + topic, **members}


async def subscribe(
    client: Client,
    channel_type: str,
    topic: str,
    **members: Any,  # noqa: ANN401 - features of any kind
) -> Answer:
    """Ask for a channel."""
    sent = json.dumps(request(channel_type, topic, **members))
    return await client.post(service(channel_type), sent, JSON_LD)


async def channel(
    client: Client,
    channel_type: str,
    topic: str,
    **members: Any,  # noqa: ANN401 - features of any kind
) -> dict[str, Any]:
    """A new channel, as it is described."""
    answer = await subscribe(client, channel_type, topic, **members)
    assert answer.status == 200, answer.text
    described: dict[str, Any] = answer.json()
    return described


def path_of(url: str) -> str:
    """The path of a URL of this server, sockets' included."""
    for base in (BASE, BASE.replace("http", "ws", 1)):
        if url.startswith(f"{base}/"):
            return url[len(base) :]
    raise AssertionError(f"{url} is of another server")
