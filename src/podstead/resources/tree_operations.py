"""Copies, moves and deletes whole trees, as one write each.

Each operation reads the whole tree and the surroundings of both ends in one snapshot. The gate
decides about every resource on that snapshot, and the write has preconditions that nothing in it
has changed: the versions of all resources, the listings of all containers, the ACLs and group
documents behind the decisions, and what must not exist. If one of them no longer holds, the
operation starts again, so that a tree is never torn: nobody sees a part of it, and no crash leaves
one.

A copy has the rules of a resource where the agent has Control over both the resource and the
destination; elsewhere the copy inherits the rules of its new container. A move always takes the
rules along and is refused to an agent without Control, because the resources could become
accessible otherwise (:func:`podstead.wac.modes.for_move`). ACLs and descriptions are rewritten to
be about the new URLs (:mod:`podstead.resources.renaming`).

An existing container is never replaced or merged with. An existing document is replaced as if it
had been deleted before, with its ACL and description.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from podstead.core import conditional, errors, identifiers, identity, media_types
from podstead.core.errors import BadRequest, Conflict, StorageError
from podstead.core.identifiers import ResourcePath, description_of, storage_root, subject_of
from podstead.rdf.errors import UnknownContext
from podstead.rdf.graph import Dataset
from podstead.resources import costly_work, entity_tags, planning, renaming
from podstead.resources.codes import ResourceCodes
from podstead.resources.committer import Committer
from podstead.resources.content import ContentValidator
from podstead.resources.context import ResourceContext
from podstead.resources.documents import EMPTY_DATASET, is_rdf
from podstead.resources.identity_changes import IdentityChanges
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.resources.target_state import TargetState, check_new_path_length
from podstead.resources.trees import Tree, TreeState, TreeTransfer, auxiliaries_and
from podstead.storage import records as storage_records
from podstead.storage.blobs.body_store import BodyMissing
from podstead.storage.document_reader import Superseded
from podstead.storage.protocol import Snapshot
from podstead.wac import codes, effective, modes
from podstead.wac.modes import Mode, Requirements

MAX_RESOURCES: Final = 10_000
"""How many resources one operation may concern, auxiliary ones included. They are one transaction,
during which nothing else is written; with that many, it takes about a second."""

MAX_ATTEMPTS: Final = 8
"""How often an operation starts again because something in the tree has changed."""

_REQUIREMENTS_AT_ONCE: Final = 256
"""How many requirements the gate checks before other requests run."""


class _IsContainer(Exception):
    """The source is a container whose URL was sent without its slash."""

    def __init__(self, container: identifiers.ResourcePath) -> None:
        super().__init__()
        self.container = container


class TreeContents(msgspec.Struct):
    """How much a tree contains. ``with_rules`` is the number of documents and containers with
    rules of their own; without ``complete``, there is more than one operation may concern."""

    documents: int = 0
    containers: int = 0
    size_bytes: int = 0
    with_rules: int = 0
    complete: bool = True

    def add(self, metadata: storage_records.Metadata) -> None:
        """Count a resource."""
        self.size_bytes += metadata.size_bytes
        if metadata.kind.is_container:
            self.containers += 1
        elif metadata.kind is storage_records.ResourceKind.DOCUMENT:
            self.documents += 1
        elif metadata.kind is storage_records.ResourceKind.ACL:
            self.with_rules += 1


class Trees:
    """Carries out COPY, MOVE, and DELETE of whole trees."""

    def __init__(
        self, context: ResourceContext, planner: TreePlanner, committer: Committer
    ) -> None:
        self._context = context
        self._store = context.store
        self._gate = context.gate
        self._planner = planner
        self._committer = committer
        self._semaphores = costly_work.AgentSemaphores(
            base_url=context.documents.url_of(identifiers.ResourcePath(""))
        )

    async def transfer(self, request: ResourceRequest) -> Outcome:
        """Copy or move the target of the request to its destination.

        Raises RequestRefused, among others Conflict if the tree keeps changing.
        """
        transfer = _transfer_of(request)
        async with self._semaphores.of(request.agent):
            try:
                return await self._transfer(request, transfer)
            except _IsContainer as of:
                # RFC 4918 section 5.2: clients of WebDAV leave the slash out.
                request.operation = replace(request.operation, target=of.container)
                return await self._transfer(request, _transfer_of(request))

    async def _transfer(self, request: ResourceRequest, transfer: TreeTransfer) -> Outcome:
        """Raises _IsContainer if there is a container at the slash variant of the source only."""
        destination = transfer.destination
        read: Sequence[storage_records.Metadata] = ()

        async def attempt() -> PlannedTree:
            nonlocal read
            found = await self._read(transfer.tree, destination)
            state = TreeState(transfer.tree, found, destination=destination)
            read = state.resources
            await self._check_slash(request, TargetState(transfer.source, state))
            if identifiers.is_container(destination) and not identifiers.is_container(
                transfer.source
            ):
                raise errors.Conflict(ResourceCodes.SLASH_OF_DOCUMENT)
            preconditions, records = await self._admit_transfer(request, transfer, state)
            planned = await self._planner.plan_transfer(
                request, transfer, state, self._context.new_version()
            )
            return planned.with_more(preconditions, records)

        write, nearly_full = await self._commit(request, attempt)
        # What moves to another storage is read by whoever may read there.
        if not transfer.moves or identifiers.storage_root(
            transfer.source
        ) != identifiers.storage_root(destination):
            for each in read:
                if each.kind is not storage_records.ResourceKind.ACL:
                    self._context.note_read(request.agent, each.path)
        result = Result.CREATED if write.puts[0].creates else Result.CHANGED
        return Outcome(result, location=destination, nearly_full=nearly_full)

    async def delete(self, request: ResourceRequest) -> Outcome:
        """Delete the target of the request with everything below it. Raises as
        :meth:`transfer` does."""
        tree = Tree(request.operation.target)

        async def attempt() -> PlannedTree:
            state = TreeState(tree, await self._read(tree))
            preconditions = await self._admit_deletion(request, tree, state)
            planned = await self._planner.plan_deletion(request, state, self._context.new_version())
            return planned.with_more(preconditions)

        async with self._semaphores.of(request.agent):
            await self._commit(request, attempt)
        return Outcome(Result.DELETED)

    async def create(
        self, request: ResourceRequest, puts: Sequence[storage_records.Put], read: ReadContent
    ) -> Outcome:
        """Create the target of the request with everything below it, and missing containers above.

        ``puts`` are in the order of their paths, the target first; ``read`` gives their content.
        The records of the request are part of the write. Raises Conflict if there is something at
        the target, and as :meth:`transfer` does.
        """
        tree = Tree(request.operation.target)

        async def attempt() -> PlannedTree:
            state = TreeState(tree, await self._read(tree))
            root = TargetState(tree.root, state)
            await request.authorize(self._gate, root, modes.for_put(tree.root, state))
            needed = (each for put in puts for each in modes.for_put(put.path, state))
            required = tuple(dict.fromkeys(needed))
            preconditions = await self._require(request, required, state)
            if root.existing is not None:
                raise errors.Conflict(ResourceCodes.DESTINATION_EXISTS)
            check_new_path_length(tree.root)
            root.check_creatable()
            new_version = self._context.new_version()
            planned = await self._planner.plan_creation(request, puts, read, state, new_version)
            return planned.with_more(preconditions, request.records)

        async with self._semaphores.of(request.agent):
            _, nearly_full = await self._commit(request, attempt)
        return Outcome(Result.CREATED, location=tree.root, nearly_full=nearly_full)

    async def contents(self, request: ResourceRequest) -> TreeContents:
        """How much the target contains, as far as the agent may read it.

        Raises AccessDenied, NotAuthenticated and NotFound.
        """
        async with self._semaphores.of(request.agent):
            return await self._contents(request)

    async def _contents(self, request: ResourceRequest) -> TreeContents:
        target = request.operation.target
        tree = Tree(target)
        state = TreeState(tree, await self._read(tree))
        root = TargetState(target, state)
        await request.authorize(self._gate, root, modes.for_read(target))
        if root.existing is None:
            raise errors.NotFound
        origin, contents = request.operation.origin, TreeContents()
        for index, each in enumerate(state.resources):
            if index % _REQUIREMENTS_AT_ONCE == 0:
                await asyncio.sleep(0)
            grant = await self._gate.grant(request.agent, origin, each.path, state)
            if grant.allows(Mode.READ):
                contents.add(each)
        contents.complete = len(state.resources) <= MAX_RESOURCES
        return contents

    async def _commit(
        self, request: ResourceRequest, attempt: Callable[[], Awaitable[PlannedTree]]
    ) -> tuple[storage_records.Write, storage_records.QuotaLevel | None]:
        """Plan and commit until the preconditions hold; the committed write, and how much of its
        quota the storage then uses if that is nearly all."""
        for _ in range(MAX_ATTEMPTS):
            try:
                planned = await attempt()
            except Superseded:
                continue
            try:
                committed = await self._committer.commit_tree(request.agent, planned.write)
            finally:
                # Has no effect on what was committed.
                await self._planner.discard(planned.staged)
            if committed is not None:
                return planned.write, committed.nearly_full
        raise errors.Conflict(ResourceCodes.TREE_KEEPS_CHANGING)

    async def _read(self, tree: Tree, *also: identifiers.ResourcePath) -> Snapshot:
        paths: dict[identifiers.ResourcePath, None] = {}
        for path in (tree.root, *also):
            paths |= dict.fromkeys((*effective.paths_to_read(path), *auxiliaries_and(path)))
        limit = MAX_RESOURCES + 1 if tree.with_members else 1
        return await self._store.read_tree(tree.root, also=paths, limit=limit)

    # --- may it be done? ------------------------------------------------------------------

    async def _admit_transfer(
        self, request: ResourceRequest, transfer: TreeTransfer, state: TreeState
    ) -> tuple[list[storage_records.Precondition], list[storage_records.Record]]:
        """Authorize a transfer and check everything that does not need content.

        Returns the preconditions of the decisions, and the records of hooks.
        """
        source = transfer.source
        required = modes.for_read(source)
        if transfer.moves:
            required += modes.for_delete(source, state)
        await self._admit_root(request, required, state)
        preconditions = await self._require(request, _requirements(transfer, state), state)
        _check_conditions(request, TargetState(source, state))
        _check_destination(request, transfer, state)
        records: list[storage_records.Record] = []
        if transfer.moves:
            containers = [container.path for container in state.containers]
            for hook in self._context.container_hooks:
                changes = await hook.of_move(source, transfer.destination, containers)
                preconditions += changes.preconditions
                records += changes.records
        return preconditions, records

    async def _check_slash(self, request: ResourceRequest, source: TargetState) -> None:
        variant = source.slash_variant
        if source.existing is not None or variant is None or not variant.kind.is_container:
            return
        # A decision of its own: to others, the container must not be revealed.
        origin = request.operation.origin
        grant, _ = await self._gate.current_grant(request.agent, origin, variant.path)
        if grant.allows(Mode.READ):
            raise _IsContainer(variant.path)

    async def _admit_deletion(
        self, request: ResourceRequest, tree: Tree, state: TreeState
    ) -> list[storage_records.Precondition]:
        await self._admit_root(request, modes.for_delete(tree.root, state), state)
        required = modes.for_tree_deletion(state.subjects)
        preconditions = await self._require(request, required, state)
        _check_conditions(request, TargetState(tree.root, state))
        return preconditions

    async def _admit_root(
        self, request: ResourceRequest, required: Requirements, state: TreeState
    ) -> None:
        """Decide about the root of the tree, before anything about the tree is revealed.

        Raises AccessDenied, NotAuthenticated, MethodNotAllowed, NotFound, and Conflict for a tree
        that is too large.
        """
        operation = request.operation
        root = TargetState(operation.target, state)
        await request.authorize(self._gate, root, required)
        if operation.method not in identifiers.allowed_methods(root.target):
            raise errors.MethodNotAllowed(
                ResourceCodes.STORAGE_AND_AUXILIARIES_STAY,
                allow=identifiers.allowed_methods(root.target),
            )
        if root.existing is None:
            raise errors.NotFound
        if len(state.resources) > MAX_RESOURCES:
            raise errors.Conflict(ResourceCodes.TOO_MANY_RESOURCES, number=MAX_RESOURCES)

    async def _require(
        self, request: ResourceRequest, required: Requirements, state: TreeState
    ) -> list[storage_records.Precondition]:
        found: dict[storage_records.Precondition, None] = {}
        for start in range(0, len(required), _REQUIREMENTS_AT_ONCE):
            some = required[start : start + _REQUIREMENTS_AT_ONCE]
            found |= dict.fromkeys(
                await self._gate.require(some, request.agent, request.operation.origin, state)
            )
            await asyncio.sleep(0)
        return list(found)


def _transfer_of(request: ResourceRequest) -> TreeTransfer:
    """The transfer that a request asks for, if its URLs allow it at all.

    Raises BadRequest, Conflict and ForbiddenDestination, which depend on the request only.
    """
    operation = request.operation
    source, destination = operation.target, operation.destination
    if destination is None:
        raise errors.BadRequest(ResourceCodes.DESTINATION_MISSING)
    if identifiers.is_container(source) and not identifiers.is_container(destination):
        destination = identifiers.slash_variant(destination)
    if destination == source:
        raise errors.ForbiddenDestination(ResourceCodes.DESTINATION_IS_SOURCE)
    if identifiers.is_container(source) and destination.startswith(source):
        raise errors.ForbiddenDestination(ResourceCodes.INTO_ITSELF)
    if identifiers.auxiliary_kind(destination) is not None:
        raise errors.ForbiddenDestination(ResourceCodes.AUXILIARY_STAYS)
    if identifiers.auxiliary_kind(identifiers.slash_variant(destination)) is not None:
        raise errors.Conflict(ResourceCodes.CONTAINER_NAMED_AS_AUXILIARY)
    tree = Tree(source, with_members=operation.with_members)
    return TreeTransfer(tree, destination, moves=operation.method == "MOVE")


def _requirements(transfer: TreeTransfer, state: TreeState) -> Requirements:
    subjects, destination = state.subjects, transfer.destination
    if transfer.moves:
        return modes.for_move(subjects, state.with_rules, destination, state)
    return modes.for_copy(subjects, destination, state)


def _check_conditions(request: ResourceRequest, source: TargetState) -> None:
    conditions, existing = request.operation.conditions, source.existing
    if not conditions.any_given or existing is None:
        return
    request.existing = existing  # a refusal contains its entity tag
    conditional.check_write(
        conditions,
        version=entity_tags.state_version(existing),
        modified_ms=entity_tags.last_modified_ms(existing),
    )
    request.existing = None


def _check_destination(request: ResourceRequest, transfer: TreeTransfer, state: TreeState) -> None:
    """Raises PreconditionFailed, Conflict, TargetTooLong."""
    path = transfer.destination
    destination = TargetState(path, state)
    if destination.existing is not None:
        if not request.operation.overwrite:
            raise errors.PreconditionFailed(ResourceCodes.DESTINATION_EXISTS)
        if identifiers.is_container(path):
            raise errors.Conflict(ResourceCodes.DESTINATION_IS_CONTAINER)
        return
    parent = identifiers.parent_container(path)
    # RFC 4918 sections 9.8.5 and 9.9.4: unlike PUT, these methods create no containers.
    if parent is None or state[parent] is None:
        raise errors.Conflict(ResourceCodes.DESTINATION_WITHOUT_CONTAINER)
    destination.check_creatable()
    for each in state.subjects:
        new_path = transfer.new_path(each)
        check_new_path_length(new_path)
        if new_path.count("/") > effective.MAX_DEPTH:
            raise errors.TargetTooLong(codes.WacCodes.TOO_DEEP, number=effective.MAX_DEPTH)


# Plans the write that copies, moves or deletes a tree.
#
# The plan is made on one state of the tree, and its preconditions are that state. Bodies are not
# read, except those of ACLs and descriptions, which are about a URL, and those of RDF documents
# where it matters whether they state who someone is (:mod:`podstead.resources.identity_changes`).

_RESOURCES_AT_ONCE: Final = 64
"""How many resources are planned before other requests run."""


class PlannedTree(msgspec.Struct, frozen=True):
    """The write of a tree operation, and the bodies that were staged for it."""

    write: storage_records.Write
    staged: tuple[storage_records.StagedBlob, ...] = ()

    def with_more(
        self,
        preconditions: Sequence[storage_records.Precondition],
        records: Sequence[storage_records.Record] = (),
    ) -> PlannedTree:
        """The same with further preconditions and records."""
        every = tuple(dict.fromkeys((*self.write.preconditions, *preconditions)))
        write = replace(self.write, preconditions=every, records=(*self.write.records, *records))
        return PlannedTree(write, self.staged)


class _NewContent(msgspec.Struct, frozen=True):
    """What is stored at a new path; ``read`` is the content if it had to be read."""

    content_type: str
    body: storage_records.Body
    read: bytes | None = None


ReadContent = Callable[[storage_records.Put], Awaitable[bytes]]
"""Reads the content of a resource that is to be created. Raises StorageError."""


class _WriteBuilder(msgspec.Struct):
    """The parts of a write that is being planned."""

    puts: list[storage_records.Put] = msgspec.field(default_factory=list)
    deletes: list[ResourcePath] = msgspec.field(default_factory=list)
    records: list[storage_records.Record] = msgspec.field(default_factory=list)
    preconditions: list[storage_records.Precondition] = msgspec.field(default_factory=list)
    staged: list[storage_records.StagedBlob] = msgspec.field(default_factory=list)


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
        puts: Sequence[storage_records.Put],
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

    async def _created_dataset(self, put: storage_records.Put, read: ReadContent) -> Dataset:
        if not is_rdf(put.content_type):
            return EMPTY_DATASET
        return await self._parsed(await read(put), put)

    async def discard(self, staged: Sequence[storage_records.StagedBlob]) -> None:
        """Remove the staged bodies that were not committed."""
        if staged:
            await self._store.discard_all(staged)

    async def _fill(
        self,
        builder: _WriteBuilder,
        request: ResourceRequest,
        transfer: TreeTransfer,
        state: TreeState,
        version: storage_records.Version,
    ) -> None:
        copies: Mapping[ResourcePath, storage_records.StagedBlob] = {}
        # Of what leaves a storage, a former state may remain there, with the large body.
        if not (transfer.moves and _stays_in_storage(transfer)):
            large = [
                each
                for each in state.resources
                if each.kind is not storage_records.ResourceKind.ACL
            ]
            copies = await self._staged_copies(large)
            builder.staged += copies.values()
        left_behind = await self._rules_left_behind(request, transfer, state)
        for index, each in enumerate(state.resources):
            if index % _RESOURCES_AT_ONCE == 0:
                await asyncio.sleep(0)
            if each.path in left_behind:
                continue
            content = await self._content(transfer, each, copies.get(each.path))
            if isinstance(content.body, storage_records.StagedBlob) and each.path not in copies:
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
        self, resources: Sequence[storage_records.Metadata]
    ) -> Mapping[ResourcePath, storage_records.StagedBlob]:
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
        gone: Sequence[storage_records.Metadata],
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
        rules = [
            each.path for each in state.resources if each.kind is storage_records.ResourceKind.ACL
        ]
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
        self,
        transfer: TreeTransfer,
        each: storage_records.Metadata,
        copy: storage_records.StagedBlob | None,
    ) -> _NewContent:
        """What is stored for a resource at its new path. Raises Superseded, Conflict."""
        names_subject = (
            each.kind is not storage_records.ResourceKind.DOCUMENT and each.size_bytes > 0
        )
        if names_subject and is_rdf(each.content_type):
            content = await self._documents.read_bytes(each)
            new = await self._relocated(transfer, each, content)
            if new is not None:
                return _NewContent(
                    media_types.essence(each.content_type), await self._stage(new), new
                )
            if each.kind is storage_records.ResourceKind.ACL:
                return _NewContent(each.content_type, await self._stage(content), content)
        if copy is not None:
            return _NewContent(each.content_type, copy)
        return _NewContent(
            each.content_type, storage_records.StoredBody(each.path, each.version, each.size_bytes)
        )

    async def _relocated(
        self, transfer: TreeTransfer, each: storage_records.Metadata, content: bytes
    ) -> bytes | None:
        subject = each.path if each.kind.is_container else subject_of(each.path)
        moved_tree = (transfer.source, transfer.destination) if transfer.moves else None
        relocation = renaming.Relocation(subject, transfer.new_path(subject), moved_tree)
        relocated = (
            renaming.relocated_rules
            if each.kind is storage_records.ResourceKind.ACL
            else renaming.relocated_description
        )
        try:
            return await relocated(self._documents, content, each.content_type, relocation)
        except UnknownContext as unknown:
            raise Conflict(
                ResourceCodes.RULES_UNREADABLE_BECAUSE, subject=subject, reason=str(unknown)
            ) from unknown

    async def _stage(self, content: bytes) -> storage_records.Body:
        return await self._store.stage_body(_single(content))

    async def _dataset(
        self, each: storage_records.Metadata, put: storage_records.Put, content: _NewContent
    ) -> Dataset:
        """The triples of a resource at its new path. Raises Superseded."""
        if not is_rdf(put.content_type):
            return EMPTY_DATASET
        read = content.read
        if read is None:
            read = await self._documents.read_bytes(each)
        return await self._parsed(read, put)

    async def _parsed(self, content: bytes, put: storage_records.Put) -> Dataset:
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
        put: storage_records.Put | None,
        *,
        after: Callable[[], Awaitable[Dataset]],
        version: storage_records.Version | None,
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
    builder: _WriteBuilder, new_version: planning.NewVersion, by: identity.Identity | None
) -> PlannedTree:
    agent = None if by is None else by.iri
    created = (
        storage_records.Change(
            put.path,
            storage_records.ChangeType.CREATE if put.creates else storage_records.ChangeType.UPDATE,
            agent,
        )
        for put in builder.puts
    )
    deleted = (
        storage_records.Change(path, storage_records.ChangeType.DELETE, agent)
        for path in builder.deletes
    )
    write = storage_records.Write(
        version=new_version.version,
        at_ms=new_version.at_ms,
        preconditions=tuple(builder.preconditions),
        puts=tuple(builder.puts),
        deletes=tuple(builder.deletes),
        records=tuple(builder.records),
        changes=(*created, *deleted),
    )
    return PlannedTree(write, tuple(builder.staged))


def _tree_preconditions(tree: Tree, state: TreeState) -> list[storage_records.Precondition]:
    """The preconditions that the tree is as it was read. The ACLs that do not exist are
    preconditions of the decisions."""
    found: list[storage_records.Precondition] = []
    for each in state.resources:
        found.append(storage_records.AtVersion(each.path, each.version))
        if each.members_version is not None and tree.with_members:
            found.append(storage_records.MembersAtVersion(each.path, each.members_version))
        if (
            each.kind is storage_records.ResourceKind.DOCUMENT
            and state[description_of(each.path)] is None
        ):
            found.append(storage_records.Absent(description_of(each.path)))
    return found


def _destination_preconditions(
    transfer: TreeTransfer, state: TreeState
) -> list[storage_records.Precondition]:
    """The preconditions that the destination is as it was read."""
    destination = TargetState(transfer.destination, state)
    if destination.existing is None:
        return list(destination.creation_preconditions())
    found: list[storage_records.Precondition] = []
    for path in auxiliaries_and(transfer.destination):
        metadata = state[path]
        found.append(
            storage_records.Absent(path)
            if metadata is None
            else storage_records.AtVersion(path, metadata.version)
        )
    return found


def _stays_in_storage(transfer: TreeTransfer) -> bool:
    return storage_root(transfer.source) == storage_root(transfer.destination)


def _put(
    transfer: TreeTransfer, state: TreeState, each: storage_records.Metadata, content: _NewContent
) -> storage_records.Put:
    path = transfer.new_path(each.path)
    kind = (
        storage_records.ResourceKind.CONTAINER
        if each.kind is storage_records.ResourceKind.STORAGE
        else each.kind
    )
    put = storage_records.Put(
        path, kind, content.content_type, content.body, creates=state[path] is None
    )
    if not transfer.moves or not put.creates:
        return put
    # A container changes with the move, because its members have other URLs.
    modified_ms = each.modified_ms if kind is storage_records.ResourceKind.DOCUMENT else None
    return replace(put, created_ms=each.created_ms, modified_ms=modified_ms)


async def _nothing() -> Dataset:
    return EMPTY_DATASET


async def _single(content: bytes) -> AsyncIterator[bytes]:
    yield content
