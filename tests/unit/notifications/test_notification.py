"""Which notifications follow from a change: N-17 for channels, L-6 and L-7 for solid-0.1."""

from __future__ import annotations

import pytest

from podstead.core.identifiers import ResourcePath
from podstead.notifications.messages import Activity, Notification, notifications_of, topics_of
from podstead.storage import records
from podstead.storage.records import Change, LoggedChange, Version

CREATE = records.ChangeType.CREATE
UPDATE = records.ChangeType.UPDATE
DELETE = records.ChangeType.DELETE
UNCHANGED = records.ChangeType.UNCHANGED

EXPECTED: list[tuple[records.ChangeType, str, set[tuple[str, Activity]]]] = [
    # A document: itself, and its container's listing.
    (CREATE, "/a/d/x", {("/a/d/x", Activity.CREATE), ("/a/d/", Activity.ADD)}),
    (UPDATE, "/a/d/x", {("/a/d/x", Activity.UPDATE), ("/a/d/", Activity.TOUCH)}),
    (DELETE, "/a/d/x", {("/a/d/x", Activity.DELETE), ("/a/d/", Activity.REMOVE)}),
    (UNCHANGED, "/a/d/x", {("/a/d/x", Activity.TOUCH)}),
    # A container: its description is of it, and comes and goes with it.
    (
        CREATE,
        "/a/d/",
        {("/a/d/", Activity.CREATE), ("/a/d/.meta", Activity.CREATE), ("/a/", Activity.ADD)},
    ),
    (
        UPDATE,
        "/a/d/",
        {("/a/d/", Activity.UPDATE), ("/a/d/.meta", Activity.UPDATE), ("/a/", Activity.TOUCH)},
    ),
    (
        DELETE,
        "/a/d/",
        {("/a/d/", Activity.DELETE), ("/a/d/.meta", Activity.DELETE), ("/a/", Activity.REMOVE)},
    ),
    (UNCHANGED, "/a/d/", {("/a/d/", Activity.TOUCH), ("/a/d/.meta", Activity.TOUCH)}),
    # A storage lies in no container.
    (CREATE, "/a/", {("/a/", Activity.CREATE), ("/a/.meta", Activity.CREATE)}),
    (DELETE, "/a/", {("/a/", Activity.DELETE), ("/a/.meta", Activity.DELETE)}),
    # Auxiliary resources are members of nothing.
    (CREATE, "/a/d/x.acl", {("/a/d/x.acl", Activity.CREATE)}),
    (UPDATE, "/a/d/.acl", {("/a/d/.acl", Activity.UPDATE)}),
    (DELETE, "/a/d/x.meta", {("/a/d/x.meta", Activity.DELETE)}),
    (UNCHANGED, "/a/d/x.meta", {("/a/d/x.meta", Activity.TOUCH)}),
    (UPDATE, "/a/.acl", {("/a/.acl", Activity.UPDATE)}),
]


def logged(activity: records.ChangeType, path: str) -> LoggedChange:
    change = Change(ResourcePath(path), activity, "https://alice.example/#me")
    return LoggedChange(7, change, Version("v"), 1234)


@pytest.mark.parametrize(("activity", "path", "expected"), EXPECTED)
def test_each_subscriber_gets_what_it_may_read(
    activity: records.ChangeType, path: str, expected: set[tuple[str, Activity]]
) -> None:
    """N-17, L-6, L-7, L-12."""
    notifications = notifications_of(logged(activity, path))
    assert {
        (notification.topic, notification.activity) for notification in notifications
    } == expected
    assert len(notifications) == len(expected)


@pytest.mark.parametrize(("activity", "path", "expected"), EXPECTED)
def test_no_topic_is_overlooked(
    activity: records.ChangeType, path: str, expected: set[tuple[str, Activity]]
) -> None:
    assert {topic for topic, _ in expected} <= set(topics_of(ResourcePath(path)))


def test_a_notification_names_the_change_that_caused_it() -> None:
    resource, container = notifications_of(logged(CREATE, "/a/d/x"))
    path, parent = ResourcePath("/a/d/x"), ResourcePath("/a/d/")
    assert resource == Notification(7, Version("v"), path, Activity.CREATE, path, None, 1234)
    assert container == Notification(7, Version("v"), parent, Activity.ADD, path, parent, 1234)


def test_channels_omit_only_what_is_specific_to_the_older_protocol() -> None:
    """N-19: a no-op is no event, and a container's listing is no more than its members."""
    told = {
        activity.name
        for kind, path, _ in EXPECTED
        for notification in notifications_of(logged(kind, path))
        if notification.is_for_channels
        for activity in [notification.activity]
    }
    assert told == {"CREATE", "UPDATE", "DELETE", "ADD", "REMOVE"}


def test_deep_descendants_do_not_notify_ancestors() -> None:
    topics = {notification.topic for notification in notifications_of(logged(CREATE, "/a/b/c/d/x"))}
    assert topics == {"/a/b/c/d/x", "/a/b/c/d/"}
