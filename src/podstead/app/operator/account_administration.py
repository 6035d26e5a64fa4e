"""What can the operator do with accounts, beside a running server?

The server sees each change with its next request. No password of an account is required: whoever
may write to the data root is the operator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from podstead.app.accounts import AccountServices, build_accounts
from podstead.app.adapters.operator_audit import operator_audit
from podstead.app.adapters.root import remembered_base_url, remembered_issuer, store_issuer
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.operator.data_root import opened_store
from podstead.config import Settings
from podstead.core.errors import NotFound, RootUnusable
from podstead.idp.audit import AuditEvent
from podstead.idp.credentials import NewCredential
from podstead.idp.records import Account
from podstead.storage.record_store import RecordStore
from podstead.storage.registry import Versioned
from podstead.web.pod_pages.addresses import link_url

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class AccountAdministration:
    """Creates, lists, changes and deletes accounts; the name is that of the pod, the e-mail address
    or the id."""

    issuer: str
    settings: Settings
    services: AccountServices

    async def create(self, name: str, *, email: str | None, password: str) -> Account:
        """Create an account with a new pod; see :meth:`podstead.idp.accounts.Accounts.create`."""
        made = await self.services.accounts.create(
            name=name, email=email, password=password, needs_email=False
        )
        return made.account

    async def create_for_pod(self, pod: str, *, email: str | None, password: str) -> Account:
        """Create an account for a pod that has none; see
        :meth:`podstead.idp.accounts.Accounts.create_for_pod`."""
        return await self.services.accounts.create_for_pod(pod, email=email, password=password)

    async def list(self) -> Sequence[Account]:
        """All accounts, sorted by pod. Raises StorageError."""
        listed: list[Account] = []
        page = await self.services.accounts.page(limit=_PAGE)
        while page:
            listed += page
            page = await self.services.accounts.page(after=page[-1].account_id, limit=_PAGE)
        return sorted(listed, key=lambda account: account.pod.lower())

    async def find(self, name: str) -> Account:
        """The account. Raises NotFound, StorageError."""
        return (await self._find(name)).value

    async def set_password(self, name: str, password: str) -> None:
        """Set a new password, and end the account's sessions and grants. Raises NotFound,
        UnusablePassword, StorageError, Overloaded."""
        await self.services.accounts.set_password((await self.find(name)).account_id, password)

    async def disable(self, name: str) -> None:
        """Disable the account. Raises NotFound, StorageError, Overloaded."""
        await self.services.administration.disable((await self.find(name)).account_id)

    async def enable(self, name: str) -> None:
        """Enable the account again. Raises NotFound, StorageError, Overloaded."""
        await self.services.administration.enable((await self.find(name)).account_id)

    async def delete(self, name: str) -> None:
        """Delete the account and its pod. Raises NotFound, StorageError, Overloaded."""
        await self.services.administration.delete((await self.find(name)).account_id)

    async def promote(self, name: str) -> None:
        """Make the account an operator's. Raises NotFound, StorageError, Overloaded."""
        await self.services.administration.promote((await self.find(name)).account_id)

    async def demote(self, name: str) -> None:
        """Make the account an ordinary one again. Raises NotFound, StorageError, Overloaded."""
        await self.services.administration.demote((await self.find(name)).account_id)

    async def sign_out_everywhere(self, name: str) -> None:
        """End every session of the account. Raises NotFound, StorageError, Overloaded."""
        account_id = (await self.find(name)).account_id
        await self.services.administration.sign_out_everywhere(account_id)

    async def reset_second_factor(self, name: str) -> None:
        """Remove the app and the recovery codes of the account. Raises NotFound, StorageError,
        Overloaded."""
        account_id = (await self.find(name)).account_id
        await self.services.administration.reset_second_factor(account_id)

    async def create_sign_in_link(self, name: str) -> str:
        """The URL of a one-time link with which the person chooses a new password. Raises NotFound,
        StorageError, Overloaded."""
        account_id = (await self.find(name)).account_id
        secret = await self.services.administration.create_sign_in_link(account_id)
        return self.issuer + link_url(secret)

    async def create_first_link(self) -> str | None:
        """The URL of a link that creates an operator's account, ``None`` if there is one. Raises
        StorageError, Overloaded."""
        secret = await self.services.administration.create_first_link()
        return None if secret is None else self.issuer + link_url(secret)

    async def free_name(self, name: str) -> None:
        """Release the name of a deleted pod. Raises NotFound, StorageError, Overloaded."""
        await self.services.accounts.free_name(name)

    def change_issuer(self, issuer: str) -> None:
        """Move the accounts to a provider with another issuer at the next start. Raises
        StorageError."""
        store_issuer(self.settings, issuer)
        self.services.audit.note(AuditEvent.ISSUER_CHANGED, issuer=issuer)

    async def create_credentials(self, name: str, *, label: str) -> NewCredential:
        """Create client credentials for the account. Raises NotFound, Conflict, BadRequest,
        StorageError, Overloaded."""
        return await self.services.credentials.create(await self._find(name), name=label)

    async def _find(self, name: str) -> Versioned[Account]:
        stored = await self.services.accounts.find(name) or await self.services.accounts.read(name)
        if stored is None:
            raise NotFound(f"There is no account '{name}'.")
        return stored


@asynccontextmanager
async def open_account_administration(settings: Settings) -> AsyncIterator[AccountAdministration]:
    """Open the store of an existing data root, whose base URL and issuer the accounts use. Raises
    RootUnusable, StorageError."""
    async with opened_store(settings) as store:
        base_url, issuer = remembered_base_url(settings), remembered_issuer(settings)
        if base_url is None or issuer is None:
            raise RootUnusable(
                f"The data root {settings.root} has no base URL yet. Start the server once first."
            )
        clock, randomness = SystemClock(), SystemRandomness()
        async with operator_audit(RecordStore(store, clock, randomness)) as audit:
            services = build_accounts(
                dataclasses.replace(settings, base_url=base_url, idp_base_url=issuer),
                store=store,
                clock=clock,
                randomness=randomness,
                audit=audit,
            )
            yield AccountAdministration(issuer=issuer, settings=settings, services=services)
