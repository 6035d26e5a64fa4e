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
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from podstead.core import errors, identifiers
from podstead.core.conditional import check_write
from podstead.resources.codes import ResourceCodes
from podstead.resources.committer import Committer
from podstead.resources.context import ResourceContext
from podstead.resources.costly_work import AgentSemaphores
from podstead.resources.entity_tags import last_modified_ms, state_version
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.resources.target_state import TargetState, check_new_path_length
from podstead.resources.tree_plan import PlannedTree, ReadContent, TreePlanner
from podstead.resources.trees import Tree, TreeState, TreeTransfer, auxiliaries_and
from podstead.storage.document_reader import Superseded
from podstead.storage.protocol import Snapshot
from podstead.storage.records import (
    Metadata,
    Precondition,
    Put,
    QuotaLevel,
    Record,
    ResourceKind,
    Write,
)
from podstead.wac import modes
from podstead.wac.codes import WacCodes
from podstead.wac.effective import MAX_DEPTH, paths_to_read
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

    def add(self, metadata: Metadata) -> None:
        """Count a resource."""
        self.size_bytes += metadata.size_bytes
        if metadata.kind.is_container:
            self.containers += 1
        elif metadata.kind is ResourceKind.DOCUMENT:
            self.documents += 1
        elif metadata.kind is ResourceKind.ACL:
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
        self._semaphores = AgentSemaphores(
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
        read: Sequence[Metadata] = ()

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
                if each.kind is not ResourceKind.ACL:
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
        self, request: ResourceRequest, puts: Sequence[Put], read: ReadContent
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
    ) -> tuple[Write, QuotaLevel | None]:
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
            paths |= dict.fromkeys((*paths_to_read(path), *auxiliaries_and(path)))
        limit = MAX_RESOURCES + 1 if tree.with_members else 1
        return await self._store.read_tree(tree.root, also=paths, limit=limit)

    # --- may it be done? ------------------------------------------------------------------

    async def _admit_transfer(
        self, request: ResourceRequest, transfer: TreeTransfer, state: TreeState
    ) -> tuple[list[Precondition], list[Record]]:
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
        records: list[Record] = []
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
    ) -> list[Precondition]:
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
    ) -> list[Precondition]:
        found: dict[Precondition, None] = {}
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
    check_write(conditions, version=state_version(existing), modified_ms=last_modified_ms(existing))
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
        if new_path.count("/") > MAX_DEPTH:
            raise errors.TargetTooLong(WacCodes.TOO_DEEP, number=MAX_DEPTH)
