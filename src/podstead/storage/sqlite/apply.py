"""Loading the state of a batch of writes from the tables, and storing what the batch changed.

:func:`load` reads the rows that deciding a batch requires, :func:`flush` stores the changes. Both
run in one write transaction; see ``storage/state.py`` for the state between them.
"""

from collections.abc import Mapping, Sequence

import apsw
from msgspec.structs import astuple

from podstead.core.identifiers import ResourcePath
from podstead.storage import records, tables
from podstead.storage import state as storage_state
from podstead.storage.former_states import RENAME_ROOT, former_statements, rename_values
from podstead.storage.sqlite.statements import in_sqlite, insert_rows, run_in

_SELECT_RESOURCES = f"SELECT {tables.RESOURCES.names} FROM resources WHERE path IN"  # noqa: S608
_INSERT_RESOURCES = tables.RESOURCES.insert
_REPLACE_RESOURCES = tables.RESOURCES.replace()
_DELETE_RESOURCES = "DELETE FROM resources WHERE path IN"

_INSERT_BODIES = tables.BODIES.insert
_REPLACE_BODIES = tables.BODIES.replace()
_SELECT_BODY = "SELECT content, sha256 FROM bodies WHERE path = ?"
_COPY_BODY = (
    f"{_INSERT_BODIES} SELECT ?, content, sha256 FROM bodies WHERE path = ?"  # noqa: S608
    f" {_REPLACE_BODIES}"
)
_DELETE_BODIES = "DELETE FROM bodies WHERE path IN"

_INSERT_DELETED_ACL = (
    f"{tables.DELETED_ACLS.insert}"  # noqa: S608 - our columns
    " VALUES (?1, ?2, ?3, ?4, coalesce(?5, (SELECT content FROM bodies WHERE path = ?2)), ?6)"
)

_FORGET_DELETED_ACLS = (
    "UPDATE deleted_acls SET content = NULL WHERE rowid IN (SELECT rowid FROM (SELECT rowid,"  # noqa: S608 - our numbers
    f" sum(max(length(content), {storage_state.MIN_DELETED_ACL_BYTES}))"
    " OVER (ORDER BY at_ms DESC, rowid DESC)"
    " AS stored_bytes FROM deleted_acls WHERE content IS NOT NULL AND path >= ? AND path < ?)"
    f" WHERE stored_bytes > {storage_state.MAX_DELETED_ACL_BYTES})"
)
_SELECT_STAGED = "SELECT blob FROM staged WHERE blob IN"
_DELETE_STAGED = "DELETE FROM staged WHERE blob IN"
_INSERT_GARBAGE = "INSERT INTO garbage (blob, dropped_ms)"

_SELECT_STORAGES = (
    # The names of pods are ASCII, so lower() folds them. A pod is created with its root container,
    # so its storage has a row.
    "SELECT s.root, s.used_bytes, p.folded_name, p.quota_bytes FROM storages s"
    " LEFT JOIN pods p ON p.folded_name = lower(trim(s.root, '/')) WHERE s.root IN"
)
_INSERT_STORAGES = tables.STORAGES.insert
_REPLACE_STORAGES = tables.STORAGES.replace()

_SELECT_SEQUENCE = "SELECT value FROM counters WHERE name = 'changes'"
_INSERT_CHANGES = tables.CHANGES.insert
_UPDATE_SEQUENCE = "UPDATE counters SET value = ? WHERE name = 'changes'"

_INSERT_PODS = tables.PODS.insert
_SELECT_PODS = "SELECT folded_name FROM pods WHERE folded_name IN"
_DELETE_POD = "DELETE FROM pods WHERE folded_name = ?"
_SET_QUOTA = "UPDATE pods SET quota_bytes = ? WHERE folded_name = ?"

_SELECT_ENTRIES = f"SELECT {tables.ENTRIES.names} FROM entries WHERE entry IN"  # noqa: S608
_INSERT_ENTRIES = tables.ENTRIES.insert
_REPLACE_ENTRIES = tables.ENTRIES.replace()
_DELETE_ENTRIES = "DELETE FROM entries WHERE entry IN"

_INSERT_TOKENS = tables.TOKENS.insert
# The time of the first revocation is kept.
_REVOKE = "UPDATE tokens SET revoked_s = ? WHERE token_id = ? AND revoked_s IS NULL"


