"""Derives the notifications of each row of the change log. Pure.

A change concerns the watches of the resource and, if it changes the listing, those of its
container, but not those of containers further up (N-17). Auxiliary resources are no members, so
changes of them concern their own watches only. A container's own statements are its description,
too (C-30), so a change of them concerns the watches of both.

The older protocol, solid-0.1, has more notifications: of each write to a member for the watches of
a container (L-6), and of a successful PATCH that changed nothing (L-7).
Such notifications are :attr:`Activity.TOUCH`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from podstead.core.identifiers import (
    ROOT,
    ResourcePath,
    auxiliary_kind,
    description_of,
    is_container,
    parent_container,
    storage_root,
)
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
    topic: ResourcePath
    activity: Activity
    object: ResourcePath
    target: ResourcePath | None
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
    if is_container(path):
        description = description_of(path)
        notifications.append(
            _notification(logged, description, _OF_RESOURCE[activity], description)
        )
    container = listing_container(path)
    if container is not None and activity in _OF_CONTAINER:
        notifications.append(_notification(logged, container, _OF_CONTAINER[activity], path))
    return tuple(notifications)


def topics_of(path: ResourcePath) -> tuple[ResourcePath, ...]:
    """Every topic that a change of ``path`` may concern."""
    topics = (path, description_of(path)) if is_container(path) else (path,)
    container = listing_container(path)
    return topics if container is None else (*topics, container)


def listing_container(path: ResourcePath) -> ResourcePath | None:
    """The container that lists a path; ``None`` for auxiliary resources and storage roots."""
    if auxiliary_kind(path) is not None or storage_root(path) == path:
        return None
    container = parent_container(path)
    return None if container == ROOT else container


def _notification(
    logged: LoggedChange, topic: ResourcePath, activity: Activity, subject: ResourcePath
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
