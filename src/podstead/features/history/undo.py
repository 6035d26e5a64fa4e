"""Undoing what an application or a person has changed since some time.

A former state says who ended it, and through which application. A change can be undone if the
present state is still what that one has left: then the state before its first change is written
again, by an ordinary write for each resource, with the present version as a precondition. What was
deleted is restored from the trash. What somebody else has changed since is a conflict, and stays.

What was created is not in the history, so it stays as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final

from podstead.core.conditional import Conditions
from podstead.core.errors import Conflict, NotFound, RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.operation import Operation
from podstead.features.history.past import Past
from podstead.features.history.trash import Trash
from podstead.resources.entity_tags import stored_tag
from podstead.resources.outcome import ResourceRequest
from podstead.resources.uploads import DraftBody
from podstead.storage.former_states import DELETED, REPLACED, FormerState
from podstead.storage.records import Metadata
from podstead.wac.modes import Mode

MAX_CHANGES: Final = 1000
"""How many states are looked at for one list."""


@dataclass(frozen=True, slots=True)
class Actor:
    """A person through an application; ``client`` is ``None`` where no application is known."""

    agent: str | None
    client: str | None

    def ended(self, state: FormerState) -> bool:
        """Whether the actor has ended a state: through the application, whoever used it, or
        else the person without any."""
        if self.client is not None:
            return state.client == self.client
        return state.client is None and state.agent == self.agent


@dataclass(frozen=True, slots=True)
class UndoableChange:
    """What the actor has done to one resource. ``before`` is its state before the first change,
    ``item`` is what was deleted, if it was; ``present`` is what is stored now. One in conflict
    cannot be undone."""

    before: FormerState
    item: FormerState | None
    present: Metadata | None
    in_conflict: bool

    @property
    def path(self) -> ResourcePath:
        return self.before.path


@dataclass(frozen=True, slots=True)
class Undo:
    """Lists and undoes changes."""

    past: Past
    trash: Trash

    async def actors(self, root: ResourcePath) -> Sequence[Actor]:
        """Who has changed something in a storage, as far as it is kept. Raises StorageError."""
        rows = await self.past.records.store.fetch(
            "SELECT agent, client FROM former_states WHERE root = %s"
            " GROUP BY agent, client ORDER BY max(ended_ms) DESC LIMIT 100",
            root,
        )
        return [Actor(agent, client) for agent, client in rows]

    async def changes(
        self, agent: Identity | None, root: ResourcePath, actor: Actor, since_ms: int
    ) -> Sequence[UndoableChange]:
        """What the actor has changed in a storage since a time, as far as the agent may read it, by
        the paths. Raises StorageError."""
        condition = "ended_ms >= %s AND deleted < 2 ORDER BY path, modified_ms, version"
        states = await self.past.select(root, condition, since_ms)
        found = []
        for path, every in groupby(states, key=lambda each: each.path):
            change = await self._change(path, list(every), actor)
            if change is not None and await self.past.may(agent, None, change.before, Mode.READ):
                found.append(change)
                if len(found) == MAX_CHANGES:
                    break
        return found

    async def _change(
        self, path: ResourcePath, states: Sequence[FormerState], actor: Actor
    ) -> UndoableChange | None:
        """The change of one resource, whose states since the time are given in order."""
        first = next((n for n, each in enumerate(states) if actor.ended(each)), None)
        if first is None:
            return None
        before, last = states[first], states[-1]
        present = (await self.past.records.store.read_metadata([path]))[path]
        is_alone = all(map(actor.ended, states[first:])) and _are_consecutive(states[first:])
        item = last if last.deleted == DELETED else None
        if item is None:
            fits = present is not None and present.version == last.ended_version
        else:
            fits = present is None
        return UndoableChange(before, item, present, in_conflict=not (is_alone and fits))

    async def undo(
        self, agent: Identity | None, changes: Iterable[UndoableChange]
    ) -> tuple[int, int]:
        """Undo changes, each by itself; how many were undone, and how many were not, because they
        are in conflict or the agent may not. Raises ServerTrouble."""
        done = left = 0
        for change in changes:
            try:
                if change.in_conflict:
                    raise Conflict
                await self._undo(agent, change)
            except RequestRefused:
                left += 1
            else:
                done += 1
        return done, left

    async def _undo(self, agent: Identity | None, change: UndoableChange) -> None:
        present, before = change.present, change.before
        if change.item is not None:
            item = await self.trash.item(agent, None, change.path, change.item.version)
            await self.trash.restore(agent, None, item, to=change.path)
            if change.item == before:
                return
            present = (await self.past.records.store.read_metadata([change.path]))[change.path]
        if present is None or before.deleted != REPLACED:
            raise NotFound
        if not await self.past.may(agent, None, before, Mode.READ):
            raise NotFound
        operation = Operation(
            "PUT",
            change.path,
            DraftBody(await self.past.open(before)),
            conditions=Conditions(if_match=stored_tag(present)),
            content_type=before.content_type,
        )
        await self.trash.resources.handle(ResourceRequest(operation, agent))


def _are_consecutive(states: Sequence[FormerState]) -> bool:
    """Whether each state began with the write that ended the one before it."""
    return all(one.ended_version == other.version for one, other in pairwise(states))