def load(connection: apsw.Connection, needs: storage_state.RequiredRows) -> storage_state.State:
    """Read everything that ``needs`` names. Raises apsw.Error."""
    # Every requested key is in the state, with ``None`` for absence, so that a key that was not
    # requested raises KeyError and is never mistaken for an absent one.
    resources: dict[ResourcePath, storage_state.ResourceRow | None] = dict.fromkeys(needs.paths)
    for values in run_in(connection, _SELECT_RESOURCES, tuple(needs.paths)):
        row = storage_state.ResourceRow(*values)
        resources[row.path] = row
    entries: dict[records.EntryId, records.Entry | None] = dict.fromkeys(needs.entries)
    for values in run_in(connection, _SELECT_ENTRIES, tuple(needs.entries)):
        entry = records.Entry(*values)
        entries[entry.entry] = entry
    pods = run_in(connection, _SELECT_PODS, tuple(needs.pods))
    used_bytes: dict[ResourcePath, int] = {}
    own_quotas: dict[str, int] = {}
    for root, used, pod, quota_bytes in run_in(connection, _SELECT_STORAGES, tuple(needs.roots)):
        used_bytes[root] = used
        if quota_bytes is not None:
            own_quotas[pod] = quota_bytes
    staged = run_in(connection, _SELECT_STAGED, tuple(needs.blobs))
    return storage_state.State(
        resources=resources,
        taken_pods={name for (name,) in pods},
        used_bytes=used_bytes,
        own_quotas=own_quotas,
        staged={blob for (blob,) in staged},
        entries=entries,
        sequence=connection.execute(_SELECT_SEQUENCE).get,
    )


def flush(connection: apsw.Connection, state: storage_state.State) -> None:
    """Store everything that has changed since the state was loaded. Raises apsw.Error."""
    resources, removed = storage_state.changed_rows(state.changed_paths, state.resources)
    run_in(connection, _DELETE_RESOURCES, removed)
    insert_rows(connection, _INSERT_RESOURCES, resources, _REPLACE_RESOURCES)
    if state.deleted_acls:  # before the bodies, which the statement copies
        _store_deleted_acls(connection, state.deleted_acls)
    for text, values in former_statements(state.former, bodies_have_root=False):  # likewise
        connection.execute(in_sqlite(text), values)
    bodies, removed, copies = storage_state.changed_bodies(state)
    if copies:
        bodies += _copy_bodies(connection, copies)
    run_in(connection, _DELETE_BODIES, removed)
    insert_rows(connection, _INSERT_BODIES, bodies, _REPLACE_BODIES)
    run_in(connection, _DELETE_STAGED, state.taken_blobs)
    insert_rows(connection, _INSERT_GARBAGE, state.garbage)
    storages = [(root, state.used_bytes[root]) for root in state.changed_roots]
    insert_rows(connection, _INSERT_STORAGES, storages, _REPLACE_STORAGES)
    # In the transaction of the changes themselves, so that the log always matches them.
    if state.changes:
        insert_rows(connection, _INSERT_CHANGES, state.changes)
        connection.execute(_UPDATE_SEQUENCE, (state.sequence,))
    if state.dropped_pods or state.pods or state.quotas:
        _flush_pods(connection, state)
    for token in state.tokens:
        _flush_token(connection, token)
    if state.rows:
        _flush_rows(connection, state.rows)
    if state.changed_entries:
        entries, gone = storage_state.changed_rows(state.changed_entries, state.entries)
        run_in(connection, _DELETE_ENTRIES, gone)
        insert_rows(connection, _INSERT_ENTRIES, entries, _REPLACE_ENTRIES)


def _flush_pods(connection: apsw.Connection, state: storage_state.State) -> None:
    for name in state.dropped_pods:
        connection.execute(_DELETE_POD, (name,))
    for pod in state.pods:
        insert_rows(connection, _INSERT_PODS, [(storage_state.folded(pod.name), *astuple(pod))])
    for quota in state.quotas:
        connection.execute(_SET_QUOTA, (quota.quota_bytes, storage_state.folded(quota.name)))


def _store_deleted_acls(
    connection: apsw.Connection, deleted_acls: Sequence[storage_state.DeletedAclRow]
) -> None:
    for deleted in deleted_acls:
        connection.execute(_INSERT_DELETED_ACL, deleted)
    for root in storage_state.storages_of(deleted_acls):
        connection.execute(_FORGET_DELETED_ACLS, (root, tables.end_of(root)))


def _flush_rows(connection: apsw.Connection, rows: Sequence[records.RowRecord]) -> None:
    for statement, values in storage_state.row_statements(rows):
        connection.execute(in_sqlite(statement), values)
    for each in rows:
        if isinstance(each, records.MoveRows):
            values = rename_values(each.root, each.new_root)
            connection.execute(in_sqlite(RENAME_ROOT), values)


def _copy_bodies(
    connection: apsw.Connection, copies: Mapping[ResourcePath, ResourcePath]
) -> list[tuple[ResourcePath, bytes, bytes | None]]:
    """Copy bodies from path to path, and return those that must be stored after all are copied,
    because they replace the source of another copy."""
    sources = set(copies.values())
    replacing: list[tuple[ResourcePath, bytes, bytes | None]] = []
    for path, source in copies.items():
        if path in sources:
            replacing += [
                (path, content, sha256)
                for content, sha256 in connection.execute(_SELECT_BODY, (source,))
            ]
    connection.executemany(_COPY_BODY, [copy for copy in copies.items() if copy[0] not in sources])
    return replacing


def _flush_token(
    connection: apsw.Connection, token: records.TokenRecord | records.TokenRevocation
) -> None:
    if isinstance(token, records.TokenRevocation):
        connection.execute(_REVOKE, (token.at_s, token.token_id))
    else:
        insert_rows(connection, _INSERT_TOKENS, [astuple(token)])
