"""The server's side of the solid-0.1 protocol: parses lines and composes the answers. Pure.

The protocol was never specified; this follows what its servers and clients do (requirements L-2 to
L-12). One line is one message. The client says ``sub URL`` and gets ``ack URL`` or ``err URL
forbidden``; from then on each write to the resource is one ``pub URL``. Clients count these lines
against the requests that they made themselves, so there is exactly one for each request and URL,
however many changes the request caused.

URLs are repeated exactly as the client wrote them, since it compares them.

A browser cannot set header fields on a WebSocket. The values of the Authorization and DPoP fields
for a GET of the resource may therefore come as lines, ``auth VALUE`` and ``dpop PROOF``. They
belong to the ``sub`` that follows, and to no other: a proof names one URL and is used once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from podstead.core.errors import RequestRefused
from podstead.core.identifiers import ResourcePath, parse_path
from podstead.notifications.messages import Notification
from podstead.storage.records import Version

PROTOCOL: Final = "solid-0.1"
GREETING: Final = f"protocol {PROTOCOL}"
HEARTBEAT: Final = "ping"
"""A line that keeps proxies from closing an idle connection; clients may answer ``pong`` (L-9)."""
UNKNOWN_PROTOCOL: Final = f"error Client does not support protocol {PROTOCOL}"

MAX_URL_CHARACTERS: Final = 2048
MAX_URLS: Final = 2000
"""The maximum number of URLs that one socket may subscribe to. Data browsers subscribe to every
document that they display."""
"""Characters (L-11)."""

_EXCERPT_CHARACTERS = 100


class SubprotocolOffer(Enum):
    """The sub-protocols that a client offered (L-2)."""

    THIS = "this protocol, perhaps among others: its name is echoed"
    NOTHING = "nothing, as older clients do, which mean this protocol: nothing is echoed"
    OTHERS = "other protocols only: it is told, and the socket closed"


def offer_of(protocols: Sequence[str]) -> SubprotocolOffer:
    """The offer in the sub-protocols of a handshake."""
    if not protocols:
        return SubprotocolOffer.NOTHING
    return SubprotocolOffer.THIS if PROTOCOL in protocols else SubprotocolOffer.OTHERS


@dataclass(frozen=True, slots=True)
class LineCredential:
    """The Authorization and DPoP fields that came as lines."""

    authorization: str
    proof: str | None


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The client subscribes to a topic by the URL that it wrote, as the agent that ``credential``
    proves, or without one as the agent that opened the socket."""

    url: str
    topic: ResourcePath
    credential: LineCredential | None = None


@dataclass(frozen=True, slots=True)
class Forget:
    """The client unsubscribes from a topic, by any URL."""

    topic: ResourcePath


@dataclass(frozen=True, slots=True)
class TextReply:
    """An answer, with nothing else to do."""

    line: str


@dataclass(slots=True)
class _Subscription:
    """The URLs by which a client knows one topic, and the last request that it was notified of."""

    urls: dict[str, None] = field(default_factory=dict)
    told: Version | None = None


class Conversation:
    """One socket's side of the protocol."""

    def __init__(
        self, *, origin: str, aliases: Sequence[str] = (), max_urls: int = MAX_URLS
    ) -> None:
        """``origin`` is the server's, such as ``https://pods.example``, to which relative URLs
        belong; ``aliases`` are further origins that mean it. A client may subscribe to
        ``max_urls`` URLs at once."""
        self._origins = frozenset((origin.lower(), *map(str.lower, aliases)))
        self._max_urls = max_urls
        self._url_count = 0
        self._subscriptions: dict[ResourcePath, _Subscription] = {}
        self._authorization: str | None = None
        self._proof: str | None = None

    @property
    def has_credential(self) -> bool:
        """Whether a credential, or part of one, has come for the next subscription."""
        return self._authorization is not None or self._proof is not None

    def read(self, line: str) -> Subscribe | Forget | TextReply | None:
        """The request in a line of the client; ``None`` for none. No line ends the socket."""
        word, _, rest = line.strip().partition(" ")
        value = rest.strip()
        if word == "pong":
            return None
        if word == "auth":
            self._authorization = value
            return None
        if word == "dpop":
            self._proof = value
            return None
        if word not in ("sub", "unsub"):
            return TextReply(f"warning Unrecognized message {_excerpt(line)}")
        credential = self._take_credential() if word == "sub" else None
        if len(value) > MAX_URL_CHARACTERS:
            return TextReply("error: URL too long")
        return self._begin(value, credential) if word == "sub" else self._forget(value)

    def accept(self, asked: Subscribe) -> str:
        """Record a granted subscription; returns the answer."""
        if self._is_new(asked.url, asked.topic):
            self._url_count += 1
        self._subscriptions.setdefault(asked.topic, _Subscription()).urls[asked.url] = None
        return f"ack {asked.url}"

    def refuse(self, asked: Subscribe) -> str:
        """The answer to a subscription that was not granted (L-10)."""
        return _refusal(asked.url)

    def publish(self, notification: Notification) -> list[str]:
        """The lines for a notification: one for each URL, unless the client has already been
        notified of the same request (L-7)."""
        subscription = self._subscriptions.get(notification.topic)
        if subscription is None or subscription.told == notification.write:
            return []
        subscription.told = notification.write
        return [f"pub {url}" for url in subscription.urls]

    def end(self, topic: ResourcePath) -> list[str]:
        """The lines for a topic that may no longer be read; ends its subscription."""
        subscription = self._subscriptions.pop(topic, None)
        if subscription is None:
            return []
        self._url_count -= len(subscription.urls)
        return [_refusal(url) for url in subscription.urls]

    def _take_credential(self) -> LineCredential | None:
        authorization, proof = self._authorization, self._proof
        self._authorization = self._proof = None
        return None if authorization is None else LineCredential(authorization, proof)

    def _begin(self, url: str, credential: LineCredential | None) -> Subscribe | TextReply:
        topic = self._topic_of(url)
        if topic is None:
            return TextReply(_refusal(url))
        if self._is_new(url, topic) and self._url_count >= self._max_urls:
            return TextReply("error: Subscription limit exceeded")
        return Subscribe(url, topic, credential)

    def _forget(self, url: str) -> Forget | None:
        topic = self._topic_of(url)
        if topic is None or self._is_new(url, topic):
            return None
        subscription = self._subscriptions[topic]
        del subscription.urls[url]
        self._url_count -= 1
        if subscription.urls:
            return None
        del self._subscriptions[topic]
        return Forget(topic)

    def _is_new(self, url: str, topic: ResourcePath) -> bool:
        subscription = self._subscriptions.get(topic)
        return subscription is None or url not in subscription.urls

    def _topic_of(self, url: str) -> ResourcePath | None:
        """The resource of a URL, ``None`` for one that is not of this server (L-4)."""
        path = url
        if not url.startswith("/"):
            scheme, _, rest = url.partition("://")
            authority, slash, path = rest.partition("/")
            path = f"/{path}" if slash else "/"
            if f"{scheme}://{authority}".lower() not in self._origins:
                return None
        try:
            return parse_path(path.partition("#")[0].partition("?")[0].encode())
        except (RequestRefused, UnicodeEncodeError):
            return None


def _refusal(url: str) -> str:
    return f"err {url} forbidden"


def _excerpt(line: str) -> str:
    """A line as it may be repeated: short, and one line."""
    return " ".join(line[:_EXCERPT_CHARACTERS].split())
