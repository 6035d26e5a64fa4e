"""Reads the change log for people: what has happened in a pod, and who changed its resources; and
how far the right to read the members of a container reaches.

The log has no order by path. A request reads it backwards in steps, between which other requests
run, and examines a bounded number of rows: the caller continues from where it stopped.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, Protocol

from podstead.core import identifiers
from podstead.core.identity import Identity
from podstead.storage.protocol import ChangeLog, DocumentSource
from podstead.storage.records import ChangeType, LoggedChange, Metadata, Version
from podstead.wac.acl import agent_name
from podstead.wac.decision import Audience
from podstead.wac.effective import acl_paths
from podstead.wac.gate import Gate
from podstead.wac.modes import Mode

STEP_ROWS: Final = 2_000
"""How many rows of the whole log are examined in one step; other requests wait for it."""
MAX_ROWS: Final = 200_000
"""How many rows of the whole log are examined for one page."""
MAX_ROWS_OF_LATEST: Final = 20_000
"""How many of the newest rows are examined for what each of several agents did last."""

MAX_ROWS_OF_READABLE: Final = 10_000
"""How many of the newest rows are examined for what happened in a folder of somebody else."""


class ChangeKind(Enum):
    """What a person calls a change."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    MOVED = "moved"
    """A resource was renamed or moved to another folder, with everything in it."""
    ACCESS = "access"
    """The access rules were created, changed or deleted."""


_KINDS: Final = {
    ChangeType.CREATE: ChangeKind.CREATED,
    ChangeType.UPDATE: ChangeKind.CHANGED,
    ChangeType.DELETE: ChangeKind.DELETED,
}


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """The changes that are wanted; ``None`` for all. Times are Unix milliseconds."""

    below: identifiers.ResourcePath
    """The container where they took place, with everything below it."""
    kind: ChangeKind | None = None
    agent: str | None = None
    """The IRI of the agent; empty for changes of the public and of the server."""
    since_ms: int | None = None
    until_ms: int | None = None
    leaves_out: Callable[[identifiers.ResourcePath], bool] | None = None
    """Whether what happened at a path is not wanted."""

    def admits(self, change: "PastChange") -> bool:
        """Whether a change is wanted."""
        if self.kind is not None and change.kind is not self.kind:
            return False
        if self.agent is not None and (change.agent or "") != self.agent:
            return False
        if self.leaves_out is not None and self.leaves_out(change.path):
            return False
        return self.until_ms is None or change.at_ms < self.until_ms


@dataclass(frozen=True, slots=True)
class PastChange:
    """One change. For a change of access rules, ``path`` is the resource that they are about."""

    sequence: int
    path: identifiers.ResourcePath
    kind: ChangeKind
    agent: str | None
    at_ms: int
    exists: bool = False
    """Whether a resource exists at the path now."""
    origin: identifiers.ResourcePath | None = None
    """The path before the move."""


@dataclass(frozen=True, slots=True)
class PastChanges:
    """Some changes, the newest first; ``before`` is where to continue, ``None`` at the end."""

    changes: Sequence[PastChange]
    before: int | None


class ActivityStore(DocumentSource, ChangeLog, Protocol):
    """The resources of a store and its change log."""

    async def changes_before(
        self, sequence: int, *, first: int, below: identifiers.ResourcePath, limit: int
    ) -> Sequence[LoggedChange]: ...


