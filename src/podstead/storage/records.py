"""The values that a storage engine stores, and the writes that change them.

A write is one value (:class:`Write`): its preconditions, the resources that it puts and deletes,
the records of registries, and the rows of the change log. An engine checks the preconditions and
applies the whole write atomically, or changes nothing. For the operations see ``protocol.py``.
"""

from enum import IntEnum
from typing import Final, NewType

from podstead.core.clock import Randomness
from podstead.core.identifiers import ResourcePath
from podstead.core.value import Value
from podstead.storage.schema import Row, SqlTable, Values, check_values

Version = NewType("Version", str)
"""An opaque identifier that is new with every write of a resource: 16 random hex digits.

Versions are random and not sequential, so that a store restored from a backup cannot reuse a
version for another state, and so that versions reveal nothing about the activity of other pods."""

_VERSION_BYTES: Final = 8

BlobId = NewType("BlobId", str)
"""Identifies one immutable large body in the blob store."""

EntryId = NewType("EntryId", str)
"""Identifies an entry: its kind, a slash, and its key within the kind. See :class:`Entry`."""


def random_version(randomness: Randomness) -> Version:
    """The version of one write."""
    return Version(randomness.token_hex(_VERSION_BYTES))


class ResourceKind(IntEnum):
    """The kind of a stored resource. The numbers are stored; never reuse one."""

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
        """Whether a container lists it; auxiliary resources and storage roots are not listed."""
        return self is ResourceKind.DOCUMENT or self is ResourceKind.CONTAINER


