"""The trash: lists, restores and removes what was deleted.

An item is what one write deleted: a document with its ACL and description, or a container with
everything below it. Whoever may read its address now and could read it then sees it; whoever may
also write now and could write then restores it; whoever has Control now and had it then, or has
Control of the storage now, removes it for good.

A restored item is created like anything else, in one write, by
:meth:`~podstead.resources.service.ResourceService.create`: the gate, the hooks and the quota apply,
and rules return only where the agent has Control. Large bodies are staged as copies that share the
bytes of the former states, which the same write removes.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from podstead.core import codes, date_times, identifiers, media_types, operation
from podstead.core.errors import AccessDenied, Conflict, NotAuthenticated, NotFound
from podstead.core.identity import Identity
from podstead.features.history.past import FormerStateService
from podstead.features.history.retention import BATCH, Keeper, drop_all
from podstead.resources.costly_work import AgentSemaphores
from podstead.resources.documents import Documents, is_rdf
from podstead.resources.outcome import ResourceRequest
from podstead.resources.renaming import Relocation, relocated_description, relocated_rules
from podstead.resources.service import ResourceService
from podstead.resources.tree_operations import MAX_RESOURCES
from podstead.storage.former_states import FORMER_STATE, REPLACED, FormerState, former_state_of
from podstead.storage.record_store import RecordStore
from podstead.storage.records import Body, InlineBody, Put, ResourceKind, StagedBlob
from podstead.storage.tables import end_of
from podstead.wac.modes import Mode

MAX_LISTED: Final = 1000
"""How many items one list has."""
MAX_SMALL_BYTES: Final = 64 * 1024 * 1024
"""How much one restoration may have in memory."""
_MAX_NAMES: Final = 100
_CHECKS_AT_ONCE: Final = 64
LOOKED_AT: Final = 5000
"""How many items are read from the database at once. It looks at all states for that."""
MAX_STEPS: Final = 200
"""In how many steps one request purges."""
_MAX_PAGES: Final = 4
"""How many times :data:`LOOKED_AT` items are looked at for one request."""


class TrashCodes(codes.ErrorCode):
    """What errors of the trash say to people."""

    TOO_LARGE = "This is too large to be restored at once"
    NAME_TAKEN = "There is something at this address by now"
    NOT_IN_POD = "This is no address in your pod"
    DAYS_OUT_OF_RANGE = "The number of days must be a whole number from 0 to %(number)s"


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
class TrashList:
    """What an agent may read in the trash. There are ``others`` that only emptying the trash
    reaches, such as those from before a renaming of the pod."""

    items: Sequence[DeletedItem]
    others: bool


@dataclass(frozen=True)
class Trash:
    """What was deleted in all storages, for one agent at a time."""

    past: FormerStateService
    keeper: Keeper
    resources: ResourceService
    documents: Documents

    @cached_property
    def _semaphores(self) -> AgentSemaphores:
        return AgentSemaphores(base_url=self.documents.url_of(identifiers.ResourcePath("")))

    def turn(self, agent: Identity | None) -> AbstractAsyncContextManager[None]:
        """The turn of the agent, which does one thing at a time. Raises RateLimited."""
        return self._semaphores.of(agent)

    async def items(
        self,
        agent: Identity | None,
        origin: str | None,
        place: identifiers.ResourcePath,
        root: identifiers.ResourcePath,
    ) -> TrashList:
        """What was deleted at or below a place, the newest first. Raises RateLimited,
        StorageError."""
        async with self.turn(agent):
            found: list[DeletedItem] = []
            others = False
            async for state in self._deleted(place, root):
                if not await self.past.may(agent, origin, state, Mode.READ):
                    others = True
                elif len(found) < MAX_LISTED:
                    found.append(await self._item(agent, origin, state))
                else:
                    break
            others = others and await self.past.controls(agent, origin, root)
            return TrashList(found, others)

    async def _deleted(
        self, place: identifiers.ResourcePath, root: identifiers.ResourcePath
    ) -> AsyncIterator[FormerState]:
        """Items at or below a place, the newest first, of which others may be removed meanwhile."""
        condition = (
            "deleted = 1 AND path >= %s AND path < %s"
            " AND (ended_ms < %s OR ended_ms = %s AND (path, version) > (%s, %s))"
            " ORDER BY ended_ms DESC, path, version LIMIT %s"
        )
        ended_ms, path, version = self.past.records.now_ms() + date_times.DAY_MS, "", ""
        for _ in range(_MAX_PAGES):
            key = (ended_ms, ended_ms, path, version)
            states = await self.past.select(root, condition, place, end_of(place), *key, LOOKED_AT)
            for index, state in enumerate(states):
                if index % _CHECKS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                yield state
            if len(states) < LOOKED_AT:  # those that are no longer kept are the last ones
                return
            ended_ms, path, version = states[-1].ended_ms, states[-1].path, states[-1].version

    async def _item(
        self, agent: Identity | None, origin: str | None, state: FormerState
    ) -> DeletedItem:
        is_own = agent is not None and state.agent == agent.iri
        shows_agent = is_own or await self.past.controls(agent, origin, state.path)
        return DeletedItem(state, shows_agent)

    async def item(
        self,
        agent: Identity | None,
        origin: str | None,
        path: identifiers.ResourcePath,
        version: str,
    ) -> FormerState:
        """An item that the agent may restore, by its path and the version that was deleted.

        Raises NotFound, also for an agent who may not know of it, AccessDenied and
        NotAuthenticated.
        """
        for state in await self._found(path, version):
            if await self._is_open(agent, origin, state, Mode.WRITE):
                return state
        raise NotFound

    async def _found(self, path: identifiers.ResourcePath, version: str) -> Sequence[FormerState]:
        condition = "path = %s AND version = %s AND deleted = 1"
        return await self.past.select(_root_of(path), condition, path, version)

    async def _is_open(
        self, agent: Identity | None, origin: str | None, state: FormerState, needed: Mode
    ) -> bool:
        """False for an agent who may not know of an item. Raises AccessDenied and NotAuthenticated
        for one who may not do more."""
        if not await self.past.may(agent, origin, state, Mode.READ):
            return False
        if not await self.past.may(agent, origin, state, needed):
            raise NotAuthenticated if agent is None else AccessDenied
        return True

    async def restore(
        self,
        agent: Identity | None,
        origin: str | None,
        item: FormerState,
        *,
        to: identifiers.ResourcePath | None = None,
    ) -> identifiers.ResourcePath:
        """Create an item again, by default under its name or, if that is taken, another one;
        its path. Raises what a PUT raises, and Conflict if ``to`` is taken or it is too large."""
        async with self.turn(agent):
            return await self.restore_in_turn(agent, origin, item, to=to)

    async def restore_in_turn(
        self,
        agent: Identity | None,
        origin: str | None,
        item: FormerState,
        *,
        to: identifiers.ResourcePath | None = None,
    ) -> identifiers.ResourcePath:
        """As :meth:`restore`, by a caller who has the turn."""
        tree = await self._tree(item)
        if len(tree) > MAX_RESOURCES:
            raise Conflict(TrashCodes.TOO_LARGE)
        is_elsewhere = to is not None and to != item.path
        states = await self._restorable(agent, origin, tree, is_elsewhere=is_elsewhere)
        gone: Sequence[FormerState] = [each for each in states if not _is_acl(each)]
        if is_elsewhere and not await self.past.may(agent, origin, item, Mode.CONTROL):
            gone = ()  # it would be removed for good from where it was
        bodies = await self._bodies(states)
        try:
            for number in range(1, _MAX_NAMES):
                target = to or _numbered(item.path, number)
                if to is None and await self._is_taken(target):
                    continue
                try:
                    await self._create(agent, origin, item, target, bodies, gone=gone)
                except Conflict:
                    if to is not None or not await self._is_taken(target):
                        raise
                else:
                    if is_elsewhere:
                        for each in states:
                            self.resources.note_read(agent, each.path)
                    return target
        finally:  # has no effect on what was committed
            staged = [body for _, body in bodies if isinstance(body, StagedBlob)]
            await self.past.records.store.discard_all(staged)
        raise Conflict(TrashCodes.NAME_TAKEN)

    async def remove(
        self,
        agent: Identity | None,
        origin: str | None,
        path: identifiers.ResourcePath,
        version: str,
    ) -> None:
        """Remove an item and its versions for good, by an agent who has Control of all of it now
        and had it then, or has Control of the storage.

        Raises as :meth:`item` does, RateLimited, StorageError and Overloaded.
        """
        async with self.turn(agent):
            owns = await self.past.controls(agent, origin, _root_of(path))
            for state in await self._found(path, version):
                if owns or await self._is_open(agent, origin, state, Mode.CONTROL):
                    async for each in self._removable(agent, origin, state, owns=owns):
                        await self.keeper.drop(each)
                    return
        raise NotFound

    async def empty(
        self,
        agent: Identity | None,
        origin: str | None,
        place: identifiers.ResourcePath,
        root: identifiers.ResourcePath,
    ) -> bool:
        """Remove everything that the agent may remove at or below a place; whether nothing is left
        that the agent may know of. Raises RateLimited, StorageError, Overloaded."""
        async with self.turn(agent):
            owns = await self.past.controls(agent, origin, root)
            is_empty, count = True, 0
            gone: list[FormerState] = []
            async for item in self._deleted(place, root):
                count += 1
                try:
                    if not owns and not await self._is_open(agent, origin, item, Mode.CONTROL):
                        continue
                    async for each in self._removable(agent, origin, item, owns=owns):
                        gone += each
                        if len(gone) > MAX_LISTED:
                            await self.keeper.drop(gone)
                            gone = []
                except (AccessDenied, NotAuthenticated):
                    is_empty = False
            await self.keeper.drop(gone)
            return is_empty and count < _MAX_PAGES * LOOKED_AT

    async def purge(self, agent: Identity | None, path: identifiers.ResourcePath) -> bool:
        """Remove everything that is kept of a resource, in at most :data:`MAX_STEPS` steps; whether
        nothing is left. The caller has authorized it. Raises NotFound, RateLimited, StorageError,
        Overloaded."""
        records, steps = self.past.records, 0
        async with self.turn(agent), aclosing(drop_kept(records, path)) as removing:
            async for _ in removing:
                steps += 1
                if steps == MAX_STEPS:
                    break
            await records.store.remove_garbage(now_ms=records.now_ms())
        return steps < MAX_STEPS or (await kept_of(records, path)).count == 0

    async def _removable(
        self, agent: Identity | None, origin: str | None, item: FormerState, *, owns: bool
    ) -> AsyncIterator[Sequence[FormerState]]:
        """What is removed with an item, the item last: what is interrupted can be done again. Rules
        stay until their time is over, since they say who could read other states, and so do the
        versions of others that were at the same paths. Raises AccessDenied, NotAuthenticated."""
        states = [each for each in await self._tree(item) if not _is_acl(each)]
        if not owns:
            await self._check(agent, origin, states, Mode.CONTROL)
        documents = {(each.path, each.created_ms) for each in states}
        where, values = at_or_below(item.path)
        condition = f"{where} AND deleted = %s AND ended_ms <= %s"
        async for page in self.past.pages(item.root, condition, *values, REPLACED, item.ended_ms):
            yield [each for each in page if (each.path, each.created_ms) in documents]
        yield states[::-1]

    async def _tree(self, item: FormerState) -> list[FormerState]:
        """The item and what was deleted with it, in the order of the paths."""
        where, values = at_or_below(item.path)
        condition = f"{where} AND ended_version = %s AND deleted > 0 ORDER BY path LIMIT %s"
        limit = MAX_RESOURCES + 1
        return await self.past.select(item.root, condition, *values, item.ended_version, limit)

    async def _restorable(
        self,
        agent: Identity | None,
        origin: str | None,
        states: Sequence[FormerState],
        *,
        is_elsewhere: bool,
    ) -> Sequence[FormerState]:
        """What the agent may have again. Rules need Control: without it, they are left behind by
        what is restored elsewhere, as a copy does. Raises AccessDenied or NotAuthenticated."""
        await self._check(
            agent, origin, [each for each in states if not _is_acl(each)], Mode.READ, Mode.WRITE
        )
        found = []
        for index, state in enumerate(states):
            if index % _CHECKS_AT_ONCE == 0:
                await asyncio.sleep(0)
            if not _is_acl(state) or await self.past.may(agent, origin, state, Mode.CONTROL):
                found.append(state)
            elif not is_elsewhere:
                raise NotAuthenticated if agent is None else AccessDenied
        return found

    async def _check(
        self,
        agent: Identity | None,
        origin: str | None,
        states: Sequence[FormerState],
        *needed: Mode,
    ) -> None:
        """Raises AccessDenied or NotAuthenticated unless the agent has the modes on all of it."""
        for index, state in enumerate(states):
            if index % _CHECKS_AT_ONCE == 0:
                await asyncio.sleep(0)
            if not await self.past.may(agent, origin, state, *needed):
                raise NotAuthenticated if agent is None else AccessDenied

    async def _is_taken(self, path: identifiers.ResourcePath) -> bool:
        found = await self.past.records.store.read_metadata([path, identifiers.slash_variant(path)])
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
        target: identifiers.ResourcePath,
        bodies: Sequence[tuple[FormerState, Body]],
        *,
        gone: Sequence[FormerState],
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

        request = ResourceRequest(operation.Operation("PUT", target, origin=origin), agent)
        request.records = tuple(state.drop for state in gone)
        await self.resources.create(request, puts, read)

    async def _put(
        self,
        source: identifiers.ResourcePath,
        target: identifiers.ResourcePath,
        state: FormerState,
        body: Body,
    ) -> Put:
        """How a state is stored again. What names its subject gets the new name. Raises
        UnknownContext."""
        path = identifiers.ResourcePath(target + state.path[len(source) :])
        kind, content_type = ResourceKind(state.kind), state.content_type
        names_subject = kind is not ResourceKind.DOCUMENT and state.size_bytes > 0
        if path != state.path and names_subject and is_rdf(content_type):
            is_acl = kind is ResourceKind.ACL
            subject = state.path if kind.is_container else identifiers.subject_of(state.path)
            new_subject = identifiers.ResourcePath(target + subject[len(source) :])
            relocation = Relocation(subject, new_subject, (source, target))
            relocated = relocated_rules if is_acl else relocated_description
            content = await self.past.content(state)
            new = await relocated(self.documents, content, content_type, relocation)
            if new is not None:
                content_type, body = media_types.essence(content_type), InlineBody(new)
        return Put(path, kind, content_type, body, creates=True, created_ms=state.created_ms)


@dataclass(frozen=True, slots=True)
class KeptOfResource:
    """How much is kept of a resource and, of a container, of what was below it."""

    deleted: int
    versions: int
    rules: int
    size_bytes: int
    is_stored: bool
    """Whether there is something now, which stays."""

    @property
    def count(self) -> int:
        return self.deleted + self.versions + self.rules


async def kept_of(records: RecordStore, path: identifiers.ResourcePath) -> KeptOfResource:
    """Raises NotFound for a path in no storage, StorageError."""
    where, values = at_or_below(path)
    acl, gone = ResourceKind.ACL.value, "deleted > 0"
    [found] = await records.store.fetch(
        f"SELECT count(CASE WHEN kind <> {acl} AND {gone} THEN 1 END),"  # noqa: S608 - our columns
        f" count(CASE WHEN kind <> {acl} AND NOT {gone} THEN 1 END),"
        f" count(CASE WHEN kind = {acl} THEN 1 END), coalesce(sum(size_bytes), 0)"
        f" FROM former_states WHERE root = %s AND {where}",
        _root_of(path),
        *values,
    )
    stored = (await records.store.read_metadata([path]))[path]
    deleted, versions, rules, size_bytes = map(int, found)
    return KeptOfResource(deleted, versions, rules, size_bytes, is_stored=stored is not None)


async def drop_kept(
    records: RecordStore, path: identifiers.ResourcePath
) -> AsyncGenerator[int, None]:
    """Remove everything that :func:`kept_of` counts, also rules, and say after each step how many
    states are gone. Raises NotFound, StorageError, Overloaded."""
    root, (where, values) = _root_of(path), at_or_below(path)
    select = f"SELECT {FORMER_STATE} FROM former_states WHERE root = %s AND {where} LIMIT %s"  # noqa: S608
    removed = 0
    while rows := await records.store.fetch(select, root, *values, BATCH):
        await drop_all(records, [former_state_of(row) for row in rows])
        removed += len(rows)
        yield removed


def _is_acl(state: FormerState) -> bool:
    return state.kind == ResourceKind.ACL.value


def at_or_below(path: identifiers.ResourcePath) -> tuple[str, Sequence[str]]:
    """A condition for what was deleted with a resource, and its values."""
    if identifiers.is_container(path):
        return "path >= %s AND path < %s", (path, end_of(path))
    return "path IN (%s, %s, %s)", (
        path,
        identifiers.acl_of(path),
        identifiers.description_of(path),
    )


def _root_of(path: identifiers.ResourcePath) -> identifiers.ResourcePath:
    """Raises NotFound for a path in no storage."""
    root = identifiers.storage_root(path)
    if root is None:
        raise NotFound
    return root


def _numbered(path: identifiers.ResourcePath, number: int) -> identifiers.ResourcePath:
    """The path itself for 1, and then "name-2.txt", "name-3.txt" and so on."""
    if number == 1:
        return path
    parent = identifiers.parent_container(path) or identifiers.ResourcePath("/")
    name = path[len(parent) :].removesuffix("/")
    slash = "/" if identifiers.is_container(path) else ""
    stem, dot, extension = name.rpartition(".")
    if slash or not stem:
        return identifiers.ResourcePath(f"{parent}{name}-{number}{slash}")
    return identifiers.ResourcePath(f"{parent}{stem}-{number}{dot}{extension}")
