"""How does a pod go, whole? A few statements over everything below its root, in one transaction."""

from __future__ import annotations

import apsw

from podstead.storage.former_pods import former_pod
from podstead.storage.records import Activity, Kind, PodRemoval
from podstead.storage.state import folded

_LOG_ALL = (
    "INSERT INTO changes (sequence, path, activity, agent, version, at_ms)"
    " SELECT ? + row_number() OVER (ORDER BY path DESC), path, ?, ?, ?, ? FROM resources"
    " WHERE path >= ? AND path < ?"
)

_KEEP_ACLS = (
    "INSERT INTO deleted_acls (write_version, path, version, content_type, content, at_ms)"
    " SELECT ?, r.path, r.version, r.content_type, b.content, ?"
    " FROM resources r LEFT JOIN bodies b ON b.path = r.path"
    " WHERE r.path >= ? AND r.path < ? AND r.kind = ?"
)

_KEEP_NAME = "INSERT OR REPLACE INTO entries (entry, version, value) VALUES (?, ?, x'')"


def remove_pod(connection: apsw.Connection, removal: PodRemoval) -> bool:
    """Remove the pod; False if there is none of that name. Raises apsw.Error."""
    pod: tuple[str, str] | None = connection.execute(
        "DELETE FROM pods WHERE folded_name = ? RETURNING name, root", (folded(removal.name),)
    ).get
    if pod is None:
        return False
    name, root = pod
    # "0" is the character behind the slash: every path below the root, and the root.
    below = (root, f"{root[:-1]}0")
    _log_changes(connection, removal, below)
    kept = (removal.version, removal.at_ms, *below, Kind.ACL.value)
    connection.execute(_KEEP_ACLS, kept)
    connection.execute(
        "INSERT INTO garbage (blob, dropped_ms, root, size_bytes)"
        " SELECT blob, ?, ?, size_bytes FROM resources"
        " WHERE path >= ? AND path < ? AND blob IS NOT NULL",
        (removal.at_ms, root, *below),
    )
    connection.execute("DELETE FROM bodies WHERE path >= ? AND path < ?", below)
    connection.execute("DELETE FROM resources WHERE path >= ? AND path < ?", below)
    connection.execute("DELETE FROM storages WHERE root = ?", (root,))
    connection.execute("DELETE FROM charges WHERE root = ?", (root,))
    connection.execute("DELETE FROM tokens WHERE pod = ?", (name,))
    for owner in (root, removal.entry_owner):
        if owner is not None:
            connection.execute("DELETE FROM entries WHERE owner = ?", (owner,))
    _keep_name(connection, removal)
    return True


def _keep_name(connection: apsw.Connection, removal: PodRemoval) -> None:
    connection.execute(_KEEP_NAME, (former_pod(removal.name), removal.version))


def _log_changes(connection: apsw.Connection, removal: PodRemoval, below: tuple[str, str]) -> None:
    sequence: int = connection.execute("SELECT value FROM counters WHERE name = 'changes'").get
    gone = (sequence, Activity.DELETE.value, removal.agent, removal.version, removal.at_ms)
    connection.execute(_LOG_ALL, (*gone, *below))
    connection.execute(
        "UPDATE counters SET value = value + ? WHERE name = 'changes'", (connection.changes(),)
    )
