"""Reads from the database: one statement each, and therefore one snapshot and one round trip.

Nothing is cached here. A commit of any node is seen by the next read on every other, because each
read asks the database that orders the commits.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec
import psycopg

from podstead.core.identifiers import ResourcePath
from podstead.storage import tables
from podstead.storage.postgresql.connecting import ConnectionPool, is_lost_connection, reading
from podstead.storage.postgresql.pipelined_reads import PipelinedReads
from podstead.storage.protocol import Snapshot
from podstead.storage.records import DeletedAcl, Metadata, PodRecord, TokenRecord, Version
from podstead.storage.schema import Row
from podstead.storage.state import folded

Value = TypeVar("Value")

_KEYS = "SELECT * FROM unnest(%s::text[], %s::text[]) AS keys (root, path)"
_SELECT_METADATA = (
    f"SELECT {tables.METADATA} FROM resources"  # noqa: S608 - our columns
    f" WHERE (root, path) IN ({_KEYS})"
)
_SELECT_TREE = (
    f"(SELECT {tables.METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE root = %s AND path >= %s AND path < %s AND path > %s ORDER BY path LIMIT %s)"
    f" UNION ALL ({_SELECT_METADATA})"
)
_SELECT_WHOLE = (
    f"(SELECT {tables.METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE path >= %s AND path < %s AND path > %s ORDER BY path LIMIT %s)"
    f" UNION ALL ({_SELECT_METADATA})"
)
_SELECT_MEMBERS = (
    f"SELECT {tables.METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE root = %s AND container = %s AND path > %s ORDER BY path LIMIT %s"
)
_SELECT_TOP_MEMBERS = (
    f"SELECT {tables.METADATA} FROM resources"  # noqa: S608 - our columns
    " WHERE container = '/' AND path > %s ORDER BY path LIMIT %s"
)
_SELECT_CONTENT = (
    "SELECT r.version, b.content, b.sha256 FROM resources r"
    " LEFT JOIN bodies b ON b.root = r.root AND b.path = r.path WHERE r.root = %s AND r.path = %s"
)
# One row at least, with NULL for the metadata if nothing is stored at any of the paths.
_SELECT_AHEAD = (
    "SELECT c.number, s.used_bytes, r.* FROM registry_changes c"  # noqa: S608 - our columns
    " LEFT JOIN storages s ON s.root = %s LEFT JOIN"
    f" (SELECT member_count, {tables.METADATA} FROM resources WHERE (root, path) IN ({_KEYS})) r"
    " ON TRUE"
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
        found = await self.all(_SELECT_METADATA, keys, tables.metadata_of, _storage_of(keys))
        wanted.update((metadata.path, metadata) for metadata in found)
        return wanted

    async def prefetch(self, paths: Sequence[ResourcePath]) -> PrefetchedState:
        """The metadata of each path, and what else concerns a request to the first of them.

        Raises StorageError, Overloaded.
        """
        storage = tables.root_of(paths[0])
        found = await self.all(_SELECT_AHEAD, (storage, *_keys(paths)), tuple, storage)
        wanted: dict[ResourcePath, Metadata | None] = dict.fromkeys(paths)
        member_counts: dict[ResourcePath, int] = {}
        with reading():
            registries, used_bytes = found[0][:2]
            for _, _, member_count, path, *rest in found:
                if path is not None:
                    wanted[path] = tables.metadata_of((path, *rest))
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
        end = tables.end_of(root) if root.endswith("/") else f"{root} "  # paths have no spaces
        others: dict[ResourcePath, Metadata | None] = dict.fromkeys(also)
        values: tuple[Any, ...] = (root, end, after or "", limit, *_keys(others))
        select, storage = _SELECT_WHOLE, tables.root_of(root)
        if storage:
            select, values = _SELECT_TREE, (storage, *values)
        found = await self.all(select, values, tables.metadata_of, storage)
        others.update((metadata.path, metadata) for metadata in found)
        return others

    async def read_content(
        self, path: ResourcePath, version: Version
    ) -> tuple[bytes | None, bytes | None] | None:
        """Small body and its SHA-256 at the path, ``None`` if its version is another one by now.

        Raises StorageError.
        """
        storage = tables.root_of(path)
        row = await self._one(_SELECT_CONTENT, (storage, path), storage)
        return None if row is None or row[0] != version else (row[1], row[2])

    async def list_members(
        self, container: ResourcePath, after: ResourcePath | None, limit: int
    ) -> list[Metadata]:
        """Members in the byte order of their paths. Raises StorageError."""
        values: tuple[Any, ...] = (after or "", limit)
        storage = tables.root_of(container)
        if not storage:  # only the root of the server is in none
            return await self.all(_SELECT_TOP_MEMBERS, values, tables.metadata_of)
        values = (storage, container, *values)
        return await self.all(_SELECT_MEMBERS, values, tables.metadata_of, storage)

    async def deleted_acls(
        self, write: Version, paths: Iterable[ResourcePath]
    ) -> dict[ResourcePath, DeletedAcl]:
        """Access rules that a write deleted, of those paths. Raises StorageError."""
        select = (
            f"SELECT {tables.DELETED_ACL} FROM deleted_acls"  # noqa: S608 - our columns
            " WHERE (root, path) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"
            " AND write_version = %s"
        )
        found = await self.all(select, (*_keys(paths), write), tables.deleted_acl_of)
        return {deleted.metadata.path: deleted for deleted in found}

    async def read_pod(self, name: str) -> PodRecord | None:
        """The pod of that name, compared case-insensitively. Raises StorageError."""
        select = f"SELECT {tables.POD} FROM pods WHERE folded_name = %s"  # noqa: S608 - our columns
        return await self._first(select, (folded(name),), tables.pod_of)

    async def database_bytes(self) -> int:
        select = "SELECT pg_database_size(current_database())"
        ((size_bytes,),) = await self.all_slowly(select, (), tuple)
        return int(size_bytes)

    async def read_token(self, token_id: str) -> TokenRecord | None:
        """The token with that ID. Raises StorageError."""
        select = f"SELECT {tables.TOKENS.names} FROM tokens WHERE token_id = %s"  # noqa: S608 - our columns
        return await self._first(select, (token_id,), tables.token_of)

    async def _first(
        self,
        select: str,
        values: Sequence[Any],
        make: Callable[[Row], Value],
        storage: str = "",
    ) -> Value | None:
        found = await self.all(select, values, make, storage)
        return found[0] if found else None

    async def _one(self, select: str, values: Sequence[Any], storage: str = "") -> Row | None:
        return await self._first(select, values, tuple, storage)

    async def all(
        self,
        select: str,
        values: Sequence[Any],
        make: Callable[[Row], Value],
        storage: str = "",
    ) -> list[Value]:
        """What ``make`` makes of each row. Raises StorageError, Overloaded."""
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

    async def all_slowly(
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
    return [tables.root_of(path) for path in wanted], list(wanted)


def _storage_of(keys: tuple[list[str], list[str]]) -> str:
    """The storage of the first of some keys."""
    storages, _ = keys
    return storages[0] if storages else ""
