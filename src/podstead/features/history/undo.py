"""Undoing what an application or a person has changed since some time.

A former state says who ended it, and through which application. A change can be undone if the
present state is still what that one has left: then the state before its first change is written
again, by an ordinary write for each resource, with the present version as a precondition. What was
deleted is restored from the trash, containers first, and then what had been changed in it before.
What somebody else has changed since is a conflict, and stays. Changes of ACLs are undone for those
who have Control of the subject now, and had it by the ACL of then.

What was created, also an ACL where there was none, is deleted, and so in the trash, by an ordinary
request with the present version as a precondition, unless somebody else has changed it since. A
container goes if nothing else is in it.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core import identifiers
from podstead.core.conditional import Conditions
from podstead.core.errors import Conflict, NotFound, RequestRefused
from podstead.core.identity import Identity
from podstead.core.operation import Operation
from podstead.features.history.past import FormerStateService, write_again
from podstead.features.history.retention import KnownCreation
from podstead.features.history.trash import Trash
from podstead.resources.entity_tags import stored_tag
from podstead.resources.outcome import ResourceRequest
from podstead.storage.former_states import DELETED, DELETED_WITH, REPLACED, FormerState
from podstead.storage.records import Metadata, Version
from podstead.wac.modes import Mode

MAX_ACTORS: Final = 200
MAX_CHANGES: Final = 1000
"""How many changes one list has."""


@dataclass(frozen=True, slots=True)
class Actor:
    """A person through an application; ``client`` is ``None`` where no application is known."""

    agent: str | None
    client: str | None

    def ended(self, state: FormerState) -> bool:
        """Whether the actor has ended a state."""
        return state.agent == self.agent and state.client == self.client


@dataclass(frozen=True, slots=True)
class UndoableChange:
    """What the actor has done to one resource. ``before`` is its state before the first change,
    and ``last`` the last former state, an item of the trash if the resource was deleted by itself;
    ``present`` is what is stored now. One in conflict cannot be undone."""

    before: FormerState
    last: FormerState
    present: Metadata | None
    in_conflict: bool

    @property
    def path(self) -> identifiers.ResourcePath:
        return self.before.path

    @property
    def at_ms(self) -> int:
        """When the actor first changed it."""
        return self.before.ended_ms


@dataclass(frozen=True, slots=True)
class UndoableCreation:
    """A resource that the actor has created. One in conflict cannot be deleted."""

    path: identifiers.ResourcePath
    at_ms: int
    present: Metadata
    in_conflict: bool


@dataclass(frozen=True, slots=True)
class UndoableChanges:
    """Changes by their paths, and creations from the last path to the first, so that what is in a
    container comes before it. Of each, those that can be undone and those that cannot are at most
    :data:`MAX_CHANGES`, and ``is_complete`` says whether these are all."""

    changes: Sequence[UndoableChange]
    creations: Sequence[UndoableCreation]
    is_complete: bool

    @property
    def all(self) -> Sequence[UndoableChange | UndoableCreation]:
        return [*self.changes, *reversed(self.creations)]


class _StatesOfResource:
    """What matters of the states of one resource, which are added in order."""

    def __init__(self, actor: Actor, first: FormerState) -> None:
        self._actor = actor
        self.before: FormerState | None = None
        self.last = first
        self.is_alone = True

    def add(self, state: FormerState) -> None:
        """Once the actor has ended a state, all others must have the same end, and each must have
        begun with the write that ended the one before it."""
        if self.before is None:
            if self._actor.ended(state):
                self.before = state
        elif not self._actor.ended(state) or self.last.ended_version != state.version:
            self.is_alone = False
        self.last = state


def _undoes_itself(
    change: UndoableChange, created: Mapping[identifiers.ResourcePath, KnownCreation]
) -> bool:
    """Whether the actor has deleted what the actor had created."""
    creation = created.get(change.path)
    return (
        creation is not None
        and change.last.deleted != REPLACED
        and change.before.modified_ms >= creation.at_ms
    )


def _is_same_resource(state: FormerState, other: FormerState) -> bool:
    """Whether the states are of one resource, and not of two that had the same path."""
    return (state.path, state.created_ms) == (other.path, other.created_ms)


@dataclass(frozen=True, slots=True)
class Undo:
    """Lists and undoes changes."""

    past: FormerStateService
    trash: Trash

    async def actors(
        self, agent: Identity | None, root: identifiers.ResourcePath
    ) -> Sequence[Actor]:
        """Who has changed something in a storage, as far as it is kept. Raises RateLimited,
        StorageError."""
        statement = (
            "SELECT agent, client FROM former_states WHERE root = %s"
            " GROUP BY agent, client ORDER BY max(ended_ms) DESC LIMIT 100"
        )
        async with self.trash.turn(agent):
            found = {
                Actor(*row): None for row in await self.past.records.store.fetch(statement, root)
            }
            created = await self._created(root)
            found |= {Actor(each.agent, each.client): None for each in created.values()}
        return list(found)[:MAX_ACTORS]

    async def changes(
        self, agent: Identity | None, root: identifiers.ResourcePath, actor: Actor, since_ms: int
    ) -> UndoableChanges:
        """What the actor has changed in a storage since a time, as far as the agent may read it.
        Raises RateLimited, StorageError."""
        async with self.trash.turn(agent):
            return await self._changes(agent, root, actor, since_ms)

    async def _changes(
        self, agent: Identity | None, root: identifiers.ResourcePath, actor: Actor, since_ms: int
    ) -> UndoableChanges:
        created = {
            path: each
            for path, each in (await self._created(root, since_ms)).items()
            if each.at_ms >= since_ms and Actor(each.agent, each.client) == actor
        }
        found: list[UndoableChange] = []
        counts = {True: 0, False: 0}
        creations = await self._creations(agent, actor, created)
        removed = {each.path for each in creations if not each.in_conflict}
        async for states in self._by_resource(root, actor, since_ms):
            change = await self._change(states)
            await asyncio.sleep(0)
            if change is None or change.path in removed or _undoes_itself(change, created):
                continue
            if not await self.past.may(agent, None, change.before, Mode.READ):
                continue
            if counts[change.in_conflict] < MAX_CHANGES:
                counts[change.in_conflict] += 1
                found.append(change)
            elif not change.in_conflict:
                return UndoableChanges(found, (), is_complete=False)
        listed = {each.path for each in found}
        shown = [each for each in creations if each.path not in listed][:MAX_CHANGES]
        is_complete = counts[True] < MAX_CHANGES and len(creations) < MAX_CHANGES
        return UndoableChanges(found, shown, is_complete=is_complete)

    async def _created(
        self, root: identifiers.ResourcePath, since_ms: int = 0
    ) -> Mapping[identifiers.ResourcePath, KnownCreation]:
        """The last creations; none if nothing would be in the trash."""
        if not self.past.retentions.of(root).deleted_ms:
            return {}
        return await self.trash.keeper.creations.of(root, since_ms)

    async def _creations(
        self,
        agent: Identity | None,
        actor: Actor,
        created: Mapping[identifiers.ResourcePath, KnownCreation],
    ) -> Sequence[UndoableCreation]:
        """What is still there of it, as far as the agent may read it, the last path first."""
        found: dict[identifiers.ResourcePath, UndoableCreation] = {}
        removed: Counter[identifiers.ResourcePath] = Counter()
        paths, store = sorted(created, reverse=True), self.past.records.store
        for path in paths:
            of_path = (path, identifiers.acl_of(path), identifiers.description_of(path))
            stored = await store.read_metadata(of_path)
            present = stored[path]
            await asyncio.sleep(0)
            if present is None or not await self._may_read(agent, path):
                continue
            is_unchanged = await self._is_unchanged(actor, created[path], present)
            for other in of_path[1:]:  # what belongs to it comes before it
                if stored[other] is not None and (other not in found or found[other].in_conflict):
                    is_unchanged = False
            if present.kind.is_container:
                number = removed[path]
                members = await store.list_members(path, limit=number + 1)
                is_unchanged = is_unchanged and len(members) == number
            if is_unchanged and identifiers.subject_of(path) == path:
                removed[identifiers.parent_container(path) or path] += 1
            found[path] = UndoableCreation(path, created[path].at_ms, present, not is_unchanged)
            if len(found) == MAX_CHANGES:
                break
        gone = {each.path for each in found.values() if not each.in_conflict}
        # With a resource, what belongs to it is deleted.
        return [
            each
            for path, each in found.items()
            if identifiers.subject_of(path) == path or identifiers.subject_of(path) not in gone
        ]

    async def _may_read(self, agent: Identity | None, path: identifiers.ResourcePath) -> bool:
        if path.endswith(identifiers.ACL_SUFFIX):
            return await self.past.controls(agent, None, identifiers.subject_of(path))
        grant, _ = await self.past.gate.current_grant(agent, None, path)
        return grant.allows(Mode.READ)

    async def _is_unchanged(self, actor: Actor, creation: KnownCreation, present: Metadata) -> bool:
        """Whether nobody but the actor has changed what the actor has created."""
        version, path = creation.version, present.path
        root = identifiers.storage_root(path)
        if present.version == version or root is None:
            return present.version == version
        for state in await self.past.select(root, "path = %s ORDER BY modified_ms, version", path):
            if state.version == version and actor.ended(state):
                version = state.ended_version
        return present.version == version

    async def _by_resource(
        self, root: identifiers.ResourcePath, actor: Actor, since_ms: int
    ) -> AsyncIterator[_StatesOfResource]:
        states: _StatesOfResource | None = None
        async for page in self.past.pages(root, "ended_ms >= %s", since_ms):
            for state in page:
                if states is None or not _is_same_resource(states.last, state):
                    if states is not None:
                        yield states
                    states = _StatesOfResource(actor, state)
                states.add(state)
        if states is not None:
            yield states

    async def _change(self, states: _StatesOfResource) -> UndoableChange | None:
        """The change of one resource."""
        before, last = states.before, states.last
        if before is None:
            return None
        path, subject = before.path, identifiers.subject_of(before.path)
        stored = await self.past.records.store.read_metadata([path, subject])
        present = stored[path]
        if before is last and last.deleted == DELETED_WITH:
            # It returns with its subject or container, unless it was deleted alone.
            is_alone = subject != path and stored[subject] is not None and present is None
            if not is_alone or await self._is_in_trash(last):
                return None
        if last.deleted:
            fits = present is None
        else:
            fits = present is not None and present.version == last.ended_version
        return UndoableChange(before, last, present, in_conflict=not (states.is_alone and fits))

    async def _is_in_trash(self, state: FormerState) -> bool:
        """Whether the subject or container with which a state was deleted is there."""
        above = [identifiers.subject_of(state.path), *identifiers.ancestors(state.path)]
        condition = (
            f"ended_version = %s AND deleted = 1 AND path IN ({', '.join(['%s'] * len(above))})"
        )
        return bool(await self.past.select(state.root, condition, state.ended_version, *above))

    async def undo(
        self, agent: Identity | None, root: identifiers.ResourcePath, actor: Actor, since_ms: int
    ) -> tuple[int, int]:
        """Undo changes, each by itself; how many were undone, and how many were not, because they
        are in conflict, the agent may not, or there are more than :data:`MAX_CHANGES`. Raises
        RateLimited, ServerTrouble."""
        done = left = 0
        restored: set[Version] = set()
        async with self.trash.turn(agent):
            found = await self._changes(agent, root, actor, since_ms)
            for change in found.changes:  # what is restored comes before what was in it
                try:
                    if change.in_conflict:
                        raise Conflict
                    await self._undo(agent, change, restored)
                except RequestRefused:
                    left += 1
                else:
                    done += 1
            for creation in found.creations:
                try:
                    if creation.in_conflict:
                        raise Conflict
                    await self._delete(agent, creation)
                except RequestRefused:
                    left += 1
                else:
                    done += 1
        return done, left + (not found.is_complete)

    async def _delete(self, agent: Identity | None, creation: UndoableCreation) -> None:
        present = creation.present
        # Without members, a container is deleted whatever happened to it.
        conditions = (
            Conditions() if present.kind.is_container else Conditions(if_match=stored_tag(present))
        )
        operation = Operation("DELETE", creation.path, conditions=conditions)
        await self.trash.resources.handle(ResourceRequest(operation, agent))

    async def _undo(
        self, agent: Identity | None, change: UndoableChange, restored: set[Version]
    ) -> None:
        """``restored`` are the versions of what has been restored from the trash before."""
        present, before, path = change.present, change.before, change.path
        if change.last.deleted == DELETED:
            item = await self.trash.item(agent, None, path, change.last.version)
            await self.trash.restore_in_turn(agent, None, item, to=path)
            present = (await self.past.records.store.read_metadata([path]))[path]
            if present is not None:
                restored.add(present.version)
            if change.last == before:
                return
        elif change.last.deleted and before is not change.last:
            present = (await self.past.records.store.read_metadata([path]))[path]
            if present is None or present.version not in restored:
                raise Conflict
        if not await self.past.may(agent, None, before, Mode.READ):
            raise NotFound
        conditions = (
            Conditions(if_none_match="*")
            if present is None
            else Conditions(if_match=stored_tag(present))
        )
        body = await self.past.open(before)
        await write_again(self.trash.resources, agent, before.metadata, body, conditions)
