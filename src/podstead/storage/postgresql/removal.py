"""How is a pod removed? Access ends in one transaction; the resources are deleted in batches, so
that other writes can run in between.

The first transaction removes the pod, its tokens, its entries and all ACLs below its root: from
then on nobody has access, and the name remains taken. An entry records that the rest must be
removed; if the node ends, the next sweep of any node continues. The root container is deleted last,
so that no pod of that name can be created before the removal is complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from podstead.storage.pod_tombstones import pod_tombstone
from podstead.storage.postgresql.apply import CHANNEL, Connection, lock_key
from podstead.storage.records import ChangeType, PodRemoval, ResourceKind
from podstead.storage.state import folded
from podstead.storage.tables import CHANGES, end_of

BATCH_ROWS: Final = 500
"""The maximum number of resources that one transaction removes."""

_KIND: Final = "removal"
_LOCK: Final = "SELECT pg_advisory_xact_lock(%s)"
_KEEP_ACLS: Final = (
    "INSERT INTO deleted_acls (root, write_version, path, version, content_type, content, at_ms)"
    " SELECT r.root, %s, r.path, r.version, r.content_type, b.content, %s"
    " FROM resources r LEFT JOIN bodies b ON b.root = r.root AND b.path = r.path"
    " WHERE r.root = %s AND r.kind = %s"
)
_PUT_ENTRY: Final = (
    "INSERT INTO entries (entry, version, value) VALUES (%s, %s, %s) ON CONFLICT (entry)"
    " DO UPDATE SET version = excluded.version, value = excluded.value, owner = NULL,"
    " expires_ms = NULL"
)
_LOG: Final = (
    "WITH numbers AS (UPDATE counters SET value = value + %s WHERE name = 'changes'"  # noqa: S608
    " RETURNING value - %s AS base)"
    f" {CHANGES.insert}"
    " SELECT numbers.base + gone.number, gone.path, %s, %s, %s, %s"
    " FROM numbers, unnest(%s::text[]) WITH ORDINALITY AS gone (path, number)"
)


class _PendingRemoval(msgspec.Struct, frozen=True):
    """A removal in progress: everything below ``root`` must be deleted."""

    root: str
    version: str
    at_ms: int
    agent: str | None

    @property
    def entry(self) -> str:
        return f"{_KIND}/{self.root}"


async def begin_removal(connection: Connection, removal: PodRemoval) -> bool:
    """End all access to the pod and start its removal; False if there is none of that name.

    Raises psycopg.Error.
    """
    name = folded(removal.name)
    found = await connection.execute("SELECT root FROM pods WHERE folded_name = %s", (name,))
    row = await found.fetchone()
    if row is None:
        return False
    # The locks of a batch of writes, in the same order.
    for key in sorted({lock_key(row[0]), lock_key(f"pod {name}")}):
        await connection.execute(_LOCK, (key,))
    deleted = await connection.execute(
        "DELETE FROM pods WHERE folded_name = %s RETURNING name, root", (name,)
    )
    pod = await deleted.fetchone()
    if pod is None:  # somebody else was faster
        return False
    _, root = pod
    await connection.execute("DELETE FROM storages WHERE root = %s", (root,))
    await connection.execute("DELETE FROM charges WHERE root = %s", (root,))
    await connection.execute("DELETE FROM tokens WHERE pod = %s", (pod[0],))
    owners = [owner for owner in (root, removal.entry_owner) if owner is not None]
    await connection.execute("DELETE FROM entries WHERE owner = ANY(%s)", (owners,))
    pending = _PendingRemoval(root, removal.version, removal.at_ms, removal.agent)
    rules = ResourceKind.ACL.value
    await connection.execute(_KEEP_ACLS, (pending.version, pending.at_ms, root, rules))
    acls = await connection.execute(
        "SELECT path FROM resources WHERE root = %s AND kind = %s", (root, rules)
    )
    await _drop(connection, pending, [path for (path,) in await acls.fetchall()])
    await connection.execute(_PUT_ENTRY, (pod_tombstone(removal.name), removal.version, b""))
    await connection.execute(
        _PUT_ENTRY, (pending.entry, removal.version, msgspec.msgpack.encode(pending))
    )
    await _remove_batch(connection, pending)  # for a small pod, this is everything
    return True


async def continue_removal(connection: Connection) -> bool:
    """Remove a batch of resources of deleted pods; whether there may be more.

    Raises psycopg.Error.
    """
    noted = await connection.execute(
        "SELECT value FROM entries WHERE entry >= %s AND entry < %s"
        " ORDER BY entry LIMIT 1 FOR UPDATE SKIP LOCKED",
        (f"{_KIND}/", f"{_KIND}0"),
    )
    row = await noted.fetchone()
    if row is None:
        return False
    pending = msgspec.msgpack.decode(row[0], type=_PendingRemoval)
    await connection.execute(_LOCK, (lock_key(pending.root),))
    await _remove_batch(connection, pending)
    return True


async def _remove_batch(connection: Connection, pending: _PendingRemoval) -> None:
    # In descending order, so that members are deleted before their containers.
    found = await connection.execute(
        "SELECT path FROM resources WHERE root = %s AND path >= %s AND path < %s"
        " ORDER BY path DESC LIMIT %s",
        (pending.root, pending.root, end_of(pending.root), BATCH_ROWS),
    )
    paths = [path for (path,) in await found.fetchall()]
    await _drop(connection, pending, paths)
    await _log(connection, pending, paths)
    if len(paths) < BATCH_ROWS:
        # ACLs are logged last, so that subscribers are still notified that a resource was deleted.
        gone = await connection.execute(
            "SELECT path FROM deleted_acls WHERE root = %s AND write_version = %s"
            " ORDER BY path DESC",
            (pending.root, pending.version),
        )
        await _log(connection, pending, [path for (path,) in await gone.fetchall()])
        await connection.execute("DELETE FROM entries WHERE entry = %s", (pending.entry,))


async def _drop(connection: Connection, pending: _PendingRemoval, paths: Sequence[str]) -> None:
    """Delete resources of the pod with their bodies."""
    if not paths:
        return
    key = (pending.root, list(paths))
    await connection.execute(
        "INSERT INTO garbage (blob, dropped_ms) SELECT blob, %s FROM resources"
        " WHERE root = %s AND path = ANY(%s) AND blob IS NOT NULL",
        (pending.at_ms, *key),
    )
    await connection.execute("DELETE FROM bodies WHERE root = %s AND path = ANY(%s)", key)
    await connection.execute("DELETE FROM resources WHERE root = %s AND path = ANY(%s)", key)


async def _log(connection: Connection, pending: _PendingRemoval, paths: Sequence[str]) -> None:
    if not paths:
        return
    count, deletion = len(paths), ChangeType.DELETE.value
    await connection.execute(
        _LOG,
        (count, count, deletion, pending.agent, pending.version, pending.at_ms, list(paths)),
    )
    await connection.execute(f"NOTIFY {CHANNEL}")
