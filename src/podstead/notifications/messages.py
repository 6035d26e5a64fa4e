"""Derives the notifications of each row of the change log, and the messages that receivers get:
ActivityStreams, as JSON-LD or Turtle (N-16). Pure.

A change concerns the watches of the resource and, if it changes the listing, those of its
container, but not those of containers further up (N-17). Auxiliary resources are no members, so
changes of them concern their own watches only. A container's own statements are its description,
too (C-30), so a change of them concerns the watches of both. The older protocol, solid-0.1, has
more notifications: of each write to a member for the watches of a container (L-6), and of a
successful PATCH that changed nothing (L-7). Such notifications are :attr:`Activity.TOUCH`.

Every receiver of a topic gets the same message, from any worker and over any channel: its id is
derived from the change and the topic. Each message is therefore serialized once in each media type.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

import msgspec

from podstead.core import caches, date_times, identifiers, media_types, vocab
from podstead.rdf.codecs import Document, serialize
from podstead.rdf.graph import Dataset, Graph, Iri, Literal, Triple
from podstead.storage import records
from podstead.storage.records import LoggedChange, Version


class Activity(Enum):
    """What happened to the topic; all values but the last are types of ActivityStreams."""

    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    ADD = "Add"
    REMOVE = "Remove"
    TOUCH = ""
    """A successful write that only solid-0.1 notifies of (L-6, L-7)."""


@dataclass(frozen=True, slots=True)
class Notification:
    """The notification of one change for one topic.

    ``sequence`` is the number of the row in the change log, which orders the notifications of a
    topic. ``write`` is the same for all notifications of one request. ``object`` is the resource
    that changed: the topic, or for ADD and REMOVE a member of it, and then ``target`` is the topic.
    ``at_ms`` is in Unix milliseconds. ``state`` is the entity tag of the topic, without quotes, at
    the time of delivery; ``None`` before that, for DELETE, and if the topic does not exist (N-14).
    """

    sequence: int
    write: Version
    topic: identifiers.ResourcePath
    activity: Activity
    object: identifiers.ResourcePath
    target: identifiers.ResourcePath | None
    at_ms: int
    state: str | None = None

    @property
    def is_for_channels(self) -> bool:
        """Whether channels of the Solid Notifications Protocol deliver it."""
        return self.activity is not Activity.TOUCH


_OF_RESOURCE = {
    records.ChangeType.CREATE: Activity.CREATE,
    records.ChangeType.UPDATE: Activity.UPDATE,
    records.ChangeType.DELETE: Activity.DELETE,
    records.ChangeType.UNCHANGED: Activity.TOUCH,
}
_OF_CONTAINER = {
    records.ChangeType.CREATE: Activity.ADD,
    records.ChangeType.UPDATE: Activity.TOUCH,
    records.ChangeType.DELETE: Activity.REMOVE,
}


def notifications_of(logged: LoggedChange) -> tuple[Notification, ...]:
    """The notifications of one change, at most one for each topic."""
    path, activity = logged.change.path, logged.change.activity
    notifications = [_notification(logged, path, _OF_RESOURCE[activity], path)]
    if identifiers.is_container(path):
        description = identifiers.description_of(path)
        notifications.append(
            _notification(logged, description, _OF_RESOURCE[activity], description)
        )
    container = listing_container(path)
    if container is not None and activity in _OF_CONTAINER:
        notifications.append(_notification(logged, container, _OF_CONTAINER[activity], path))
    return tuple(notifications)


def topics_of(path: identifiers.ResourcePath) -> tuple[identifiers.ResourcePath, ...]:
    """Every topic that a change of ``path`` may concern."""
    topics = (path, identifiers.description_of(path)) if identifiers.is_container(path) else (path,)
    container = listing_container(path)
    return topics if container is None else (*topics, container)


def listing_container(path: identifiers.ResourcePath) -> identifiers.ResourcePath | None:
    """The container that lists a path; ``None`` for auxiliary resources and storage roots."""
    if identifiers.auxiliary_kind(path) is not None or identifiers.storage_root(path) == path:
        return None
    container = identifiers.parent_container(path)
    return None if container == identifiers.ROOT else container


def _notification(
    logged: LoggedChange,
    topic: identifiers.ResourcePath,
    activity: Activity,
    subject: identifiers.ResourcePath,
) -> Notification:
    return Notification(
        sequence=logged.sequence,
        write=logged.version,
        topic=topic,
        activity=activity,
        object=subject,
        target=topic if activity in (Activity.ADD, Activity.REMOVE) else None,
        at_ms=logged.at_ms,
    )


MESSAGE_CONTEXTS: Final = (vocab.AS_CONTEXT, vocab.NOTIFICATION_CONTEXTS[0])
MAX_CACHED: Final = 1024
"""How many messages are cached."""

_NAMESPACE: Final = uuid.UUID("7f0c0c8e-0f1b-5a37-9d3b-2d5a6f1f3b52")
"""The name space of the ids of messages (RFC 9562 section 5.5)."""
_PREFIXES: Final = {"as": vocab.AS, "notify": vocab.NOTIFY_STATE.rpartition("#")[0] + "#"}


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
        self._cached: caches.BoundedCache[tuple[Notification, str], bytes] = caches.BoundedCache(
            MAX_CACHED
        )
        self._latest: tuple[Notification | None, str, str] = (None, "", "")

    def message(self, notification: Notification, media_type: str) -> bytes:
        """The message for a notification in one of the media types of channels."""
        key = (notification, media_type)
        made = self._cached.get(key)
        if made is None:
            write = json_ld_message if media_type == media_types.JSON_LD else turtle_message
            made = write(notification, base_url=self._base_url)
            self._cached.put(key, made)
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
            published=date_times.write_time(notification.at_ms),
            target=None if notification.target is None else base_url + notification.target,
            state=notification.state,
        )
    )


def turtle_message(notification: Notification, *, base_url: str) -> bytes:
    """The message as a document in Turtle."""
    document = Document(Dataset(_graph(notification, lambda path: Iri(base_url + path))), _PREFIXES)
    return serialize(document, "text/turtle")


def _graph(notification: Notification, named: Callable[[identifiers.ResourcePath], Iri]) -> Graph:
    message = Iri(message_id(notification))
    published = Literal(
        date_times.write_time(notification.at_ms), datatype=Iri(vocab.XSD_DATE_TIME)
    )
    said: list[Triple] = [
        (message, Iri(vocab.RDF_TYPE), Iri(vocab.AS + notification.activity.value)),
        (message, Iri(vocab.AS_OBJECT), named(notification.object)),
        (message, Iri(vocab.AS_PUBLISHED), published),
    ]
    if notification.target is not None:
        said.append((message, Iri(vocab.AS_TARGET), named(notification.target)))
    if notification.state is not None:
        said.append((message, Iri(vocab.NOTIFY_STATE), Literal(notification.state)))
    return Graph(said)