class Metadata(Value):
    """Everything about a stored resource except its bytes.

    ``content_type`` is as sent, including parameters; that of a container is the type of its
    description. ``members_version`` and ``members_modified_ms`` are set on containers only. The
    version changes whenever the listing does (a member is created, replaced or deleted, or the
    membership of a member container changes), the time only when the container's own membership
    changes (P-8). Times are Unix milliseconds.
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


class InlineBody(Value):
    """A small body, stored in the database."""

    content: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.content)


class StagedBlob(Value):
    """A large body that is durable in the blob store but that no resource refers to yet."""

    blob: BlobId
    size_bytes: int


class StoredBody(Value):
    """The body of another resource, of exactly this version, for a copy or a move.

    The engine copies a small body inside the database. A large one belongs to one resource, so the
    same write must delete that resource; for a copy, stage a second blob with
    :meth:`~podstead.storage.protocol.ResourceStore.stage_copies`.
    """

    path: ResourcePath
    version: Version
    size_bytes: int


Body = InlineBody | StagedBlob | StoredBody


class Entry(Value):
    """A small record of another part of the server, such as an account or a session, which the
    store does not interpret.

    ``value`` is in that part's own encoding. ``owner`` identifies what the entry belongs to:
    entries can be listed by owner, and are deleted with it. From ``expires_ms`` (Unix milliseconds)
    on, the entry no longer exists for readers.
    """

    entry: EntryId
    version: Version
    value: bytes
    owner: str | None = None
    expires_ms: int | None = None

    def has_expired(self, now_ms: int) -> bool:
        """Whether the entry no longer exists for readers."""
        return self.expires_ms is not None and self.expires_ms <= now_ms


# --- The preconditions of a write -----------------------------------------------------------


class AtVersion(Value):
    """The resource exists with exactly this version."""

    path: ResourcePath
    version: Version


class Absent(Value):
    """There is no resource at the path."""

    path: ResourcePath


class Present(Value):
    """There is a resource at the path, of any version (for a parent container)."""

    path: ResourcePath


class NoMembers(Value):
    """The container has no members; auxiliary resources are not members (C-20)."""

    path: ResourcePath


class NoPod(Value):
    """No pod has the name; names compare case-insensitively (A-91)."""

    name: str


class MembersAtVersion(Value):
    """The container exists, and its listing has exactly this version."""

    path: ResourcePath
    members_version: Version


class EntryAtVersion(Value):
    """The entry exists with exactly this version and has not expired at the time of the write."""

    entry: EntryId
    version: Version


class NoEntry(Value):
    """There is no such entry, or it has expired at the time of the write."""

    entry: EntryId


ResourcePrecondition = AtVersion | Absent | Present | NoMembers | MembersAtVersion
EntryPrecondition = EntryAtVersion | NoEntry
Precondition = ResourcePrecondition | NoPod | EntryPrecondition


# --- What a write does ----------------------------------------------------------------------


class Put(Value):
    """Create or replace one resource; ``creates`` must agree with the preconditions.

    ``created_ms`` and ``modified_ms`` are the times of a resource that is moved here, by default
    those of the write.
    """

    path: ResourcePath
    kind: ResourceKind
    content_type: str
    body: Body
    creates: bool
    created_ms: int | None = None
    modified_ms: int | None = None


class PodRecord(Value):
    """A pod: its name as chosen, its storage root and its owner's WebID (an absolute IRI).

    ``quota_bytes`` is its own quota, 0 for none, and ``None`` for that of the settings.
    """

    name: str
    root: ResourcePath
    owner: str
    created_ms: int
    quota_bytes: int | None = None


class PodTotals(Value):
    """Sums over all pods. ``quota_bytes`` is the sum of the quotas of those that have one, and
    ``nearly_full`` the number of pods that use at least nine tenths of theirs."""

    pods: int
    used_bytes: int
    quota_bytes: int
    nearly_full: int


class PodQuota(Value):
    """Set the quota of a pod of its own; ``None`` for that of the settings."""

    name: str
    quota_bytes: int | None


class DropPod(Value):
    """Remove the record of a pod, whose resources the same write moves away or deletes."""

    name: str


class PodRemoval(Value):
    """The removal of a pod with all its resources and tokens, all entries whose ``owner`` is the
    path of its root container, and all entries of ``entry_owner``.

    ``agent`` is the IRI of the agent that removes it, ``None`` for the operator; ``at_ms`` is in
    Unix milliseconds. The name remains taken (``pods.py``).
    """

    name: str
    version: Version
    at_ms: int
    agent: str | None = None
    entry_owner: str | None = None


class TokenRecord(Value):
    """One issued simple token (A-30 to A-33). ``expires_s`` is Unix seconds, ``None`` for never.

    The token itself is not stored: it can be derived from the signing key, but not from this
    record.
    """

    token_id: str
    pod: str
    web_id: str
    issued_s: int
    expires_s: int | None
    revoked_s: int | None = None


class TokenRevocation(Value):
    """Revoke one token as of ``at_s`` (Unix seconds)."""

    token_id: str
    at_s: int


class PutEntry(Value):
    """Create or replace an entry unconditionally; see :class:`Entry` for the fields."""

    entry: EntryId
    value: bytes
    owner: str | None = None
    expires_ms: int | None = None


class DropEntry(Value):
    """Remove an entry, if there is one."""

    entry: EntryId


class PutRow(Value):
    """Create or replace a row of a feature's table (:mod:`podstead.storage.schema`); ``values`` are
    those of all columns. Raises ValueError if they are no row of it."""

    table: SqlTable
    values: Values

    def __post_init__(self) -> None:
        # A statement that fails for its types would fail all writes of its batch.
        check_values(self.table, tuple(self.table.columns), self.values)

    @property
    def key(self) -> Row:
        return self.table.key_of(self.values)


class DropRow(Value):
    """Remove the row with that key from a feature's table, if there is one."""

    table: SqlTable
    key: Values

    def __post_init__(self) -> None:
        check_values(self.table, self.table.key, self.key)


class MoveRows(Value):
    """Let the rows of all features that belong to one storage belong to another, which it is
    renamed to. Both are named by their root containers."""

    root: ResourcePath
    new_root: ResourcePath


class DropFormerState(Value):
    """Remove what is kept of a former state (:mod:`podstead.storage.former_states`), if it is
    there. A large body becomes garbage."""

    root: ResourcePath
    path: ResourcePath
    modified_ms: int
    version: Version

    @property
    def key(self) -> Row:
        return self.root, self.path, self.modified_ms, self.version


