"""Subscription services, their channels, and the gateway of notifications."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from podstead.core import errors
from podstead.core.clock import Clock
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD, RDF_TYPES, parse_media_type
from podstead.core.vocab import NOTIFICATION_CONTEXTS
from podstead.notifications import channel_documents
from podstead.notifications.answers import LiveQueryService, is_live_query
from podstead.notifications.channel_types import GATEWAY, WEB_SOCKET, ChannelType
from podstead.notifications.channels import Channel, ChannelHandler, Channels
from podstead.notifications.readers import Readers, Subscriber
from podstead.rdf.errors import UnavailableContext, UnknownContext
from podstead.rdf.graph import Graph
from podstead.storage.protocol import ChangeLog
from podstead.web import forms, limits, response
from podstead.web.description_endpoints import GeneratedDocument, generated_document
from podstead.web.request import Request

# The URLs of channels, and their descriptions (N-9, N-20 to N-23).


@dataclass(frozen=True, slots=True)
class Addresses:
    """Creates URLs; ``base_url`` has no slash at its end."""

    base_url: str
    sockets_base_url: str = ""
    """The same for sockets, if it is another; http or https."""

    def describe(
        self,
        key: str,
        channel: Channel,
        handler: ChannelHandler,
        *,
        given_up: str | None = None,
    ) -> channel_documents.DescribedChannel:
        """The description of a channel; ``given_up`` is the reason why nothing is sent on it any
        more."""
        channel_type = handler.type
        return channel_documents.DescribedChannel(
            url=self.base_url + channel_path(channel_type, key),
            channel_type=channel_type,
            topic_url=self.base_url + channel.topic,
            end_ms=channel.end_ms,
            media_type=channel.media_type,
            start_ms=channel.start_ms,
            rate_ms=channel.rate_ms,
            state=channel.state,
            receive_from=self.receive_from(channel_type, key),
            send_to=channel.send_to,
            sender=handler.sender,
            comment=None if given_up is None else f"Nothing is sent any more: {given_up}",
        )

    def receive_from(self, channel_type: ChannelType, key: str) -> str | None:
        """The URL that a receiver connects to, ``None`` for a channel that pushes."""
        if channel_type.is_pushed:
            return None
        path = receiving_path(channel_type, key)
        if not channel_type.is_socket:
            return self.base_url + path
        # ws for http, wss for https
        return f"ws{(self.sockets_base_url or self.base_url)[len('http') :]}{path}"


def channel_path(channel_type: ChannelType, key: str) -> ResourcePath:
    """The path for reading and closing a channel; ``{key}`` as the key gives a pattern."""
    return ResourcePath(f"{channel_type.service}{key}")


def receiving_path(channel_type: ChannelType, key: str) -> ResourcePath:
    """The path that a receiver connects to; ``{key}`` as the key gives a pattern."""
    return ResourcePath(f"{channel_path(channel_type, key)}/messages")


# ``/.notifications/<type>/``: subscriptions (N-4, N-5, N-9, N-11).
#
# A GET returns the description of the service. A POST describes a channel and creates it. Agents
# that may read the topic may subscribe to it: the gate decides, as for a GET.

FORMS: Final = (JSON_LD, *(each for each in RDF_TYPES if each != JSON_LD))
"""The media types of services and channels; JSON-LD is what the protocol prefers."""

_JSON_LD_FORMS: Final = ("expanded", "compacted", "flattened")
# The protocol's own, and the forms of JSON-LD, all of which are understood (JSON-LD 1.1, 10).
_PROFILES: Final = frozenset(
    (*NOTIFICATION_CONTEXTS, *(f"http://www.w3.org/ns/json-ld#{form}" for form in _JSON_LD_FORMS))
)
_ALLOW: Final = "OPTIONS, GET, HEAD, POST"

Parse = Callable[[bytes, str, str], Awaitable[Graph]]
"""Reads content of a media type with a base IRI. Raises BadRequest, UnsupportedMediaType,
UnknownContext."""


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """What all subscription services share."""

    channels: Channels
    readers: Readers
    answering: LiveQueryService
    log: ChangeLog
    parse: Parse
    addresses: Addresses

    async def subscribe(
        self, wanted: channel_documents.ChannelRequest, request: Request, agent: Identity | None
    ) -> channel_documents.DescribedChannel:
        """Create a channel, if the agent may read its topic.

        Raises NotAuthenticated, AccessDenied, Unprocessable, TooManyChannels, ServerTrouble, and
        what answering a live query raises.
        """
        if wanted.channel_type.is_pushed and agent is None:
            raise errors.NotAuthenticated
        subscriber = Subscriber(agent, request.fields.get(b"origin"))
        await self.readers.check(wanted.topic, subscriber)
        handler = self.channels.handlers[wanted.channel_type.name]
        await handler.check(wanted)
        counted_as = agent.iri if agent else f"public {limits.network_key(request.client_address)}"
        began = await self.log.newest_sequence()
        if is_live_query(wanted.topic):
            await self.channels.check_live_queries(counted_as)
            answer = await self.answering.first(wanted.topic, subscriber)
            if answer is not None and wanted.state is None:
                wanted = replace(wanted, state=answer.state)
        opened = await self.channels.open(wanted, subscriber, counted_as=counted_as, began=began)
        return self.addresses.describe(opened.key, opened.channel, handler)


class SubscriptionService:
    """The service for channels of one type."""

    def __init__(self, channel_type: ChannelType, subscriptions: Subscriptions) -> None:
        self._type = channel_type
        self._with = subscriptions
        description = channel_documents.service_description(
            channel_type, base_url=subscriptions.addresses.base_url
        )
        self._document = GeneratedDocument(
            description.graph, description.json, channel_documents.PREFIXES, FORMS
        )

    async def get(self, request: Request, agent: Identity | None) -> response.Response:
        """Raises NotAcceptable and PreconditionFailed."""
        return generated_document(request, agent, self._document, allow=_ALLOW)

    async def post(self, request: Request, agent: Identity | None) -> response.Response:
        """Create a channel.

        Raises BadRequest, UnsupportedMediaType, Unprocessable, NotAuthenticated, AccessDenied,
        NotAcceptable, TooManyChannels, ServerTrouble.
        """
        media_type = self._document.choose(request.fields.get(b"accept"))
        wanted = await self._wanted(request)
        description = channel_documents.channel_description(
            await self._with.subscribe(wanted, request, agent)
        )
        content = GeneratedDocument(
            description.graph, description.json, channel_documents.PREFIXES
        ).content(media_type)
        return response.content_response(
            content, media_type, method=request.method, headers=[response.NO_STORE]
        )

    async def _wanted(self, request: Request) -> channel_documents.ChannelRequest:
        base_url = self._with.addresses.base_url
        content_type = request.fields.get(b"content-type")
        if content_type is None:
            raise errors.BadRequest(
                f"The body must describe the channel, with Content-Type: {JSON_LD}"
            )
        _check_profile(content_type)
        content = await request.body.read(limit_bytes=forms.MAX_JSON_BYTES)
        try:
            graph = await self._with.parse(content, content_type, base_url + request.path)
        except UnavailableContext:
            raise
        except UnknownContext as unknown:
            raise errors.Unprocessable(str(unknown)) from unknown
        return channel_documents.read_channel_request(graph, expected=self._type, base_url=base_url)


def _check_profile(content_type: str) -> None:
    """Refuse a body with a profile that is not supported (N-5)."""
    profile = parse_media_type(content_type).parameter("profile")
    if profile is not None and not _PROFILES.issuperset(profile.split()):
        raise errors.UnsupportedMediaType(f"The profile '{profile}' is not supported")


# ``/.notifications/<type>/<key>``: read the description of a channel, or close it (N-10).
#
# Whoever knows the URL of a channel may read and close it: only the subscriber gets the URL.


class ChannelEndpoint:
    """Describes and closes channels."""

    def __init__(self, *, channels: Channels, addresses: Addresses) -> None:
        self._channels = channels
        self._addresses = addresses

    async def get(self, request: Request, agent: Identity | None) -> response.Response:
        """Raises NotFound, NotAcceptable, PreconditionFailed, StorageError."""
        key, channel = await self._found(request)
        described = self._addresses.describe(
            key,
            channel,
            self._channels.handlers[channel.channel_type],
            given_up=await self._channels.given_up(key, channel),
        )
        description = channel_documents.channel_description(described)
        document = GeneratedDocument(
            description.graph, description.json, channel_documents.PREFIXES, FORMS
        )
        response = generated_document(request, agent, document, allow="OPTIONS, GET, HEAD, DELETE")
        response.of_stored_state = False  # it ends without anything being stored
        return response

    async def delete(self, request: Request, _: Identity | None) -> response.Response:
        """Unsubscribe. Raises NotFound, StorageError, Overloaded."""
        await self._channels.close(*await self._found(request))
        return response.empty_response(204)

    async def _found(self, request: Request) -> tuple[str, Channel]:
        type_name, key = request.path.split("/")[-2:]
        channel = await self._channels.find(key)
        if channel is None or channel.channel_type != type_name:
            raise errors.NotFound("There is no such channel; it may have ended")
        return key, channel


# ``/.notifications/gateway``: subscriptions by the oldest protocol (N-25).
#
# ``@inrupt/solid-client-notifications`` asks the gateway that the server's description names for a
# protocol, and the endpoint that it gets for a socket. It knows WebSockets only, so what it gets is
# a channel as any other (N-20).

ENDPOINT: Final = ResourcePath(f"{GATEWAY}/sockets")
PROTOCOL: Final = "ws"
FEATURES: Final = ("state", "ttl", "rate")
"""The features of a socket; the last two are in seconds."""


class GatewayEndpoint:
    """Negotiates, and creates channels for WebSockets."""

    def __init__(self, *, subscriptions: Subscriptions, clock: Clock) -> None:
        self._with = subscriptions
        self._clock = clock

    async def negotiate(self, request: Request, _: Identity | None) -> response.Response:
        """``POST`` of the protocols and features that a client has.

        Raises BadRequest, BodyTooLarge; Unprocessable if it has no protocol of ours.
        """
        asked = await self._members(request)
        protocols, features = asked.get("protocols"), asked.get("features")
        if not isinstance(protocols, list) or PROTOCOL not in protocols:
            raise errors.Unprocessable(
                f'The only supported protocol is "{PROTOCOL}"; include it in the protocols'
            )
        known = [each for each in FEATURES if isinstance(features, list) and each in features]
        endpoint = self._with.addresses.base_url + ENDPOINT
        members = {"endpoint": endpoint, "protocol": PROTOCOL, "features": known}
        return response.json_content_response(members, headers=[response.NO_STORE])

    async def open(self, request: Request, agent: Identity | None) -> response.Response:
        """``POST`` of a topic and features; features that were not offered are not looked at.

        Raises BadRequest, BodyTooLarge, Unprocessable, NotAuthenticated, AccessDenied,
        TooManyChannels, ServerTrouble.
        """
        channel = await self._with.subscribe(
            self._wanted(await self._members(request)), request, agent
        )
        members = {"endpoint": channel.receive_from, "protocol": PROTOCOL}
        return response.json_content_response(members, headers=[response.NO_STORE])

    def _wanted(self, asked: dict[str, Any]) -> channel_documents.ChannelRequest:
        topic, state = asked.get("topic"), asked.get("state")
        if not isinstance(topic, str):
            raise errors.Unprocessable("The topic is missing: it must be the URL of a resource")
        if state is not None and not (
            isinstance(state, str) and len(state) <= channel_documents.MAX_STATE_CHARACTERS
        ):
            raise errors.Unprocessable(
                "The state must be a string of at most"
                f" {channel_documents.MAX_STATE_CHARACTERS} characters"
            )
        ttl_ms = _milliseconds(asked, "ttl")
        return channel_documents.ChannelRequest(
            WEB_SOCKET,
            channel_documents.topic_path(topic, base_url=self._with.addresses.base_url),
            state=state,
            rate_ms=_milliseconds(asked, "rate"),
            end_ms=None if ttl_ms is None else self._clock.now_ms() + ttl_ms,
        )

    async def _members(self, request: Request) -> dict[str, Any]:
        return forms.json_object(await request.body.read(limit_bytes=forms.MAX_JSON_BYTES))


def _milliseconds(asked: dict[str, Any], name: str) -> int | None:
    """The value of a feature in seconds, as milliseconds."""
    seconds = asked.get(name)
    if seconds is None:
        return None
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds <= channel_documents.MAX_LIFETIME_MS / 1000:
        raise errors.Unprocessable(f"The {name} must be a number of seconds, at most two weeks")
    return int(seconds * 1000)
