"""What can the operator do with pods, beside a running server? List them, and delete those that
have no account; a pod that has one is deleted with its account (``account_administration``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from podstead.app.adapters.operator_audit import operator_audit
from podstead.app.operator.data_root import opened_records
from podstead.config import Settings
from podstead.core.errors import Conflict, NotFound
from podstead.idp.administration.pods import PodActions
from podstead.idp.names import name_key
from podstead.idp.records import USERNAMES
from podstead.storage.record_store import RecordStore
from podstead.storage.records import PodRecord


@dataclass(frozen=True, slots=True)
class ListedPod:
    """A pod, and whether it has an account."""

    record: PodRecord
    has_account: bool


@dataclass(frozen=True, slots=True)
class PodAdministration:
    """Lists and deletes pods."""

    records: RecordStore
    administration: PodActions

    async def list(self) -> Sequence[ListedPod]:
        """All pods, by name. Raises StorageError."""
        pods = await self.records.store.list_pods()
        return [ListedPod(pod, await self._has_account(pod)) for pod in pods]

    async def find(self, name: str) -> PodRecord:
        """A pod that has no account. Raises NotFound, Conflict, StorageError."""
        pod = await self.records.store.read_pod(name)
        if pod is None:
            raise NotFound(f"There is no pod '{name}'.")
        if await self._has_account(pod):
            raise Conflict(
                f"The pod '{pod.name}' has an account. To delete both, use "
                f"'podstead account delete {pod.name}'."
            )
        return pod

    async def delete(self, name: str) -> None:
        """Delete a pod that has no account. Its name stays reserved until the operator releases it.
        Raises NotFound, Conflict, StorageError."""
        pod = await self.find(name)
        await self.administration.delete(pod.name)

    async def set_quota(self, name: str, quota_bytes: int | None) -> None:
        """Set the quota of a pod; 0 for none, ``None`` for that of the settings. Raises NotFound,
        StorageError, Overloaded."""
        await self.administration.set_quota(name, quota_bytes)

    async def _has_account(self, pod: PodRecord) -> bool:
        return await self.records.read(USERNAMES, name_key(pod.name)) is not None


@asynccontextmanager
async def open_pod_administration(settings: Settings) -> AsyncIterator[PodAdministration]:
    """Open the store of an existing data root. Raises RootUnusable, StorageError."""
    async with opened_records(settings) as records, operator_audit(records) as audit:
        yield PodAdministration(records, PodActions(records, audit))
