"""Records of blobs, charges, and the deletion of old rows in batches, so that no writer waits
long."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import BlobId
from podstead.storage.steps import Steps, query, run_sql

BATCH_ROWS: Final = 500
"""The maximum number of rows that one transaction of a sweep deletes."""

_LOCK_STORAGE: Final = "SELECT 1 FROM storages WHERE root = %s FOR UPDATE"
_DELETE_CHARGE: Final = "DELETE FROM charges WHERE charge = %s RETURNING root, size_bytes"
_ADD_USED: Final = "UPDATE storages SET used_bytes = used_bytes + %s WHERE root = %s RETURNING root"
_INSERT_CHARGE: Final = "INSERT INTO charges (charge, root, size_bytes) VALUES (%s, %s, %s)"
_FIND_GARBAGE: Final = "SELECT blob FROM garbage WHERE dropped_ms < %s LIMIT %s"
_OLDEST_CHANGES: Final = "SELECT sequence, at_ms FROM changes ORDER BY sequence LIMIT %s"
_DELETE_CHANGES: Final = "DELETE FROM changes WHERE sequence <= %s"
_DELETE_ENTRIES: Final = (
    "DELETE FROM entries WHERE entry IN (SELECT entry FROM entries"
    " WHERE expires_ms <= %s ORDER BY expires_ms LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING 1"
)


class Maintenance(ABC):
    """What changes the tables besides writes, with some statements of an engine."""

    clear_acls: ClassVar[str]
    """Clears the content of a batch of ACLs that were deleted before some time."""
    delete_acls: ClassVar[str]
    """Deletes a batch of them."""
    blobs: ClassVar[str]
    """The SELECT of the blobs in a list, which is one value."""

    @abstractmethod
    def list_of(self, blobs: Sequence[BlobId]) -> object:
        """That value."""

    # --- Blobs: each is staged, or taken by a resource, or garbage ----------------------------

    def stage_blobs(self, blobs: Sequence[BlobId]) -> Steps[None]:
        """Record blobs that a write may use."""
        stage = f"INSERT INTO staged (blob, staged_ms) SELECT blob, %s FROM ({self.blobs}) AS b"  # noqa: S608
        yield run_sql(stage, _now_ms(), self.list_of(blobs))

    def renew_blobs(self, blobs: Sequence[BlobId]) -> Steps[None]:
        """Stage those of the blobs anew that are staged."""
        renew = f"UPDATE staged SET staged_ms = %s WHERE blob IN ({self.blobs})"  # noqa: S608
        yield run_sql(renew, _now_ms(), self.list_of(blobs))

    def discard_blobs(self, blobs: Sequence[BlobId]) -> Steps[list[BlobId]]:
        """Make garbage of those of the blobs that are staged, and return them."""
        return (yield from self._discard(f"blob IN ({self.blobs})", self.list_of(blobs)))

    def discard_unclaimed_blobs(self, *, staged_before_ms: int) -> Steps[list[BlobId]]:
        """Make garbage of blobs that were staged but never used."""
        return (yield from self._discard("staged_ms < %s", staged_before_ms))

    def _discard(self, which: str, value: object) -> Steps[list[BlobId]]:
        rows = yield query(f"DELETE FROM staged WHERE {which} RETURNING blob", value)  # noqa: S608
        gone = [blob for (blob,) in rows]
        if gone:
            drop = f"INSERT INTO garbage (blob, dropped_ms) SELECT blob, 0 FROM ({self.blobs}) AS b"  # noqa: S608
            yield run_sql(drop, self.list_of(gone))
        return gone

    def find_garbage(self, *, dropped_before_ms: int) -> Steps[list[BlobId]]:
        """A batch of blobs that have been garbage since before that time."""
        return [blob for (blob,) in (yield query(_FIND_GARBAGE, dropped_before_ms, BATCH_ROWS))]

    def delete_garbage_rows(self, blobs: Sequence[BlobId]) -> Steps[None]:
        """Delete the rows of blobs that were removed, and end the charges for those that earlier
        versions dropped."""
        delete = f"DELETE FROM garbage WHERE blob IN ({self.blobs}) RETURNING root, size_bytes"  # noqa: S608
        ended: Counter[str] = Counter()
        # Of the rows that this very statement deletes, so that two nodes that have removed the same
        # blobs end each charge once.
        for root, size_bytes in (yield query(delete, self.list_of(blobs))):
            if root is not None:
                ended[root] += size_bytes
        for root in sorted(ended):
            yield run_sql(_ADD_USED, -ended[root], root)

    # --- charges and old rows -----------------------------------------------------------------

    def put_charge(self, charge: str, *, root: ResourcePath, size_bytes: int) -> Steps[None]:
        """Set a named charge of a storage for data outside resources; 0 bytes remove it."""
        # Nodes that set the same charge take turns. Otherwise, the deletion would wait for another
        # node's transaction and then miss the row that it has inserted.
        yield run_sql(_LOCK_STORAGE, root)
        gone = yield query(_DELETE_CHARGE, charge)
        for old_root, old_bytes in gone:
            yield run_sql(_ADD_USED, -old_bytes, old_root)
        # A deleted storage has no charges.
        if size_bytes and (yield query(_ADD_USED, size_bytes, root)):
            yield run_sql(_INSERT_CHARGE, charge, root, size_bytes)

    @abstractmethod
    def take_orphan_body(self, path: ResourcePath) -> Steps[bytes | None]:
        """Remove and return a small body that belongs to no resource."""

    def delete_old_changes(self, *, before_ms: int) -> Steps[bool]:
        """Delete a batch of the oldest changes; whether there may be more.

        Proceeds by sequence number and stops at the first newer row, so that no gap arises.
        """
        oldest = yield query(_OLDEST_CHANGES, BATCH_ROWS)
        last_old = None
        for sequence, at_ms in oldest:
            if at_ms >= before_ms:
                break
            last_old = sequence
        yield run_sql(_DELETE_CHANGES, last_old)
        return len(oldest) == BATCH_ROWS and last_old == oldest[-1][0]

    def clear_old_acl_content(self, *, before_ms: int) -> Steps[bool]:
        """Clear the content of a batch of deleted ACLs; whether there may be more."""
        cleared = yield query(self.clear_acls, before_ms, BATCH_ROWS)
        return len(cleared) == BATCH_ROWS

    def delete_old_acls(self, *, before_ms: int) -> Steps[bool]:
        """Delete a batch of deleted ACLs whose rows in the change log have expired; whether there
        may be more."""
        deleted = yield query(self.delete_acls, before_ms, BATCH_ROWS)
        return len(deleted) == BATCH_ROWS

    def delete_expired_entries(self, *, now_ms: int) -> Steps[bool]:
        """Delete a batch of expired entries; whether there may be more."""
        deleted = yield query(_DELETE_ENTRIES, now_ms, BATCH_ROWS)
        return len(deleted) == BATCH_ROWS


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
