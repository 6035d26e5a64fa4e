"""The trash: lists, restores and removes what was deleted.

An item is what one write deleted: a document with its ACL and description, or a container with
everything below it. Whoever may read its address now and could read it then sees it; whoever may
also write now and could write then restores or removes it.

A restored item is created like anything else, in one write, by
:meth:`~podstead.resources.service.ResourceService.create`: the gate, the hooks and the quota apply,
and rules return only where the agent has Control. Large bodies are staged as copies that share the
bytes of the former states, which the same write removes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.core.codes import ErrorCode
from podstead.core.errors import AccessDenied, Conflict, NotAuthenticated, NotFound
from podstead.core.identifiers import (
    ResourcePath,
    acl_of,
    description_of,
    is_container,
    parent_container,
    slash_variant,
    storage_root,
    subject_of,
)
from podstead.core.identity import Identity
from podstead.core.media_types import essence
from podstead.core.operation import InMemoryBody, Operation
from podstead.features.history.keeping import Keeper
from podstead.features.history.past import Past
from podstead.resources.documents import Documents, is_rdf
from podstead.resources.outcome import ResourceRequest
from podstead.resources.renaming import Relocation, relocated_description, relocated_rules
from podstead.resources.service import ResourceService
from podstead.resources.tree_operations import MAX_RESOURCES
from podstead.storage.former_states import REPLACED, FormerState
from podstead.storage.records import Body, InlineBody, Put, ResourceKind, StagedBlob
from podstead.storage.tables import end_of
from podstead.wac.modes import Mode

MAX_LISTED: Final = 1000
"""How many items are looked at for one list."""
MAX_SMALL_BYTES: Final = 64 * 1024 * 1024
"""How much one restoration may have in memory."""
_MAX_NAMES: Final = 100
_CHECKS_AT_ONCE: Final = 64


class TrashCodes(ErrorCode):
    """What errors of the trash say to people."""

    TOO_LARGE = "This is too large to be restored at once"
    NAME_TAKEN = "There is something at this address by now"


@dataclass(frozen=True, slots=True)
class DeletedItem:
    """Something in the trash. Who deleted it, and by which application, is known to those with
    Control, and to the agent itself."""

    state: FormerState
    shows_agent: bool

    @property
    def agent(self) -> str | None:
        return self.state.agent if self.shows_agent else None

    @property
    def client(self) -> str | None:
        return self.state.client if self.shows_agent else None


@dataclass(frozen=True, slots=True)
class Trash:
    """What was deleted in all storages, for one agent at a time."""

    past: Past
    keeper: Keeper
    resources: ResourceService
    documents: Documents

    async def items(
        self, agent: Identity | None, origin: str | None, place: ResourcePath, root: ResourcePath
    ) -> AsyncIterator[DeletedItem]:
        """What was deleted at or below a place, the newest first. Raises StorageError."""
        condition = "deleted = 1 AND path >= %s AND path < %s ORDER BY ended_ms DESC, path LIMIT %s"
        states = await self.past.select(root, condition, place, end_of(place), MAX_LISTED)
        for index, state in enumerate(states):
            if index % _CHECKS_AT_ONCE == 0:
                await asyncio.sleep(0)
            if await self.past.may(agent, origin, state, Mode.READ):
                yield await self._item(agent, origin, state)

    async def _item(
        self, agent: Identity | None, origin: str | None, state: FormerState
    ) -> DeletedItem:
        is_own = agent is not None and state.agent == agent.iri
        if is_own:
            return DeletedItem(state, shows_agent=True)
        grant, _ = await self.past.gate.current_grant(agent, origin, state.path)
        return DeletedItem(state, shows_agent=grant.allows(Mode.CONTROL))

    async def item(
        self, agent: Identity | None, origin: str | None, path: ResourcePath, version: str
    ) -> FormerState:
        """An item that the agent may change, by its path and the version that was deleted.

        Raises NotFound, also for an agent who may not know of it, AccessDenied and
        NotAuthenticated.
        """
        root = _root_of(path)
        condition = "path = %s AND version = %s AND deleted = 1"
        for state in await self.past.select(root, condition, path, version):
            if await self.past.may(agent, origin, state, Mode.READ):
                if not await self.past.may(agent, origin, state, Mode.WRITE):
                    raise NotAuthenticated if agent is None else AccessDenied
                return state
        raise NotFound

    async def restore(
        self,
        agent: Identity | None,
        origin: str | None,
        item: FormerState,
        *,
        to: ResourcePath | None = None,
    ) -> ResourcePath:
        """Create an item again, by default under its name or, if that is taken, another one;
        its path. Raises what a PUT raises, and Conflict if ``to`` is taken or it is too large."""
        states = await self._tree(item)
        if len(states) > MAX_RESOURCES:
            raise Conflict(TrashCodes.TOO_LARGE)
        await self._check(agent, origin, states)
        bodies = await self._bodies(states)
        try:
            for number in range(1, _MAX_NAMES):
                target = to or _numbered(item.path, number)
                if to is None and await self._is_taken(target):
                    continue
                try:
                    await self._create(agent, origin, item, target, bodies)
                except Conflict:
                    if to is not None or not await self._is_taken(target):
                        raise
                else:
                    return target
        finally:  # has no effect on what was committed
            staged = [body for _, body in bodies if isinstance(body, StagedBlob)]
            await self.past.records.store.discard_all(staged)
        raise Conflict(TrashCodes.NAME_TAKEN)

    async def remove(self, agent: Identity | None, origin: str | None, item: FormerState) -> None:
        """Remove an item and its versions for good. Raises AccessDenied, NotAuthenticated,
        StorageError, Overloaded."""
        states = await self._tree(item)
        await self._check(agent, origin, states)
        where, values = at_or_below(item.path)
        versions = await self.past.select(
            item.root,
            f"{where} AND deleted = %s AND ended_ms <= %s",
            *values,
            REPLACED,
            item.ended_ms,
        )
        # The item itself is the last one: what is interrupted can be done again.
        await self.keeper.drop([*versions, *reversed(states)])

    async def empty(
        self, agent: Identity | None, origin: str | None, place: ResourcePath, root: ResourcePath
    ) -> int:
        """Remove everything that the agent may remove at or below a place; the number of items.
        Raises StorageError, Overloaded."""
        count = 0
        async for item in self.items(agent, origin, place, root):
            if await self.past.may(agent, origin, item.state, Mode.WRITE):
                try:
                    await self.remove(agent, origin, item.state)
                except (AccessDenied, NotAuthenticated):
                    continue
                count += 1
        return count

    async def _tree(self, item: FormerState) -> list[FormerState]:
        """The item and what was deleted with it, in the order of the paths."""
        where, values = at_or_below(item.path)
        condition = f"{where} AND ended_version = %s AND deleted > 0 ORDER BY path LIMIT %s"
        limit = MAX_RESOURCES + 1
        return await self.past.select(item.root, condition, *values, item.ended_version, limit)

    async def _check(
        self, agent: Identity | None, origin: str | None, states: Sequence[FormerState]
    ) -> None:
        """Raises AccessDenied or NotAuthenticated unless the agent could write all of it. What
        governs an ACL is its subject, which is among them."""
        for index, state in enumerate(states):
            if index % _CHECKS_AT_ONCE == 0:
                await asyncio.sleep(0)
            if state.kind != ResourceKind.ACL.value and not await self.past.could(
                agent, origin, state, Mode.READ, Mode.WRITE
            ):
                raise NotAuthenticated if agent is None else AccessDenied

    async def _is_taken(self, path: ResourcePath) -> bool:
        found = await self.past.records.store.read_metadata([path, slash_variant(path)])
        return any(found.values())

    async def _bodies(self, states: Sequence[FormerState]) -> list[tuple[FormerState, Body]]:
        """The states with their bodies, of which the large ones are staged. Raises Conflict if the
        others are too large, NotFound if something has just been removed."""
        small_bytes = sum(each.size_bytes for each in states if each.blob is None)
        if small_bytes > MAX_SMALL_BYTES:
            raise Conflict(TrashCodes.TOO_LARGE)
        contents = {
            each.path: InlineBody(await self.past.content(each))
            for each in states
            if each.blob is None
        }
        large = [each.metadata for each in states if each.blob is not None]
        staged = await self.past.records.store.stage_copies(large)
        return [(each, staged.get(each.path) or contents[each.path]) for each in states]

    async def _create(
        self,
        agent: Identity | None,
        origin: str | None,
        item: FormerState,
        target: ResourcePath,
        bodies: Sequence[tuple[FormerState, Body]],
    ) -> None:
        puts, originals = [], {}
        for state, body in bodies:
            put = await self._put(item.path, target, state, body)
            puts.append(put)
            originals[put.path] = state

        async def read(put: Put) -> bytes:
            if isinstance(put.body, InlineBody):
                return put.body.content
            return await self.past.content(originals[put.path])

        request = ResourceRequest(Operation("PUT", target, InMemoryBody(), origin=origin), agent)
        request.records = tuple(state.drop for state, _ in bodies)
        await self.resources.create(request, puts, read)

    async def _put(
        self, source: ResourcePath, target: ResourcePath, state: FormerState, body: Body
    ) -> Put:
        """How a state is stored again. What names its subject gets the new name. Raises
        UnknownContext."""
        path = ResourcePath(target + state.path[len(source) :])
        kind, content_type = ResourceKind(state.kind), state.content_type
        names_subject = kind is not ResourceKind.DOCUMENT and state.size_bytes > 0
        if path != state.path and names_subject and is_rdf(content_type):
            is_acl = kind is ResourceKind.ACL
            subject = state.path if kind.is_container else subject_of(state.path)
            new_subject = ResourcePath(target + subject[len(source) :])
            relocation = Relocation(subject, new_subject, (source, target))
            relocated = relocated_rules if is_acl else relocated_description
            content = await self.past.content(state)
            new = await relocated(self.documents, content, content_type, relocation)
            if new is not None:
                content_type, body = essence(content_type), InlineBody(new)
        return Put(path, kind, content_type, body, creates=True, created_ms=state.created_ms)


def at_or_below(path: ResourcePath) -> tuple[str, Sequence[str]]:
    """A condition for what was deleted with a resource, and its values."""
    if is_container(path):
        return "path >= %s AND path < %s", (path, end_of(path))
    return "path IN (%s, %s, %s)", (path, acl_of(path), description_of(path))


def _root_of(path: ResourcePath) -> ResourcePath:
    """Raises NotFound for a path in no storage."""
    root = storage_root(path)
    if root is None:
        raise NotFound
    return root


def _numbered(path: ResourcePath, number: int) -> ResourcePath:
    """The path itself for 1, and then "name-2.txt", "name-3.txt" and so on."""
    if number == 1:
        return path
    parent = parent_container(path) or ResourcePath("/")
    name = path[len(parent) :].removesuffix("/")
    slash = "/" if is_container(path) else ""
    stem, dot, extension = name.rpartition(".")
    if slash or not stem:
        return ResourcePath(f"{parent}{name}-{number}{slash}")
    return ResourcePath(f"{parent}{stem}-{number}{dot}{extension}")
