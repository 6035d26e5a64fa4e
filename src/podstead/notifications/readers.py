"""Checks whether subscribers may read a topic, at each subscription and notification (N-30).

The gate of access control decides, by the rules in force at that moment and by those that were
deleted together with their resource (see ``deleted_rules.py``).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

from podstead.authn.web_ids import IdentityStatus
from podstead.core.errors import NotAuthenticated
from podstead.core.identifiers import ResourcePath, is_container, subject_of
from podstead.core.identity import Identity
from podstead.notifications.deleted_rules import (
    DeletedRules,
    RestoredRules,
    rules_deleted_since,
)
from podstead.notifications.notification import Notification
from podstead.storage.protocol import ResourceStore, Snapshot
from podstead.storage.records import Metadata
from podstead.wac import modes
from podstead.wac.effective import paths_to_read
from podstead.wac.gate import Gate
from podstead.wac.modes import Mode


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
        known = agent and (agent.iri, agent.aliases, agent.simple_token_id)
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


class View:
    """The rules that apply to one topic at one notification."""

    def __init__(
        self,
        gate: Gate,
        identity_status: IdentityStatus,
        topic: ResourcePath,
        snapshot: Snapshot,
        former: DeletedRules,
    ) -> None:
        self._gate = gate
        self._identity_status = identity_status
        self._topic = topic
        self._snapshot = snapshot
        self._former = former

    @property
    def metadata(self) -> Metadata | None:
        """The metadata of the topic; for the description of a container, those of the container."""
        found = self._snapshot[self._topic]
        subject = subject_of(self._topic)
        if found is None and is_container(subject):
            return self._snapshot[subject]
        return found

    async def may_read(self, subscriber: Subscriber) -> ReadCheck:
        """Whether the subscriber may receive the notification."""
        if subscriber.is_unchecked:
            return ReadCheck.YES
        if not await self._stands(subscriber.agent):
            return ReadCheck.NO
        grant = await self._gate.grant(
            subscriber.agent, subscriber.origin, self._topic, self._snapshot
        )
        if grant.allows(Mode.READ):
            return ReadCheck.YES
        return ReadCheck.NO if grant.lasting and self._former.is_certain else ReadCheck.NOT_NOW

    async def _stands(self, agent: Identity | None) -> bool:
        return agent is None or await self._identity_status.is_still_valid(
            agent, before_deletion=self._former.something_went
        )


class Readers:
    """Checks access to topics."""

    def __init__(
        self, *, store: ResourceStore, gate: Gate, identity_status: IdentityStatus
    ) -> None:
        self._store = store
        self._gate = gate
        self._identity_status = identity_status

    async def check(self, topic: ResourcePath, subscriber: Subscriber) -> None:
        """Check that the subscriber may read the topic (N-30, L-10), whether or not it exists.

        Raises NotAuthenticated, AccessDenied and TargetTooLong.
        """
        paths = paths_to_read(topic)
        if subscriber.is_unchecked:
            return
        if subscriber.agent is not None and not await self._identity_status.is_still_valid(
            subscriber.agent
        ):
            raise NotAuthenticated("The credential with which this was created is no longer valid")
        snapshot = await self._store.read_metadata(paths)
        await self._gate.authorize(
            subscriber.agent, subscriber.origin, topic, modes.for_read(topic), snapshot
        )

    async def view(self, notification: Notification) -> View:
        """The rules that decide who receives a notification."""
        topic, gate = notification.topic, self._gate
        paths = paths_to_read(topic)
        snapshot = await self._store.read_metadata(paths)
        former = await rules_deleted_since(self._store, notification, snapshot)
        if former.rules:
            rules = RestoredRules(self._store, former.rules)
            gate, snapshot = gate.over(rules), rules.restored(snapshot, paths)
        return View(gate, self._identity_status, topic, snapshot, former)
