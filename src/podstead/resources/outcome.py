"""The outcome of an operation, which ``web/response.py`` turns into a status and headers."""

import sys
from collections.abc import AsyncIterator, Sequence
from enum import StrEnum

import msgspec

from podstead.core import codes, errors, header_fields, identifiers, identity
from podstead.core.operation import Operation
from podstead.resources.target_state import TargetState
from podstead.storage import records as storage_records
from podstead.storage.open_body import OpenBody
from podstead.wac.acl import earliest
from podstead.wac.gate import Gate, GrantedAccess
from podstead.wac.modes import Mode, Requirements


class Result(StrEnum):
    """What an operation did. The web layer chooses the status codes."""

    REPRESENTED = "represented"
    PARTIAL = "partial"
    NOT_MODIFIED = "not modified"
    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    MOVED = "moved"


class Representation(msgspec.Struct, frozen=True):
    """A representation of a resource in one media type.

    ``body`` is the whole content in memory, an open stored body, or pieces that are generated while
    they are sent (then ``size_bytes`` is ``None``). It is ``None`` if the request is a HEAD and
    nothing was rendered. ``verbatim`` means that the bytes are those stored, so that byte ranges
    can be served (P-27).
    """

    content_type: str
    body: bytes | OpenBody | AsyncIterator[bytes] | None
    size_bytes: int | None
    verbatim: bool = False

    async def read(self, *, limit_bytes: int = sys.maxsize) -> bytes:
        """The whole content, which is known to be small. Raises BodyTooLarge and StorageError."""
        body, content = self.body, bytearray()
        if isinstance(body, bytes):
            content += body
        elif body is not None:
            async for piece in body if isinstance(body, AsyncIterator) else body.chunks():
                content += piece
                if len(content) > limit_bytes:
                    break
        if len(content) > limit_bytes:
            raise errors.BodyTooLarge(codes.CoreCodes.TOO_MANY_BYTES, limit_bytes=limit_bytes)
        return bytes(content)


class Outcome(msgspec.Struct, frozen=True):
    """The result of an operation that was not refused."""

    result: Result
    metadata: storage_records.Metadata | None = None
    etag: str | None = None
    representation: Representation | None = None
    byte_range: header_fields.ByteRange | None = None
    location: identifiers.ResourcePath | None = None
    owner: str | None = None
    """The WebID of the owner, if the root of a storage was read and owners are published."""
    nearly_full: storage_records.QuotaLevel | None = None
    """How much of its quota the storage uses after a write, if that is nearly all."""


class ListedMembers(msgspec.Struct, frozen=True):
    """Some members of a container that may be read, each with its metadata."""

    container: storage_records.Metadata
    members: Sequence[storage_records.Metadata]


class ResourceRequest(msgspec.Struct):
    """One operation in progress, and what has been determined about it so far.

    ``grant`` and ``existing`` are set as soon as they are known, so that a refusal can have the
    headers of a success (``WAC-Allow``, ``Allow``, ``Link``). ``identity_preconditions`` are those
    of the decision that allowed a change of statements of identity, if there was one.
    ``state_preconditions`` fix the state of a container for which its conditional headers or the
    conditions of a patch were evaluated. ``records`` are written in the transaction of the write.
    ``ignored_conditions`` are the types of conditions in the ACL that is written, without which its
    rules apply.
    """

    operation: Operation
    agent: identity.Identity | None
    grant: GrantedAccess | None = None
    existing: storage_records.Metadata | None = None
    identity_preconditions: tuple[storage_records.Precondition, ...] = ()
    state_preconditions: tuple[storage_records.Precondition, ...] = ()
    records: tuple[storage_records.Record, ...] = ()
    ignored_conditions: tuple[str, ...] = ()
    _grant_state: TargetState | None = None

    def set_grant(self, state: TargetState, grant: GrantedAccess) -> None:
        """Set what the agent may do with the target, as decided on this state."""
        self.grant, self._grant_state = grant, state

    def grant_for(self, state: TargetState) -> GrantedAccess | None:
        """The grant that was decided on exactly this state object, else ``None``."""
        return self.grant if self._grant_state is state else None

    async def authorize(self, gate: Gate, state: TargetState, required: Requirements) -> None:
        """Pass the gate, or raise NotAuthenticated or AccessDenied.

        A refusal also sets the grant, for the ``WAC-Allow`` header (W-50).
        """
        agent, origin, target = self.agent, self.operation.origin, state.target
        try:
            grant = await gate.authorize(agent, origin, target, required, state.snapshot)
        except errors.RequestRefused:
            self.set_grant(state, await gate.grant(agent, origin, target, state.snapshot))
            raise
        self.set_grant(state, grant)

    @property
    def may_read(self) -> bool:
        """Whether the agent has Read on the target; false until the gate has decided."""
        return self.grant is not None and self.grant.allows(Mode.READ)

    @property
    def preconditions(self) -> tuple[storage_records.Precondition, ...]:
        """The preconditions of the gate's last decisions, which the commit of a write checks."""
        preconditions = () if self.grant is None else self.grant.preconditions
        further = self.identity_preconditions + self.state_preconditions
        if further in ((), preconditions):
            return preconditions
        return tuple(dict.fromkeys(preconditions + further))

    def require_state(self, container: storage_records.Metadata) -> None:
        """Add preconditions: the container and its listing must not have changed at the commit."""
        if container.members_version is not None:
            self.state_preconditions = (
                storage_records.AtVersion(container.path, container.version),
                storage_records.MembersAtVersion(container.path, container.members_version),
            )

    @property
    def cacheable(self) -> bool:
        """Whether the response to the same request changes only when the store does, until the time
        of ``valid_until_s`` comes."""
        return self.grant is not None and self.grant.cacheable

    @property
    def valid_until_s(self) -> int | None:
        """The time (Unix seconds) at which credentials or conditions of rules end; ``None`` for
        never."""
        grant, agent = self.grant, self.agent
        until_s = agent.holds_until_s if agent else None
        if grant is None or grant.until_ms is None:
            return until_s
        return earliest(until_s, grant.until_ms // 1000)

    @property
    def decided_until_ms(self) -> int | None:
        """When time next changes what the rules grant on the target; ``None`` for never."""
        return None if self.grant is None else self.grant.until_ms
