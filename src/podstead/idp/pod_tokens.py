"""Lists and revokes the simple tokens of a pod.

The operator creates such tokens with a command, and a server without accounts creates one with each
new pod. They act as the owner of the pod, and a change of the password does not affect them.
"""

from __future__ import annotations

from collections.abc import Sequence

from podstead.core.errors import NotFound
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.codes import IdpCodes
from podstead.idp.records import Account
from podstead.idp.security_events import noting
from podstead.idp.source import RequestSource
from podstead.storage.pods import revocations, valid_tokens
from podstead.storage.record_store import RecordStore
from podstead.storage.records import TokenRecord


class PodTokens:
    """Lists and revokes the tokens of an account's pod."""

    def __init__(self, *, records: RecordStore, audit: Audit) -> None:
        self._records = records
        self._audit = audit

    async def of(self, account: Account) -> Sequence[TokenRecord]:
        """The valid tokens, newest first."""
        records = self._records
        return await valid_tokens(records.store, account.pod, now_s=records.now_s())

    async def revoke(self, account: Account, token_id: str, source: RequestSource) -> None:
        """Revoke a token. Raises NotFound."""
        found = [token for token in await self.of(account) if token.token_id == token_id]
        if not found:
            raise NotFound(IdpCodes.NO_SUCH_TOKEN)
        owner, event = account.account_id, AuditEvent.POD_TOKEN_REVOKED
        noted = await noting(self._records, owner, event, source, subject=token_id)
        await self._records.commit([*revocations(found, now_s=self._records.now_s()), *noted])
        self._audit.note(event, account_id=owner, token=token_id)
