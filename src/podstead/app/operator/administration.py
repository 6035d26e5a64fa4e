"""An open data root with what operators administer in it, beside a running server.

The server sees each change with its next request. No password of an account is required: whoever
may write to the data root is the operator.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from podstead.app.adapters.audit import operator_audit
from podstead.app.adapters.engine import key_storage
from podstead.app.adapters.keys import load_token_keys
from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.root import remembered_issuer, store_issuer
from podstead.app.operator.data_root import opened_records, served_settings
from podstead.app.operator.pod_administration import PodAdministration
from podstead.config import Settings, StartRefused
from podstead.core.errors import NotFound, StorageError
from podstead.idp.administration.pods import PodActions, existing_pod
from podstead.idp.administration.service import InvitationActions
from podstead.idp.audit import Audit, AuditEvent
from podstead.pods.provision import IssuedToken, TokenPolicy, issue_and_record
from podstead.storage.invitations import invitation_url
from podstead.storage.record_store import RecordStore
from podstead.storage.records import (
    TokenRecord,
)
from podstead.storage.tokens import revocations
from podstead.web.pages.addresses import link_url

if TYPE_CHECKING:  # at run time it is loaded when it is needed
    from podstead.app.accounts import AccountServices
    from podstead.idp.administration.service import Administration


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


@dataclass(frozen=True)
class DataRoot:
    """The services for each kind of thing in a data root."""

    settings: Settings
    records: RecordStore
    audit: Audit

    @cached_property
    def pods(self) -> PodAdministration:
        """Pods."""
        return PodAdministration(self.settings, self.records, PodActions(self.records, self.audit))

    @cached_property
    def tokens(self) -> TokenAdministration:
        """Simple tokens."""
        return TokenAdministration(self.settings, self.records, self.audit)

    @cached_property
    def invitations(self) -> InvitationActions:
        """Invitations."""
        return InvitationActions(self.records, self.audit)

    def invitation_link(self, code: str) -> str | None:
        """The link for a code; ``None`` if the root has never had an identity provider, and so no
        page to register on."""
        has_provider = KeyFolder(key_storage(self.settings), self.records.clock).exists()
        issuer = remembered_issuer(self.settings) if has_provider else None
        return invitation_url(issuer, code) if issuer else None

    @cached_property
    def _provider_settings(self) -> Settings:
        """Those with which the accounts were created."""
        return served_settings(self.settings)

    @property
    def issuer(self) -> str:
        """The issuer of the accounts."""
        return self._provider_settings.issuer

    @cached_property
    def provider(self) -> AccountServices:
        """The services for accounts."""
        from podstead.app.accounts import build_accounts

        return build_accounts(
            self._provider_settings,
            store=self.records.store,
            clock=self.records.clock,
            randomness=self.records.randomness,
            audit=self.audit,
        )

    @property
    def accounts(self) -> Administration:
        """Accounts."""
        return self.provider.administration

    def link(self, secret: str) -> str:
        """The URL of a one-time link."""
        return self.issuer + link_url(secret)

    def change_issuer(self, issuer: str) -> None:
        """Move the accounts to a provider with another issuer at the next start."""
        store_issuer(self.settings, issuer)
        self.audit.note(AuditEvent.ISSUER_CHANGED, issuer=issuer)


@asynccontextmanager
async def open_root(settings: Settings) -> AsyncIterator[DataRoot]:
    """Open an existing data root."""
    async with opened_records(settings) as records, operator_audit(records) as audit:
        yield DataRoot(settings, records, audit)
