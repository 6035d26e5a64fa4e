"""Loading the state of a batch of writes from the tables, and storing what the batch changed.

Each half costs one round trip, because its statements are sent together. Before, :func:`lock` takes
an advisory lock for each storage and each other key that the batch decides about. All batches take
their locks in the same order, so they never wait for each other in a circle, and what a decision
has seen cannot change before its transaction ends; that includes the absence of rows.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import psycopg
from msgspec.structs import astuple

from podstead.core.identifiers import ResourcePath
from podstead.storage import state as storage_state
from podstead.storage import tables
from podstead.storage.former_states import RENAME_ROOT, former_statements, rename_values
from podstead.storage.records import Entry, MoveRows, TokenRecord, TokenRevocation
from podstead.storage.schema import Row, SqlTable

Connection = psycopg.AsyncConnection[Row]
Cursor = psycopg.AsyncCursor[Row]

CHANNEL: Final = "podstead_changes"
"""The channel of LISTEN and NOTIFY on which growth of the change log is announced."""

_LOCKS: Final = "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS keys (key)"
_KEYS: Final = "SELECT * FROM unnest(%s::text[], %s::text[])"


def _put(table: SqlTable) -> str:
    """The INSERT of many rows, whose values are one array for each column."""
    columns, types = list(table.columns), [column.value for column in table.columns.values()]
    if table.has_root:
        columns, types = ["root", *columns], ["text", *types]
    arrays = ", ".join(f"%s::{column}[]" for column in types)
    return f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"  # noqa: S608


def _replace(table: SqlTable) -> str:
    """The same, replacing rows with the same keys."""
    return f"{_put(table)} {table.replace(with_root=table.has_root)}"


_SELECT_RESOURCES: Final = (
    f"SELECT {tables.RESOURCES.names} FROM resources WHERE (root, path) IN ({_KEYS})"  # noqa: S608
)
_PUT_RESOURCES: Final = _replace(tables.RESOURCES)
_DELETE_RESOURCES: Final = f"DELETE FROM resources WHERE (root, path) IN ({_KEYS})"  # noqa: S608

_PUT_BODIES: Final = _replace(tables.BODIES)
# One statement reads all sources before it replaces any, so a source may be a target as well.
_COPY_BODIES: Final = (
    "INSERT INTO bodies (root, path, content, sha256)"  # noqa: S608 - our columns
    " SELECT c.root, c.path, b.content, b.sha256"
    " FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])"
    " AS c (root, path, source_root, source)"
    " JOIN bodies b ON b.root = c.source_root AND b.path = c.source"
    f" {tables.BODIES.replace(with_root=True)}"
)
_DELETE_BODIES: Final = f"DELETE FROM bodies WHERE (root, path) IN ({_KEYS})"  # noqa: S608

_PUT_DELETED_ACL: Final = (
    "INSERT INTO deleted_acls (root, write_version, path, version, content_type, content, at_ms)"
    " VALUES (%s, %s, %s, %s, %s, coalesce(%s::bytea,"
    " (SELECT content FROM bodies WHERE root = %s AND path = %s)), %s)"
)
_FORGET_DELETED_ACLS: Final = (
    "UPDATE deleted_acls SET content = NULL WHERE (root, write_version, path) IN"  # noqa: S608 - our numbers
    " (SELECT root, write_version, path FROM (SELECT root, write_version, path,"
    f" sum(greatest(octet_length(content), {storage_state.MIN_DELETED_ACL_BYTES}))"
    " OVER (ORDER BY at_ms DESC, write_version, path) AS stored_bytes"
    " FROM deleted_acls WHERE content IS NOT NULL AND root = %s) each_acl"
    f" WHERE stored_bytes > {storage_state.MAX_DELETED_ACL_BYTES})"
)
_SELECT_STAGED: Final = "SELECT blob FROM staged WHERE blob = ANY(%s) ORDER BY blob FOR UPDATE"
_DELETE_STAGED: Final = "DELETE FROM staged WHERE blob = ANY(%s)"
_PUT_GARBAGE: Final = (
    "INSERT INTO garbage (blob, dropped_ms) SELECT * FROM unnest(%s::text[], %s::bigint[])"
)
_SELECT_STORAGES: Final = (
    # The names of pods are ASCII, so lower() folds them.
    "SELECT s.root, s.used_bytes, p.folded_name, p.quota_bytes FROM storages s"
    " LEFT JOIN pods p ON p.folded_name = lower(trim(both '/' from s.root))"
    " WHERE s.root = ANY(%s) ORDER BY s.root FOR UPDATE OF s"
)
_PUT_STORAGES: Final = _replace(tables.STORAGES)
_SELECT_PODS: Final = "SELECT folded_name FROM pods WHERE folded_name = ANY(%s)"
_PUT_POD: Final = f"{tables.PODS.insert} VALUES (%s, %s, %s, %s, %s, %s)"
_DELETE_PODS: Final = "DELETE FROM pods WHERE folded_name = ANY(%s)"
_SET_QUOTA: Final = "UPDATE pods SET quota_bytes = %s WHERE folded_name = %s"
_SELECT_ENTRIES: Final = f"SELECT {tables.ENTRIES.names} FROM entries WHERE entry = ANY(%s)"  # noqa: S608
_PUT_ENTRIES: Final = _replace(tables.ENTRIES)
_DELETE_ENTRIES: Final = "DELETE FROM entries WHERE entry = ANY(%s)"
_PUT_TOKEN: Final = f"{tables.TOKENS.insert} VALUES (%s, %s, %s, %s, %s, %s)"
# The time of the first revocation is kept.
_REVOKE: Final = "UPDATE tokens SET revoked_s = %s WHERE token_id = %s AND revoked_s IS NULL"

# The lock on this row is held until the commit, so numbers appear in their order, without a gap.
_NEXT_SEQUENCE: Final = (
    "UPDATE counters SET value = value + %s WHERE name = 'changes' RETURNING value - %s"
)
_PUT_CHANGES: Final = (
    f"{tables.CHANGES.insert}"  # noqa: S608 - our columns
    " SELECT counters.value - %s + c.number, c.path, c.activity, c.agent, c.version, c.at_ms"
    " FROM counters, unnest("
    "%s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::text[], %s::bigint[])"
    " AS c (number, path, activity, agent, version, at_ms) WHERE counters.name = 'changes'"
)
_NOTIFY: Final = f"NOTIFY {CHANNEL}"


def lock_key(name: str) -> int:
    """The number of the advisory lock for a name. If two names share one, that only costs time."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def locks_of(needs: storage_state.RequiredRows) -> list[int]:
    """The advisory locks of what a batch decides about, in the order in which to take them."""
    names = {tables.root_of(path) for path in needs.paths}
    names.update(f"entry {entry}" for entry in needs.entries)
    names.update(f"pod {name}" for name in needs.pods)
    names.update(f"row {row}" for row in needs.rows)
    return sorted({lock_key(name) for name in names})


