"""Which notices come of one row of the change log? Pure: a logged change in, notices out.

A change is told to those who watch the resource and, where it concerns the listing, to those who
watch its container. Nothing climbs higher: containers further up learn only of their own members
(N-17). Auxiliary resources are members of nothing, so only their own watchers hear of them. A
container's own statements are its description too (C-30), whose watchers hear of both.

The older protocol, solid-0.1, tells more than notifications do: a container's watchers hear of each
write to a member (L-6), and those of a resource of a successful PATCH that changed nothing (L-7).
Such notices are :attr:`Activity.TOUCH`.
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
    """What a notice tells of its topic; the values are ActivityStreams types, but the last."""

    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    ADD = "Add"
    REMOVE = "Remove"
    TOUCH = ""
    """A write succeeded that only solid-0.1 tells of (L-6, L-7)."""


@dataclass(frozen=True, slots=True)
class Notification:
    """What those who watch one topic hear of one change.

    ``sequence`` is that of the row of the change log; the notices of a topic come in its order.
    ``write`` is the same for all notices of one request. ``object`` is what was changed: the topic,
    or for ADD and REMOVE its member, and then ``target`` is the topic. ``at_ms`` is Unix
    milliseconds. ``state`` is the entity tag, without quotes, that the topic has when the notice is
    delivered; ``None`` before that, for DELETE, and where nothing is at the topic any more (N-14).
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
        """Whether channels of the Solid Notifications Protocol tell of it."""
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
    """The notices of one change, at most one for each topic."""
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
    """Every topic whose watchers may hear of a change of ``path``."""
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
