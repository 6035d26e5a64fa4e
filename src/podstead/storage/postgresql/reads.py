"""Reads from the database: one statement each, and therefore one snapshot and one round trip.

Nothing is cached here. A commit of any node is seen by the next read on every other, because each
read asks the database that orders the commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec
import psycopg

from podstead.core.identifiers import ResourcePath
from podstead.storage.postgresql import rows
from podstead.storage.postgresql.connecting import ConnectionPool
from podstead.storage.postgresql.errors import is_lost_connection, reading
from podstead.storage.postgresql.pipelined_reads import PipelinedReads
from podstead.storage.postgresql.rows import CHANGES, ENTRIES, METADATA, PODS, TOKENS, Row
from podstead.storage.protocol import Snapshot
from podstead.storage.records import (
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
from podstead.storage.state import folded

Value = TypeVar("Value")

_KEYS = "SELECT * FROM unnest(%s::text[], %s::text[]) AS keys (root, path)"
_SELECT_METADATA = (
    f"SELECT {METADATA} FROM resources"  # noqa: S608 - our columns
    f" WHERE (root, path) IN ({_KEYS})"
)
_SELECT_TREE = (
    f"(SELECT {METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE root = %s AND path >= %s AND path < %s AND path > %s ORDER BY path LIMIT %s)"
    f" UNION ALL ({_SELECT_METADATA})"
)
_SELECT_WHOLE = (
    f"(SELECT {METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE path >= %s AND path < %s AND path > %s ORDER BY path LIMIT %s)"
    f" UNION ALL ({_SELECT_METADATA})"
)
_SELECT_MEMBERS = (
    f"SELECT {METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE root = %s AND container = %s AND path > %s ORDER BY path LIMIT %s"
)
_SELECT_TOP_MEMBERS = (
    f"SELECT {METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE container = '/' AND path > %s ORDER BY path LIMIT %s"
)
_SELECT_ACLS = (
    f"SELECT {METADATA} FROM resources"  # noqa: S608 - our columns
    f" WHERE kind = {ResourceKind.ACL.value} AND path > %s ORDER BY path LIMIT %s"
)
_SELECT_CONTENT = (
    "SELECT r.version, b.content, b.sha256 FROM resources r"
    " LEFT JOIN bodies b ON b.root = r.root AND b.path = r.path WHERE r.root = %s AND r.path = %s"
)
_SELECT_POD_TOTALS = (
    "SELECT count(*), coalesce(sum(used), 0)::bigint, coalesce(sum(quota), 0)::bigint,"
    " count(*) FILTER (WHERE quota > 0 AND used * 10 >= quota * 9) FROM ("
    " SELECT coalesce(s.used_bytes, 0) AS used, coalesce(p.quota_bytes, %s) AS quota"
    " FROM pods p LEFT JOIN storages s ON s.root = p.root) each_pod"
)


# One row at least, with NULL for the metadata if nothing is stored at any of the paths.
_SELECT_AHEAD = (
    "SELECT c.number, s.used_bytes, r.* FROM registry_changes c"  # noqa: S608 - our columns
    " LEFT JOIN storages s ON s.root = %s LEFT JOIN"
    f" (SELECT member_count, {METADATA} FROM resources WHERE (root, path) IN ({_KEYS})) r ON TRUE"
)


PIPELINED_CONNECTIONS: Final = 2
"""How many connections of the pool reads are sent over. The others are for what takes longer, and
for short-lived records."""


class PrefetchedState(msgspec.Struct, frozen=True):
    """What the decision about a request needs, all of it of one moment."""

    registries: int
    """Changes whenever a pod or token does."""
    storage: str
    """The root container of the target's storage, empty for none."""
    used_bytes: int | None
    """``None`` if there is no such storage."""
    snapshot: dict[ResourcePath, Metadata | None]
    member_counts: dict[ResourcePath, int]
    """How many members each container has, without those that have none."""


