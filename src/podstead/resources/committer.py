"""Commits planned writes while other writers are active.

A plan is made on one state of the target and committed with its preconditions. If one of them no
longer holds at the commit, the state is read and the write planned again; nothing of the old plan
is reused.

The state may be one that pending writes will produce and that is not stored yet. The preconditions
of such a plan include those writes, so it fails if they fail. A refusal has no preconditions, so it
must not be based on a state that may never exist: the writer waits for the pending writes and
decides again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from podstead.core.errors import Conflict, Overloaded, QuotaExceeded, RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.resources.acl_changes import AclListener, tell_acl_changes
from podstead.resources.codes import ResourceCodes
from podstead.resources.outcome import Outcome, ResourceRequest
from podstead.resources.planning import Plan
from podstead.resources.target_state import TargetState
from podstead.resources.write_hooks import CommitListener
from podstead.resources.write_locks import WriteLock, WriteLocks
from podstead.storage.document_reader import Superseded
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Committed, Metadata, NoMembers, OverQuota, ResourceKind

MAX_ATTEMPTS = 64
"""How often an operation is attempted. Writers of one process take turns, so only writers in other
workers can intervene, and each time that happens one of them has succeeded."""

Admit = Callable[[ResourceRequest, Metadata | None], Awaitable[TargetState]]
"""Reads the state of the target, authorizes the request and evaluates its conditional headers. The
metadata, if given, is what a pending write will produce and replaces what is stored. Raises
RequestRefused."""

MakePlan = Callable[[TargetState], Awaitable[Plan]]
"""Plans the write on an admitted state. Raises RequestRefused, and Superseded if the stored version
changed while it was read."""


class Committer:
    """Commits planned writes."""

    def __init__(
        self,
        *,
        store: ResourceStore,
        default_quota_bytes: int,
        acl_listener: AclListener,
        on_commit: Sequence[CommitListener] = (),
    ) -> None:
        """``default_quota_bytes`` is the quota of each pod without one of its own; 0 for none."""
        self._acl_listener = acl_listener
        self._on_commit = on_commit
        self._store = store
        self._default_quota_bytes = default_quota_bytes
        self._locks = WriteLocks(store.interprocess_lock)

    async def commit(
        self,
        request: ResourceRequest,
        admitted: TargetState,
        admit: Admit,
        plan: MakePlan,
        *,
        lock_on: ResourcePath | None = None,
    ) -> Outcome:
        """Plan on the admitted state and commit; admit and plan again while preconditions fail.

        ``lock_on`` is the resource whose writers wait for each other, by default the target. Raises
        QuotaExceeded, Conflict for a container that is not empty, and Overloaded after
        MAX_ATTEMPTS.
        """
        path = lock_on or request.operation.target
        current: TargetState | None = admitted
        for _ in range(MAX_ATTEMPTS):
            async with self._locks.of(path) as lock:
                if lock.was_contended:  # the state that was read is likely to be out of date
                    current = None
                planned = await _planned(request, lock, current, admit, plan)
                outcome = None if planned is None else await self._try(request, lock, planned)
            if outcome is not None:
                return outcome
            # The lock was released, so writers that waited come first: a writer that tries again
            # cannot starve the others.
            current = None
        raise Overloaded(ResourceCodes.TOO_MANY_WRITES)

    async def _try(
        self, request: ResourceRequest, lock: WriteLock, planned: Plan
    ) -> Outcome | None:
        """Commit one plan; ``None`` if a precondition no longer held."""
        write = planned.with_preconditions(
            request.preconditions, default_quota_bytes=self._default_quota_bytes
        )
        if request.records:
            write = replace(write, records=write.records + request.records)
        after = planned.outcome.metadata
        # Only documents: ACLs decide about the requests that follow, so no decision may be based on
        # an ACL that is not committed.
        if after is not None and after.kind is ResourceKind.DOCUMENT:
            lock.release_early(after)
        else:
            lock.keep()
        # Nothing may be awaited between these two: the writes that build on this one must follow
        # it in the store's queue.
        ended = await self._store.commit(write)
        if isinstance(ended, Committed):
            lock.mark_committed()
            tell_acl_changes(self._acl_listener, request.agent, write)
            for listener in self._on_commit:
                listener(write)
            if ended.nearly_full is None:
                return planned.outcome
            return replace(planned.outcome, nearly_full=ended.nearly_full)
        if isinstance(ended, OverQuota):
            raise QuotaExceeded(
                used_bytes=ended.used_bytes,
                limit_bytes=ended.limit_bytes,
                needed_bytes=ended.needed_bytes,
            )
        if isinstance(ended.precondition, NoMembers):
            raise Conflict(ResourceCodes.NOT_EMPTY)
        lock.mark_overtaken()
        return None


async def _planned(
    request: ResourceRequest,
    lock: WriteLock,
    current: TargetState | None,
    admit: Admit,
    plan: MakePlan,
) -> Plan | None:
    """Plan on the expected state if there is one, else on the stored state.

    ``current`` is the stored state as it was read before the lock was acquired, or ``None`` to read
    it again. Returns ``None`` if the stored version changed while it was read.
    """
    if lock.expected is not None:
        with suppress(RequestRefused, Superseded):
            return await plan(await admit(request, lock.expected))
        # The refusal is based on a state that may never be stored, or the plan needs a body that is
        # not stored yet: decide again once the store holds the outcome.
        await lock.wait_for_pending()
        current = None
    try:
        return await plan(await admit(request, None) if current is None else current)
    except Superseded:
        return None
