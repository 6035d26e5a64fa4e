"""Copying and moving resources and whole trees, as one write.

A transfer reads the whole tree and the surroundings of both ends in one snapshot. The gate decides
about every resource on that snapshot, and the write has as preconditions that nothing of it has
changed: the versions of all resources, the listings of all containers, the ACLs and group documents
behind the decisions, and what must not exist. If one of them no longer holds, all of it starts
again, so that a tree is never torn: nobody sees, and no crash leaves, a part of it.

A copy has the rules of a resource where the agent has Control over both the resource and the
destination; elsewhere the copy inherits the rules of its new container. A move always takes the
rules along and is refused to an agent without Control, since what they protect could become
accessible otherwise (:func:`podstead.wac.modes.for_move`). ACLs and descriptions are rewritten to
be about the new URLs (:mod:`podstead.resources.relocation`).

An existing container is never replaced or merged with. An existing document is replaced as if it
had been deleted before, with its ACL and description.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from podstead.core.clock import Clock, Randomness
from podstead.core.conditional import check_write
from podstead.core.errors import (
    BadRequest,
    Conflict,
    ForbiddenDestination,
    MethodNotAllowed,
    NotFound,
    PreconditionFailed,
    QuotaExceeded,
    RequestRefused,
    TargetTooLong,
)
from podstead.core.identifiers import (
    auxiliary_kind,
    is_container,
    parent_container,
    storage_root,
)
from podstead.core.methods import allowed_methods
from podstead.resources.entity_tags import last_modified_ms, state_version
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.resources.target_state import TargetState, check_new_path_length
from podstead.resources.transfer_plan import PlannedTransfer, TransferPlanner
from podstead.resources.trees import TreeState, TreeTransfer, auxiliaries_and
from podstead.storage.document_reader import Superseded
from podstead.storage.protocol import EntryRegistry, ResourceStore
from podstead.storage.records import (
    Committed,
    NoEntry,
    OverQuota,
    Precondition,
    random_version,
)
from podstead.storage.repositories import KIND as REPOSITORIES
from podstead.storage.repositories import repository_of
from podstead.wac import modes
from podstead.wac.effective import MAX_DEPTH, paths_to_read
from podstead.wac.gate import Gate
from podstead.wac.modes import Requirements

MAX_RESOURCES: Final = 10_000
"""How many resources one copy or move may concern, auxiliary ones included. They are one
transaction, during which nothing else is written: about a second on the machine of the benchmarks.
"""

MAX_ATTEMPTS: Final = 8
"""How often a transfer starts again because something in the tree has changed."""

_REQUIREMENTS_AT_ONCE: Final = 256
"""How many requirements the gate checks before other requests have their turn."""


class TransferStore(ResourceStore, EntryRegistry, Protocol):
    """What transfers need of a store."""


class Transfers:
    """Carries out COPY and MOVE."""

    def __init__(
        self,
        *,
        store: TransferStore,
        gate: Gate,
        planner: TransferPlanner,
        clock: Clock,
        randomness: Randomness,
        quota_bytes: int,
    ) -> None:
        """``quota_bytes`` is the quota of each storage; 0 for none."""
        self._store = store
        self._gate = gate
        self._planner = planner
        self._clock = clock
        self._randomness = randomness
        self._quota_bytes = quota_bytes

    async def handle(self, request: ResourceRequest) -> Outcome:
        """Copy or move the target of the request to its destination.

        Raises RequestRefused, among others Conflict if the tree keeps changing, and ServerTrouble.
        """
        transfer = _transfer_of(request)
        for _ in range(MAX_ATTEMPTS):
            state = await self._read(transfer)
            preconditions = await self._admit(request, transfer, state)
            try:
                planned = await self._planner.plan(
                    request,
                    transfer,
                    state,
                    version=random_version(self._randomness),
                    at_ms=self._clock.now_ms(),
                )
            except Superseded:
                continue
            try:
                outcome = await self._commit(planned, transfer, preconditions)
            finally:
                # Has no effect on what was committed.
                await self._planner.discard(planned)
            if outcome is not None:
                return outcome
        raise Conflict("It keeps changing, so it was not copied or moved; try again")

    async def _read(self, transfer: TreeTransfer) -> TreeState:
        source, destination = transfer.source, transfer.destination
        also = dict.fromkeys(
            (
                *paths_to_read(source),
                *auxiliaries_and(source),
                *paths_to_read(destination),
                *auxiliaries_and(destination),
            )
        )
        limit = MAX_RESOURCES + 1 if transfer.with_members else 1
        return TreeState(transfer, await self._store.read_tree(source, also=also, limit=limit))

    # --- may it be done? ------------------------------------------------------------------

    async def _admit(
        self, request: ResourceRequest, transfer: TreeTransfer, state: TreeState
    ) -> list[Precondition]:
        """Authorize a transfer and check everything that does not need content.

        Returns the preconditions of the decisions.
        """
        await self._authorize_source(request, transfer, state)
        source = TargetState(transfer.source, state)
        _check_source(transfer, source)
        if len(state.resources) > MAX_RESOURCES:
            raise Conflict(
                f"One request can copy or move at most {MAX_RESOURCES:,} resources, including "
                "access rules and descriptions. Copy or move parts of it first"
            )
        preconditions = await self._require(request, _requirements(transfer, state), state)
        _check_conditions(request, source)
        _check_destination(request, transfer, state)
        if transfer.moves:
            preconditions += await self._check_repositories(transfer, state)
        return preconditions

    async def _authorize_source(
        self, request: ResourceRequest, transfer: TreeTransfer, state: TreeState
    ) -> None:
        """Decide about the root of the tree, before anything about the tree is revealed."""
        source = transfer.source
        required = modes.for_read(source)
        if transfer.moves:
            required += modes.for_delete(source, state)
        who = request.agent, request.operation.origin, source
        target = TargetState(source, state)
        try:
            grant = await self._gate.authorize(*who, required, state)
        except RequestRefused:
            request.set_grant(target, await self._gate.grant(*who, state))
            raise
        request.set_grant(target, grant)

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

    async def _check_repositories(
        self, transfer: TreeTransfer, state: TreeState
    ) -> list[Precondition]:
        """Refuse to move a container that is a git repository. Returns the preconditions.

        A push that is in progress belongs to the container at its present URL.
        """
        storage = storage_root(transfer.source)
        now_ms = self._clock.now_ms()
        # Most storages have no repository at all.
        some = await self._store.list_entries(REPOSITORIES, owner=storage, limit=1, now_ms=now_ms)
        entries = [repository_of(container.path) for container in state.containers]
        for entry in entries if some else ():
            if await self._store.read_entry(entry, now_ms=now_ms) is not None:
                raise Conflict(
                    "A container in it is a git repository, which stays where it is. Clone it, "
                    "push it to another container, and delete this one"
                )
        return [NoEntry(entry) for entry in entries]

    # --- doing it -------------------------------------------------------------------------

    async def _commit(
        self,
        planned: PlannedTransfer,
        transfer: TreeTransfer,
        preconditions: Sequence[Precondition],
    ) -> Outcome | None:
        """Commit a plan; ``None`` if a precondition no longer held."""
        write = planned.write_with(preconditions, quota_bytes=self._quota_bytes)
        ended = await self._store.commit(write)
        if isinstance(ended, Committed):
            result = Result.CREATED if planned.creates else Result.CHANGED
            return Outcome(result, location=transfer.destination)
        if isinstance(ended, OverQuota):
            raise QuotaExceeded(
                used_bytes=ended.used_bytes,
                limit_bytes=self._quota_bytes,
                needed_bytes=ended.needed_bytes,
            )
        return None


def _transfer_of(request: ResourceRequest) -> TreeTransfer:
    """The transfer that a request asks for, if its URLs allow it at all.

    Raises BadRequest, Conflict and ForbiddenDestination, which depend on the request only.
    """
    operation = request.operation
    source, destination = operation.target, operation.destination
    if destination is None:
        raise BadRequest("The destination is missing")
    if destination == source:
        raise ForbiddenDestination("The destination is the resource itself")
    if is_container(source) and destination.startswith(source):
        raise ForbiddenDestination("A container cannot be copied or moved into itself")
    if auxiliary_kind(destination) is not None:
        raise ForbiddenDestination(
            "Access rules and descriptions are copied and moved with what they belong to"
        )
    if is_container(source) != is_container(destination):
        raise Conflict(
            "The URL of a container ends in a slash, and that of a document does not: source and "
            "destination must be alike"
        )
    moves = operation.method == "MOVE"
    return TreeTransfer(source, destination, moves, with_members=operation.with_members)


def _requirements(transfer: TreeTransfer, state: TreeState) -> Requirements:
    subjects, destination = state.subjects, transfer.destination
    if transfer.moves:
        return modes.for_move(subjects, state.with_rules, destination, state)
    return modes.for_copy(subjects, destination, state)


def _check_source(transfer: TreeTransfer, source: TargetState) -> None:
    """Raises MethodNotAllowed, NotFound."""
    method = "MOVE" if transfer.moves else "COPY"
    if method not in allowed_methods(source.target):
        raise MethodNotAllowed(
            "A storage cannot be moved, and access rules and descriptions are copied and moved "
            "with what they belong to",
            allow=allowed_methods(source.target),
        )
    if source.existing is None:
        raise NotFound


def _check_conditions(request: ResourceRequest, source: TargetState) -> None:
    conditions, existing = request.operation.conditions, source.existing
    if not conditions.any_given or existing is None:
        return
    request.existing = existing  # whose entity tag a refusal contains
    check_write(conditions, version=state_version(existing), modified_ms=last_modified_ms(existing))
    request.existing = None


def _check_destination(request: ResourceRequest, transfer: TreeTransfer, state: TreeState) -> None:
    """Raises PreconditionFailed, Conflict, TargetTooLong."""
    path = transfer.destination
    destination = TargetState(path, state)
    if destination.existing is not None:
        if not request.operation.overwrite:
            raise PreconditionFailed("There is a resource at the destination")
        if is_container(path):
            raise Conflict("There is a container at the destination, which is not replaced")
        return
    parent = parent_container(path)
    # RFC 4918 sections 9.8.5 and 9.9.4: unlike PUT, these methods create no containers.
    if parent is None or state[parent] is None:
        raise Conflict("The container of the destination does not exist")
    destination.check_creatable()
    for each in state.subjects:
        new_path = transfer.new_path(each)
        check_new_path_length(new_path)
        if new_path.count("/") > MAX_DEPTH:
            raise TargetTooLong(f"A path can have at most {MAX_DEPTH} levels")
