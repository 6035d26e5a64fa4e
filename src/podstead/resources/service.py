"""Carries out the HTTP methods on resources.

Every operation reads one snapshot and passes the gate before it reveals or changes anything. A
write is authorized and checked twice: before its body is received, so that the body of a refused
write is not received at all, and again on the state that it is committed against. The commit checks
the preconditions of the second decision; if one does not hold, the service reads and decides again.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from podstead.core import errors, identifiers
from podstead.core.conditional import check_write
from podstead.core.identity import Identity
from podstead.core.operation import Operation
from podstead.rdf.patching import Patch
from podstead.resources import committer
from podstead.resources import content as resources_content
from podstead.resources.codes import ResourceCodes
from podstead.resources.context import ResourceContext
from podstead.resources.entity_tags import last_modified_ms, state_version
from podstead.resources.identity_changes import IdentityChanges
from podstead.resources.outcome import ListedMembers, Outcome, ResourceRequest, Result
from podstead.resources.planning import Plan, plan_delete, plan_put, plan_unchanged
from podstead.resources.reading import ResourceReader, without_members
from podstead.resources.target_state import TargetState, check_new_path_length
from podstead.resources.tree_operations import ReadContent, TreeContents, TreePlanner, Trees
from podstead.storage.capacity import StorageCapacity
from podstead.storage.document_reader import Superseded
from podstead.storage.quota import fixed_charge
from podstead.storage.records import Metadata, Put
from podstead.wac import modes
from podstead.wac.acl import earliest
from podstead.wac.effective import paths_to_read
from podstead.wac.gate import StorageOwners


class ResourceService:
    """Carries out operations on resources."""

    def __init__(
        self,
        context: ResourceContext,
        *,
        capacity: StorageCapacity,
        max_body_bytes: int,
        rendering_cache_bytes: int,
        named_owners: StorageOwners | None,
        acl_listener: committer.AclListener,
        observers: Sequence[committer.WriteObserver] = (),
        extensions: Sequence[committer.WriteExtension] = (),
    ) -> None:
        """``named_owners`` gives the published owners of storages; ``None`` to publish none."""
        self._context = context
        self._store = context.store
        self._gate = context.gate
        self._capacity = capacity
        self._reader = ResourceReader(
            context, cache_bytes=rendering_cache_bytes, named_owners=named_owners
        )
        self._receiver = resources_content.BodyReceiver(context, max_body_bytes=max_body_bytes)
        self._identity_changes = IdentityChanges(context)
        self._content_validator = resources_content.ContentValidator(
            context, self._identity_changes
        )
        self._patches = resources_content.Patches(context.documents, self._content_validator)
        self._committer = committer.Committer(
            context.store,
            quota_bytes=context.quota_bytes,
            clock=context.records.clock,
            acl_listener=acl_listener,
            observers=observers,
            extensions=extensions,
        )
        self._trees = trees = Trees(
            context,
            TreePlanner(context, self._identity_changes, self._content_validator),
            self._committer,
        )
        self._operations = {
            "GET": self._read,
            "HEAD": self._read,
            "PUT": self._put,
            "POST": self._post,
            "PATCH": self._patch,
            "DELETE": self._delete,
            "COPY": trees.transfer,
            "MOVE": trees.transfer,
        }

    async def handle(self, request: ResourceRequest) -> Outcome:
        """Carry out an operation.

        Raises RequestRefused if the client can correct the cause, otherwise ServerTrouble.
        """
        return await self._operations[request.operation.method](request)

    # --- reading --------------------------------------------------------------------------

    async def _read(self, request: ResourceRequest) -> Outcome:
        for _ in range(committer.MAX_ATTEMPTS):
            state = await self._read_state(request, request.operation.target)
            if identifiers.storage_root(state.target) is None:
                # ``/name`` is in no storage, so no ACL applies to it. That of the storage
                # ``/name/`` decides whether the client is redirected there.
                moved = await self._moved(request, state)
                if moved is not None:
                    return moved
            operation, existing = request.operation, state.existing
            try:
                await request.authorize(self._gate, state, modes.for_read(state.target))
            except errors.RequestRefused:
                if existing is None or not await self._may_read_description(request, state):
                    raise
                operation, existing = without_members(operation, existing)
            if existing is None:
                return await self._absent(request, state)
            try:
                outcome = await self._reader.answer(operation, existing)
            except Superseded:  # replaced since the snapshot: its ACL may have changed, too
                continue
            if operation.method == "GET":
                self._note_read(request, operation.target)
            return outcome
        raise errors.Overloaded(ResourceCodes.CHANGES_TOO_FAST)

    def note_read(self, agent: Identity | None, path: identifiers.ResourcePath) -> None:
        """Tell those who observe reads of one that is not an operation of this service."""
        self._context.note_read(agent, path)

    def _note_read(self, request: ResourceRequest, path: identifiers.ResourcePath) -> None:
        grant = request.grant
        if self._context.note_read(request.agent, path) and grant is not None:
            request.grant = replace(grant, cacheable=False)  # a cache would hide the next one

    async def _may_read_description(self, request: ResourceRequest, state: TargetState) -> bool:
        """Whether the agent may read the target, a container or its description, without its
        members. The public profile of a pod consists of its root container's own statements."""
        existing, held = state.existing, request.grant
        if existing is None or held is None or not existing.kind.is_container:
            return False
        grant = await self._gate.grant_on_description(
            request.agent, request.operation.origin, state.target, state.snapshot
        )
        held = replace(
            held,
            cacheable=held.cacheable and grant.cacheable,
            until_ms=earliest(held.until_ms, grant.until_ms),
        )
        request.set_grant(state, held)
        return grant.allows(modes.Mode.READ)

    async def members(
        self, request: ResourceRequest, *, after: identifiers.ResourcePath | None = None, limit: int
    ) -> ListedMembers:
        """Up to ``limit`` members of a container in the order of their paths, after ``after``, for
        those who may read the container. Raises RequestRefused."""
        target = request.operation.target
        state = await self._read_state(request, target)
        await request.authorize(self._gate, state, modes.for_read(target))
        container = state.existing
        if container is None or not container.kind.is_container:
            raise errors.NotFound
        members = await self._store.list_members(container.path, after=after, limit=limit)
        self._note_read(request, container.path)
        return ListedMembers(container, members)

    async def contents(self, request: ResourceRequest) -> TreeContents:
        """How much the target contains, with everything below it. Raises RequestRefused."""
        return await self._trees.contents(request)

    async def create(
        self, request: ResourceRequest, puts: Sequence[Put], read: ReadContent
    ) -> Outcome:
        """Create the target with everything below it, in one write (:meth:`Trees.create`)."""
        return await self._trees.create(request, puts, read)

    async def _absent(self, request: ResourceRequest, state: TargetState) -> Outcome:
        """The outcome of reading a URL at which nothing is stored (C-30)."""
        if state.is_possible_description:
            return self._reader.no_description(request.operation)
        moved = await self._moved(request, state)
        if moved is None:
            raise errors.NotFound
        return moved

    async def _moved(self, request: ResourceRequest, state: TargetState) -> Outcome | None:
        """A redirect to the target's slash variant, for agents that may read it (P-47)."""
        variant = state.slash_variant
        # The credentials are bound to this URL and would be refused there.
        if variant is None or request.operation.signed_url:
            return None
        # A separate decision: to an agent without Read there, the redirect would reveal that the
        # resource exists.
        who = request.agent, request.operation.origin, variant.path
        grant, snapshot = await self._gate.current_grant(*who)
        if not grant.allows(modes.Mode.READ) and not (
            variant.kind.is_container
            and (await self._gate.grant_on_description(*who, snapshot)).allows(modes.Mode.READ)
        ):
            return None
        return Outcome(Result.MOVED, location=variant.path)

    # --- writing --------------------------------------------------------------------------

    async def check_put(self, request: ResourceRequest, *, extra_bytes: int = 0) -> None:
        """Raise the errors that :meth:`handle` would raise for a PUT before it receives the body.

        The body is only announced. ``extra_bytes`` are to fit into the quota besides it.
        """
        admitted, _ = await self._begin_put(request, extra_bytes=extra_bytes)
        self._receiver.check_size(request.operation)
        if admitted.existing is None:
            admitted.check_creatable()

    async def _begin_put(
        self, request: ResourceRequest, *, extra_bytes: int = 0
    ) -> tuple[TargetState, Operation]:
        operation = request.operation
        resources_content.check_content_type(operation)
        admitted = await self._admit_put(request)
        resources_content.check_type_links(operation)
        extra_bytes += admitted.extra_charge_bytes()
        bounded = await self._within_capacity(
            operation, admitted.stored_path, extra_bytes=extra_bytes
        )
        return admitted, bounded

    async def _put(self, request: ResourceRequest) -> Outcome:
        operation = request.operation
        admitted, bounded = await self._begin_put(request)
        received = await self._receiver.receive(
            bounded, only_rdf=identifiers.accepts_only_rdf(operation.target)
        )

        # May be called several times for one request. Each call uses a new version: two plans for
        # different states must not share one.
        async def plan(state: TargetState) -> Plan:
            existing = state.existing
            if existing is not None and resources_content.is_empty_container(operation, received):
                return plan_unchanged(existing, self._context.new_version())
            new_version = self._context.new_version()
            content = await self._content_validator.validate(
                request, state, received, new_version.version
            )
            return plan_put(state, content, new_version, request.agent)

        try:
            return await self._committer.commit(request, admitted, self._admit_put, plan)
        except BaseException:
            # Also when the request is cancelled. If the commit succeeded nevertheless, the body
            # stays: the store discards only bodies that are still staged.
            await self._receiver.discard(received)
            raise

    async def _within_capacity(
        self, operation: Operation, path: identifiers.ResourcePath, *, extra_bytes: int
    ) -> Operation:
        """The operation with a body that raises QuotaExceeded when it exceeds the remaining quota.

        Raises DiskFull and QuotaExceeded before any of the body is received.
        """
        storage = identifiers.storage_root(path)
        body = await self._capacity.limit_body(operation.body, storage, extra_bytes=extra_bytes)
        return operation if body is operation.body else replace(operation, body=body)

    async def _admit_put(
        self, request: ResourceRequest, expected: Metadata | None = None
    ) -> TargetState:
        state = await self._read_state(request, request.operation.target, expected=expected)
        required = modes.for_put(state.target, state.snapshot)
        # Before all other checks, here and below, because their results reveal what is stored.
        await request.authorize(self._gate, state, required)
        self._check_length_of_target(state)
        self._check_conditions(request, state)
        return state

    async def _post(self, request: ResourceRequest) -> Outcome:
        operation = request.operation
        resources_content.check_content_type(operation)
        admitted = await self._admit_post(request)
        wants_container = resources_content.requests_container(operation)
        proposal = resources_content.NameProposal(
            operation,
            wants_container=wants_container,
            randomness=self._context.records.randomness,
        )
        # Checks the first proposal. If it is taken, _free_member checks the next one.
        check_new_path_length(proposal.path())
        received = await self._receiver.receive(
            await self._within_capacity(
                operation, proposal.path(), extra_bytes=fixed_charge(proposal.path())
            ),
            only_rdf=wants_container,
        )

        async def plan(_: TargetState) -> Plan:
            state = await self._free_member(proposal)
            if state.missing_containers():
                # The container was deleted, and POST creates none (C-6): admitting the request
                # again raises NotFound.
                raise Superseded
            new_version = self._context.new_version()
            content = await self._content_validator.validate(
                request, state, received, new_version.version, posted=True
            )
            return plan_put(state, content, new_version, request.agent)

        try:
            # Locks the new member and not the container, so that POSTs to it can run in parallel.
            return await self._committer.commit(
                request, admitted, self._admit_post, plan, lock_on=proposal.path()
            )
        except BaseException:
            await self._receiver.discard(received)
            raise

    async def _admit_post(self, request: ResourceRequest, _: Metadata | None = None) -> TargetState:
        # The expected state of a pending write is that of the locked member, but the target here is
        # the container.
        target = request.operation.target
        state = await self._read_state(request, target)
        await request.authorize(self._gate, state, modes.for_post(target))
        if state.existing is None:
            raise errors.NotFound("There is no container here")
        if "POST" not in identifiers.allowed_methods(target):
            raise errors.MethodNotAllowed(
                "Only containers support POST", allow=identifiers.allowed_methods(target)
            )
        self._check_conditions(request, state)
        return state

    async def _free_member(self, proposal: resources_content.NameProposal) -> TargetState:
        """A member URL that is free with and without a slash (C-4, C-5). Raises TargetTooLong."""
        while True:
            path = proposal.path()
            check_new_path_length(path)
            state = TargetState(path, await self._store.read_metadata(paths_to_read(path)))
            if state.existing is None and state.slash_variant is None:
                return state
            proposal.propose_another()

    async def _patch(self, request: ResourceRequest) -> Outcome:
        resources_content.check_patch_type(request.operation)
        admitted = await self._read_state(request, request.operation.target)
        # The modes that a patch needs depend on its content. Agents that lack what every patch
        # needs are refused before it is received.
        await self._authorize_patch(request, admitted, modes.UNREAD_PATCH)
        try:
            self._capacity.check_disk()
        except errors.DiskFull:
            await self._capacity.make_room()
        patch = await self._patches.receive(request.operation)
        await self._admit_patch(request, admitted, patch)

        async def admit(request: ResourceRequest, expected: Metadata | None) -> TargetState:
            state = await self._read_state(request, request.operation.target, expected=expected)
            await self._admit_patch(request, state, patch)
            return state

        async def plan(state: TargetState) -> Plan:
            new_version = self._context.new_version()
            content = await self._patches.apply(request, state, patch, new_version.version)
            if isinstance(content, Metadata):
                return plan_unchanged(content, new_version, request.agent, logged=True)
            return plan_put(state, content, new_version, request.agent)

        return await self._committer.commit(request, admitted, admit, plan)

    async def _admit_patch(
        self, request: ResourceRequest, state: TargetState, patch: Patch
    ) -> None:
        await self._authorize_patch(request, state, resources_content.patch_content(patch))
        self._check_length_of_target(state)
        self._check_conditions(request, state)

    async def _authorize_patch(
        self, request: ResourceRequest, state: TargetState, content: modes.PatchContent
    ) -> None:
        required = modes.for_patch(state.target, state.snapshot, content)
        await request.authorize(self._gate, state, required)

    async def _delete(self, request: ResourceRequest) -> Outcome:
        if request.operation.whole_tree:
            return await self._trees.delete(request)

        async def plan(state: TargetState) -> Plan:
            await self._identity_changes.check_deletion(request, state)
            derived = await self._content_validator.records_of_deletion(state)
            return plan_delete(state, self._context.new_version(), request.agent, derived=derived)

        admitted = await self._admit_delete(request)
        return await self._committer.commit(request, admitted, self._admit_delete, plan)

    async def _admit_delete(
        self, request: ResourceRequest, expected: Metadata | None = None
    ) -> TargetState:
        target = request.operation.target
        state = await self._read_state(
            request, target, identifiers.description_of(target), expected=expected
        )
        await request.authorize(self._gate, state, modes.for_delete(target, state.snapshot))
        if "DELETE" not in identifiers.allowed_methods(target):
            raise errors.MethodNotAllowed(
                ResourceCodes.STORAGE_STAYS, allow=identifiers.allowed_methods(target)
            )
        if state.existing is None:
            raise errors.NotFound
        self._check_conditions(request, state)
        return state

    # --- steps ----------------------------------------------------------------------------

    async def _read_state(
        self,
        request: ResourceRequest,
        target: identifiers.ResourcePath,
        *also: identifiers.ResourcePath,
        expected: Metadata | None = None,
    ) -> TargetState:
        """Read the state of a target; ``expected``, the result of a pending write, replaces what is
        stored."""
        snapshot = await self._store.read_metadata((*paths_to_read(target), *also))
        if expected is not None:
            snapshot = {**snapshot, expected.path: expected}
        state = TargetState(target, snapshot)
        request.existing = state.existing
        return state

    def _check_conditions(self, request: ResourceRequest, state: TargetState) -> None:
        conditions = request.operation.conditions
        if not conditions.any_given:
            return
        existing = state.existing
        check_write(
            conditions,
            version=None if existing is None else state_version(existing),
            modified_ms=None if existing is None else last_modified_ms(existing),
        )
        # The version of a document is a precondition anyway. The members of a container can change
        # without changing its version, and the conditions apply to them as well.
        if existing is not None:
            request.require_state(existing)

    def _check_length_of_target(self, state: TargetState) -> None:
        # An auxiliary resource has no auxiliary resources, so no suffix must fit.
        if state.existing is None and state.auxiliary is None:
            check_new_path_length(state.target)
