"""Permits the download of a pod as an archive, for a day after a recent sign-in.

The permission belongs to the session in which it was given, so a download that breaks off can be
continued when the sign-in is no longer recent.
"""

from __future__ import annotations

from typing import Final

import msgspec

from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.security_events import noting
from podstead.idp.sessions import OpenSession
from podstead.idp.source import RequestSource
from podstead.storage.record_store import RecordKind, RecordStore

VALID_MS: Final = 24 * 3600 * 1000


class PodExportPermit(msgspec.Struct, frozen=True):
    """The session in which the archive may be downloaded; the key is the account id."""

    session: str


_PERMITS: Final = RecordKind("pod-export", PodExportPermit)


class PodExports:
    """Gives permissions and checks them. Every method raises StorageError."""

    def __init__(self, records: RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit

    async def allow(self, owner: OpenSession, source: RequestSource) -> None:
        """Allow the export in this session; the caller has checked that the sign-in is recent."""
        account = owner.account
        event, account_id = AuditEvent.POD_EXPORTED, account.account_id
        permit = _PERMITS.put(
            account_id,
            PodExportPermit(owner.stored.key),
            owner=account_id,
            expires_ms=self._records.now_ms() + VALID_MS,
        )
        noted = await noting(self._records, account_id, event, source)
        await self._records.commit([permit, *noted])
        self._audit.note(event, account_id=account_id, pod=account.pod)

    async def is_allowed(self, owner: OpenSession) -> bool:
        """Whether the export is allowed in this session."""
        stored = await self._records.read(_PERMITS, owner.account.account_id)
        return stored is not None and stored.value.session == owner.stored.key
