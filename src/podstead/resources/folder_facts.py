"""Adds facts about the members of a container that listings lack: who can read them, who changed
them.

The caller has obtained the members from the resource service, so the gate has decided about them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from podstead.core.identifiers import ResourcePath, acl_of
from podstead.core.identity import Identity
from podstead.storage.protocol import DocumentSource
from podstead.storage.records import LoggedChange, Metadata, Version
from podstead.wac.audience import Reach
from podstead.wac.effective import acl_paths
from podstead.wac.gate import Gate

_PAGE_CHANGES: Final = 1_000
_MAX_CHANGES: Final = 20_000
"""How many of the newest changes are remembered. The authors of older ones are not shown."""


class MemberReach:
    """Says how far the right to read each member reaches."""

    def __init__(self, *, store: DocumentSource, gate: Gate) -> None:
        self._store = store
        self._gate = gate

    async def of(
        self, agent: Identity | None, members: Sequence[Metadata]
    ) -> Mapping[ResourcePath, Reach | None]:
        """How far reading reaches, as far as the agent may know, for members of one container.

        One read of the store finds which members have rules of their own; all others share the
        rules of the container.
        """
        if not members:
            return {}
        paths = dict.fromkeys(path for each in members for path in acl_paths(each.path))
        snapshot = await self._store.read_metadata(paths)
        reaches: dict[ResourcePath, Reach | None] = {}
        inherited: Reach | None = None
        knows_inherited = False
        for member in members:
            path = member.path
            if snapshot[acl_of(path)] is not None:
                reaches[path] = await self._gate.reach(agent, None, path, snapshot)
                continue
            if not knows_inherited:
                inherited = await self._gate.reach(agent, None, path, snapshot)
                knows_inherited = True
            reaches[path] = inherited
        return reaches


class WrittenChanges(Protocol):
    """The change log of a store."""

    async def newest_sequence(self) -> int: ...

    async def changes_after(self, sequence: int, *, limit: int) -> Sequence[LoggedChange]: ...


class ChangeAuthors:
    """Says who made a change, by the version that it created.

    The change log has no index by path and needs none here: each worker reads on in the log when
    asked, and remembers the newest changes.
    """

    def __init__(self, log: WrittenChanges, *, max_changes: int = _MAX_CHANGES) -> None:
        self._log = log
        self._max_changes = max_changes
        self._agents: OrderedDict[tuple[ResourcePath, Version], str | None] = OrderedDict()
        self._followed_to: int | None = None

    async def of(self, resources: Sequence[Metadata]) -> Mapping[ResourcePath, str]:
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