async def lock(connection: Connection, needs: storage_state.RequiredRows) -> None:
    """Take the locks of everything that ``needs`` names. Called in a transaction within a pipeline;
    does not wait for the database."""
    await connection.execute(_LOCKS, (locks_of(needs),))


async def load(connection: Connection, needs: storage_state.RequiredRows) -> storage_state.State:
    """Read everything that ``needs`` names, after it was locked. Called within a pipeline.

    Raises psycopg.Error.
    """
    resources = await _select(connection, _SELECT_RESOURCES, _path_keys(needs.paths))
    entries = await _select(connection, _SELECT_ENTRIES, (list(needs.entries),))
    pods = await _select(connection, _SELECT_PODS, (list(needs.pods),))
    storages = await _select(connection, _SELECT_STORAGES, (list(needs.roots),))
    staged = await _select(connection, _SELECT_STAGED, (list(needs.blobs),))
    # All of them are sent before the first result is waited for.
    found_resources = await _fetch(resources)
    found_entries = await _fetch(entries)
    found_pods = await _fetch(pods)
    found_storages = await _fetch(storages)
    found_staged = await _fetch(staged)
    # Every requested key is in the state, with ``None`` for absence, so that a key that was not
    # requested raises KeyError and is never mistaken for an absent one.
    state = storage_state.State(
        resources=dict.fromkeys(needs.paths),
        taken_pods={name for (name,) in found_pods},
        used_bytes={root: used for root, used, _, _ in found_storages},
        own_quotas={pod: quota for _, _, pod, quota in found_storages if quota is not None},
        staged={blob for (blob,) in found_staged},
        entries=dict.fromkeys(needs.entries),
        # Numbers are relative until the batch is stored.
        sequence=0,
    )
    for values in found_resources:
        row = storage_state.ResourceRow(*values)
        state.resources[row.path] = row
    for values in found_entries:
        entry = Entry(*values)
        state.entries[entry.entry] = entry
    return state


