"""Decides which writes of a batch can be applied, and what they change.

An engine groups writes into batches: it loads one state for a batch, decides the writes on it one
after another, and stores the result (see ``state.py``). A refused write leaves the state unchanged,
so each write succeeds or fails on its own. Pure: values in, values out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from podstead.core.conditional import time_after, time_of_deletion, time_of_member
from podstead.core.identifiers import ResourcePath, parent_container, storage_root
from podstead.storage import records
from podstead.storage import state as storage_state
from podstead.storage.former_states import DroppedFormer, KeptStates, MovedFormerState
from podstead.storage.quota import NEARLY_FULL_PERCENT, fixed_charge


class InvalidWrite(Exception):
    """A write that is invalid in any state, because of a bug in the caller or a discarded blob."""


class _Refused(Exception):
    """The write is refused with the given outcome."""

    def __init__(self, outcome: records.VersionConflict | records.OverQuota) -> None:
        super().__init__()
        self.outcome = outcome


def decide(write: records.Write, state: storage_state.State) -> records.CommitOutcome:
    """Check ``write`` against ``state`` and, if it is valid, apply it to ``state``.

    Every other outcome, including InvalidWrite, leaves ``state`` unchanged for the next write of
    the batch.
    """
    # First, because the caller retries after a failed precondition, while OverQuota is final.
    for precondition in write.preconditions:
        if not _holds(precondition, state, write.at_ms):
            return records.VersionConflict(precondition)
    pending = _PendingWrite(write, state)
    try:
        pending.compute()
    except _Refused as refusal:
        return refusal.outcome
    return pending.apply()


def _holds(precondition: records.Precondition, state: storage_state.State, at_ms: int) -> bool:
    match precondition:  # in the order of their frequency; a write has about ten
        case records.Absent():
            return state.resources[precondition.path] is None
        case records.Present():
            return state.resources[precondition.path] is not None
        case records.AtVersion() | records.MembersAtVersion() | records.NoMembers():
            return _row_holds(precondition, state.resources[precondition.path])
        case records.EntryAtVersion() | records.NoEntry():
            return _entry_holds(precondition, state.entries[precondition.entry], at_ms)
        case records.NoPod():
            return storage_state.folded(precondition.name) not in state.taken_pods


def _row_holds(
    precondition: records.AtVersion | records.MembersAtVersion | records.NoMembers,
    row: storage_state.ResourceRow | None,
) -> bool:
    match precondition:
        case records.AtVersion():
            return row is not None and row.version == precondition.version
        case records.MembersAtVersion():
            return row is not None and row.members_version == precondition.members_version
        case records.NoMembers():
            return row is None or row.member_count == 0


def _entry_holds(
    precondition: records.EntryPrecondition, entry: records.Entry | None, at_ms: int
) -> bool:
    # An expired entry is removed by a later sweep; nothing may depend on when.
    if entry is not None and entry.has_expired(at_ms):
        entry = None
    if isinstance(precondition, records.NoEntry):
        return entry is None
    return entry is not None and entry.version == precondition.version


def _created_ms(
    old: storage_state.ResourceRow | None, put: records.Put, write: records.Write
) -> int:
    if old is not None:
        return old.created_ms
    return write.at_ms if put.created_ms is None else put.created_ms


def _bytes(body: bytes | storage_state.CopiedBody | None) -> bytes | None:
    # The body of an ACL is never copied.
    return body if isinstance(body, bytes) else None


def _membership_of(
    old: storage_state.ResourceRow | None, put: records.Put, write: records.Write
) -> tuple[records.Version | None, int | None, int]:
    """Version, time and number of the members after a put; replacing a container keeps them."""
    if old is not None:
        return old.members_version, old.members_modified_ms, old.member_count
    if put.kind.is_container:
        return write.version, write.at_ms, 0
    return None, None, 0


def _last_modified_ms(row: storage_state.ResourceRow) -> int:
    return max(row.modified_ms, row.members_modified_ms or 0)


@dataclass(slots=True)
class _Membership:
    """How one write changes the members of one container."""

    added: int = 0
    # Differs from ``added != 0``: a write may delete one member and add another.
    changed: bool = False
    deleted_ms: int | None = None
    """When the last of those was modified that are deleted."""


class _PendingWrite:
    """The changes of one write, which are applied to the state only once all are known to be valid.

    The other writes of the batch share the state, so changes to it cannot be undone.
    """

    __slots__ = (
        "bodies",
        "deleted",
        "dropped",
        "grown_bytes",
        "kept",
        "memberships",
        "moved",
        "moved_blobs",
        "nearly_full",
        "rows",
        "state",
        "taken_blobs",
        "write",
    )

    def __init__(self, write: records.Write, state: storage_state.State) -> None:
        self.write = write
        self.state = state
        self.rows: dict[ResourcePath, storage_state.ResourceRow | None] = {}
        self.bodies: dict[ResourcePath, bytes | storage_state.CopiedBody | None] = {}
        self.grown_bytes: dict[ResourcePath, int] = {}
        self.nearly_full: records.QuotaLevel | None = None
        self.dropped: list[records.BlobId] = []
        self.taken_blobs: list[records.BlobId] = []
        # The resources whose blobs other resources take over.
        self.moved_blobs: set[ResourcePath] = set()
        # What the write moves within a storage, by its former path, and what it keeps of former
        # states.
        self.moved: dict[ResourcePath, ResourcePath] = {}
        self.kept = None if write.keeps is None else KeptStates(write, write.keeps)
        self.deleted = frozenset(write.deletes)
        self.memberships: dict[ResourcePath, _Membership] = {}

    def compute(self) -> None:
        """Compute all changes. Raises _Refused, InvalidWrite."""
        for put in self.write.puts:
            self._put(put)
        for path in self.write.deletes:
            self._delete(path)
        # Only now: the number of a container's members and the growth of a storage are known when
        # all puts and deletes have been processed.
        self._update_containers()
        self._check_quota()
        for record in self.write.records:
            self._check_record(record)

    def _stored(self, path: ResourcePath) -> storage_state.ResourceRow | None:
        # Containers whose members change are added to ``rows`` later, in _update_containers.
        if path in self.rows:
            raise InvalidWrite(f"{path}: put or deleted twice")
        return self.state.resources[path]

    def _put(self, put: records.Put) -> None:
        path, write = put.path, self.write
        old = self._stored(path)
        if put.creates is not (old is None):
            raise _Refused(
                records.VersionConflict(
                    records.Absent(path) if put.creates else records.Present(path)
                )
            )
        if old is not None and old.kind != put.kind.value:
            raise InvalidWrite(f"{path}: the kind of a resource cannot change")
        # Auxiliary resources are not listed, so they are not members of a container.
        container = parent_container(path) if put.kind.is_member else None
        self.rows[path] = storage_state.ResourceRow(
            path,
            put.kind.value,
            write.version,
            put.content_type,
            put.body.size_bytes,
            self._modified_ms(put, old, container),
            _created_ms(old, put, write),
            self._put_body(put),
            *_membership_of(old, put, write),
            container,
        )
        self._grow(path, put.body.size_bytes + (0 if old else fixed_charge(path)))
        if old is not None:
            self._drop_body(old)
        if container is not None:
            self._touch(container, added=0 if old else 1)

    def _modified_ms(
        self,
        put: records.Put,
        old: storage_state.ResourceRow | None,
        container: ResourcePath | None,
    ) -> int:
        at_ms = self.write.at_ms if put.modified_ms is None else put.modified_ms
        if old is not None:
            return time_after(at_ms, _last_modified_ms(old))
        if put.modified_ms is not None or put.kind is records.ResourceKind.STORAGE:
            return at_ms
        if container is None:
            return time_of_deletion(at_ms)
        # What the write itself creates is not there.
        above = self.state.resources[container]
        changed_ms = None if above is None else above.members_modified_ms
        return at_ms if changed_ms is None else time_of_member(at_ms, changed_ms)

    def _put_body(self, put: records.Put) -> records.BlobId | None:
        body = put.body
        if isinstance(body, records.StagedBlob):
            # A blob belongs to one resource: replacing or deleting that one removes the file.
            if body.blob not in self.state.staged or body.blob in self.taken_blobs:
                raise InvalidWrite(f"{put.path}: the blob is not staged")
            self.taken_blobs.append(body.blob)
            self.bodies[put.path] = None
            return body.blob
        if isinstance(body, records.StoredBody):
            return self._take_stored_body(put.path, put.kind, body)
        self.bodies[put.path] = body.content
        return None

    def _take_stored_body(
        self, path: ResourcePath, kind: records.ResourceKind, body: records.StoredBody
    ) -> records.BlobId | None:
        # The state still holds what was stored before this write.
        source = self.state.resources[body.path]
        if source is None or source.version != body.version:
            raise _Refused(records.VersionConflict(records.AtVersion(body.path, body.version)))
        if records.ResourceKind.ACL.value in (source.kind, kind.value):
            raise InvalidWrite(f"{path}: an ACL names its subject, so it cannot be copied as it is")
        if source.size_bytes != body.size_bytes:
            raise InvalidWrite(f"{path}: the body at {body.path} has another size")
        if body.path in self.deleted and storage_root(body.path) == storage_root(path):
            self.moved[body.path] = path
        if source.blob is None:
            stored = self.state.bodies.get(body.path)
            self.bodies[path] = storage_state.CopiedBody(body.path) if stored is None else stored
            return None
        if body.path in self.moved_blobs or body.path not in self.deleted:
            raise InvalidWrite(f"{path}: the blob of {body.path} belongs to that resource")
        self.moved_blobs.add(body.path)
        self.bodies[path] = None
        return source.blob

    def _delete(self, path: ResourcePath) -> None:
        old = self._stored(path)
        if old is None:
            raise _Refused(records.VersionConflict(records.Present(path)))
        self.rows[path] = None
        self.bodies[path] = None
        self._grow(path, -fixed_charge(path))
        self._drop_body(old)
        if old.container is not None:
            self._touch(old.container, added=-1, deleted_ms=_last_modified_ms(old))

    def _drop_body(self, old: storage_state.ResourceRow) -> None:
        path = old.path
        self._grow(path, -old.size_bytes)
        if (
            self.kept is not None
            and path not in self.moved
            and path not in self.moved_blobs
            and self.kept.add(old, self.state.bodies, moves=bool(self.moved))
        ):
            return
        if old.blob is not None and path not in self.moved_blobs:
            self.dropped.append(old.blob)

    def _grow(self, path: ResourcePath, by_bytes: int) -> None:
        root = storage_root(path)
        if root is not None:
            self.grown_bytes[root] = self.grown_bytes.get(root, 0) + by_bytes

    def _touch(self, container: ResourcePath, *, added: int, deleted_ms: int | None = None) -> None:
        # Also for a member that is only replaced: the listing shows its size and time, so the
        # container needs a new ``members_version``.
        membership = self.memberships.setdefault(container, _Membership())
        membership.added += added
        membership.changed = membership.changed or added != 0
        if deleted_ms is not None:
            membership.deleted_ms = max(deleted_ms, membership.deleted_ms or 0)

    def _update_containers(self) -> None:
        """Update the rows of containers whose members change.

        Raises _Refused if a member would be left without its container.
        """
        # A container may be deleted together with its last members. Removing it from
        # ``memberships`` also keeps the second loop from looking up its row.
        for path in self.write.deletes:
            old = self.state.resources[path]
            membership = self.memberships.pop(path, None)
            remaining = (old.member_count if old else 0) + (membership.added if membership else 0)
            if remaining != 0:
                raise _Refused(records.VersionConflict(records.NoMembers(path)))
        for path, membership in self.memberships.items():
            # The write itself may create the container, or change its triples.
            row = self.rows[path] if path in self.rows else self.state.resources[path]
            if row is None:
                raise _Refused(records.VersionConflict(records.Present(path)))
            self.rows[path] = replace(
                row,
                members_version=self.write.version,
                members_modified_ms=self._members_modified_ms(path, row, membership),
                member_count=row.member_count + membership.added,
            )
            if membership.changed and row.container is not None:
                self._touch_listing(row.container)

    def _members_modified_ms(
        self, path: ResourcePath, row: storage_state.ResourceRow, membership: _Membership
    ) -> int | None:
        if not membership.changed:
            return row.members_modified_ms
        # What this write has done to the container itself is the same change.
        old = self.state.resources[path]
        at_ms = self.write.at_ms
        if old is not None:
            at_ms = time_after(at_ms, _last_modified_ms(old))
        if membership.deleted_ms is not None:
            return time_of_deletion(at_ms, membership.deleted_ms)
        return at_ms

    def _touch_listing(self, container: ResourcePath) -> None:
        """Give a container a new ``members_version``, because its listing shows when the containers
        in it last changed. Only one level up, since its own time does not change."""
        if container in self.memberships:  # gets the new version anyway
            return
        row = self.rows[container] if container in self.rows else self.state.resources[container]
        if row is not None:
            self.rows[container] = replace(row, members_version=self.write.version)

    def _check_quota(self) -> None:
        for root, grown in self.grown_bytes.items():
            used, quota_bytes = self.state.used_bytes.get(root, 0), self._quota_of(root)
            # A quota of 0 means none. A storage above its quota may still shrink.
            if not quota_bytes:
                continue
            if quota_bytes < used + grown and grown > 0:
                raise _Refused(records.OverQuota(root, used, grown, quota_bytes))
            if 100 * (used + grown) >= NEARLY_FULL_PERCENT * quota_bytes:
                self.nearly_full = records.QuotaLevel(used + grown, quota_bytes)

    def _quota_of(self, root: ResourcePath) -> int:
        own, default = self.state.own_quotas, self.write.default_quota_bytes
        return own.get(storage_state.folded(root.strip("/")), default) if own else default

    def _check_record(self, record: records.Record) -> None:
        if (
            isinstance(record, records.PodRecord)
            and storage_state.folded(record.name) in self._pods_that_stay()
        ):
            raise _Refused(records.VersionConflict(records.NoPod(record.name)))
        if (
            isinstance(record, records.DropPod)
            and storage_state.folded(record.name) not in self.state.taken_pods
        ):
            raise InvalidWrite(f"{record.name}: there is no such pod")

    def apply(self) -> records.Committed:
        """Apply the draft to the state. Nothing can fail from here on."""
        state, write = self.state, self.write
        if write.deletes:
            # Reads the old rows and bodies, so it must precede their replacement.
            state.deleted_acls.extend(self._deleted_acls())
        if self.kept is not None:
            state.former += self.kept.rows
            state.former += self._moved_former()
        state.resources.update(self.rows)
        state.changed_paths.update(self.rows)
        state.bodies.update(self.bodies)
        for root, grown in self.grown_bytes.items():
            if grown:
                state.used_bytes[root] = state.used_bytes.get(root, 0) + grown
                state.changed_roots.add(root)
        if self.taken_blobs:
            state.staged.difference_update(self.taken_blobs)
            state.taken_blobs.extend(self.taken_blobs)
        for blob in self.dropped:
            state.garbage.append((blob, write.at_ms))
        for record in write.records:
            self._apply_record(record)
        for change in write.changes:
            self._apply_change(change)
        sequence = state.sequence if write.changes else None
        return records.Committed(sequence, self.nearly_full, tuple(self.dropped))

    def _moved_former(self) -> Iterator[MovedFormerState]:
        for source, target in self.moved.items():
            old, new = self.state.resources[source], self.rows[target]
            if old is not None and new is not None:
                yield MovedFormerState(source, old.created_ms, target, new.created_ms)

    def _deleted_acls(self) -> Iterator[storage_state.DeletedAclRow]:
        """The deleted ACLs, for notifying agents that could read their subject (N-18)."""
        state, write = self.state, self.write
        for path in write.deletes:
            old = state.resources[path]
            if old is not None and old.kind == records.ResourceKind.ACL.value:
                # A body that this batch has put exists only in the state. ``None`` makes the engine
                # copy the stored one. A body in a file is not kept: an empty ACL grants nothing.
                content = b"" if old.blob is not None else _bytes(state.bodies.get(path))
                yield storage_state.DeletedAclRow(
                    write.version, path, old.version, old.content_type, content, write.at_ms
                )

    def _pods_that_stay(self) -> set[str]:
        dropped = {
            storage_state.folded(each.name)
            for each in self.write.records
            if isinstance(each, records.DropPod)
        }
        return self.state.taken_pods - dropped

    def _apply_record(self, record: records.Record) -> None:
        if isinstance(record, records.PodRecord):
            self.state.taken_pods.add(storage_state.folded(record.name))
            self.state.pods.append(record)
            self._apply_quota(record)
        elif isinstance(record, records.PodQuota):
            self.state.quotas.append(record)
            self._apply_quota(record)
        elif isinstance(record, records.DropPod):
            self._drop_pod(storage_state.folded(record.name))
        elif isinstance(record, records.PutEntry):
            self._apply_entry(record)
        elif isinstance(record, records.DropEntry):
            self.state.entries[record.entry] = None
            self.state.changed_entries.add(record.entry)
        elif isinstance(record, records.PutRow | records.DropRow | records.MoveRows):
            self.state.rows.append(record)
        elif isinstance(record, records.DropFormerState):
            self.state.former.append(DroppedFormer(record.key, self.write.at_ms))
        else:
            self.state.tokens.append(record)

    def _drop_pod(self, name: str) -> None:
        state = self.state
        state.taken_pods.discard(name)
        state.own_quotas.pop(name, None)
        # Created by a write of this batch, or stored before it: dropping comes first at the end.
        state.pods = [pod for pod in state.pods if storage_state.folded(pod.name) != name]
        state.dropped_pods.append(name)

    def _apply_quota(self, record: records.PodRecord | records.PodQuota) -> None:
        if record.quota_bytes is None:
            self.state.own_quotas.pop(storage_state.folded(record.name), None)
        else:
            self.state.own_quotas[storage_state.folded(record.name)] = record.quota_bytes

    def _apply_entry(self, put: records.PutEntry) -> None:
        self.state.entries[put.entry] = records.Entry(
            put.entry, self.write.version, put.value, put.owner, put.expires_ms
        )
        self.state.changed_entries.add(put.entry)

    def _apply_change(self, change: records.Change) -> None:
        # Numbered here and not in compute(), so that a refused write leaves no gap in the log.
        self.state.sequence += 1
        self.state.changes.append(
            storage_state.ChangeRow(
                self.state.sequence,
                change.path,
                change.activity.value,
                change.agent,
                self.write.version,
                self.write.at_ms,
            )
        )
