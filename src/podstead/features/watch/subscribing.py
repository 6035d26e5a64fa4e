"""Discovering how to receive changes of a resource, and subscribing."""

import json
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import RequestRefused
from podstead.core.media_types import JSON_LD, TURTLE
from podstead.core.strict_json import parse_object
from podstead.core.vocab import NOTIFICATION_CONTEXTS, NOTIFY, NOTIFY_RECEIVE_FROM
from podstead.features.watch.discovery import (
    ChangeSource,
    Protocol,
    preferred,
    read_links,
    services_in,
)
from podstead.features.watch.server import AccessLost, Interrupted, Server, WatchError
from podstead.outbound.requests import ReceivedResponse
from podstead.rdf.codecs import parse
from podstead.rdf.graph import Graph, Iri
from podstead.rdf.jsonld_contexts import ContextSource

MAX_DESCRIPTIONS: Final = 4
_GONE: Final = frozenset({404, 410})
_LOWEST_SERVER_ERROR: Final = 500
_BUSY: Final = 429
_REFUSED: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Topic:
    """The watched resource, and the way to receive its changes."""

    url: str
    """The URL after redirects."""
    way: ChangeSource


@dataclass(frozen=True, slots=True)
class RemoteChannel:
    """The address for receiving changes; ``url`` is the channel itself, if it has one."""

    receive_from: str
    url: str | None = None


class SubscriptionClient:
    """Discovers how a resource can be watched, and creates channels."""

    def __init__(self, server: Server, contexts: ContextSource) -> None:
        self._server = server
        self._contexts = contexts

    async def discover(self, url: str, *, again: bool) -> Topic:
        """Discover how to receive changes of the resource at ``url``.

        ``again`` means that it could be watched before. Raises WatchError.
        """
        found_url, reply = await self._server.look("HEAD", url, accept="*/*")
        check(reply.status, url, has_token=self._server.has_token, again=again)
        pointers = read_links(reply.fields, url=found_url)
        if not pointers.is_solid:
            raise WatchError(f"{url} is not on a Solid server, according to its headers.")
        ways = list(pointers.ways)
        for description in pointers.descriptions[:MAX_DESCRIPTIONS]:
            services = services_in(await self._description(description))
            ways += services
            if services:
                break
        way = preferred(ways)
        if way is None:
            raise WatchError(
                f"The server of {url} offers no type of notifications that this command supports."
            )
        return Topic(found_url, way)

    async def subscribe(self, topic: Topic, *, state: str | None, again: bool) -> RemoteChannel:
        """Create a channel for a topic. ``state`` is the last known state.

        Raises WatchError.
        """
        way = topic.way
        if way.protocol in (Protocol.STREAM_OF_RESOURCE, Protocol.SOLID_0_1):
            return RemoteChannel(way.url)
        request = {
            "@context": [NOTIFICATION_CONTEXTS[0]],
            "type": NOTIFY + way.protocol.value,
            "topic": topic.url,
        }
        if way.takes_state and state is not None:
            request["state"] = state
        content = json.dumps(request).encode()
        reply = await self._server.post(way.url, content, content_type=JSON_LD)
        if reply.status in _GONE:
            raise WatchError(f"The subscription service {way.url} does not exist.")
        check(reply.status, topic.url, has_token=self._server.has_token, again=again)
        channel = self._channel(reply, way.url)
        if channel is None:
            raise WatchError(f"{way.url} does not say where to receive changes of {topic.url}.")
        return channel

    async def unsubscribe(self, channel: RemoteChannel) -> None:
        """End a channel, so that it no longer counts against limits (N-10). Raises WatchError."""
        if channel.url is not None:
            await self._server.delete(channel.url)

    async def _description(self, url: str) -> Graph:
        """The triples of a description; none if it is unavailable or cannot be parsed."""
        found_url, reply = await self._server.look("GET", url, accept=f"{TURTLE}, {JSON_LD};q=0.9")
        if _is_temporary(reply.status):
            raise Interrupted(f"Cannot read {url} now: the server responded with {reply.status}.")
        return self._graph(reply, found_url) if reply.status == 200 else Graph()

    def _channel(self, reply: ReceivedResponse, url: str) -> RemoteChannel | None:
        """The channel in a response, parsed as JSON with the usual names, or else as RDF."""
        try:
            described = parse_object(reply.content)
        except ValueError:
            described = {}
        match described:
            case {"receiveFrom": str(receive_from), "id": str(channel)}:
                return RemoteChannel(receive_from, channel)
            case {"receiveFrom": str(receive_from)}:
                return RemoteChannel(receive_from)
        graph = self._graph(reply, url)
        for subject, predicate, value in graph:
            if predicate == Iri(NOTIFY_RECEIVE_FROM):
                return RemoteChannel(value.value, subject.value if type(subject) is Iri else None)
        return None

    def _graph(self, reply: ReceivedResponse, url: str) -> Graph:
        media_type = reply.field("content-type")
        try:
            return parse(reply.content, media_type, base_iri=url, contexts=self._contexts).graph
        except RequestRefused:
            return Graph()


def check(status: int, url: str, *, has_token: bool, again: bool) -> None:
    """Raise WatchError unless the status means success; ``again`` as for discovery."""
    if 200 <= status < 300:
        return
    if _is_temporary(status):
        raise Interrupted(f"The server of {url} is not available now (status {status}).")
    if again and status in _GONE:
        raise AccessLost(f"{url} no longer exists.")
    if again and status in _REFUSED:
        raise AccessLost(
            f"You may no longer read {url}: access was revoked, or the token has expired."
        )
    raise WatchError(_refusal(status, url, has_token=has_token))


def _refusal(status: int, url: str, *, has_token: bool) -> str:
    match status:
        case 401 if has_token:
            return f"The server rejected the token for {url}. It may have expired."
        case 401:
            return f"{url} is not public. Supply a token with --token or in PODSTEAD_TOKEN."
        case 403:
            return f"The agent of the token may not read {url}."
        case 404 | 410:
            return f"There is nothing at {url}. Check its spelling, including any trailing slash."
    return f"Cannot watch {url}: the server responded with {status}."


def _is_temporary(status: int) -> bool:
    return status == _BUSY or status >= _LOWEST_SERVER_ERROR
