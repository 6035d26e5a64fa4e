"""How is a pod removed? Access ends in one transaction; the resources are deleted in batches, so
that other writes can run in between and neither the database file nor its log grows.

The first transaction removes the pod, its tokens, its entries and all ACLs below its root: from
then on nobody has access, and the name remains taken. An entry records that the rest must be
removed; if the process ends, the next sweep continues. The root container is deleted last, so that
no pod of that name can be created before the removal is complete.
"""

from __future__ import annotations

from typing import Final

import apsw
import msgspec

from podstead.core.identifiers import ResourcePath
from podstead.storage.pod_tombstones import pod_tombstone
from podstead.storage.records import ChangeType, PodRemoval, ResourceKind
from podstead.storage.sqlite.statements import insert_rows
from podstead.storage.state import folded
from podstead.storage.tables import CHANGES, DELETED_ACLS, Row, end_of

BATCH_ROWS: Final = 500
"""The maximum number of resources that one transaction removes."""

_KIND: Final = "removal"
_KEEP_ACLS: Final = (
    f"{DELETED_ACLS.insert}"  # noqa: S608 - our columns
    " SELECT ?, r.path, r.version, r.content_type, b.content, ?"
    " FROM resources r LEFT JOIN bodies b ON b.path = r.path"
    " WHERE r.path >= ? AND r.path < ? AND r.kind = ?"
)
_IN_RANGE: Final = "path >= ? AND path < ?"
_PUT_ENTRY: Final = "INSERT OR REPLACE INTO entries (entry, version, value) VALUES (?, ?, ?)"


class _PendingRemoval(msgspec.Struct, frozen=True):
    """A removal in progress: everything below ``root`` must be deleted."""

    root: str
    version: str
    at_ms: int
    agent: str | None

    @property
    def entry(self) -> str:
        return f"{_KIND}/{self.root}"


def begin_removal(connection: apsw.Connection, removal: PodRemoval) -> bool:
    """End all access to the pod and start its removal; False if there is none of that name.

    Raises apsw.Error.
    """
    pod: tuple[str, str] | None = connection.execute(
        "DELETE FROM pods WHERE folded_name = ? RETURNING name, root", (folded(removal.name),)
    ).get
    if pod is None:
        return False
    name, root = pod
    connection.execute("DELETE FROM storages WHERE root = ?", (root,))
    connection.execute("DELETE FROM charges WHERE root = ?", (root,))
    connection.execute("DELETE FROM tokens WHERE pod = ?", (name,))
    for owner in (root, removal.entry_owner):
        if owner is not None:
            connection.execute("DELETE FROM entries WHERE owner = ?", (owner,))
    pending = _PendingRemoval(root, removal.version, removal.at_ms, removal.agent)
    below = _below(root)
    rules = ResourceKind.ACL.value
    connection.execute(_KEEP_ACLS, (pending.version, pending.at_ms, *below, rules))
    _drop_bodies(connection, pending, f"{_IN_RANGE} AND kind = {rules}", below)
    connection.execute(f"DELETE FROM resources WHERE {_IN_RANGE} AND kind = {rules}", below)  # noqa: S608 - our words
    connection.execute(_PUT_ENTRY, (pod_tombstone(removal.name), removal.version, b""))
    connection.execute(
        _PUT_ENTRY, (pending.entry, removal.version, msgspec.msgpack.encode(pending))
    )
    _remove_batch(connection, pending)  # for a small pod, this is everything
    return True


def continue_removal(connection: apsw.Connection) -> bool:
    """Remove a batch of resources of deleted pods; whether there may be more.

    Raises apsw.Error.
    """
    noted: bytes | None = connection.execute(
        "SELECT value FROM entries WHERE entry >= ? AND entry < ? LIMIT 1",
        (f"{_KIND}/", f"{_KIND}0"),
    ).get
    if noted is None:
        return False
    _remove_batch(connection, msgspec.msgpack.decode(noted, type=_PendingRemoval))
    return True


def _remove_batch(connection: apsw.Connection, pending: _PendingRemoval) -> None:
    start, end = _below(pending.root)
    # In descending order, so that members are deleted before their containers.
    paths = _paths(
        connection,
        "SELECT path FROM resources WHERE path >= ? AND path < ? ORDER BY path DESC LIMIT ?",
        (start, end, BATCH_ROWS),
    )
    if paths:
        # Before the rows of the change log, which then fit into the freed pages.
        batch = (paths[-1], end)
        _drop_bodies(connection, pending, _IN_RANGE, batch)
        connection.execute(f"DELETE FROM resources WHERE {_IN_RANGE}", batch)  # noqa: S608 - ours
        _log(connection, pending, paths)
    if len(paths) < BATCH_ROWS:
        # ACLs are logged last, so that subscribers are still notified that a resource was deleted.
        gone = "SELECT path FROM deleted_acls WHERE write_version = ? ORDER BY path DESC"
        _log(connection, pending, _paths(connection, gone, (pending.version,)))
        connection.execute("DELETE FROM entries WHERE entry = ?", (pending.entry,))


def _below(root: str) -> tuple[str, str]:
    return root, end_of(root)


def _paths(
    connection: apsw.Connection, select: str, values: tuple[str | int, ...]
) -> list[ResourcePath]:
    rows: list[Row] = connection.execute(select, values).fetchall()
    return [path for (path,) in rows]


def _drop_bodies(
    connection: apsw.Connection, pending: _PendingRemoval, which: str, values: tuple[str, str]
) -> None:
    connection.execute(
        "INSERT INTO garbage (blob, dropped_ms)"  # noqa: S608 - words of ours
        f" SELECT blob, ? FROM resources WHERE {which} AND blob IS NOT NULL",
        (pending.at_ms, *values),
    )
    connection.execute(
        f"DELETE FROM bodies WHERE path IN (SELECT path FROM resources WHERE {which})",  # noqa: S608
        values,
    )


def _log(connection: apsw.Connection, pending: _PendingRemoval, paths: list[ResourcePath]) -> None:
    sequence: int = connection.execute("SELECT value FROM counters WHERE name = 'changes'").get
    deletion = ChangeType.DELETE.value
    insert_rows(
        connection,
        CHANGES.insert,
        [
            (number, path, deletion, pending.agent, pending.version, pending.at_ms)
            for number, path in enumerate(paths, sequence + 1)
        ],
    )
    connection.execute(
        "UPDATE counters SET value = value + ? WHERE name = 'changes'", (len(paths),)
    )
