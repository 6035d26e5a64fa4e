"""Creates, lists and revokes simple tokens, beside a running server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.app.adapters.engine import key_storage
from podstead.app.adapters.keys import load_token_keys
from podstead.config import Settings, StartRefused
from podstead.core.errors import NotFound, StorageError
from podstead.idp.administration.pods import existing_pod
from podstead.idp.audit import Audit, AuditEvent
from podstead.pods.provision import IssuedToken, TokenPolicy, issue_and_record
from podstead.storage.record_store import RecordStore
from podstead.storage.records import (
    TokenRecord,
)
from podstead.storage.tokens import revocations


@dataclass(frozen=True, slots=True)
class TokenAdministration:
    """Issues, lists and revokes simple tokens."""

    settings: Settings
    records: RecordStore
    audit: Audit

    async def create(self, pod_name: str) -> IssuedToken:
        """Issue another token for the owner of a pod. Raises NotFound, StartRefused,
        StorageError."""
        if not self.settings.simple_tokens:
            raise StartRefused(
                "Simple tokens are off, so the server would not accept one. Turn on simple-tokens."
            )
        keys = self.settings.token_keys or load_token_keys(key_storage(self.settings))
        pod = await existing_pod(self.records.store, pod_name)
        issued = await issue_and_record(
            TokenPolicy(key=keys[0], lifetime_s=self.settings.token_lifetime_s),
            pod=pod,
            records=self.records,
        )
        self.audit.note(AuditEvent.POD_TOKEN_CREATED, pod=pod.name)
        return issued

    async def list(self, pod_name: str | None = None) -> Sequence[TokenRecord]:
        """All tokens, or those of one pod, newest first. Raises NotFound, StorageError."""
        if pod_name is None:
            return await self.records.store.list_tokens()
        pod = await existing_pod(self.records.store, pod_name)
        return await self.records.store.list_tokens(pod=pod.name)

    async def revoke(self, token_id: str) -> None:
        """Revoke one token; a second revocation changes nothing. Raises NotFound, StorageError."""
        record = await self.records.store.read_token(token_id)
        if record is None:
            raise NotFound(f"There is no token with the id '{token_id}'.")
        await self._revoke([record])

    async def revoke_all(self, pod_name: str) -> int:
        """Revoke all tokens of a pod, and return their number. Raises NotFound, StorageError."""
        valid = [record for record in await self.list(pod_name) if record.revoked_s is None]
        await self._revoke(valid)
        return len(valid)

    async def _revoke(self, tokens: Sequence[TokenRecord]) -> None:
        valid = [token for token in tokens if token.revoked_s is None]
        if not await self.records.try_commit(revocations(valid, now_s=self.records.now_s())):
            raise StorageError("The revocation could not be recorded.")
        for token in valid:
            self.audit.note(AuditEvent.POD_TOKEN_REVOKED, token=token.token_id)
