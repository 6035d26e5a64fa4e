"""What operators do with accounts, in the console and by command.

``by`` is the operator who acts in the console; the action is logged in the write that carries it
out. A command passes ``None``, and its events reach the log in another way
(``app/adapters/audit.py``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Final

from podstead.core.errors import Conflict, NotFound
from podstead.idp.accounts import Accounts
from podstead.idp.administration.acting import Operator, acting_as
from podstead.idp.administration.audit_log import Actions
from podstead.idp.administration.one_time_links import OneTimeLinks
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.codes import IdpCodes
from podstead.idp.records import Account
from podstead.idp.security_events import noting
from podstead.idp.sessions import Sessions
from podstead.idp.source import OPERATOR
from podstead.idp.two_factor.service import resetting
from podstead.storage.record_store import RecordStore, Versioned
from podstead.storage.records import Record

_PAGE: Final = 1000
_FOR_OTHERS: Final = frozenset({"disable", "demote", "reset-two-factor", "delete"})
"""Operators cannot lock themselves out of the console."""
Logging = Callable[..., Sequence[Record]]
"""The records that log an action, with further facts."""


class OwnAccount(Conflict):
    """Operators cannot lock themselves out of the console."""

    def __init__(self) -> None:
        super().__init__(
            "This is your own account: another operator, or the command 'podstead account', "
            "can do this"
        )


class Administration(Actions):
    """Changes accounts for an operator. Every method raises Overloaded and StorageError."""

    def __init__(self, *, records: RecordStore, accounts: Accounts, audit: Audit) -> None:
        super().__init__(records, audit)
        self._accounts = accounts
        self._sessions = Sessions(records)
        self._links = OneTimeLinks(records)
        self._actions = {
            "disable": (AuditEvent.ACCOUNT_DISABLED, self._disable),
            "enable": (AuditEvent.ACCOUNT_ENABLED, self._enable),
            "promote": (AuditEvent.OPERATOR_PROMOTED, self._promote),
            "demote": (AuditEvent.OPERATOR_DEMOTED, self._demote),
            "sign-out": (AuditEvent.SIGNED_OUT_EVERYWHERE, self._sign_out),
            "reset-two-factor": (AuditEvent.SECOND_FACTOR_RESET, self._reset_second_factor),
            "delete": (AuditEvent.ACCOUNT_DELETED, self._delete),
        }

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
        NotFound, and OwnAccount for one that is not for the operator's own account."""
        event, carry_out = self._actions[action]
        if action in _FOR_OTHERS and by is not None and by.account_id == account_id:
            raise OwnAccount
        with acting_as(by):
            await carry_out(account_id, partial(self._log.action, event, by, account=account_id))

    async def _disable(self, account_id: str, logging: Logging) -> None:
        await self._accounts.disable(account_id, logging())

    async def _enable(self, account_id: str, logging: Logging) -> None:
        await self._accounts.enable(account_id, logging())

    async def _promote(self, account_id: str, logging: Logging) -> None:
        """A link for the first operator is no longer valid."""
        joined = [*logging(), *await self._links.without_first()]
        await self._accounts.set_operator(account_id, operator=True, joined=joined)

    async def _demote(self, account_id: str, logging: Logging) -> None:
        await self._accounts.set_operator(account_id, operator=False, joined=logging())

    async def _sign_out(self, account_id: str, logging: Logging) -> None:
        """End every session of an account in a browser."""
        await self._sessions.end_all(await self._account(account_id), logging())
        self._audit.note(AuditEvent.SIGNED_OUT_EVERYWHERE, account_id=account_id)

    async def _reset_second_factor(self, account_id: str, logging: Logging) -> None:
        """Remove the authenticator app, the recovery codes, and the demand for a passkey besides
        the password, for a person who has lost them; end every session. Not of the own account:
        whoever has only a session of an operator must not get rid of the rest."""
        account = await self._account(account_id)
        joined = [*logging(), *await resetting(self._records, account_id)]
        await self._sessions.end_all(account, joined)
        self._audit.note(AuditEvent.SECOND_FACTOR_RESET, account_id=account_id)

    async def _delete(self, account_id: str, logging: Logging) -> None:
        """Delete an account and its pod. This is logged before it is done, because the deletion
        consists of several writes."""
        account = await self._account(account_id)
        await self._records.commit(logging(pod=account.pod))
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
                *self._log.action(event, by, account=account_id),
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
            raise NotFound(IdpCodes.NO_SUCH_ACCOUNT)
        return stored.value