class PodActivity:
    """Reads what has happened in a pod."""

    def __init__(self, *, store: ActivityStore, gate: Gate, max_rows: int = MAX_ROWS) -> None:
        self._store = store
        self._gate = gate
        self._max_rows = max_rows

    async def page(
        self,
        agent: Identity | None,
        wanted: ChangeFilter,
        *,
        before: int | None = None,
        limit: int,
    ) -> PastChanges:
        """Up to ``limit`` changes with sequence numbers less than ``before``, for an agent with
        Control of the storage.

        Of these, the agent sees changes of what it may read or control now. Raises NotAuthenticated
        and AccessDenied.
        """
        await self._authorize(agent, wanted.below)
        newest = await self._store.newest_sequence()
        position = newest + 1 if before is None else min(before, newest + 1)
        oldest = await self._oldest()
        last = max(oldest, position - self._max_rows)
        found: list[PastChange] = []
        seen: dict[identifiers.ResourcePath, tuple[bool, bool, bool]] = {}
        async for changes, first in self._steps(position, last, wanted.below):
            for change in changes:
                if wanted.since_ms is not None and change.at_ms < wanted.since_ms:
                    return PastChanges(found, None)
                if not wanted.admits(change):
                    continue
                shown = await self._shown(agent, change, seen)
                if shown is None:
                    continue
                if len(found) == limit:
                    return PastChanges(found, found[-1].sequence)
                found.append(shown)
            position = first
        return PastChanges(found, position if position > oldest else None)

    async def latest(
        self, owner: Identity | None, below: identifiers.ResourcePath, agents: Iterable[str]
    ) -> Mapping[str, PastChange]:
        """The newest change of each of these agents in a container, of what the owner may know and
        is among the newest rows of the log. Agents are named as by
        :func:`podstead.wac.acl.agent_name`. Raises NotAuthenticated, AccessDenied."""
        await self._authorize(owner, below)
        wanted, newest = set(agents), await self._store.newest_sequence()
        found: dict[str, PastChange] = {}
        seen: dict[identifiers.ResourcePath, tuple[bool, bool, bool]] = {}
        if not wanted:
            return found
        async for changes, _ in self._steps(newest + 1, max(0, newest - MAX_ROWS_OF_LATEST), below):
            for change in changes:
                name = agent_name(change.agent or "")
                if name not in wanted:
                    continue
                shown = await self._shown(owner, change, seen)
                if shown is not None:
                    found[name] = shown
                    wanted.discard(name)
            if not wanted:
                break
        return found

    async def readable(
        self,
        agent: Identity | None,
        folders: Iterable[identifiers.ResourcePath],
        *,
        limit: int,
    ) -> Mapping[identifiers.ResourcePath, Sequence[PastChange]]:
        """What an agent may know of the newest ``limit`` changes in each of some folders of others,
        as far as they are among the newest rows of the log: those of what it may read now. Raises
        ServerTrouble."""
        newest = await self._store.newest_sequence()
        last = max(0, newest - MAX_ROWS_OF_READABLE)
        found: dict[identifiers.ResourcePath, Sequence[PastChange]] = {}
        for folder in folders:
            seen: dict[identifiers.ResourcePath, tuple[bool, bool, bool]] = {}
            looked_at: list[PastChange] = []
            async for changes, _ in self._steps(newest + 1, last, folder):
                looked_at += changes[: limit - len(looked_at)]
                if len(looked_at) == limit:
                    break
            shown = [await self._shown(agent, each, seen) for each in looked_at]
            found[folder] = [each for each in shown if each is not None]
        return found

    async def _steps(
        self, position: int, last: int, below: identifiers.ResourcePath
    ) -> AsyncIterator[tuple[Sequence[PastChange], int]]:
        """The changes with sequence numbers from ``last`` to ``position``, the newest first, in
        steps, each with the number that it has reached."""
        begun: list[LoggedChange] = []
        while position > last:
            first = max(last, position - STEP_ROWS)
            read = await self._store.changes_before(
                position, first=first, below=below, limit=STEP_ROWS
            )
            # Only all rows of a write say what it did, and they may continue in the next step.
            rows, begun = _whole_writes([*begun, *read], goes_on=first > last)
            yield changes_of(rows), first
            position = first
            await asyncio.sleep(0)  # requests come first

    async def _oldest(self) -> int:
        rows = await self._store.changes_after(0, limit=1)
        return rows[0].sequence if rows else 0

    async def _authorize(self, agent: Identity | None, below: identifiers.ResourcePath) -> None:
        await self._gate.require_control(agent, identifiers.storage_root(below) or below)

    async def _shown(
        self,
        agent: Identity | None,
        change: PastChange,
        seen: dict[identifiers.ResourcePath, tuple[bool, bool, bool]],
    ) -> PastChange | None:
        """The change, if the agent may know of it.

        The rules of a deleted resource are gone with it, so only agents with Control of its place
        learn that it existed.
        """
        exists, may_read, may_control = await self._known(agent, change.path, seen)
        if not may_control and not (may_read and exists and change.kind is not ChangeKind.ACCESS):
            return None
        if change.origin is not None:
            *_rest, controls_origin = await self._known(agent, change.origin, seen)
            if not controls_origin:
                return replace(change, kind=ChangeKind.CREATED, origin=None, exists=exists)
        return replace(change, exists=exists)

    async def _known(
        self,
        agent: Identity | None,
        path: identifiers.ResourcePath,
        seen: dict[identifiers.ResourcePath, tuple[bool, bool, bool]],
    ) -> tuple[bool, bool, bool]:
        """Whether a resource exists at a path, and the agent may read and control it."""
        known = seen.get(path)
        if known is None:
            grant, snapshot = await self._gate.current_grant(agent, None, path)
            known = seen[path] = (
                snapshot[path] is not None,
                grant.allows(Mode.READ),
                grant.allows(Mode.CONTROL),
            )
        return known


def _whole_writes(
    rows: list[LoggedChange], *, goes_on: bool
) -> tuple[list[LoggedChange], list[LoggedChange]]:
    """The rows, newest first, in two parts: those of whole writes, and those of the last write if
    it ``goes_on`` in the next rows."""
    if not goes_on or not rows:
        return rows, []
    version = rows[-1].version
    first = next(index for index, row in enumerate(rows) if row.version == version)
    return rows[:first], rows[first:]


