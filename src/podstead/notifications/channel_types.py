"""The channel types by which clients receive notifications, and their features (N-3, N-20 to N-23).

A channel type is a protocol that carries messages. The features that a client can request for a
channel are the same for all types.
"""

from __future__ import annotations

from enum import Enum
from typing import Final
from urllib.parse import quote

from podstead.core.caches import memoize_short_keys
from podstead.core.identifiers import ResourcePath
from podstead.core.vocab import NOTIFY, NOTIFY_OF_DRAFTS

SERVICES: Final = ResourcePath("/.notifications/")
"""The prefix of all paths of notifications."""
GATEWAY: Final = ResourcePath(f"{SERVICES}gateway")
"""Where clients of older protocols request notifications (N-25)."""


class ChannelType(Enum):
    """A channel type, by the local name of its IRI."""

    WEB_SOCKET = "WebSocketChannel2023"
    EVENT_SOURCE = "EventSourceChannel2023"
    STREAMING_HTTP = "StreamingHTTPChannel2023"
    WEBHOOK = "WebhookChannel2023"

    @property
    def iri(self) -> str:
        """The IRI in the namespace that this server uses."""
        return NOTIFY + self.value

    @property
    def service(self) -> ResourcePath:
        """Where clients subscribe to channels of the type (N-3)."""
        return ResourcePath(f"{SERVICES}{self.value}/")

    @property
    def is_pushed(self) -> bool:
        """Whether the server connects to the receiver, instead of the receiver to the server."""
        return self is ChannelType.WEBHOOK


class Feature(Enum):
    """A feature of a channel, by the local name of its property (N-12 to N-15)."""

    ACCEPT = "accept"
    END_AT = "endAt"
    RATE = "rate"
    START_AT = "startAt"
    STATE = "state"

    @property
    def iri(self) -> str:
        """The IRI of the property."""
        return NOTIFY + self.value


def channel_type_of(iri: str) -> ChannelType | None:
    """The channel type that an IRI names, in either namespace (N-7)."""
    for namespace in (NOTIFY, NOTIFY_OF_DRAFTS):
        if iri.startswith(namespace):
            name = iri[len(namespace) :]
            return next((each for each in ChannelType if each.value == name), None)
    return None


def stream_of_resource(url: str) -> ResourcePath:
    """Where clients receive changes of the resource with this URL without subscribing (N-22)."""
    container, slash, name = url.rpartition("/")
    return ResourcePath(_stream_prefix(container + slash) + quote(name, safe=""))


@memoize_short_keys
def _stream_prefix(container_url: str) -> str:
    """The prefix of the streams of a container and of its members.

    Each byte is quoted separately, so quoting the parts of a URL quotes the URL.
    """
    return ChannelType.STREAMING_HTTP.service + quote(container_url, safe="")
