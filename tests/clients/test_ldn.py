"""A sender of Linked Data Notifications."""

from __future__ import annotations

import pytest
from rdflib import RDF, URIRef

from tests.clients.client_home import Home, StartClient
from tests.support.client_process import Agent, ClientProcess
from tests.support.rdf import TURTLE, triples

ACTIVITY_STREAMS = "https://www.w3.org/ns/activitystreams"
NOTIFICATION = {
    "@context": ACTIVITY_STREAMS,
    "@id": "",
    "type": "Announce",
    "object": "https://news.example/1",
}


@pytest.fixture(scope="module")
def sender(start_client: StartClient) -> ClientProcess:
    return start_client("ldn.mjs")


@pytest.mark.parametrize(
    "content_type",
    ["application/ld+json", f'application/ld+json; profile="{ACTIVITY_STREAMS}"'],
    ids=["plain", "profile"],
)
def test_anybody_sends_a_notification_and_only_the_owner_reads_it(
    sender: ClientProcess, home: Home, content_type: str
) -> None:
    """The inbox is in the profile, and the public may append to it, nothing else."""
    server = home.pod.server
    sent = sender.run(
        "send", about=home.pod.web_id, notification=NOTIFICATION, type=content_type
    ).value
    assert sent["inbox"] == f"{server.base_url}{home.pod.root}inbox/"
    assert "application/ld+json" in sent["accepts"]
    assert sent["status"] == 201
    path = sent["location"].removeprefix(server.base_url)
    assert path in home.owner.members(home.pod.root + "inbox/")

    received = home.owner.get(path, Accept=TURTLE)
    assert triples(received.body, TURTLE, sent["location"]) == {
        (URIRef(sent["location"]), RDF.type, URIRef(f"{ACTIVITY_STREAMS}#Announce")),
        (
            URIRef(sent["location"]),
            URIRef(f"{ACTIVITY_STREAMS}#object"),
            URIRef("https://news.example/1"),
        ),
    }
    for target in (path, home.pod.root + "inbox/"):
        assert server.get(target).status == 401
    update = {"Content-Type": "application/sparql-update"}
    assert server.request("PATCH", path, "INSERT DATA { <#a> <#b> 1 }", update).status == 401
    assert server.request("PUT", path, "{}", {"Content-Type": "application/ld+json"}).status == 401
    assert server.request("DELETE", path).status == 401


def test_somebody_with_a_token_sends_as_well(
    sender: ClientProcess, home: Home, other: Agent
) -> None:
    """What the public may, everybody may."""
    sent = sender.run(
        "send",
        other,
        about=home.pod.web_id,
        notification=NOTIFICATION,
        type="application/ld+json",
    ).value
    assert sent["status"] == 201
    path = sent["location"].removeprefix(home.pod.server.base_url)
    refused = home.pod.server.get(path, {"Authorization": f"Bearer {other.token}"})
    assert refused.status == 403
