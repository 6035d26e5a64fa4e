"""An open data root with what operators administer in it, beside a running server.

The server sees each change with its next request. No password of an account is required: whoever
may write to the data root is the operator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property

from podstead.app.accounts import AccountServices, build_accounts
from podstead.app.adapters.engine import key_storage
from podstead.app.adapters.operator_audit import operator_audit
from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.root import remembered_base_url, remembered_issuer, store_issuer
from podstead.app.operator.data_root import opened_records
from podstead.app.operator.pod_administration import PodAdministration
from podstead.app.operator.token_administration import TokenAdministration
from podstead.config import Settings
from podstead.core.errors import RootUnusable
from podstead.idp.administration.invitations import InvitationActions
from podstead.idp.administration.pods import PodActions
from podstead.idp.administration.service import Administration
from podstead.idp.audit import Audit, AuditEvent
from podstead.storage.invitations import invitation_url
from podstead.storage.record_store import RecordStore
from podstead.web.pod_pages.addresses import link_url


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
        """Those with which the accounts were created. Raises RootUnusable."""
        base_url, issuer = remembered_base_url(self.settings), remembered_issuer(self.settings)
        if base_url is None or issuer is None:
            raise RootUnusable(
                f"The data root {self.settings.root} has no base URL yet. Start the server once "
                "first."
            )
        return dataclasses.replace(self.settings, base_url=base_url, idp_base_url=issuer)

    @property
    def issuer(self) -> str:
        """The issuer of the accounts. Raises RootUnusable."""
        return self._provider_settings.issuer

    @cached_property
    def provider(self) -> AccountServices:
        """The services for accounts. Raises RootUnusable."""
        return build_accounts(
            self._provider_settings,
            store=self.records.store,
            clock=self.records.clock,
            randomness=self.records.randomness,
            audit=self.audit,
        )

    @property
    def accounts(self) -> Administration:
        """Accounts. Raises RootUnusable."""
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
    """Open an existing data root. Raises RootUnusable, StorageError."""
    async with opened_records(settings) as records, operator_audit(records) as audit:
        yield DataRoot(settings, records, audit)
