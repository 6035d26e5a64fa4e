"""What operators do with accounts, in the console and by command.

``by`` is the operator who acts in the console; the action is logged in the write that carries it
out. A command passes ``None``, and its events reach the log in another way
(``app/adapters/operator_audit.py``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from podstead.core.errors import Conflict, NotFound
from podstead.idp.accounts import Accounts
from podstead.idp.administration.acting import Operator, acting_as
from podstead.idp.administration.audit_log import AuditLog
from podstead.idp.administration.one_time_links import OneTimeLinks
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.records import Account
from podstead.idp.security_events import noting
from podstead.idp.sessions import Sessions
from podstead.idp.source import OPERATOR
from podstead.idp.two_factor.service import resetting
from podstead.storage.record_store import RecordStore
from podstead.storage.registry import Versioned

_PAGE: Final = 1000


class OwnAccount(Conflict):
    """Operators cannot lock themselves out of the console."""

    def __init__(self) -> None:
        super().__init__(
            "This is your own account: another operator, or the command 'podstead account', "
            "can do this"
        )


class Administration:
    """Changes accounts and pods for an operator. Every method raises Overloaded and
    StorageError."""

    def __init__(self, *, records: RecordStore, accounts: Accounts, audit: Audit) -> None:
        self._records = records
        self._accounts = accounts
        self._audit = audit
        self._sessions = Sessions(records)
        self._links = OneTimeLinks(records)
        self.log = AuditLog(records)

    async def find(self, name: str) -> Versioned[Account]:
        """The account with this pod name, e-mail address or id. Raises NotFound."""
        stored = await self._accounts.find(name) or await self._accounts.read(name)
        if stored is None:
            raise NotFound(f"There is no account '{name}'.")
        return stored

    async def each(self) -> AsyncIterator[Account]:
        """All accounts, by id."""
        page = await self._accounts.page(limit=_PAGE)
        while page:
            for account in page:
                yield account
            page = await self._accounts.page(after=page[-1].account_id, limit=_PAGE)

    async def act(self, action: str, account_id: str, by: Operator | None = None) -> None:
        """Carry out the action with this name, which commands and the console share. Raises
        NotFound, OwnAccount."""
        await _ACTIONS[action](self, account_id, by)

    async def disable(self, account_id: str, by: Operator | None = None) -> Account:
        """Disable an account. Raises NotFound, OwnAccount."""
        _check_other(account_id, by)
        acted = self.log.action(AuditEvent.ACCOUNT_DISABLED, by, account=account_id)
        with acting_as(by):
            return await self._accounts.disable(account_id, acted)

    async def enable(self, account_id: str, by: Operator | None = None) -> Account:
        """Enable an account again. Raises NotFound."""
        acted = self.log.action(AuditEvent.ACCOUNT_ENABLED, by, account=account_id)
        with acting_as(by):
            return await self._accounts.enable(account_id, acted)

    async def promote(self, account_id: str, by: Operator | None = None) -> Account:
        """Make an account an operator's; a link for the first operator is no longer valid. Raises
        NotFound."""
        acted = self.log.action(AuditEvent.OPERATOR_PROMOTED, by, account=account_id)
        joined = [*acted, *await self._links.without_first()]
        with acting_as(by):
            return await self._accounts.set_operator(account_id, operator=True, joined=joined)

    async def demote(self, account_id: str, by: Operator | None = None) -> Account:
        """Make an account an ordinary one again. Raises NotFound, OwnAccount."""
        _check_other(account_id, by)
        acted = self.log.action(AuditEvent.OPERATOR_DEMOTED, by, account=account_id)
        with acting_as(by):
            return await self._accounts.set_operator(account_id, operator=False, joined=acted)

    async def sign_out_everywhere(self, account_id: str, by: Operator | None = None) -> None:
        """End every session of an account in a browser. Raises NotFound."""
        account = await self._account(account_id)
        event = AuditEvent.SIGNED_OUT_EVERYWHERE
        acted = self.log.action(event, by, account=account_id)
        await self._sessions.end_all(account, acted)
        self._note(event, by, account_id)

    async def reset_second_factor(self, account_id: str, by: Operator | None = None) -> None:
        """Remove the authenticator app, the recovery codes, and the demand for a passkey besides
        the password, for a person who has lost them; end every session. Raises NotFound, and
        OwnAccount: whoever has only a session of an operator must not get rid of the rest."""
        _check_other(account_id, by)
        account = await self._account(account_id)
        event = AuditEvent.SECOND_FACTOR_RESET
        acted = self.log.action(event, by, account=account_id)
        await self._sessions.end_all(account, [*acted, *await resetting(self._records, account_id)])
        self._note(event, by, account_id)

    async def delete(self, account_id: str, by: Operator | None = None) -> None:
        """Delete an account and its pod. Raises NotFound, OwnAccount.

        This is logged before it is done, because the deletion consists of several writes.
        """
        _check_other(account_id, by)
        account = await self._account(account_id)
        event = AuditEvent.ACCOUNT_DELETED
        acted = self.log.action(event, by, account=account_id, pod=account.pod)
        await self._records.commit(acted)
        with acting_as(by):
            await self._accounts.delete(account_id)

    async def create_sign_in_link(self, account_id: str, by: Operator | None = None) -> str:
        """The secret of a link with which the person chooses a new password; the person sees in
        the account that there was one. Raises NotFound."""
        account = await self._account(account_id)
        event = AuditEvent.SIGN_IN_LINK_CREATED
        secret, records = await self._links.for_account(account)
        await self._records.commit(
            [
                *records,
                *await noting(self._records, account_id, event, OPERATOR),
                *self.log.action(event, by, account=account_id),
            ]
        )
        self._note(event, by, account_id)
        return secret

    async def create_first_link(self) -> str | None:
        """The secret of a link that creates an operator's account, in place of earlier links;
        ``None`` if there is an operator."""
        async for account in self.each():
            if account.operator and not account.disabled:
                return None
        secret, records = await self._links.for_first_operator()
        await self._records.commit(records)
        return secret

    async def _account(self, account_id: str) -> Account:
        stored = await self._accounts.read(account_id)
        if stored is None:
            raise NotFound("There is no such account")
        return stored.value

    def _note(self, event: AuditEvent, by: Operator | None, account_id: str) -> None:
        with acting_as(by):
            self._audit.note(event, account_id=account_id)


_ACTIONS: Final[
    Mapping[str, Callable[[Administration, str, Operator | None], Awaitable[object]]]
] = {
    "disable": Administration.disable,
    "enable": Administration.enable,
    "promote": Administration.promote,
    "demote": Administration.demote,
    "sign-out": Administration.sign_out_everywhere,
    "reset-two-factor": Administration.reset_second_factor,
    "delete": Administration.delete,
}


def _check_other(account_id: str, by: Operator | None) -> None:
    if by is not None and by.account_id == account_id:
        raise OwnAccount
