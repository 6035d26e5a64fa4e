"""The messages that receivers get: ActivityStreams, as JSON-LD or Turtle (N-16).

Every receiver of a topic gets the same message, from any worker and over any channel: its id is
derived from the change and the topic. Each message is therefore serialized once in each media type.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final

import msgspec

from podstead.core.caches import BoundedCache
from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import JSON_LD
from podstead.core.vocab import (
    AS,
    AS_CONTEXT,
    AS_OBJECT,
    AS_PUBLISHED,
    AS_TARGET,
    NOTIFICATION_CONTEXTS,
    NOTIFY_STATE,
    RDF_TYPE,
    XSD_DATE_TIME,
)
from podstead.notifications.notification import Notification
from podstead.notifications.times import write_time
from podstead.rdf.codecs import Document, serialize
from podstead.rdf.graph import Dataset, Graph, Iri, Literal, Triple

MESSAGE_CONTEXTS: Final = (AS_CONTEXT, NOTIFICATION_CONTEXTS[0])
KEPT: Final = 1024
"""How many messages are cached."""

_NAMESPACE: Final = uuid.UUID("7f0c0c8e-0f1b-5a37-9d3b-2d5a6f1f3b52")
"""The name space of the ids of messages (RFC 9562 section 5.5)."""
_PREFIXES: Final = {"as": AS, "notify": NOTIFY_STATE.rpartition("#")[0] + "#"}


class _Message(msgspec.Struct, omit_defaults=True):
    context: tuple[str, ...] = msgspec.field(name="@context")
    id: str
    type: str
    object: str
    published: str
    target: str | None = None
    state: str | None = None


class Messages:
    """Serializes messages, and caches the latest, since many receivers get the same ones."""

    def __init__(self, *, base_url: str) -> None:
        self._base_url = base_url
        self._kept: BoundedCache[tuple[Notification, str], bytes] = BoundedCache(KEPT)
        self._latest: tuple[Notification | None, str, str] = (None, "", "")

    def message(self, notification: Notification, media_type: str) -> bytes:
        """The message for a notification in one of the media types of channels."""
        key = (notification, media_type)
        made = self._kept.get(key)
        if made is None:
            write = json_ld_message if media_type == JSON_LD else turtle_message
            made = write(notification, base_url=self._base_url)
            self._kept.put(key, made)
        return made

    def text(self, notification: Notification, media_type: str) -> str:
        """The same as text. All receivers of a topic get the same notification object one after the
        other, so nearly every call is for the latest text."""
        latest, latest_type, text = self._latest
        if latest is not notification or latest_type != media_type:
            text = self.message(notification, media_type).decode()
            self._latest = notification, media_type, text
        return text


def message_id(notification: Notification) -> str:
    """The ``urn:uuid:`` of the message, the same in every worker."""
    activity = notification.activity.value
    name = f"{notification.write} {notification.sequence} {activity} {notification.topic}"
    return uuid.uuid5(_NAMESPACE, name).urn


def json_ld_message(notification: Notification, *, base_url: str) -> bytes:
    """The message on one line of JSON-LD."""
    return msgspec.json.encode(
        _Message(
            context=MESSAGE_CONTEXTS,
            id=message_id(notification),
            type=notification.activity.value,
            object=base_url + notification.object,
            published=write_time(notification.at_ms),
            target=None if notification.target is None else base_url + notification.target,
            state=notification.state,
        )
    )


def turtle_message(notification: Notification, *, base_url: str) -> bytes:
    """The message as a document in Turtle."""
    document = Document(Dataset(_graph(notification, lambda path: Iri(base_url + path))), _PREFIXES)
    return serialize(document, "text/turtle")


def _graph(notification: Notification, named: Callable[[ResourcePath], Iri]) -> Graph:
    message = Iri(message_id(notification))
    published = Literal(write_time(notification.at_ms), datatype=Iri(XSD_DATE_TIME))
    said: list[Triple] = [
        (message, Iri(RDF_TYPE), Iri(AS + notification.activity.value)),
        (message, Iri(AS_OBJECT), named(notification.object)),
        (message, Iri(AS_PUBLISHED), published),
    ]
    if notification.target is not None:
        said.append((message, Iri(AS_TARGET), named(notification.target)))
    if notification.state is not None:
        said.append((message, Iri(NOTIFY_STATE), Literal(notification.state)))
    return Graph(said)
