"""``/.notifications/gateway``: how do clients of the oldest protocol find their way? (N-25)

``@inrupt/solid-client-notifications`` asks the gateway that the server's description names for a
protocol, and the endpoint that it gets for a socket. It knows WebSockets only, so what it gets is a
channel as any other (N-20).
"""

from __future__ import annotations

from typing import Any, Final

from podstead.core.clock import Clock
from podstead.core.errors import Unprocessable
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.notifications.channel_documents import (
    MAX_LIFETIME_MS,
    MAX_STATE_CHARACTERS,
    ChannelRequest,
    topic_path,
)
from podstead.notifications.channel_types import GATEWAY, ChannelType
from podstead.web.json_bodies import MAX_JSON_BYTES, json_object
from podstead.web.notifications.services import Subscriptions
from podstead.web.request import Request
from podstead.web.response import NO_STORE, Response, json_content_response

ENDPOINT: Final = ResourcePath(f"{GATEWAY}/sockets")
PROTOCOL: Final = "ws"
FEATURES: Final = ("state", "ttl", "rate")
"""The features of a socket; the last two are in seconds."""


class GatewayEndpoint:
    """Negotiates, and creates channels for WebSockets."""

    def __init__(self, *, subscriptions: Subscriptions, clock: Clock) -> None:
        self._with = subscriptions
        self._clock = clock

    async def negotiate(self, request: Request, _: Identity | None) -> Response:
        """``POST`` of the protocols and features that a client has.

        Raises BadRequest, BodyTooLarge; Unprocessable if it has no protocol of ours.
        """
        asked = await self._members(request)
        protocols, features = asked.get("protocols"), asked.get("features")
        if not isinstance(protocols, list) or PROTOCOL not in protocols:
            raise Unprocessable(
                f'The only supported protocol is "{PROTOCOL}"; include it in the protocols'
            )
        known = [each for each in FEATURES if isinstance(features, list) and each in features]
        endpoint = self._with.addresses.base_url + ENDPOINT
        members = {"endpoint": endpoint, "protocol": PROTOCOL, "features": known}
        return json_content_response(members, headers=[NO_STORE])

    async def open(self, request: Request, agent: Identity | None) -> Response:
        """``POST`` of a topic and features; features that were not offered are not looked at.

        Raises BadRequest, BodyTooLarge, Unprocessable, NotAuthenticated, AccessDenied,
        TooManyChannels, ServerTrouble.
        """
        channel = await self._with.subscribe(
            self._wanted(await self._members(request)), request, agent
        )
        members = {"endpoint": channel.receive_from, "protocol": PROTOCOL}
        return json_content_response(members, headers=[NO_STORE])

    def _wanted(self, asked: dict[str, Any]) -> ChannelRequest:
        topic, state = asked.get("topic"), asked.get("state")
        if not isinstance(topic, str):
            raise Unprocessable("The topic is missing: it must be the URL of a resource")
        if state is not None and not (
            isinstance(state, str) and len(state) <= MAX_STATE_CHARACTERS
        ):
            raise Unprocessable(
                f"The state must be a string of at most {MAX_STATE_CHARACTERS} characters"
            )
        ttl_ms = _milliseconds(asked, "ttl")
        return ChannelRequest(
            ChannelType.WEB_SOCKET,
            topic_path(topic, base_url=self._with.addresses.base_url),
            state=state,
            rate_ms=_milliseconds(asked, "rate"),
            end_ms=None if ttl_ms is None else self._clock.now_ms() + ttl_ms,
        )

    async def _members(self, request: Request) -> dict[str, Any]:
        return json_object(await request.body.read(limit_bytes=MAX_JSON_BYTES))


def _milliseconds(asked: dict[str, Any], name: str) -> int | None:
    """The value of a feature in seconds, as milliseconds."""
    seconds = asked.get(name)
    if seconds is None:
        return None
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 <= seconds <= MAX_LIFETIME_MS / 1000:
        raise Unprocessable(f"The {name} must be a number of seconds, at most two weeks")
    return int(seconds * 1000)
