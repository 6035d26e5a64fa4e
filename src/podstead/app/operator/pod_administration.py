"""What may the operator do with pods, beside a running server? List them, and delete those that
have no account; a pod that has one goes with its account (``account_desk``)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from podstead.app.adapters.operator_audit import operator_audit
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.operator.token_administration import opened_store
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.core.errors import Conflict, NotFound
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.names import name_key
from podstead.idp.records import USERNAMES
from podstead.pods.provision import VERSION_BYTES
from podstead.storage.protocol import Store
from podstead.storage.records import PodRecord, PodRemoval, Version


@dataclass(frozen=True, slots=True)
class ListedPod:
    """A pod, and whether somebody can sign in as its owner."""

    record: PodRecord
    has_account: bool


@dataclass(frozen=True, slots=True)
class PodAdministration:
    """Lists and deletes pods."""

    store: Store
    audit: Audit
    clock: Clock
    randomness: Randomness

    async def list(self) -> Sequence[ListedPod]:
        """All pods, by name. Raises StorageError."""
        pods = await self.store.list_pods()
        return [ListedPod(pod, await self._has_account(pod)) for pod in pods]

    async def find(self, name: str) -> PodRecord:
        """A pod that has no account. Raises NotFound, Conflict, StorageError."""
        pod = await self.store.read_pod(name)
        if pod is None:
            raise NotFound(f"There is no pod '{name}'.")
        if await self._has_account(pod):
            raise Conflict(
                f"The pod '{pod.name}' has an account. To delete both, use "
                f"'podstead account delete {pod.name}'."
            )
        return pod

    async def delete(self, name: str) -> None:
        """Delete a pod that has no account. Nobody gets the name again, unless the operator allows
        it. Raises NotFound, Conflict, StorageError."""
        pod = await self.find(name)
        removal = PodRemoval(
            name=pod.name,
            version=Version(self.randomness.token_hex(VERSION_BYTES)),
            at_ms=self.clock.now_ms(),
        )
        if not await self.store.remove_pod(removal):
            raise NotFound(f"There is no pod '{name}'.")
        self.audit.note(AuditEvent.POD_DELETED, pod=pod.name)

    async def _has_account(self, pod: PodRecord) -> bool:
        now_ms = self.clock.now_ms()
        return await USERNAMES.read(self.store, name_key(pod.name), now_ms=now_ms) is not None


@asynccontextmanager
async def open_pod_administration(settings: Settings) -> AsyncIterator[PodAdministration]:
    """Open the store of an existing data root. Raises RootUnusable, StorageError."""
    async with opened_store(settings) as store:
        clock, randomness = SystemClock(), SystemRandomness()
        async with operator_audit(store, clock=clock, randomness=randomness) as audit:
            yield PodAdministration(store, audit, clock, randomness)
