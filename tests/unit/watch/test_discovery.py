"""What the headers and descriptions of servers offer to a receiver of changes."""

from __future__ import annotations

import pytest

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.rdf.codecs import parse
from podstead.watch.discovery import (
    Protocol,
    Way,
    preferred,
    read_links,
    services_in,
)

URL = "https://pods.example/alice/notes/"
STORAGE_DESCRIPTION = "http://www.w3.org/ns/solid/terms#storageDescription"
STREAMS = "http://www.w3.org/ns/solid/terms#updatesViaStreamingHttp2023"

# What the Community Solid Server 7 says of itself.
COMMUNITY = """<../> a <http://www.w3.org/ns/pim/space#Storage>;
  <http://www.w3.org/ns/solid/notifications#subscription>
    <../.notifications/WebSocketChannel2023/>, <../.notifications/WebhookChannel2023/>.
<../.notifications/WebSocketChannel2023/>
  <http://www.w3.org/ns/solid/notifications#channelType>
    <http://www.w3.org/ns/solid/notifications#WebSocketChannel2023>;
  <http://www.w3.org/ns/solid/notifications#feature>
    <http://www.w3.org/ns/solid/notifications#state>.
<../.notifications/WebhookChannel2023/>
  <http://www.w3.org/ns/solid/notifications#channelType>
    <http://www.w3.org/ns/solid/notifications#WebhookChannel2023>.
"""
# The example of Solid Notifications Protocol, section 4.1, with the types of this test.
OF_THE_PROTOCOL = """{
  "@context": ["https://www.w3.org/ns/solid/notification/v1"],
  "id": "https://pods.example/",
  "subscription": [
    {"id": "https://pods.example/ws", "channelType": "WebSocketChannel2023"},
    {"id": "https://pods.example/sse", "channelType": "EventSourceChannel2023",
     "feature": ["state", "endAt"]}
  ]
}"""


def test_links_lead_to_descriptions_the_storage_first() -> None:
    """N-1; as several headers, and as one."""
    links = ['<.meta>; rel="describedby"', f'</.well-known/solid>; rel="{STORAGE_DESCRIPTION}"']
    expected = ("https://pods.example/.well-known/solid", f"{URL}.meta")
    for fields in ([("link", each) for each in links], [("link", ", ".join(links))]):
        pointers = read_links(fields, url=URL)
        assert pointers.is_solid
        assert pointers.descriptions == expected
        assert pointers.ways == ()


def test_headers_lead_to_streams_and_sockets() -> None:
    """N-22, L-1."""
    fields = [("link", f'</stream>; rel="{STREAMS}"'), ("updates-via", "wss://pods.example/ws")]
    assert read_links(fields, url=URL).ways == (
        Way(Protocol.STREAM_OF_RESOURCE, "https://pods.example/stream"),
        Way(Protocol.SOLID_0_1, "wss://pods.example/ws"),
    )


def test_a_link_about_another_resource_says_nothing() -> None:
    fields = [("link", f'</x>; rel="{STORAGE_DESCRIPTION}"; anchor="https://other.example/"')]
    assert read_links(fields, url=URL).descriptions == ()


@pytest.mark.parametrize("target", ["http://[bad", "a b", "\\\\x"])
def test_a_link_to_nowhere_is_passed_over(target: str) -> None:
    fields = [("link", f'<{target}>; rel="acl", </d>; rel="describedby"')]
    assert read_links(fields, url=URL).descriptions == ("https://pods.example/d",)


def test_a_page_of_another_kind_of_server_is_recognized() -> None:
    fields = [("link", '</style.css>; rel="preload"'), ("content-type", "text/html")]
    assert not read_links(fields, url=URL).is_solid
    assert read_links([("link", '<.acl>; rel="acl"')], url=URL).is_solid


def test_the_description_of_the_community_server_is_understood() -> None:
    base = "https://pods.example/.well-known/solid"
    graph = parse(COMMUNITY.encode(), "text/turtle", base_iri=base).graph
    service = "https://pods.example/.notifications/WebSocketChannel2023/"
    assert services_in(graph) == (Way(Protocol.WEB_SOCKET, service, takes_state=True),)


def test_a_description_in_json_ld_is_understood() -> None:
    graph = parse(
        OF_THE_PROTOCOL.encode(),
        "application/ld+json",
        base_iri=URL,
        contexts=bundled_contexts(),
    ).graph
    assert set(services_in(graph)) == {
        Way(Protocol.WEB_SOCKET, "https://pods.example/ws"),
        Way(Protocol.EVENT_SOURCE, "https://pods.example/sse", takes_state=True),
    }


def test_channels_that_resend_missed_notifications_are_preferred() -> None:
    ways = [Way(protocol, "https://pods.example/") for protocol in reversed(Protocol)]
    order = []
    while (best := preferred(ways)) is not None:
        order.append(best.protocol.value)
        ways.remove(best)
    assert order == [
        "EventSourceChannel2023",
        "WebSocketChannel2023",
        "StreamingHTTPChannel2023",
        "StreamingHTTPChannel2023 of the resource",
        "solid-0.1",
    ]