class Reader:
    """Runs queries on the connections of a pool."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._pipelined = PipelinedReads(pool, connections=PIPELINED_CONNECTIONS)

    async def close(self) -> None:
        """Give all connections back to the pool."""
        await self._pipelined.close()

    async def read_metadata(self, paths: Iterable[ResourcePath]) -> Snapshot:
        """The metadata of each path, all in one snapshot. Raises StorageError."""
        wanted: dict[ResourcePath, Metadata | None] = dict.fromkeys(paths)
        keys = _keys(wanted)
        found = await self._all(_SELECT_METADATA, keys, rows.metadata_of, _storage_of(keys))
        wanted.update((metadata.path, metadata) for metadata in found)
        return wanted

    async def prefetch(self, paths: Sequence[ResourcePath]) -> PrefetchedState:
        """The metadata of each path, and what else concerns a request to the first of them.

        Raises StorageError, Overloaded.
        """
        storage = rows.root_of(paths[0])
        found = await self._all(_SELECT_AHEAD, (storage, *_keys(paths)), tuple, storage)
        wanted: dict[ResourcePath, Metadata | None] = dict.fromkeys(paths)
        member_counts: dict[ResourcePath, int] = {}
        with reading():
            registries, used_bytes = found[0][:2]
            for _, _, member_count, path, *rest in found:
                if path is not None:
                    wanted[path] = rows.metadata_of((path, *rest))
                    if member_count:
                        member_counts[path] = member_count
        return PrefetchedState(registries, storage, used_bytes, wanted, member_counts)

    async def read_tree(
        self,
        root: ResourcePath,
        also: Iterable[ResourcePath],
        after: ResourcePath | None,
        limit: int,
    ) -> Snapshot:
        """What is stored at and below ``root``, from ``after`` on, and the metadata of ``also``,
        all in one snapshot.

        Raises StorageError.
        """
        end = rows.end_of(root) if root.endswith("/") else f"{root} "  # paths have no spaces
        others: dict[ResourcePath, Metadata | None] = dict.fromkeys(also)
        values: tuple[Any, ...] = (root, end, after or "", limit, *_keys(others))
        select, storage = _SELECT_WHOLE, rows.root_of(root)
        if storage:
            select, values = _SELECT_TREE, (storage, *values)
        found = await self._all(select, values, rows.metadata_of, storage)
        others.update((metadata.path, metadata) for metadata in found)
        return others

    async def read_content(
        self, path: ResourcePath, version: Version
    ) -> tuple[bytes | None, bytes | None] | None:
        """Small body and its SHA-256 at the path, ``None`` if its version is another one by now.

        Raises StorageError.
        """
        storage = rows.root_of(path)
        row = await self._one(_SELECT_CONTENT, (storage, path), storage)
        return None if row is None or row[0] != version else (row[1], row[2])

    async def list_members(
        self, container: ResourcePath, after: ResourcePath | None, limit: int
    ) -> list[Metadata]:
        """Members in the byte order of their paths. Raises StorageError."""
        values: tuple[Any, ...] = (after or "", limit)
        storage = rows.root_of(container)
        if not storage:  # only the root of the server is in none
            return await self._all(_SELECT_TOP_MEMBERS, values, rows.metadata_of)
        values = (storage, container, *values)
        return await self._all(_SELECT_MEMBERS, values, rows.metadata_of, storage)

    async def list_acls(self, after: ResourcePath | None, limit: int) -> list[Metadata]:
        """ACLs in the byte order of their paths. Raises StorageError."""
        return await self._all(_SELECT_ACLS, (after or "", limit), rows.metadata_of)

    async def changes_after(self, sequence: int, limit: int) -> list[LoggedChange]:
        """Rows of the change log with a greater sequence number. Raises StorageError."""
        select = f"SELECT {CHANGES} FROM changes WHERE sequence > %s ORDER BY sequence LIMIT %s"  # noqa: S608
        return await self._all(select, (sequence, limit), rows.change_of)

    async def changes_before(
        self, sequence: int, first: int, below: ResourcePath, limit: int
    ) -> list[LoggedChange]:
        """Rows of the change log about a part of the tree, backwards. Raises StorageError."""
        select = (
            f"SELECT {CHANGES} FROM changes"  # noqa: S608 - our columns
            " WHERE sequence < %s AND sequence >= %s AND path >= %s AND path < %s"
            " ORDER BY sequence DESC LIMIT %s"
        )
        values = (sequence, first, below, rows.end_of(below), limit)
        return await self._all_slowly(select, values, rows.change_of)

    async def newest_sequence(self) -> int:
        """The number of the newest row the change log has had. Raises StorageError."""
        with reading():
            row = await self._one("SELECT value FROM counters WHERE name = 'changes'", ())
            if row is None:
                raise LookupError("the counter is missing")
            return int(row[0])

    async def deleted_acls(
        self, write: Version, paths: Iterable[ResourcePath]
    ) -> dict[ResourcePath, DeletedAcl]:
        """Access rules that a write deleted, of those paths. Raises StorageError."""
        select = (
            f"SELECT {rows.DELETED_ACLS} FROM deleted_acls"  # noqa: S608 - our columns
            " WHERE (root, path) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
            " AND write_version = %s"
        )
        found = await self._all(select, (*_keys(paths), write), rows.deleted_acl_of)
        return {deleted.metadata.path: deleted for deleted in found}

    async def read_pod(self, name: str) -> PodRecord | None:
        """The pod of that name, compared case-insensitively. Raises StorageError."""
        select = f"SELECT {PODS} FROM pods WHERE folded_name = %s"  # noqa: S608 - our columns
        return await self._first(select, (folded(name),), rows.pod_of)

    async def list_pods(self, after: str, limit: int) -> list[PodRecord]:
        """Pods by name, after ``after``. Raises StorageError."""
        select = (
            f"SELECT {PODS} FROM pods"  # noqa: S608 - our columns
            " WHERE folded_name > %s ORDER BY folded_name LIMIT %s"
        )
        return await self._all(select, (folded(after), limit), rows.pod_of)

    async def database_bytes(self) -> int:
        select = "SELECT pg_database_size(current_database())"
        ((size_bytes,),) = await self._all_slowly(select, (), tuple)
        return int(size_bytes)

    async def used_bytes(self, name: str) -> int:
        """The bytes that a pod is charged for. Raises StorageError."""
        select = (
            "SELECT s.used_bytes FROM pods p JOIN storages s ON s.root = p.root"
            " WHERE p.folded_name = %s"
        )
        row = await self._one(select, (folded(name),))
        return 0 if row is None else int(row[0])

    async def pod_totals(self, default_quota_bytes: int) -> PodTotals:
        """Sums over all pods. Raises StorageError."""
        with reading():
            (row,) = await self._all_slowly(_SELECT_POD_TOTALS, (default_quota_bytes,), tuple)
            return PodTotals(*map(int, row))

    async def list_charges(self, root: ResourcePath) -> dict[str, int]:
        """The charges of a storage besides its resources. Raises StorageError."""
        select = "SELECT charge, size_bytes FROM charges WHERE root = %s"
        return dict(await self._all(select, (root,), lambda row: (str(row[0]), int(row[1]))))

    async def read_token(self, token_id: str) -> TokenRecord | None:
        """The token with that ID. Raises StorageError."""
        select = f"SELECT {TOKENS} FROM tokens WHERE token_id = %s"  # noqa: S608 - our columns
        return await self._first(select, (token_id,), rows.token_of)

    async def list_tokens(self, pod: str | None) -> list[TokenRecord]:
        """All tokens, or those of one pod, newest first. Raises StorageError."""
        order = "ORDER BY issued_s DESC, token_id"
        select = f"SELECT {TOKENS} FROM tokens"  # noqa: S608 - our columns
        if pod is None:
            return await self._all_slowly(f"{select} {order}", (), rows.token_of)
        return await self._all(f"{select} WHERE pod = %s {order}", (pod,), rows.token_of)

    async def read_entry(self, entry: EntryId, now_ms: int) -> Entry | None:
        """The entry with that ID, unless it has expired. Raises StorageError."""
        if "\0" in entry:  # which no text of this database contains, and strangers may ask for it
            return None
        select = f"SELECT {ENTRIES} FROM entries WHERE entry = %s"  # noqa: S608 - our columns
        read = await self._first(select, (entry,), rows.entry_of)
        return None if read is None or read.has_expired(now_ms) else read

    async def list_entries(
        self, kind: str, *, owner: str | None, after: str, limit: int, now_ms: int
    ) -> list[Entry]:
        """Unexpired entries of a kind, in the order of their IDs, after ``after``.

        Raises StorageError.
        """
        condition = "entry > %s AND entry < %s AND (expires_ms IS NULL OR expires_ms > %s)"
        values: list[str | int] = [max(f"{kind}/", after), f"{kind}0", now_ms]
        if owner is not None:
            condition += " AND owner = %s"
            values.append(owner)
        select = f"SELECT {ENTRIES} FROM entries WHERE {condition} ORDER BY entry LIMIT %s"  # noqa: S608
        return await self._all(select, (*values, limit), rows.entry_of)

    async def count_entries(self, kind: str, at_most: int) -> int:
        """The number of entries of a kind, or ``at_most`` if it is larger. Raises StorageError."""
        select = (
            "SELECT count(*) FROM"
            " (SELECT 1 FROM entries WHERE entry > %s AND entry < %s LIMIT %s) AS found"
        )
        row = await self._one(select, (f"{kind}/", f"{kind}0", at_most))
        return 0 if row is None else int(row[0])

    async def _first(
        self,
        select: str,
        values: Sequence[Any],
        make: Callable[[Row], Value],
        storage: str = "",
    ) -> Value | None:
        found = await self._all(select, values, make, storage)
        return found[0] if found else None

    async def _one(self, select: str, values: Sequence[Any], storage: str = "") -> Row | None:
        return await self._first(select, values, tuple, storage)

    async def _all(
        self,
        select: str,
        values: Sequence[Any],
        make: Callable[[Row], Value],
        storage: str = "",
    ) -> list[Value]:
        with reading():
            try:
                found = await self._pipelined.fetch(select.encode(), values, storage)
            except psycopg.OperationalError as error:
                if not is_lost_connection(error):
                    raise
                # A read may be repeated. After a restart of the database, each connection fails
                # once.
                found = await self._pipelined.fetch(select.encode(), values, storage)
            return [make(row) for row in found]

    async def _all_slowly(
        self, select: str, values: Sequence[Any], make: Callable[[Row], Value]
    ) -> list[Value]:
        """The same for a statement that may take long, over a connection that no others wait
        for."""
        with reading():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(select.encode(), values, binary=True)
                return [make(row) for row in await cursor.fetchall()]


def _keys(paths: Iterable[ResourcePath]) -> tuple[list[str], list[str]]:
    wanted = list(paths)
    return [rows.root_of(path) for path in wanted], list(wanted)


def _storage_of(keys: tuple[list[str], list[str]]) -> str:
    """The storage of the first of some keys."""
    storages, _ = keys
    return storages[0] if storages else ""