async def flush(connection: Connection, state: storage_state.State) -> Cursor | None:
    """Store everything that has changed since the state was loaded.

    Returns a result for :func:`base_of`, ``None`` if the batch has no changes to log. Does not wait
    for the database, so that the commit can be sent with it. Raises psycopg.Error.
    """
    await _flush_resources(connection, state)
    for deleted in state.deleted_acls:  # before the bodies, which the statement copies
        *first, at_ms = deleted
        root = tables.root_of(deleted.path)
        values = (root, *first, root, deleted.path, at_ms)
        await connection.execute(_PUT_DELETED_ACL, values)
    for storage in storage_state.storages_of(state.deleted_acls):
        await connection.execute(_FORGET_DELETED_ACLS, (storage,))
    for statement, row in former_statements(state.former, bodies_have_root=True):  # likewise
        await connection.execute(statement.encode(), row)
    await _flush_bodies(connection, state)
    if state.taken_blobs:
        await connection.execute(_DELETE_STAGED, (state.taken_blobs,))
    if state.garbage:
        await connection.execute(_PUT_GARBAGE, _columns(state.garbage))
    if state.changed_roots:
        storages = [(root, state.used_bytes[root]) for root in state.changed_roots]
        await connection.execute(_PUT_STORAGES, _columns(storages))
    await _flush_registries(connection, state)
    if state.changed_entries:
        await _flush_entries(connection, state)
    # Last, because all other writers of the log wait from here to the commit.
    return await _flush_changes(connection, state) if state.changes else None


async def base_of(numbers: Cursor) -> int:
    """What to add to the relative numbers of the changes of a batch. Raises psycopg.Error."""
    row = await numbers.fetchone()
    if row is None:
        raise psycopg.DataError("The counter of the change log is missing")
    return int(row[0])


async def _flush_changes(connection: Connection, state: storage_state.State) -> Cursor:
    count = len(state.changes)
    numbers = await connection.execute(_NEXT_SEQUENCE, (count, count))
    await connection.execute(_PUT_CHANGES, (count, *_columns(state.changes)))
    await connection.execute(_NOTIFY)
    return numbers


async def _flush_resources(connection: Connection, state: storage_state.State) -> None:
    stored, gone = storage_state.changed_rows(state.changed_paths, state.resources)
    if gone:
        await connection.execute(_DELETE_RESOURCES, _path_keys(gone))
    if stored:
        await connection.execute(_PUT_RESOURCES, _rooted(stored))


async def _flush_bodies(connection: Connection, state: storage_state.State) -> None:
    stored, gone, copies = storage_state.changed_bodies(state)
    if copies:
        await connection.execute(_COPY_BODIES, _copy_columns(copies))
    if gone:
        await connection.execute(_DELETE_BODIES, _path_keys(gone))
    if stored:
        await connection.execute(_PUT_BODIES, _rooted(stored))


async def _flush_registries(connection: Connection, state: storage_state.State) -> None:
    if state.dropped_pods:
        await connection.execute(_DELETE_PODS, (state.dropped_pods,))
    for pod in state.pods:
        await connection.execute(_PUT_POD, (storage_state.folded(pod.name), *astuple(pod)))
    for quota in state.quotas:
        await connection.execute(_SET_QUOTA, (quota.quota_bytes, storage_state.folded(quota.name)))
    for token in state.tokens:
        await _flush_token(connection, token)
    if state.rows:
        for statement, values in storage_state.row_statements(state.rows):
            await connection.execute(statement.encode(), values)
        for each in state.rows:
            if isinstance(each, MoveRows):
                values = rename_values(each.root, each.new_root)
                await connection.execute(RENAME_ROOT.encode(), values)


async def _flush_token(connection: Connection, token: TokenRecord | TokenRevocation) -> None:
    if isinstance(token, TokenRevocation):
        await connection.execute(_REVOKE, (token.at_s, token.token_id))
    else:
        await connection.execute(_PUT_TOKEN, astuple(token))


async def _flush_entries(connection: Connection, state: storage_state.State) -> None:
    stored, gone = storage_state.changed_rows(state.changed_entries, state.entries)
    if gone:
        await connection.execute(_DELETE_ENTRIES, (gone,))
    if stored:
        await connection.execute(_PUT_ENTRIES, _columns(stored))


async def _select(connection: Connection, statement: str, values: Sequence[Any]) -> Cursor | None:
    """Queue a SELECT, unless it asks for nothing."""
    if not values[0]:
        return None
    return await connection.execute(statement, values, binary=True)


async def _fetch(cursor: Cursor | None) -> list[Row]:
    return [] if cursor is None else await cursor.fetchall()


def _path_keys(paths: Sequence[ResourcePath] | set[ResourcePath]) -> tuple[list[str], list[str]]:
    wanted = list(paths)
    return [tables.root_of(path) for path in wanted], [str(path) for path in wanted]


def _copy_columns(copies: Mapping[ResourcePath, ResourcePath]) -> tuple[list[str], ...]:
    return (*_path_keys(list(copies)), *_path_keys(list(copies.values())))


def _columns(values: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows as one list for each column, for ``unnest``."""
    return [list(column) for column in zip(*values, strict=True)]


def _rooted(values: Sequence[Row]) -> list[list[Any]]:
    """The same for rows that begin with a path, with the root in front."""
    columns = _columns(values)
    return [[tables.root_of(path) for path in columns[0]], *columns]
