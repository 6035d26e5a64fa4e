"""What operators do with pods, in the console and by command.

``by`` is the operator who acts in the console, ``None`` for a command; see
:mod:`podstead.idp.administration.service`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from podstead.core.errors import NotFound
from podstead.idp.account_creation import PodPlan, PodPlanner
from podstead.idp.account_renaming import renaming_account
from podstead.idp.administration.acting import Operator
from podstead.idp.administration.audit_log import Actions
from podstead.idp.audit import AuditEvent
from podstead.storage.codes import StorageCodes
from podstead.storage.protocol import PodRegistry
from podstead.storage.records import (
    Committed,
    PodQuota,
    PodRecord,
    PodRemoval,
    Precondition,
    Record,
)


def quota_text(quota_bytes: int | None) -> str:
    """A quota as commands take and print it."""
    if quota_bytes is None:
        return "default"
    return str(quota_bytes) if quota_bytes else "none"


class RenamedPod(Protocol):
    """A pod before and after it was renamed."""

    @property
    def before(self) -> PodRecord: ...

    @property
    def after(self) -> PodRecord: ...


RenamedT_co = TypeVar("RenamedT_co", bound=RenamedPod, covariant=True)


class PodRenames(Protocol[RenamedT_co]):
    """Renames pods with everything in them; ``resources.pod_renaming`` has the implementation."""

    async def rename(
        self,
        pod: PodRecord,
        name: str,
        *,
        joined: Callable[[PodRecord], tuple[Sequence[Record], Sequence[Precondition]]],
        progress: Callable[[int, int], None],
    ) -> RenamedT_co:
        """Raises Conflict, QuotaExceeded, StorageError."""


async def existing_pod(pods: PodRegistry, name: str) -> PodRecord:
    """The pod of that name. Raises NotFound, StorageError."""
    pod = await pods.read_pod(name)
    if pod is None:
        raise NotFound(StorageCodes.NO_SUCH_POD, name=name)
    return pod


class PodActions(Actions):
    """Changes pods for an operator. Every method raises NotFound, Overloaded, StorageError."""

    async def create(self, planner: PodPlanner, name: str, by: Operator | None = None) -> PodPlan:
        """Create a pod without an account. Raises BadRequest, Conflict."""
        pod = planner.plan(name)
        acted = self._log.action(AuditEvent.POD_CREATED, by, pod=pod.name)
        write = msgspec.structs.replace(pod.write, records=(*pod.write.records, *acted))
        if not isinstance(await self._records.store.commit(write), Committed):
            raise planner.name_taken()
        self._note(AuditEvent.POD_CREATED, by, pod=pod.name)
        return pod

    async def rename(
        self,
        renames: PodRenames[RenamedT_co],
        name: str,
        new_name: str,
        *,
        by: Operator | None = None,
        progress: Callable[[int, int], None] = lambda _, __: None,
    ) -> RenamedT_co:
        """Give a pod another valid name, and its account with it. Raises Conflict,
        QuotaExceeded."""
        pod = await existing_pod(self._records.store, name)
        event, facts = AuditEvent.POD_RENAMED, {"pod": pod.name, "new_name": new_name}
        account = await renaming_account(self._records, pod)

        def joined(after: PodRecord) -> tuple[Sequence[Record], Sequence[Precondition]]:
            of_account = account(after)
            acted = self._log.action(event, by, **facts)
            return [*of_account.records, *acted], of_account.preconditions

        renamed = await renames.rename(pod, new_name, joined=joined, progress=progress)
        self._note(event, by, **facts)
        return renamed

    async def delete(self, name: str, by: Operator | None = None) -> None:
        """Delete a pod that has no account, which the caller has checked. Its name stays reserved.

        This is logged before it is done, because the deletion consists of several writes.
        """
        pod = await existing_pod(self._records.store, name)
        await self._records.commit(self._log.action(AuditEvent.POD_DELETED, by, pod=pod.name))
        removal = PodRemoval(
            name=pod.name, version=self._records.new_version(), at_ms=self._records.now_ms()
        )
        if not await self._records.store.remove_pod(removal):
            raise NotFound(StorageCodes.NO_SUCH_POD, name=name)
        self._note(AuditEvent.POD_DELETED, by, pod=pod.name)

    async def set_quota(
        self, name: str, quota_bytes: int | None, by: Operator | None = None
    ) -> None:
        """Give a pod a quota of its own, 0 for none; ``None`` for that of the settings. It applies
        to the next write."""
        pod = await existing_pod(self._records.store, name)
        event, text = AuditEvent.QUOTA_SET, quota_text(quota_bytes)
        acted = self._log.action(event, by, pod=pod.name, quota=text)
        await self._records.commit([PodQuota(pod.name, quota_bytes), *acted])
        self._note(event, by, pod=pod.name, quota=text)
