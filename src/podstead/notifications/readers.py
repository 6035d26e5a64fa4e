"""Checks whether subscribers may read a topic, at each subscription and notification (N-30).

The gate of access control decides, by the rules in force at that moment and by those that applied
when they were deleted together with their resource (N-18): those of its container do not say who
could read it before. The engine stores deleted rules for a day, with the write that deleted them,
so that they can be applied again: those deleted by the change that a notification is about, and
those deleted later together with their resource, as when a container is deleted right after its
members. Deleting rules alone revokes a right, so those stay deleted (N-30).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from podstead.authn.web_ids import IdentityStatus
from podstead.core import errors, identifiers
from podstead.core.identity import Identity
from podstead.notifications.messages import Activity, Notification
from podstead.storage import records
from podstead.storage.blobs.body_store import ContentBody
from podstead.storage.open_body import OpenBody
from podstead.storage.protocol import ResourceStore, Snapshot
from podstead.storage.records import DeletedAcl, Metadata
from podstead.wac import acl, effective, modes
from podstead.wac.gate import Gate
from podstead.wac.modes import Mode, governed

LOOKED_THROUGH: Final = 256
"""How many rows of the change log after a notification are searched for deletions."""

_DELETIONS: Final = frozenset({Activity.DELETE, Activity.REMOVE})


@dataclass(frozen=True, slots=True)
class DeletedRules:
    """The deleted rules that applied to a notification.

    ``something_went`` is true if a resource was deleted with the change or after it, with or
    without rules. ``is_certain`` is false if the time is unknown: then a right that no rule grants
    may still have existed.
    """

    rules: Mapping[identifiers.ResourcePath, DeletedAcl]
    something_went: bool
    is_certain: bool


async def rules_deleted_since(
    store: ResourceStore, notification: Notification, snapshot: Snapshot
) -> DeletedRules:
    """The rules deleted, as of ``snapshot``, which contains the topic and all containers above
    it."""
    subject = governed(notification.topic).subject
    rules: dict[identifiers.ResourcePath, DeletedAcl] = {}
    gone = {
        place for place in (subject, *identifiers.ancestors(subject)) if snapshot[place] is None
    } - {identifiers.ROOT}
    if notification.activity is Activity.DELETE and notification.object in (
        subject,
        identifiers.description_of(subject),
    ):
        gone.discard(subject)
    something_went = bool(gone) or notification.activity in _DELETIONS
    if gone:
        for row in await store.changes_after(notification.sequence, limit=LOOKED_THROUGH):
            place = row.change.path
            if place in gone and row.change.activity is records.ChangeType.DELETE:
                gone.discard(place)
                rules |= await store.deleted_acls(row.version, [identifiers.acl_of(place)])
    if notification.activity in _DELETIONS:
        rules |= await store.deleted_acls(notification.write, effective.acl_paths(subject))
    return DeletedRules(rules, something_went=something_went, is_certain=not gone)


@dataclass(frozen=True, slots=True)
class RestoredRules:
    """The store with deleted rules put back in their places."""

    store: ResourceStore
    deleted: Mapping[identifiers.ResourcePath, DeletedAcl]

    async def read_metadata(self, paths: Iterable[identifiers.ResourcePath]) -> Snapshot:
        wanted = tuple(paths)
        return self.restored(await self.store.read_metadata(wanted), wanted)

    def restored(self, snapshot: Snapshot, paths: Iterable[identifiers.ResourcePath]) -> Snapshot:
        """A snapshot of these paths with the rules put back."""
        back = {path: self.deleted[path].metadata for path in paths if path in self.deleted}
        return {**snapshot, **back}

    async def open_body(self, metadata: Metadata) -> OpenBody | None:
        deleted = self.deleted.get(metadata.path)
        if deleted is None:
            return await self.store.open_body(metadata)
        return ContentBody(deleted.content)


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A subscriber: an identity or the public, and the origin of the web page that it uses, if any.

    ``is_unchecked`` is the operator's decision that anybody may learn *that* a resource changed, on
    sockets that reveal nothing else (L-10).
    """

    agent: Identity | None = None
    origin: str | None = None
    is_unchecked: bool = False

    @property
    def identity(self) -> Hashable:
        """A key that is equal for subscribers to whom the same access rules apply."""
        agent = self.agent
        known = agent and (
            agent.iri,
            agent.aliases,
            agent.simple_token_id,
            agent.issuer,
            agent.client_id,
        )
        return (known, self.origin, self.is_unchecked)

    def has_expired(self, now_ms: int) -> bool:
        """Whether the credential that proved the identity is no longer valid."""
        agent = self.agent
        if agent is None or agent.expires_at_s is None:
            return False
        return now_ms >= agent.expires_at_s * 1000


