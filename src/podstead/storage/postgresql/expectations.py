"""Deciding writes on rows that a worker expects, so that a batch takes one round trip.

Before a write is committed, its request has read the rows around its target, and the last batches
of the worker have left others. If those are all rows that a batch needs, it is decided on them, and
one statement of its transaction compares them with what is stored, after the locks are taken. If
anything differs, also that a row exists, the statement fails, nothing has happened, and the batch
is decided again on rows that are read under the locks.

So a wrong expectation costs a round trip and never a wrong decision. What is expected needs no
proof, and may come from anywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.caches import BoundedCache
from podstead.core.identifiers import ResourcePath, parent_container
from podstead.storage.postgresql.apply import Connection
from podstead.storage.records import Metadata
from podstead.storage.state import RequiredRows, ResourceRow, State, folded
from podstead.storage.tables import root_of

CHANGED: Final = "POD01"
"""The SQLSTATE with which the comparison fails (migration 0005)."""

CONTENDED_S: Final = 1.0
"""How long the rows of a storage are read under its lock after an expectation was wrong, since
others are writing to it."""

_MAX_ROWS: Final = 4096
"""How many rows are kept of what batches have left; requests use what is a second old at most."""

# A row is put with a new version; what puts leave as it is changes with the version of the members,
# or is their number. Together they are one text, empty without a row, since arrays cost the driver
# much for each element. The rows of storages are locked, because sweeps change them without other
# locks. Whether a quota has changed is looked up as it is when rows are read under the locks.
_REQUIRE: Final = (
    "WITH storage AS (SELECT * FROM unnest(%s::text[], %s::text[]) AS e (root, expected)),"
    " held AS (SELECT s.root, concat_ws(' ', s.used_bytes, p.quota_bytes) AS stored"
    " FROM storages s LEFT JOIN pods p ON p.folded_name = lower(trim(both '/' from s.root))"
    " WHERE s.root IN (SELECT root FROM storage) ORDER BY s.root FOR UPDATE OF s)"
    " SELECT require_unchanged("
    "EXISTS (SELECT FROM storage LEFT JOIN held ON held.root = storage.root"
    " WHERE coalesce(held.stored, '') <> storage.expected)"
    " OR EXISTS ("
    "SELECT FROM unnest(%s::text[], %s::text[], %s::text[]) AS e (root, path, expected)"
    " LEFT JOIN resources r ON r.root = e.root AND r.path = e.path"
    " WHERE concat_ws(' ', r.version, r.members_version, r.member_count) <> e.expected))"
)


@dataclass(frozen=True, slots=True)
class SeenRows:
    """What a request has seen of the rows that its write is decided on."""

    asked_s: float
    """When it asked for them, on the monotonic clock."""
    resources: Mapping[ResourcePath, Metadata | None]
    member_counts: Mapping[ResourcePath, int]
    storage: ResourcePath
    used_bytes: int
    quota_bytes: int | None
    """The quota of its own that the storage has."""

    def row(self, path: ResourcePath) -> ResourceRow | None:
        """The row of one of the resources."""
        found = self.resources[path]
        if found is None:
            return None
        return ResourceRow(
            found.path,
            found.kind.value,
            found.version,
            found.content_type,
            found.size_bytes,
            found.modified_ms,
            found.created_ms,
            found.blob,
            found.members_version,
            found.members_modified_ms,
            self.member_counts.get(path, 0),
            parent_container(path) if found.kind.is_member else None,
        )


class Expectations:
    """What a worker expects to be stored. Times are of the monotonic clock."""

    def __init__(self) -> None:
        self._rows: BoundedCache[ResourcePath, tuple[float, ResourceRow | None]] = BoundedCache(
            _MAX_ROWS
        )
        self._storages: BoundedCache[ResourcePath, tuple[float, int | None, int | None]] = (
            BoundedCache(_MAX_ROWS)
        )
        self._contended: BoundedCache[ResourcePath, float] = BoundedCache(_MAX_ROWS)

    def state(self, needs: RequiredRows, seen: Sequence[SeenRows], *, now_s: float) -> State | None:
        """The state that a batch of writes is expected to find, if all of it is known."""
        if needs.entries or needs.pods or needs.blobs:
            return None
        if any((self._contended.get(root) or 0.0) > now_s for root in needs.roots):
            return None
        newest: dict[ResourcePath, SeenRows] = {}
        storages: dict[ResourcePath, SeenRows] = {}
        for each in sorted(seen, key=_asked_s):
            newest |= dict.fromkeys(each.resources, each)
            storages[each.storage] = each
        state = State({}, set(), {}, {}, set(), {}, 0)
        for path in needs.paths:
            known = self._row(path, newest.get(path))
            if known is None:
                return None
            (state.resources[path],) = known
        for root in needs.roots:
            usage = self._usage(root, storages.get(root))
            if usage is None:
                return None
            used_bytes, quota_bytes = usage
            if used_bytes is not None:
                state.used_bytes[root] = used_bytes
            if quota_bytes is not None:
                state.own_quotas[_pod_of(root)] = quota_bytes
        return state

    def _row(self, path: ResourcePath, seen: SeenRows | None) -> tuple[ResourceRow | None] | None:
        """What is known about a row, ``None`` for nothing."""
        left = self._rows.get(path)
        if left is not None and (seen is None or left[0] > seen.asked_s):
            return (left[1],)
        return None if seen is None else (seen.row(path),)

    def _usage(
        self, root: ResourcePath, seen: SeenRows | None
    ) -> tuple[int | None, int | None] | None:
        """What is known about the use and the quota of a storage, ``None`` for nothing."""
        left = self._storages.get(root)
        if left is not None and (seen is None or left[0] > seen.asked_s):
            return left[1:]
        return None if seen is None else (seen.used_bytes, seen.quota_bytes)

    def keep(self, needs: RequiredRows, state: State, *, now_s: float) -> None:
        """Keep what a batch has left that has just been committed."""
        for path, row in state.resources.items():
            self._rows.put(path, (now_s, row))
        for root in needs.roots:
            usage = state.used_bytes.get(root), state.own_quotas.get(_pod_of(root))
            self._storages.put(root, (now_s, *usage))

    def were_wrong(self, needs: RequiredRows, *, now_s: float) -> None:
        """Note that others are writing to the storages of a batch."""
        for root in needs.roots:
            self._contended.put(root, now_s + CONTENDED_S)


async def require(connection: Connection, needs: RequiredRows, state: State) -> None:
    """Let the transaction fail with :data:`CHANGED` unless that state is stored. Called within a
    pipeline, after the locks are taken and before the state is changed.

    Does not wait for the database.
    """
    roots = list(needs.roots)
    usages = [
        _usage_text(state.used_bytes.get(root), state.own_quotas.get(_pod_of(root)))
        for root in roots
    ]
    paths = list(state.resources)
    storages = [root_of(path) for path in paths]
    expected = [_row_text(row) for row in state.resources.values()]
    await connection.execute(_REQUIRE, (roots, usages, storages, paths, expected))


def _usage_text(used_bytes: int | None, quota_bytes: int | None) -> str:
    if used_bytes is None:
        return ""
    return str(used_bytes) if quota_bytes is None else f"{used_bytes} {quota_bytes}"


def _row_text(row: ResourceRow | None) -> str:
    if row is None:
        return ""
    if row.members_version is None:
        return f"{row.version} {row.member_count}"
    return f"{row.version} {row.members_version} {row.member_count}"


def _asked_s(seen: SeenRows) -> float:
    return seen.asked_s


def _pod_of(root: ResourcePath) -> str:
    """The folded name of the pod with that root container, if it is the root of one."""
    return folded(root.strip("/"))
