"""Which simple tokens of a pod are valid, and how does its owner revoke one?

The operator creates such tokens at the command line, and a server without accounts gives one with
each new pod. They act as the owner of the pod, whatever becomes of the password.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from podstead.core.clock import Clock, Randomness
from podstead.core.errors import NotFound, Overloaded
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.records import Account
from podstead.idp.security_events import noting
from podstead.idp.source import RequestSource
from podstead.storage.protocol import EntryRegistry, ResourceStore, TokenRegistry
from podstead.storage.records import TokenRecord
from podstead.storage.tokens import revoke_tokens


class TokenStore(EntryRegistry, ResourceStore, TokenRegistry, Protocol):
    """Where tokens are recorded; every store is one."""


class PodTokens:
    """Lists and revokes the tokens of an account's pod."""

    def __init__(
        self, *, store: TokenStore, audit: Audit, clock: Clock, randomness: Randomness
    ) -> None:
        self._store = store
        self._audit = audit
        self._clock = clock
        self._randomness = randomness

    async def of(self, account: Account) -> Sequence[TokenRecord]:
        """Those that are valid, newest first. Raises StorageError."""
        now_s = self._clock.now_ms() // 1000
        return [
            token
            for token in await self._store.list_tokens(pod=account.pod)
            if token.revoked_s is None and (token.expires_s is None or token.expires_s > now_s)
        ]

    async def revoke(self, account: Account, token_id: str, source: RequestSource) -> None:
        """Let a token be used no more. Raises NotFound, Overloaded, StorageError."""
        found = [token for token in await self.of(account) if token.token_id == token_id]
        if not found:
            raise NotFound("There is no such token; it may have been revoked")
        owner, now_ms, event = (
            account.account_id,
            self._clock.now_ms(),
            AuditEvent.POD_TOKEN_REVOKED,
        )
        noted = await noting(self._store, owner, event, source, subject=token_id, now_ms=now_ms)
        if not await revoke_tokens(
            self._store, found, further=noted, now_ms=now_ms, randomness=self._randomness
        ):
            raise Overloaded("The account is being changed elsewhere; try again")
        self._audit.note(event, account_id=owner, token=token_id)
