"""Reads from the database, with a cache of rows.

Reads run on the event loop: reading a row takes microseconds, less than passing the query to a
thread. Rows are cached, absence included. All cached rows belong to one state of the database,
which its count of row changes identifies. In each turn of the event loop, SQLite is asked whether
any process has committed since (see ``data_version.py``). If so, the changes of the batches of this
process and of other workers (``shared_changes.py``) are applied to the cache, or the cache is
cleared if they do not lead to the new count without a gap (see ``row_changes.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import apsw
from msgspec.structs import astuple

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage.protocol import Snapshot
from podstead.storage.records import (
    Change,
    ChangeType,
    DeletedAcl,
    Entry,
    EntryId,
    LoggedChange,
    Metadata,
    PodRecord,
    PodTotals,
    ResourceKind,
    TokenRecord,
    Version,
)
from podstead.storage.sqlite.data_version import DataVersion
from podstead.storage.sqlite.row_changes import ChangeQueue, RowChanges, read_row_count
from podstead.storage.sqlite.shared_changes import SharedChanges
from podstead.storage.sqlite.statements import Row, run_in
from podstead.storage.state import folded

MAX_CACHED_ROWS = 8192
"""Rows of each kind to cache; with :data:`MAX_CACHED_KEY_CHARS`, this bounds their memory."""

MAX_CACHED_KEY_CHARS = 512
"""Rows with longer paths, names and IDs are not cached."""

_METADATA = (
    "path, kind, version, content_type, size_bytes, modified_ms, created_ms, blob,"
    " members_version, members_modified_ms"
)
_COLUMNS = _METADATA.count(",") + 1
_SELECT_METADATA = (
    # The row count comes in every row, and in one without a resource if none exists.
    f"SELECT rows.value, {_METADATA}"  # noqa: S608 - our columns
    " FROM (SELECT value FROM counters WHERE name = 'rows') rows"
    " LEFT JOIN resources ON path IN"
)
_SELECT_MEMBERS = (
    f"SELECT {_METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE container = ? AND path > ? ORDER BY path LIMIT ?"
)
_SELECT_ACLS = (
    # The number is written out, so that SQLite uses the index of these rows.
    f"SELECT {_METADATA} FROM resources"  # noqa: S608 - our columns
    f" WHERE kind = {ResourceKind.ACL.value} AND path > ? ORDER BY path LIMIT ?"
)
_SELECT_TREE = (
    f"SELECT {_METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE path >= ? AND path < ? ORDER BY path LIMIT ?"
)
_SELECT_CONTENT = (
    "SELECT r.version, b.content, b.sha256 FROM resources r LEFT JOIN bodies b ON b.path = r.path"
    " WHERE r.path = ?"
)
_SELECT_CHANGES = (
    "SELECT sequence, path, activity, agent, version, at_ms FROM changes"
    " WHERE sequence > ? ORDER BY sequence LIMIT ?"
)
_SELECT_CHANGES_BEFORE = (
    "SELECT sequence, path, activity, agent, version, at_ms FROM changes"
    " WHERE sequence < ? AND sequence >= ? AND path >= ? AND path < ?"
    " ORDER BY sequence DESC LIMIT ?"
)
_SELECT_SEQUENCE = "SELECT value FROM counters WHERE name = 'changes'"
_SELECT_DELETED_ACLS = (
    "SELECT path, version, content_type, content, at_ms FROM deleted_acls WHERE write_version = ?"
)
_SELECT_PODS = "SELECT name, root, owner, created_ms, quota_bytes FROM pods"
_SELECT_USED_BYTES = (
    "SELECT s.used_bytes FROM pods p JOIN storages s ON s.root = p.root WHERE p.folded_name = ?"
)
_SELECT_POD_TOTALS = (
    "SELECT count(*), coalesce(sum(used), 0), coalesce(sum(quota), 0),"
    " coalesce(sum(quota > 0 AND used * 10 >= quota * 9), 0) FROM ("
    " SELECT coalesce(s.used_bytes, 0) AS used, coalesce(p.quota_bytes, ?) AS quota"
    " FROM pods p LEFT JOIN storages s ON s.root = p.root) each_pod"
)
_SELECT_CHARGES = "SELECT charge, size_bytes FROM charges WHERE root = ?"
_COUNT_ENTRIES = (
    "SELECT count(*) FROM (SELECT 1 FROM entries WHERE entry > ? AND entry < ? LIMIT ?)"
)
_SELECT_ENTRIES = "SELECT entry, version, value, owner, expires_ms FROM entries"
_SELECT_TOKENS = "SELECT token_id, pod, web_id, issued_s, expires_s, revoked_s FROM tokens"

_KINDS: Final = {kind.value: kind for kind in ResourceKind}
_ACTIVITIES: Final = {activity.value: activity for activity in ChangeType}

_READ_ERRORS = (apsw.Error, ValueError, TypeError, LookupError)
"""Errors of SQLite, and those caused by rows with unexpected values."""

Key = TypeVar("Key", bound=str)
Value = TypeVar("Value")


class _AnotherState(LookupError):
    """The rows that were read do not belong to the state of the cached rows."""


class ReadConnection:
    """Runs the queries of one connection. Used from one thread only."""

    def __init__(
        self,
        connection: apsw.Connection,
        change_queue: ChangeQueue,
        shared: SharedChanges | None = None,
    ) -> None:
        """Take ownership of ``connection``; the writer adds its batches to ``change_queue``, and
        other workers add theirs to ``shared``."""
        self._connection = connection
        self._change_queue = change_queue
        self._shared = shared
        self._data_version = DataVersion(connection)
        self._refreshed_at: int | None = None
        self._row_count = -1
        self._metadata: dict[ResourcePath, Metadata | None] = {}
        self._pods: dict[str, PodRecord | None] = {}
        self._tokens: dict[str, TokenRecord | None] = {}
        self._registries_version = 0

    def close(self) -> None:
        """Release the connection. Raises apsw.Error."""
        self._connection.close()

    # --- rows that are kept -------------------------------------------------------------------

    def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        """The metadata of each path, all in one snapshot. Raises StorageError."""
        wanted = tuple(paths)
        cached = self._metadata
        try:
            self._refresh()
            try:
                return {path: cached[path] for path in wanted}
            except KeyError:
                return self._read_with_missing(wanted)
        except _READ_ERRORS as error:
            raise _read_error() from error

    def read_tree(
        self,
        root: ResourcePath,
        also: Iterable[ResourcePath],
        after: ResourcePath | None,
        limit: int,
    ) -> dict[ResourcePath, Metadata | None]:
        """What is stored at and below ``root``, from ``after`` on, and the metadata of ``also``,
        all in one snapshot.

        Raises StorageError.
        """
        start = root if after is None else max(root, f"{after}\0")
        end = _end_of(root) if root.endswith("/") else f"{root}\0"

        def read() -> dict[ResourcePath, Metadata | None]:
            rows = self._connection.execute(_SELECT_TREE, (start, end, limit)).fetchall()
            # Not cached: a large tree would displace everything else.
            tree = {metadata.path: metadata for metadata in map(_metadata, rows)}
            return {**self._read_missing_metadata(tuple(also)), **tree}

        try:
            return self._in_snapshot(read)
        except _READ_ERRORS as error:
            raise _read_error() from error

    def read_pod(self, name: str) -> PodRecord | None:
        """The pod of that name, compared case-insensitively. Raises StorageError."""
        return self._read_cached(self._pods, folded(name), self._select_pod)

    def read_token(self, token_id: str) -> TokenRecord | None:
        """The token with that ID. Raises StorageError."""
        return self._read_cached(self._tokens, token_id, self._select_token)

    def registries_version(self) -> int:
        """A number that changes whenever a pod or token may have changed, in any process.

        Raises StorageError.
        """
        try:
            self._refresh()
        except _READ_ERRORS as error:
            raise _read_error() from error
        return self._registries_version

    def _read_cached(
        self, cached: dict[str, Value | None], key: str, select: Callable[[str], Value | None]
    ) -> Value | None:
        try:
            self._refresh()
            if key in cached:
                return cached[key]
            return self._in_snapshot(lambda: _cache_rows(cached, {key: select(key)})[key])
        except _READ_ERRORS as error:
            raise _read_error() from error

    def _read_with_missing(self, wanted: Sequence[ResourcePath]) -> Snapshot:
        """The metadata of paths that are not all cached."""
        try:
            # The row count shows whether what this reads belongs to the cached rows. Nearly always
            # it does, and one statement takes the place of a transaction of four.
            return self._read_missing_metadata(wanted)
        except _AnotherState:
            return self._in_snapshot(lambda: self._read_missing_metadata(wanted))

    def _read_missing_metadata(self, wanted: Sequence[ResourcePath]) -> Snapshot:
        """The cached rows and the others, which are cached, too. Raises _AnotherState."""
        cached = self._metadata
        found = dict.fromkeys(wanted)
        missing = []
        for path in found:
            if path in cached:
                found[path] = cached[path]
            else:
                missing.append(path)
        if not missing:
            return found
        read: dict[ResourcePath, Metadata | None] = dict.fromkeys(missing)
        row_counts = set()
        for row_count, *row in run_in(self._connection, _SELECT_METADATA, missing):
            row_counts.add(row_count)
            if row[0] is not None:
                metadata = _metadata(row)
                read[metadata.path] = metadata
        if row_counts != {self._row_count}:  # also if there is no count: absence must be certain
            raise _AnotherState
        return found | _cache_rows(cached, read)

    def _select_pod(self, folded_name: str) -> PodRecord | None:
        row = self._one(f"{_SELECT_PODS} WHERE folded_name = ?", folded_name)
        return None if row is None else _pod(row)

    def _select_token(self, token_id: str) -> TokenRecord | None:
        row = self._one(f"{_SELECT_TOKENS} WHERE token_id = ?", token_id)
        return None if row is None else _token(row)

    def data_version(self) -> int:
        """A number that changes with every commit of any process. Raises StorageError."""
        try:
            return self._data_version.current()
        except _READ_ERRORS as error:
            raise _read_error() from error

    def free_pages(self) -> int:
        """How many pages of the database are free. Raises StorageError."""
        try:
            return int(self._query("PRAGMA freelist_count", ()).get)
        except _READ_ERRORS as error:
            raise _read_error() from error

    def _refresh(self) -> None:
        """Update the cached rows to the state after the newest commit of any other connection."""
        data_version = self._data_version.current()
        if data_version != self._refreshed_at:
            # Read after the data version: a commit between the two is included here already, and
            # the older data version makes the next call refresh again.
            self._catch_up(read_row_count(self._connection))
            self._refreshed_at = data_version

    def _catch_up(self, row_count: int) -> None:
        while self._row_count < row_count:
            changes = self._next_changes()
            # A batch that ends where it begins would be found for ever.
            if changes is None or not changes.before < changes.after <= row_count:
                break
            self._apply_changes(changes)
        if self._row_count != row_count:
            self._clear()
            self._row_count = row_count

    def _next_changes(self) -> RowChanges | None:
        """The batch that begins where the cached rows end, if it is known."""
        row_count, change_queue = self._row_count, self._change_queue
        while change_queue and change_queue[0].before <= row_count:
            changes = change_queue.popleft()
            if changes.before == row_count:
                return changes
        return None if self._shared is None else self._shared.get(row_count)

    def _apply_changes(self, changes: RowChanges) -> None:
        read: dict[ResourcePath, Metadata | None] = {
            path: None if row is None else _metadata(astuple(row)[:_COLUMNS])
            for path, row in changes.resources.items()
        }
        _cache_rows(self._metadata, read)
        if changes.others:
            self._clear_registries()
        self._row_count = changes.after

    def _clear(self) -> None:
        self._metadata.clear()
        self._clear_registries()

    def _clear_registries(self) -> None:
        self._registries_version += 1
        self._pods.clear()
        self._tokens.clear()

    def _in_snapshot(self, read: Callable[[], Value]) -> Value:
        """Run ``read`` in one snapshot of the database, that of the cached rows."""
        self._connection.execute("BEGIN")
        try:
            self._data_version.ask_again()  # the snapshot may be newer than the last answer
            self._refresh()
            return read()
        finally:
            self._connection.execute("ROLLBACK")

    # --- rows that are not --------------------------------------------------------------------

    def read_content(
        self, path: ResourcePath, version: Version
    ) -> tuple[bytes | None, bytes | None] | None:
        """Small body and its SHA-256 at the path, ``None`` if its version is another one by now.

        Bodies stored by earlier versions have no hash. Raises StorageError.
        """
        try:
            # One statement reads version and content, so they belong together.
            row: tuple[Version, bytes | None, bytes | None] | None
            row = self._one(_SELECT_CONTENT, path)
        except _READ_ERRORS as error:
            raise _read_error() from error
        return None if row is None or row[0] != version else row[1:]

    def list_members(
        self, container: ResourcePath, after: ResourcePath | None, limit: int
    ) -> list[Metadata]:
        """Members in the byte order of their paths. Raises StorageError."""
        return self._all(_SELECT_MEMBERS, (container, after or "", limit), _metadata)

    def list_acls(self, after: ResourcePath | None, limit: int) -> list[Metadata]:
        """ACLs in the byte order of their paths. Raises StorageError."""
        return self._all(_SELECT_ACLS, (after or "", limit), _metadata)

    def changes_before(
        self, sequence: int, first: int, below: ResourcePath, limit: int
    ) -> list[LoggedChange]:
        """Rows of the change log about a part of the tree, backwards. Raises StorageError."""
        values = (sequence, first, below, _end_of(below), limit)
        return self._all(_SELECT_CHANGES_BEFORE, values, _logged_change)

    def changes_after(self, sequence: int, limit: int) -> list[LoggedChange]:
        """Rows of the change log with a greater sequence number. Raises StorageError."""
        return self._all(_SELECT_CHANGES, (sequence, limit), _logged_change)

    def newest_sequence(self) -> int:
        """The number of the newest row the change log has had. Raises StorageError."""
        try:
            sequence: int = self._query(_SELECT_SEQUENCE, ()).get
        except _READ_ERRORS as error:
            raise _read_error() from error
        return sequence

    def deleted_acls(
        self, write: Version, paths: Iterable[ResourcePath]
    ) -> dict[ResourcePath, DeletedAcl]:
        """Access rules that a write deleted, of those paths. Raises StorageError."""
        wanted = tuple(paths)
        found = self._all(
            f"{_SELECT_DELETED_ACLS} AND path IN ({', '.join('?' * len(wanted))})",
            (write, *wanted),
            _deleted_acl,
        )
        return {deleted.metadata.path: deleted for deleted in found}

    def list_pods(self, after: str, limit: int) -> list[PodRecord]:
        """Pods by name, after ``after``. Raises StorageError."""
        select = f"{_SELECT_PODS} WHERE folded_name > ? ORDER BY folded_name LIMIT ?"
        return self._all(select, (folded(after), limit), _pod)

    def list_tokens(self, pod: str | None) -> list[TokenRecord]:
        """All tokens, or those of one pod, newest first. Raises StorageError."""
        order = "ORDER BY issued_s DESC, token_id"
        if pod is None:
            return self._all(f"{_SELECT_TOKENS} {order}", (), _token)
        return self._all(f"{_SELECT_TOKENS} WHERE pod = ? {order}", (pod,), _token)

    def read_entry(self, entry: EntryId, now_ms: int) -> Entry | None:
        """The entry with that ID, unless it has expired. Raises StorageError."""
        try:
            row: Row | None = self._one(f"{_SELECT_ENTRIES} WHERE entry = ?", entry)
            read = None if row is None else Entry(*row)
        except _READ_ERRORS as error:
            raise _read_error() from error
        return None if read is None or read.has_expired(now_ms) else read

    def list_entries(
        self, kind: str, *, owner: str | None, after: str, limit: int, now_ms: int
    ) -> list[Entry]:
        """Unexpired entries of a kind, in the order of their IDs, after ``after``.

        Raises StorageError.
        """
        # "0" is the character after the slash that ends the kind.
        condition = "entry > ? AND entry < ? AND (expires_ms IS NULL OR expires_ms > ?)"
        values: list[str | int] = [max(f"{kind}/", after), f"{kind}0", now_ms]
        if owner is not None:
            condition += " AND owner = ?"
            values.append(owner)
        return self._all(
            f"{_SELECT_ENTRIES} WHERE {condition} ORDER BY entry LIMIT ?",
            (*values, limit),
            lambda row: Entry(*row),
        )

    def count_entries(self, kind: str, at_most: int) -> int:
        """The number of entries of a kind, or ``at_most`` if it is larger. Raises StorageError."""
        values = (f"{kind}/", f"{kind}0", at_most)
        return self._all(_COUNT_ENTRIES, values, lambda row: int(row[0]))[0]

    def used_bytes(self, name: str) -> int:
        """The bytes that a pod is charged for. Raises StorageError."""
        try:
            used_bytes: int | None = self._one(_SELECT_USED_BYTES, folded(name))
        except _READ_ERRORS as error:
            raise _read_error() from error
        return used_bytes or 0

    def pod_totals(self, default_quota_bytes: int) -> PodTotals:
        """Sums over all pods. Raises StorageError."""
        values = (default_quota_bytes,)
        return self._all(_SELECT_POD_TOTALS, values, lambda row: PodTotals(*row))[0]

    def list_charges(self, root: ResourcePath) -> dict[str, int]:
        """The charges of a storage besides its resources. Raises StorageError."""
        return dict(self._all(_SELECT_CHARGES, (root,), lambda row: (row[0], row[1])))

    def _one(self, select: str, key: str) -> Any:  # noqa: ANN401 - the caller knows its columns
        """The only row, or its only value; ``None`` if there is no row."""
        return self._query(select, (key,)).get

    def _all(
        self, select: str, values: Sequence[str | int], make: Callable[[Row], Value]
    ) -> list[Value]:
        try:
            # Fetches all rows first, because an open cursor would keep its snapshot open.
            return [make(row) for row in self._query(select, values).fetchall()]
        except _READ_ERRORS as error:
            raise _read_error() from error

    def _query(self, select: str, values: Sequence[str | int]) -> apsw.Cursor:
        # What follows this read must not be older than it: an access decision after a row of the
        # change log, for example, or another attempt to read a version that was replaced.
        self._data_version.ask_again()
        return self._connection.execute(select, values)


def _cache_rows(
    cached: dict[Key, Value | None], read: dict[Key, Value | None]
) -> dict[Key, Value | None]:
    """Keep what was just read, within bounds, and give it back."""
    if len(cached) + len(read) > MAX_CACHED_ROWS:
        cached.clear()
    cached.update((key, value) for key, value in read.items() if len(key) <= MAX_CACHED_KEY_CHARS)
    return read


def _end_of(container: ResourcePath) -> str:
    """What follows all paths that begin with that of the container: "0" follows "/"."""
    return f"{container[:-1]}0"


def _read_error() -> StorageError:
    return StorageError("The store could not be read")


def _metadata(row: Sequence[Any]) -> Metadata:
    path, kind, *rest = row
    return Metadata(path, _KINDS[kind], *rest)


def _logged_change(row: Row) -> LoggedChange:
    sequence, path, activity, agent, version, at_ms = row
    return LoggedChange(sequence, Change(path, _ACTIVITIES[activity], agent), version, at_ms)


def _deleted_acl(row: Row) -> DeletedAcl:
    path, version, content_type, content, at_ms = row
    known = content or b""
    metadata = Metadata(path, ResourceKind.ACL, version, content_type, len(known), at_ms, at_ms)
    return DeletedAcl(metadata, known)


def _pod(row: Row) -> PodRecord:
    return PodRecord(*row)


def _token(row: Row) -> TokenRecord:
    return TokenRecord(*row)
