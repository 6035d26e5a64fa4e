"""What does the store keep, and what is one write? Values only; the engines give them a shape.

A write is one value (:class:`Write`): the facts it relied on, what it puts and deletes, the
registry records that join it, and the rows of the change log. An engine checks the facts and
applies all of it atomically, or changes nothing. See ``protocol.py`` for the operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from podstead.core.identifiers import ResourcePath

Version = NewType("Version", str)
"""Opaque, new with every write of a resource, never seen before: 16 hex digits of randomness.

Random rather than counted, so that a store restored from a backup cannot give a version it has
given before to another state, and so that versions tell nothing of other pods' activity."""

BlobId = NewType("BlobId", str)
"""Names one immutable large body in the blob store."""

EntryId = NewType("EntryId", str)
"""Names one entry: its kind, a slash, and its key among those of the kind. See :class:`Entry`."""


class ResourceKind(IntEnum):
    """What a stored resource is. The numbers are stored; never reuse one."""

    DOCUMENT = 1
    CONTAINER = 2
    STORAGE = 3
    """The root container of a pod."""
    ACL = 4
    DESCRIPTION = 5
    """The description resource of a document; a container's description is the container's own
    body (C-30)."""

    @property
    def is_container(self) -> bool:
        return self is ResourceKind.CONTAINER or self is ResourceKind.STORAGE

    @property
    def is_member(self) -> bool:
        """Whether a container lists it: auxiliary resources and storage roots are in no listing."""
        return self is ResourceKind.DOCUMENT or self is ResourceKind.CONTAINER


@dataclass(frozen=True, slots=True)
class Metadata:
    """All that is known of one stored resource besides its bytes.

    ``content_type`` is as sent, parameters included; a container's is that of its description
    body (its user triples). ``members_version`` and ``members_modified_ms`` are set on containers
    only: the version changes whenever what the listing shows does (a member is created, replaced
    or deleted, or the membership of a member container changes); the time only when the
    container's own membership changes (P-8). Times are Unix milliseconds.
    """

    path: ResourcePath
    kind: ResourceKind
    version: Version
    content_type: str
    size_bytes: int
    modified_ms: int
    created_ms: int
    blob: BlobId | None = None
    members_version: Version | None = None
    members_modified_ms: int | None = None


@dataclass(frozen=True, slots=True)
class InlineBody:
    """A small body, kept beside the metadata."""

    content: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.content)


@dataclass(frozen=True, slots=True)
class StagedBlob:
    """A large body that is durable in the blob store and that no resource refers to yet."""

    blob: BlobId
    size_bytes: int


Body = InlineBody | StagedBlob


@dataclass(frozen=True, slots=True)
class Entry:
    """A small record of a part of the server that the store need not understand, such as an
    account or a session.

    ``value`` is that part's own encoding. ``owner`` names what the entry belongs to: entries are
    listed by it, and go with it. Past ``expires_ms`` (Unix milliseconds) the entry is as if it
    were not there.
    """

    entry: EntryId
    version: Version
    value: bytes
    owner: str | None = None
    expires_ms: int | None = None

    def has_expired(self, now_ms: int) -> bool:
        """Whether the entry is as if it were not there."""
        return self.expires_ms is not None and self.expires_ms <= now_ms


