"""What do operators do with pods? One service for the console and the commands.

``by`` is the operator who acts in the console, ``None`` for a command; see
:mod:`podstead.idp.administration.service`.
"""

from __future__ import annotations

from podstead.core.errors import NotFound
from podstead.idp.administration.acting import Operator, acting_as
from podstead.idp.administration.audit_log import AuditLog
from podstead.idp.audit import Audit, AuditEvent
from podstead.storage.record_store import RecordStore
from podstead.storage.records import PodQuota, PodRecord, PodRemoval


def quota_text(quota_bytes: int | None) -> str:
    """A quota as commands take and print it."""
    if quota_bytes is None:
        return "default"
    return str(quota_bytes) if quota_bytes else "none"


class PodActions:
    """Changes pods for an operator. Every method raises NotFound, Overloaded, StorageError."""

    def __init__(self, records: RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit
        self._log = AuditLog(records)

    async def delete(self, name: str, by: Operator | None = None) -> None:
        """Delete a pod that has no account, which the caller has checked. Its name stays reserved.

        This is logged before it is done, because the deletion consists of several writes.
        """
        pod = await self._pod(name)
        await self._records.commit(self._log.action(AuditEvent.POD_DELETED, by, pod=pod.name))
        removal = PodRemoval(
            name=pod.name, version=self._records.new_version(), at_ms=self._records.now_ms()
        )
        if not await self._records.store.remove_pod(removal):
            raise NotFound(f"There is no pod '{name}'.")
        with acting_as(by):
            self._audit.note(AuditEvent.POD_DELETED, pod=pod.name)

    async def set_quota(
        self, name: str, quota_bytes: int | None, by: Operator | None = None
    ) -> None:
        """Give a pod a quota of its own, 0 for none; ``None`` for that of the settings. It applies
        to the next write."""
        pod = await self._pod(name)
        event, text = AuditEvent.QUOTA_SET, quota_text(quota_bytes)
        acted = self._log.action(event, by, pod=pod.name, quota=text)
        await self._records.commit([PodQuota(pod.name, quota_bytes), *acted])
        with acting_as(by):
            self._audit.note(event, pod=pod.name, quota=text)

    async def _pod(self, name: str) -> PodRecord:
        pod = await self._records.store.read_pod(name)
        if pod is None:
            raise NotFound(f"There is no pod '{name}'.")
        return pod