def changes_of(rows: Sequence[LoggedChange]) -> list[PastChange]:
    """What rows of the log mean to people, in the same order.

    Rules that are created or deleted together with their resource are no change of their own, and
    neither is a description with its document. A move is one change with everything moved, at the
    place of its oldest row.
    """
    moves = _moves(rows)
    ends = {row.version: row.sequence for row in rows if row.version in moves}
    own: set[tuple[Version, identifiers.ResourcePath]] = {
        (row.version, row.change.path)
        for row in rows
        if identifiers.auxiliary_kind(row.change.path) is None
        and row.change.activity in (ChangeType.CREATE, ChangeType.DELETE)
    }
    changes = []
    for row in rows:
        if row.version in moves:
            if row.sequence == ends[row.version]:
                origin, path = moves[row.version]
                moved = PastChange(
                    row.sequence, path, ChangeKind.MOVED, row.change.agent, row.at_ms, origin=origin
                )
                changes.append(moved)
            continue
        kind = _KINDS.get(row.change.activity)
        auxiliary = identifiers.auxiliary_kind(row.change.path)
        path = row.change.path if auxiliary is None else identifiers.subject_of(row.change.path)
        if kind is None or (auxiliary is not None and (row.version, path) in own):
            continue
        if auxiliary is not None:
            kind = (
                ChangeKind.ACCESS if auxiliary is identifiers.Auxiliary.ACL else ChangeKind.CHANGED
            )
        changes.append(PastChange(row.sequence, path, kind, row.change.agent, row.at_ms))
    return changes


def _moves(
    rows: Sequence[LoggedChange],
) -> Mapping[Version, tuple[identifiers.ResourcePath, identifiers.ResourcePath]]:
    """The origin and destination of each write that moved something, that is, deleted at one place
    and stored at another."""
    deleted: dict[Version, identifiers.ResourcePath] = {}
    written: dict[Version, identifiers.ResourcePath] = {}
    for row in rows:
        path = row.change.path
        if identifiers.auxiliary_kind(path) is None and row.change.activity in _KINDS:
            places = deleted if row.change.activity is ChangeType.DELETE else written
            places[row.version] = min(path, places.get(row.version, path), key=len)
    return {
        version: (origin, written[version])
        for version, origin in deleted.items()
        if version in written
    }


_PAGE_CHANGES: Final = 1_000
_MAX_CHANGES: Final = 20_000
"""How many of the newest changes are remembered. The authors of older ones are not shown."""


class MemberAudiences:
    """Says how far the right to read each member reaches. The gate has decided about the members
    before."""

    def __init__(self, *, store: DocumentSource, gate: Gate) -> None:
        self._store = store
        self._gate = gate

    async def of(
        self, agent: Identity | None, members: Sequence[Metadata]
    ) -> Mapping[identifiers.ResourcePath, Audience | None]:
        """How far reading reaches, as far as the agent may know, for members of one container.

        One read of the store finds which members have rules of their own; all others share the
        rules of the container.
        """
        if not members:
            return {}
        paths = dict.fromkeys(path for each in members for path in acl_paths(each.path))
        snapshot = await self._store.read_metadata(paths)
        reaches: dict[identifiers.ResourcePath, Audience | None] = {}
        inherited: Audience | None = None
        knows_inherited = False
        for member in members:
            path = member.path
            if snapshot[identifiers.acl_of(path)] is not None:
                reaches[path] = await self._gate.audience(agent, None, path, snapshot)
                continue
            if not knows_inherited:
                inherited = await self._gate.audience(agent, None, path, snapshot)
                knows_inherited = True
            reaches[path] = inherited
        return reaches


class ChangeAuthors:
    """Says who made a change, by the version that it created.

    The change log has no index by path and needs none here: each worker reads on in the log when
    asked, and remembers the newest changes.
    """

    def __init__(self, log: ChangeLog, *, max_changes: int = _MAX_CHANGES) -> None:
        self._log = log
        self._max_changes = max_changes
        self._agents: OrderedDict[tuple[identifiers.ResourcePath, Version], str | None] = (
            OrderedDict()
        )
        self._followed_to: int | None = None

    async def of(self, resources: Sequence[Metadata]) -> Mapping[identifiers.ResourcePath, str]:
        """The IRIs of the agents that changed the resources last, of those that are known."""
        await self._follow()
        found = ((each.path, self._agents.get((each.path, each.version))) for each in resources)
        return {path: agent for path, agent in found if agent is not None}

    async def _follow(self) -> None:
        if self._followed_to is None:
            newest = await self._log.newest_sequence()
            self._followed_to = max(0, newest - self._max_changes)
        while True:
            changes = await self._log.changes_after(self._followed_to, limit=_PAGE_CHANGES)
            for logged in changes:
                self._agents[logged.change.path, logged.version] = logged.change.agent
                self._followed_to = max(self._followed_to, logged.sequence)
            while len(self._agents) > self._max_changes:
                self._agents.popitem(last=False)
            if len(changes) < _PAGE_CHANGES:
                return