# --- What a write relied on -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AtVersion:
    """The resource exists with exactly this version."""

    path: ResourcePath
    version: Version


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no resource at the path."""

    path: ResourcePath


@dataclass(frozen=True, slots=True)
class Present:
    """There is a resource at the path, whatever its version (a parent container)."""

    path: ResourcePath


@dataclass(frozen=True, slots=True)
class NoMembers:
    """The container has no members (auxiliary resources do not count, C-20)."""

    path: ResourcePath


@dataclass(frozen=True, slots=True)
class NoPod:
    """No pod has the name; names compare case-insensitively (A-91)."""

    name: str


@dataclass(frozen=True, slots=True)
class MembersAt:
    """The container exists and what its listing shows has exactly this version."""

    path: ResourcePath
    members_version: Version


@dataclass(frozen=True, slots=True)
class EntryAt:
    """The entry exists with exactly this version and has not expired at the time of the write."""

    entry: EntryId
    version: Version


@dataclass(frozen=True, slots=True)
class NoEntry:
    """There is no such entry, or it has expired at the time of the write."""

    entry: EntryId


ResourcePrecondition = AtVersion | Absent | Present | NoMembers | MembersAt
EntryPrecondition = EntryAt | NoEntry
Precondition = ResourcePrecondition | NoPod | EntryPrecondition


# --- What a write does ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Put:
    """Create or replace one resource; ``creates`` says which and must agree with the reliances."""

    path: ResourcePath
    kind: ResourceKind
    content_type: str
    body: Body
    creates: bool


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod: its name as chosen, its storage root and its owner's WebID (an absolute IRI)."""

    name: str
    root: ResourcePath
    owner: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class PodRemoval:
    """A pod that goes, with every resource and token of it, every entry that belongs to its root
    container (whose ``owner`` is the path of it), and every entry of ``entry_owner``.

    ``agent`` is the IRI of who removes it, ``None`` for the operator; ``at_ms`` Unix milliseconds.
    The name stays taken (``former_pods``).
    """

    name: str
    version: Version
    at_ms: int
    agent: str | None = None
    entry_owner: str | None = None


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """One issued simple token (A-30 to A-33). ``expires_s`` is Unix seconds, ``None`` for never.

    The token itself is not kept: it can be made again from the key, but not from this record.
    """

    token_id: str
    pod: str
    web_id: str
    issued_s: int
    expires_s: int | None
    revoked_s: int | None = None


@dataclass(frozen=True, slots=True)
class TokenRevocation:
    """Revoke one token by its id, from ``at_s`` (Unix seconds) on."""

    token_id: str
    at_s: int


@dataclass(frozen=True, slots=True)
class PutEntry:
    """Make or replace an entry, whatever was there; see :class:`Entry` for the fields."""

    entry: EntryId
    value: bytes
    owner: str | None = None
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DropEntry:
    """Remove an entry, if there is one."""

    entry: EntryId


EntryRecord = PutEntry | DropEntry
Record = PodRecord | TokenRecord | TokenRevocation | EntryRecord
"""Registry records that can join a write."""


class ChangeType(IntEnum):
    """What happened to a resource, in the words of notifications (N-17). Stored."""

    CREATE = 1
    UPDATE = 2
    DELETE = 3
    UNCHANGED = 4
    """A PATCH succeeded that changed nothing (L-7)."""


@dataclass(frozen=True, slots=True)
class Change:
    """One row of the change log, as the write gives it.

    ``agent`` is the IRI of who did it, ``None`` for the public or the server itself.
    """

    path: ResourcePath
    activity: ChangeType
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """One row of the change log as read: sequence numbers grow in commit order, with gaps."""

    sequence: int
    change: Change
    version: Version
    at_ms: int


@dataclass(frozen=True, slots=True)
class DeletedAcl:
    """Access rules that a write deleted, as they were last, with the change log they belong to.

    ``content`` is empty, and so grants nothing, if the rules were kept as a blob, and a day later.
    """

    metadata: Metadata
    content: bytes


@dataclass(frozen=True, slots=True)
class Write:
    """One atomic change of the store.

    Every put gets ``version`` as its version and ``at_ms`` (Unix milliseconds) as its time. For
    each put or delete of a member the engine sets the parent container's ``members_version`` to
    ``version``; if membership changed, also its ``members_modified_ms`` to ``at_ms`` and the
    ``members_version`` of the container above it, whose listing shows that time. The engine
    keeps what each pod is charged for (``storage/quota.py``); with ``quota_bytes`` above 0 a write
    that makes that grow past it is refused.
    """

    version: Version
    at_ms: int
    preconditions: tuple[Precondition, ...] = ()
    puts: tuple[Put, ...] = ()
    deletes: tuple[ResourcePath, ...] = ()
    records: tuple[Record, ...] = ()
    changes: tuple[Change, ...] = ()
    quota_bytes: int = 0

    @property
    def stores_content(self) -> bool:
        """Whether it takes room for more than a record: it creates a resource, or gives one
        content."""
        return any(put.creates or put.body.size_bytes for put in self.puts)


# --- How a write ended ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Committed:
    """The write is durable; ``sequence`` is its last change-log row, ``None`` if it logged none."""

    sequence: int | None


@dataclass(frozen=True, slots=True)
class VersionConflict:
    """A reliance did not hold; nothing was changed. Read and decide again."""

    precondition: Precondition


@dataclass(frozen=True, slots=True)
class OverQuota:
    """The write would make a pod larger than its quota; nothing was changed."""

    root: ResourcePath
    used_bytes: int
    needed_bytes: int


CommitOutcome = Committed | VersionConflict | OverQuota
