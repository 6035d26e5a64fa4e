"""Reads from the database, with a cache of rows.

Reads run on the event loop: reading a row takes microseconds, less than passing the query to a
thread. Rows are cached, absence included. All cached rows belong to one state of the database,
which its count of row changes identifies. In each turn of the event loop, SQLite is asked whether
any process has committed since (:class:`DataVersion`). If so, the changes of the batches of this
process and of other workers (:class:`SharedChanges`) are applied to the cache, or the cache is
cleared if they do not lead to the new count without a gap (see ``row_changes.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import apsw
from msgspec.structs import astuple

from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.storage import tables
from podstead.storage.protocol import Snapshot
from podstead.storage.records import DeletedAcl, Metadata, PodRecord, TokenRecord, Version
from podstead.storage.schema import Row
from podstead.storage.sqlite import row_changes
from podstead.storage.sqlite.statements import run_in
from podstead.storage.state import folded

MAX_CACHED_ROWS = 8192
"""Rows of each kind to cache; with :data:`MAX_CACHED_KEY_CHARS`, this bounds their memory."""

MAX_CACHED_KEY_CHARS = 512
"""Rows with longer paths, names and IDs are not cached."""

_COLUMNS = tables.METADATA.count(",") + 1
_SELECT_METADATA = (
    # The row count comes in every row, and in one without a resource if none exists.
    f"SELECT rows.value, {tables.METADATA}"  # noqa: S608 - our columns
    " FROM (SELECT value FROM counters WHERE name = 'rows') rows"
    " LEFT JOIN resources ON path IN"
)
_SELECT_MEMBERS = (
    f"SELECT {tables.METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE container = ? AND path > ? ORDER BY path LIMIT ?"
)
_SELECT_TREE = (
    f"SELECT {tables.METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE path >= ? AND path < ? ORDER BY path LIMIT ?"
)
_SELECT_CONTENT = (
    "SELECT r.version, b.content, b.sha256 FROM resources r LEFT JOIN bodies b ON b.path = r.path"
    " WHERE r.path = ?"
)
_SELECT_DELETED_ACLS = f"SELECT {tables.DELETED_ACL} FROM deleted_acls WHERE write_version = ?"  # noqa: S608
_SELECT_POD = f"SELECT {tables.POD} FROM pods WHERE folded_name = ?"  # noqa: S608 - our columns
_SELECT_TOKEN = f"SELECT {tables.TOKENS.names} FROM tokens WHERE token_id = ?"  # noqa: S608

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
        change_queue: row_changes.ChangeQueue,
        shared: row_changes.SharedChanges | None = None,
    ) -> None:
        """Take ownership of ``connection``; the writer adds its batches to ``change_queue``, and
        other workers add theirs to ``shared``."""
        self._connection = connection
        self._change_queue = change_queue
        self._shared = shared
        self._data_version = row_changes.DataVersion(connection)
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
        end = tables.end_of(root) if root.endswith("/") else f"{root}\0"

        def read() -> dict[ResourcePath, Metadata | None]:
            rows = self._connection.execute(_SELECT_TREE, (start, end, limit)).fetchall()
            # Not cached: a large tree would displace everything else.
            tree = {metadata.path: metadata for metadata in map(tables.metadata_of, rows)}
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
                metadata = tables.metadata_of(row)
                read[metadata.path] = metadata
        if row_counts != {self._row_count}:  # also if there is no count: absence must be certain
            raise _AnotherState
        return found | _cache_rows(cached, read)

    def _select_pod(self, folded_name: str) -> PodRecord | None:
        row = self._query(_SELECT_POD, (folded_name,)).get
        return None if row is None else tables.pod_of(row)

    def _select_token(self, token_id: str) -> TokenRecord | None:
        row = self._query(_SELECT_TOKEN, (token_id,)).get
        return None if row is None else tables.token_of(row)

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
            self._catch_up(row_changes.read_row_count(self._connection))
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

    def _next_changes(self) -> row_changes.RowChanges | None:
        """The batch that begins where the cached rows end, if it is known."""
        row_count, change_queue = self._row_count, self._change_queue
        while change_queue and change_queue[0].before <= row_count:
            changes = change_queue.popleft()
            if changes.before == row_count:
                return changes
        return None if self._shared is None else self._shared.get(row_count)

    def _apply_changes(self, changes: row_changes.RowChanges) -> None:
        read: dict[ResourcePath, Metadata | None] = {
            path: None if row is None else tables.metadata_of(astuple(row)[:_COLUMNS])
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

    async def read_content(
        self, path: ResourcePath, version: Version
    ) -> tuple[bytes | None, bytes | None] | None:
        """Small body and its SHA-256 at the path, ``None`` if its version is another one by now.

        Bodies stored by earlier versions have no hash. Raises StorageError.
        """
        try:
            # One statement reads version and content, so they belong together.
            row: tuple[Version, bytes | None, bytes | None] | None
            row = self._query(_SELECT_CONTENT, (path,)).get
        except _READ_ERRORS as error:
            raise _read_error() from error
        return None if row is None or row[0] != version else row[1:]

    def list_members(
        self, container: ResourcePath, after: ResourcePath | None, limit: int
    ) -> list[Metadata]:
        """Members in the byte order of their paths. Raises StorageError."""
        return self.all(_SELECT_MEMBERS, (container, after or "", limit), tables.metadata_of)

    def deleted_acls(
        self, write: Version, paths: Iterable[ResourcePath]
    ) -> dict[ResourcePath, DeletedAcl]:
        """Access rules that a write deleted, of those paths. Raises StorageError."""
        wanted = tuple(paths)
        found = self.all(
            f"{_SELECT_DELETED_ACLS} AND path IN ({', '.join('?' * len(wanted))})",
            (write, *wanted),
            tables.deleted_acl_of,
        )
        return {deleted.metadata.path: deleted for deleted in found}

    def all(self, select: str, values: Sequence[Any], make: Callable[[Row], Value]) -> list[Value]:
        """What ``make`` makes of each row. Raises StorageError."""
        try:
            # Fetches all rows first, because an open cursor would keep its snapshot open.
            return list(map(make, self._query(select, values).fetchall()))
        except _READ_ERRORS as error:
            raise _read_error() from error

    def _query(self, select: str, values: Sequence[Any]) -> apsw.Cursor:
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


def _read_error() -> StorageError:
    return StorageError("The store could not be read")