EntryRecord = PutEntry | DropEntry
RowRecord = PutRow | DropRow | MoveRows
Record = (
    DropFormerState
    | PodRecord
    | PodQuota
    | DropPod
    | TokenRecord
    | TokenRevocation
    | EntryRecord
    | RowRecord
)
"""Registry records that can be part of a write."""


class ChangeType(IntEnum):
    """What happened to a resource, in the terms of notifications (N-17). The numbers are stored."""

    CREATE = 1
    UPDATE = 2
    DELETE = 3
    UNCHANGED = 4
    """A PATCH succeeded that changed nothing (L-7)."""


class Change(Value):
    """One row of the change log, as part of a write.

    ``agent`` is the IRI of the agent that made the change, ``None`` for the public or the server.
    """

    path: ResourcePath
    activity: ChangeType
    agent: str | None = None


class LoggedChange(Value):
    """One row of the change log as read. Sequence numbers increase in commit order, with gaps."""

    sequence: int
    change: Change
    version: Version
    at_ms: int


class DeletedAcl(Value):
    """The last version of an ACL that a write deleted, kept for as long as the change log.

    ``content`` is empty, and thus grants nothing, after a day and if the ACL was stored as a blob.
    """

    metadata: Metadata
    content: bytes


class KeepFormerStates(Value):
    """Keep the states that a write ends as former states (:mod:`podstead.storage.former_states`).

    ``replaced`` and ``deleted`` say which of them; those of ACLs are kept in any case. ``agent`` is
    the IRI of the agent that makes the write, and ``client`` the ID of its application, if they are
    known. ``rules`` has the ACL that governs a resource by then, with its version, for each path.
    """

    replaced: bool = True
    deleted: bool = True
    agent: str | None = None
    client: str | None = None
    rules: tuple[tuple[ResourcePath, AtVersion], ...] = ()


class Write(Value):
    """One atomic change of the store.

    Every put resource gets ``version`` as its version and ``at_ms`` (Unix milliseconds) as its
    time. For each put or delete of a member, the engine sets the ``members_version`` of the parent
    container to ``version``; if the membership changes, also its ``members_modified_ms`` to
    ``at_ms``, and the ``members_version`` of the container above it, whose listing shows that time.
    The engine maintains what each pod is charged for (``storage/quota.py``) and refuses a write
    that would make a pod grow beyond its quota. ``default_quota_bytes`` is the quota of each pod
    that has none of its own; 0 for none.
    """

    version: Version
    at_ms: int
    preconditions: tuple[Precondition, ...] = ()
    puts: tuple[Put, ...] = ()
    deletes: tuple[ResourcePath, ...] = ()
    records: tuple[Record, ...] = ()
    changes: tuple[Change, ...] = ()
    default_quota_bytes: int = 0
    keeps: KeepFormerStates | None = None

    @property
    def stores_content(self) -> bool:
        """Whether the write creates a resource or stores content, and so needs disk space."""
        return any(put.creates or put.body.size_bytes for put in self.puts)

    @property
    def size(self) -> int:
        """The number of resources that the write puts and deletes."""
        return len(self.puts) + len(self.deletes)


# --- The outcome of a write -----------------------------------------------------------------


class QuotaLevel(Value):
    """How much of its quota a pod uses after a write."""

    used_bytes: int
    limit_bytes: int


class Committed(Value):
    """The write is durable; ``sequence`` is its last row of the change log, if it has any,
    ``nearly_full`` the level of a pod that it changed and whose quota is nearly used up, and
    ``dropped`` the large bodies that nothing refers to any more."""

    sequence: int | None
    nearly_full: QuotaLevel | None = None
    dropped: tuple[BlobId, ...] = ()


class VersionConflict(Value):
    """A precondition did not hold; nothing was changed. The caller should read and decide again."""

    precondition: Precondition


class OverQuota(Value):
    """The write would exceed the quota of a pod; nothing was changed."""

    root: ResourcePath
    used_bytes: int
    needed_bytes: int
    limit_bytes: int


CommitOutcome = Committed | VersionConflict | OverQuota
