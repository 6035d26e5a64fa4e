"""Applications receive notifications with the libraries that they use."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.client_home import Home, StartClient
from tests.support.client_process import ClientFailed, ClientProcess

WAYS = ["hearsOverAWebSocket", "hearsOverTheOlderProtocol", "hearsOverAStream"]


@pytest.fixture(scope="module")
def application(start_client: StartClient) -> ClientProcess:
    return start_client("notifications.mjs")


def of_resource(url: str) -> list[dict[str, Any]]:
    """What is told of a resource that is changed, deleted and made again."""
    return [
        {"type": kind, "object": url, "target": None} for kind in ("Update", "Delete", "Create")
    ]


def of_container(container: str, url: str) -> list[dict[str, Any]]:
    """What is told of its container meanwhile."""
    return [{"type": kind, "object": url, "target": container} for kind in ("Remove", "Add")]


@pytest.mark.parametrize("way", WAYS)
def test_an_application_is_notified_of_a_resource(
    application: ClientProcess, home: Home, way: str
) -> None:
    """N-2, N-20, N-22, N-25: found, subscribed to and heard, all by the library."""
    url = home.put("notes.ttl", "")
    report = application.run(way, home.agent, topic=url, changed=url, count=3)
    assert report.value["messages"] == of_resource(url)


@pytest.mark.parametrize("way", WAYS)
def test_an_application_is_notified_of_a_container(
    application: ClientProcess, home: Home, way: str
) -> None:
    """N-17."""
    url = home.put("notes.ttl", "")
    report = application.run(way, home.agent, topic=home.url, changed=url, count=2)
    assert report.value["messages"] == of_container(home.url, url)


def test_a_channel_is_as_the_library_expects_it(application: ClientProcess, home: Home) -> None:
    """N-9, N-10: read from Turtle, and closed again."""
    url = home.put("notes.ttl", "")
    report = application.run("hearsOverAWebSocket", home.agent, topic=url, changed=url, count=3)
    channel = report.value["channel"]
    assert channel["type"] == "http://www.w3.org/ns/solid/notifications#WebSocketChannel2023"
    assert channel["topic"] == url
    assert report.value["closed"] == 204
    [subscribed] = report.sent("POST")
    assert (subscribed.status, subscribed.headers["content-type"]) == (200, "text/turtle")


@pytest.mark.feature("webhooks")
def test_a_receiving_server_can_verify_the_sender(application: ClientProcess, home: Home) -> None:
    """N-21: the verifier of other Solid servers accepts the sender's token and proof."""
    url = home.put("notes.ttl", "")
    report = application.run("hearsAsAServer", home.agent, topic=url, changed=url, count=3)
    base_url = home.pod.server.base_url
    sender = f"{base_url}/.notifications/sender#it"
    heard = report.value["heard"]
    assert [{k: v for k, v in each.items() if k != "sender"} for each in heard] == of_resource(url)
    for each in heard:
        assert "error" not in each["sender"], each["sender"]
        assert (each["sender"]["webid"], each["sender"]["iss"]) == (sender, base_url)


def test_a_type_that_there_is_not_is_not_found(application: ClientProcess, home: Home) -> None:
    with pytest.raises(ClientFailed, match="not supported"):
        application.run("findsNoService", home.agent, topic=home.url)


def test_agents_without_read_access_cannot_subscribe(
    application: ClientProcess, home: Home
) -> None:
    """N-11: told to nobody by the older library, whose error has the status."""
    with pytest.raises(ClientFailed) as failed:
        application.run("hearsOverTheOlderProtocol", topic=home.url, changed=home.url, count=1)
    assert failed.value.requests[-1].status == 401