class ReadCheck(Enum):
    """Whether a subscriber may receive a notification."""

    YES = "the rules grant it"
    NO = "the rules do not grant it"
    NOT_NOW = "nothing grants it, as far as is known at this moment"
    EXPIRED = "the credential is no longer valid"


class TopicView:
    """The rules that apply to one topic at one notification."""

    def __init__(
        self,
        gate: Gate,
        identity_status: IdentityStatus,
        topic: identifiers.ResourcePath,
        snapshot: Snapshot,
        former: DeletedRules,
    ) -> None:
        self._gate = gate
        self._identity_status = identity_status
        self._topic = topic
        self._snapshot = snapshot
        self._former = former
        self.until_ms: int | None = None
        """When time may change one of the decisions that were made here; ``None`` for never."""

    @property
    def metadata(self) -> Metadata | None:
        """The metadata of the topic; for the description of a container, those of the container."""
        found = self._snapshot[self._topic]
        subject = identifiers.subject_of(self._topic)
        if found is None and identifiers.is_container(subject):
            return self._snapshot[subject]
        return found

    async def may_read(self, subscriber: Subscriber) -> ReadCheck:
        """Whether the subscriber may receive the notification."""
        if subscriber.is_unchecked:
            return ReadCheck.YES
        agent = subscriber.agent
        if agent is not None:
            agent = await self._identity_status.current(
                agent, before_deletion=self._former.something_went
            )
            if agent is None:
                return ReadCheck.NO
        grant = await self._gate.grant(agent, subscriber.origin, self._topic, self._snapshot)
        self.until_ms = acl.earliest(self.until_ms, grant.until_ms)
        if grant.allows(Mode.READ):
            return ReadCheck.YES
        return ReadCheck.NO if grant.cacheable and self._former.is_certain else ReadCheck.NOT_NOW


class Readers:
    """Checks access to topics."""

    def __init__(
        self,
        *,
        store: ResourceStore,
        gate: Gate,
        identity_status: IdentityStatus,
        ruled_by: Callable[[identifiers.ResourcePath], identifiers.ResourcePath],
    ) -> None:
        """``ruled_by`` is the resource whose rules are those of a topic."""
        self._store = store
        self._ruled_by = ruled_by
        self._gate = gate
        self._identity_status = identity_status

    async def check(self, topic: identifiers.ResourcePath, subscriber: Subscriber) -> int | None:
        """Check that the subscriber may read the topic (N-30, L-10), whether or not it exists.

        Returns when time may change that (Unix milliseconds), ``None`` for never. Raises
        NotAuthenticated, AccessDenied and TargetTooLong, and Unprocessable for what is no topic.
        """
        topic = self._ruled_by(topic)
        paths = effective.paths_to_read(topic)
        if subscriber.is_unchecked:
            return None
        agent = await self.current(subscriber)
        snapshot = await self._store.read_metadata(paths)
        grant = await self._gate.authorize(
            agent, subscriber.origin, topic, modes.for_read(topic), snapshot
        )
        return grant.until_ms

    async def current(self, subscriber: Subscriber) -> Identity | None:
        """Who the subscriber is by now. Raises NotAuthenticated."""
        if subscriber.agent is None:
            return None
        agent = await self._identity_status.current(subscriber.agent)
        if agent is None:
            raise errors.NotAuthenticated(
                "The credential with which this was created is no longer valid"
            )
        return agent

    async def view(self, notification: Notification) -> TopicView:
        """The rules that decide who receives a notification."""
        topic, gate = self._ruled_by(notification.topic), self._gate
        paths = effective.paths_to_read(topic)
        snapshot = await self._store.read_metadata(paths)
        former = await rules_deleted_since(self._store, notification, snapshot)
        if former.rules:
            rules = RestoredRules(self._store, former.rules)
            gate, snapshot = gate.over(rules), rules.restored(snapshot, paths)
        return TopicView(gate, self._identity_status, topic, snapshot, former)
