"""Plans the write that copies, moves or deletes a tree.

The plan is made on one state of the tree, and its preconditions are that state. Bodies are not
read, except those of ACLs and descriptions, which are about a URL, and those of RDF documents where
it matters whether they state who someone is (:mod:`podstead.resources.identity_changes`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from podstead.core.errors import BadRequest, Conflict, StorageError
from podstead.core.identifiers import ResourcePath, description_of, storage_root, subject_of
from podstead.core.identity import Identity
from podstead.core.media_types import essence
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import Dataset
from podstead.resources import planning
from podstead.resources.codes import ResourceCodes
from podstead.resources.content import ContentValidator
from podstead.resources.context import ResourceContext
from podstead.resources.documents import EMPTY_DATASET, is_rdf
from podstead.resources.identity_changes import IdentityChanges
from podstead.resources.outcome import ResourceRequest
from podstead.resources.renaming import Relocation, relocated_description, relocated_rules
from podstead.resources.target_state import TargetState
from podstead.resources.trees import Tree, TreeState, TreeTransfer, auxiliaries_and
from podstead.storage.blobs.body_store import BodyMissing
from podstead.storage.document_reader import Superseded
from podstead.storage.records import (
    Absent,
    AtVersion,
    Body,
    Change,
    ChangeType,
    MembersAt,
    Metadata,
    Precondition,
    Put,
    Record,
    ResourceKind,
    StagedBlob,
    StoredBody,
    Version,
    Write,
)
from podstead.wac.modes import Mode

_RESOURCES_AT_ONCE: Final = 64
"""How many resources are planned before other requests run."""


class PlannedTree(msgspec.Struct, frozen=True):
    """The write of a tree operation, and the bodies that were staged for it."""

    write: Write
    staged: tuple[StagedBlob, ...] = ()

    def with_more(
        self, preconditions: Sequence[Precondition], records: Sequence[Record] = ()
    ) -> PlannedTree:
        """The same with further preconditions and records."""
        every = tuple(dict.fromkeys((*self.write.preconditions, *preconditions)))
        write = replace(self.write, preconditions=every, records=(*self.write.records, *records))
        return PlannedTree(write, self.staged)


class _NewContent(msgspec.Struct, frozen=True):
    """What is stored at a new path; ``read`` is the content if it had to be read."""

    content_type: str
    body: Body
    read: bytes | None = None


ReadContent = Callable[[Put], Awaitable[bytes]]
"""Reads the content of a resource that is to be created. Raises StorageError."""


class _WriteBuilder(msgspec.Struct):
    """The parts of a write that is being planned."""

    puts: list[Put] = msgspec.field(default_factory=list)
    deletes: list[ResourcePath] = msgspec.field(default_factory=list)
    records: list[Record] = msgspec.field(default_factory=list)
    preconditions: list[Precondition] = msgspec.field(default_factory=list)
    staged: list[StagedBlob] = msgspec.field(default_factory=list)


class TreePlanner:
    """Plans operations that the gate has authorized."""

    def __init__(
        self,
        context: ResourceContext,
        identity_changes: IdentityChanges,
        content_validator: ContentValidator,
    ) -> None:
        self._store = context.store
        self._gate = context.gate
        self._documents = context.documents
        self._identity_changes = identity_changes
        self._content_validator = content_validator

    async def plan_transfer(
        self,
        request: ResourceRequest,
        transfer: TreeTransfer,
        state: TreeState,
        new_version: planning.NewVersion,
    ) -> PlannedTree:
        """The write of the transfer, and what was staged for it, which the caller must discard.

        Raises Superseded if something has changed since the state was read, AccessDenied or
        NotAuthenticated for a change of statements of identity that the agent may not make.
        """
        builder = _WriteBuilder(preconditions=_tree_preconditions(transfer.tree, state))
        builder.preconditions += _destination_preconditions(transfer, state)
        try:
            await self._fill(builder, request, transfer, state, new_version.version)
        except BaseException:
            await self.discard(builder.staged)
            raise
        return _planned(builder, new_version, request.agent)

    async def plan_deletion(
        self, request: ResourceRequest, state: TreeState, new_version: planning.NewVersion
    ) -> PlannedTree:
        """The write that deletes the whole tree. Raises as :meth:`plan_transfer` does."""
        tree = Tree(request.operation.target)
        builder = _WriteBuilder(preconditions=_tree_preconditions(tree, state))
        await self._delete(builder, request, state, list(reversed(state.resources)))
        containers = (container.path for container in state.containers)
        builder.records += self._content_validator.records_of_containers(containers)
        return _planned(builder, new_version, request.agent)

    async def plan_creation(
        self,
        request: ResourceRequest,
        puts: Sequence[Put],
        read: ReadContent,
        state: TreeState,
        new_version: planning.NewVersion,
    ) -> PlannedTree:
        """The write that creates the target of the request with everything below it, and the
        containers above it that are missing. Raises as :meth:`plan_transfer` does."""
        root = TargetState(request.operation.target, state)
        builder = _WriteBuilder(preconditions=list(root.creation_preconditions()))
        builder.puts += [planning.empty_container(path) for path in root.missing_containers()]
        for index, put in enumerate(puts):
            if index % _RESOURCES_AT_ONCE == 0:
                await asyncio.sleep(0)
            builder.puts.append(put)
            after = partial(self._created_dataset, put, read)
            target = TargetState(put.path, state)
            await self._note(
                builder, request, target, put, after=after, version=new_version.version
            )
        return _planned(builder, new_version, request.agent)

    async def _created_dataset(self, put: Put, read: ReadContent) -> Dataset:
        if not is_rdf(put.content_type):
            return EMPTY_DATASET
        return await self._parsed(await read(put), put)

    async def discard(self, staged: Sequence[StagedBlob]) -> None:
        """Remove the staged bodies that were not committed."""
        if staged:
            await self._store.discard_all(staged)

    async def _fill(
        self,
        builder: _WriteBuilder,
        request: ResourceRequest,
        transfer: TreeTransfer,
        state: TreeState,
        version: Version,
    ) -> None:
        copies: Mapping[ResourcePath, StagedBlob] = {}
        # Of what leaves a storage, a former state may remain there, with the large body.
        if not (transfer.moves and _stays_in_storage(transfer)):
            large = [each for each in state.resources if each.kind is not ResourceKind.ACL]
            copies = await self._staged_copies(large)
            builder.staged += copies.values()
        left_behind = await self._rules_left_behind(request, transfer, state)
        for index, each in enumerate(state.resources):
            if index % _RESOURCES_AT_ONCE == 0:
                await asyncio.sleep(0)
            if each.path in left_behind:
                continue
            content = await self._content(transfer, each, copies.get(each.path))
            if isinstance(content.body, StagedBlob) and each.path not in copies:
                builder.staged.append(content.body)
            put = _put(transfer, state, each, content)
            builder.puts.append(put)
            after = partial(self._dataset, each, put, content)
            await self._note(
                builder, request, TargetState(put.path, state), put, after=after, version=version
            )
        created = {put.path for put in builder.puts}
        gone = [
            *(each for each in reversed(state.resources) if transfer.moves),
            *(
                each
                for each in state.existing(auxiliaries_and(transfer.destination))
                if each.path not in created
            ),
        ]
        await self._delete(builder, request, state, gone)

    async def _staged_copies(
        self, resources: Sequence[Metadata]
    ) -> Mapping[ResourcePath, StagedBlob]:
        try:
            return await self._store.stage_copies(resources)
        except BodyMissing as error:
            current = await self._store.read_metadata([each.path for each in resources])
            for each in resources:
                found = current[each.path]
                if found is None or found.version != each.version:
                    raise Superseded from error
            raise

    async def _delete(
        self,
        builder: _WriteBuilder,
        request: ResourceRequest,
        state: TreeState,
        gone: Sequence[Metadata],
    ) -> None:
        for index, each in enumerate(gone):
            if index % _RESOURCES_AT_ONCE == 0:
                await asyncio.sleep(0)
            builder.deletes.append(each.path)
            target = TargetState(each.path, state)
            await self._note(builder, request, target, None, after=_nothing, version=None)

    async def _rules_left_behind(
        self, request: ResourceRequest, transfer: TreeTransfer, state: TreeState
    ) -> set[ResourcePath]:
        """The ACLs that are not copied, because the agent lacks Control on either side."""
        rules = [each.path for each in state.resources if each.kind is ResourceKind.ACL]
        if transfer.moves or not rules:
            return set()
        # An ACL grants all modes or none, by Control on its subject.
        origin = request.operation.origin
        there = await self._gate.grant(request.agent, origin, transfer.destination, state)
        if not there.allows(Mode.CONTROL):
            return set(rules)
        grants = {acl: await self._gate.grant(request.agent, origin, acl, state) for acl in rules}
        return {acl for acl, grant in grants.items() if not grant.allows(Mode.CONTROL)}

    # --- content --------------------------------------------------------------------------

    async def _content(
        self, transfer: TreeTransfer, each: Metadata, copy: StagedBlob | None
    ) -> _NewContent:
        """What is stored for a resource at its new path. Raises Superseded, Conflict."""
        names_subject = each.kind is not ResourceKind.DOCUMENT and each.size_bytes > 0
        if names_subject and is_rdf(each.content_type):
            content = await self._documents.read_bytes(each)
            new = await self._relocated(transfer, each, content)
            if new is not None:
                return _NewContent(essence(each.content_type), await self._stage(new), new)
            if each.kind is ResourceKind.ACL:
                return _NewContent(each.content_type, await self._stage(content), content)
        if copy is not None:
            return _NewContent(each.content_type, copy)
        return _NewContent(each.content_type, StoredBody(each.path, each.version, each.size_bytes))

    async def _relocated(
        self, transfer: TreeTransfer, each: Metadata, content: bytes
    ) -> bytes | None:
        subject = each.path if each.kind.is_container else subject_of(each.path)
        moved_tree = (transfer.source, transfer.destination) if transfer.moves else None
        relocation = Relocation(subject, transfer.new_path(subject), moved_tree)
        relocated = relocated_rules if each.kind is ResourceKind.ACL else relocated_description
        try:
            return await relocated(self._documents, content, each.content_type, relocation)
        except UnknownContext as unknown:
            raise Conflict(
                ResourceCodes.RULES_UNREADABLE_BECAUSE, subject=subject, reason=str(unknown)
            ) from unknown

    async def _stage(self, content: bytes) -> Body:
        return await self._store.stage_body(_single(content))

    async def _dataset(self, each: Metadata, put: Put, content: _NewContent) -> Dataset:
        """The triples of a resource at its new path. Raises Superseded."""
        if not is_rdf(put.content_type):
            return EMPTY_DATASET
        read = content.read
        if read is None:
            read = await self._documents.read_bytes(each)
        return await self._parsed(read, put)

    async def _parsed(self, content: bytes, put: Put) -> Dataset:
        try:
            return (await self._documents.parse(content, put.content_type, path=put.path)).dataset
        except UnknownContext:
            return EMPTY_DATASET
        except BadRequest as error:
            raise StorageError(f"The document for {put.path} cannot be read") from error

    async def _note(
        self,
        builder: _WriteBuilder,
        request: ResourceRequest,
        target: TargetState,
        put: Put | None,
        *,
        after: Callable[[], Awaitable[Dataset]],
        version: Version | None,
    ) -> None:
        """Check the effect of a change on identities, and add the records that depend on it.

        Raises AccessDenied, NotAuthenticated.
        """
        existing = target.existing
        if not any(each is not None and is_rdf(each.content_type) for each in (existing, put)):
            return
        builder.preconditions += await self._identity_changes.preconditions(
            request, target, after, version
        )
        hooks, path = self._content_validator.write_hooks, target.stored_path
        if planning.has_hook(hooks, path):
            derived = await planning.derived_records(hooks, path, await after())
            builder.records += derived.records
            builder.preconditions += derived.preconditions


def _planned(
    builder: _WriteBuilder, new_version: planning.NewVersion, by: Identity | None
) -> PlannedTree:
    agent = None if by is None else by.iri
    created = (
        Change(put.path, ChangeType.CREATE if put.creates else ChangeType.UPDATE, agent)
        for put in builder.puts
    )
    deleted = (Change(path, ChangeType.DELETE, agent) for path in builder.deletes)
    write = Write(
        version=new_version.version,
        at_ms=new_version.at_ms,
        preconditions=tuple(builder.preconditions),
        puts=tuple(builder.puts),
        deletes=tuple(builder.deletes),
        records=tuple(builder.records),
        changes=(*created, *deleted),
    )
    return PlannedTree(write, tuple(builder.staged))


def _tree_preconditions(tree: Tree, state: TreeState) -> list[Precondition]:
    """The preconditions that the tree is as it was read. The ACLs that do not exist are
    preconditions of the decisions."""
    found: list[Precondition] = []
    for each in state.resources:
        found.append(AtVersion(each.path, each.version))
        if each.members_version is not None and tree.with_members:
            found.append(MembersAt(each.path, each.members_version))
        if each.kind is ResourceKind.DOCUMENT and state[description_of(each.path)] is None:
            found.append(Absent(description_of(each.path)))
    return found


def _destination_preconditions(transfer: TreeTransfer, state: TreeState) -> list[Precondition]:
    """The preconditions that the destination is as it was read."""
    destination = TargetState(transfer.destination, state)
    if destination.existing is None:
        return list(destination.creation_preconditions())
    found: list[Precondition] = []
    for path in auxiliaries_and(transfer.destination):
        metadata = state[path]
        found.append(Absent(path) if metadata is None else AtVersion(path, metadata.version))
    return found


def _stays_in_storage(transfer: TreeTransfer) -> bool:
    return storage_root(transfer.source) == storage_root(transfer.destination)


def _put(transfer: TreeTransfer, state: TreeState, each: Metadata, content: _NewContent) -> Put:
    path = transfer.new_path(each.path)
    kind = ResourceKind.CONTAINER if each.kind is ResourceKind.STORAGE else each.kind
    put = Put(path, kind, content.content_type, content.body, creates=state[path] is None)
    if not transfer.moves or not put.creates:
        return put
    # A container changes with the move, because its members have other URLs.
    modified_ms = each.modified_ms if kind is ResourceKind.DOCUMENT else None
    return replace(put, created_ms=each.created_ms, modified_ms=modified_ms)


async def _nothing() -> Dataset:
    return EMPTY_DATASET


async def _single(content: bytes) -> AsyncIterator[bytes]:
    yield content
