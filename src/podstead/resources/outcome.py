"""How did an operation end? Values that ``web/response.py`` turns into statuses and headers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.operation import Operation
from podstead.core.ranges import ByteRange
from podstead.resources.target_state import TargetState
from podstead.storage.protocol import OpenBody
from podstead.storage.records import AtVersion, MembersAt, Metadata, Precondition
from podstead.wac.gate import Grant
from podstead.wac.modes import Mode


class Result(Enum):
    """What happened, in words; the statuses are the web layer's."""

    REPRESENTED = "represented"
    PARTIAL = "partial"
    NOT_MODIFIED = "not modified"
    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Representation:
    """The bytes of one form of a resource.

    ``body`` is the whole content in memory, an open stored body, or pieces made while they are
    sent (then ``size_bytes`` is ``None``). ``verbatim`` tells that the bytes are those stored, so
    that ranges of them mean something (P-27).
    """

    content_type: str
    body: bytes | OpenBody | AsyncIterator[bytes]
    size_bytes: int | None
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an operation that was not refused."""

    result: Result
    metadata: Metadata | None = None
    etag: str | None = None
    representation: Representation | None = None
    byte_range: ByteRange | None = None
    location: ResourcePath | None = None
    owner: str | None = None
    """The WebID to name as the owner of the storage whose root was read."""


@dataclass(slots=True)
class ResourceRequest:
    """One operation while it is carried out, and what was learned on the way.

    ``grant`` and ``existing`` are set as soon as they are known, so that a refusal can carry the
    headers that an answer would (``WAC-Allow``, ``Allow``, ``Link``). ``identity_preconditions``
    is what allowed a write to change who a WebID is, empty for any other;
    ``state_preconditions`` is the state of a container that its preconditions or the conditions
    of its patch held for.
    """

    operation: Operation
    agent: Identity | None
    grant: Grant | None = None
    existing: Metadata | None = None
    identity_preconditions: tuple[Precondition, ...] = ()
    state_preconditions: tuple[Precondition, ...] = ()
    _grant_state: TargetState | None = None

    def set_grant(self, state: TargetState, grant: Grant) -> None:
        """Note what the agent may do with the target of a state, as found on its snapshot."""
        self.grant, self._grant_state = grant, state

    def grant_for(self, state: TargetState) -> Grant | None:
        """What was learned of that very state; nothing of another one, be it as new."""
        return self.grant if self._grant_state is state else None

    @property
    def may_read(self) -> bool:
        """Whether the agent holds Read on the target, as far as the gate has been asked."""
        return self.grant is not None and self.grant.allows(Mode.READ)

    @property
    def preconditions(self) -> tuple[Precondition, ...]:
        """What the gate's last decisions relied on; a write has it checked at its commit."""
        preconditions = () if self.grant is None else self.grant.preconditions
        further = self.identity_preconditions + self.state_preconditions
        if further in ((), preconditions):
            return preconditions
        return tuple(dict.fromkeys(preconditions + further))

    def require_state(self, container: Metadata) -> None:
        """Have the commit check that a container and what it lists are as they were seen."""
        if container.members_version is not None:
            self.state_preconditions = (
                AtVersion(container.path, container.version),
                MembersAt(container.path, container.members_version),
            )

    @property
    def lasting(self) -> bool:
        """Whether the answer to the same request changes only when the store does."""
        return self.grant is not None and self.grant.lasting
