"""What operators do with accounts, in the console and by command.

``by`` is the operator who acts in the console; the action is logged in the write that carries it
out. A command passes ``None``, and its events reach the log in another way
(``app/adapters/audit.py``).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from podstead.core.errors import BadRequest, Conflict, NotFound
from podstead.idp import records as idp_records
from podstead.idp.account_creation import FurtherRecords
from podstead.idp.accounts import Accounts
from podstead.idp.administration.audit_log import Actions, Operator, acting_as
from podstead.idp.audit import OPERATOR, Audit, AuditEvent, EventKind
from podstead.idp.codes import IdpCodes
from podstead.idp.mail_queue import MailQueue, MailSubject
from podstead.idp.security_events import event_records
from podstead.idp.sessions import Sessions
from podstead.storage import invitations
from podstead.storage.record_store import RecordKind, RecordStore, Versioned, secret_key
from podstead.storage.records import Record

# Links that let a person in once, to replace a lost password or create the first operator.
#
# A link contains a secret, of which only the hash is stored. It is used up in the write that
# changes the password or creates the account. Opening the page does not use it up, since mail
# programs and chats open links as well.

SIGN_IN_LINK_S: Final = 3600
"""How long a link for signing in to an account is valid."""
FIRST_LINK_S: Final = 24 * 3600
"""How long the link for the first operator is valid; the next start makes a new one."""
_SECRET_BYTES: Final = 32
_FIRST: Final = "first-operator"
"""The owner of links that create the first operator."""


class LinkUsed(NotFound):
    """The link has been used, has expired or has been replaced by a newer one."""

    code = IdpCodes.LINK_USED


class LinkUsedMeanwhile(Conflict):
    """Another request has used the link."""

    code = IdpCodes.LINK_USED_MEANWHILE


@dataclass(frozen=True, slots=True)
class OneTimeLinks:
    """Creates and finds links."""

    records: RecordStore

    async def for_account(self, account: idp_records.Account) -> tuple[str, Sequence[Record]]:
        """The secret of a new link for a person who cannot sign in, and the records that create it
        in place of earlier links of the account. Raises StorageError."""
        return await self._new(account.account_id, owner=account.account_id, valid_s=SIGN_IN_LINK_S)

    async def beside_others(self, account: idp_records.Account) -> tuple[str, Sequence[Record]]:
        """As :meth:`for_account`, but earlier links remain valid: a stranger who asks for one
        cannot end those that the person has. A new password ends all of them."""
        owner = account.account_id
        secret, record = self._link(owner, owner=owner, valid_s=SIGN_IN_LINK_S)
        return secret, [record]

    async def for_first_operator(self) -> tuple[str, Sequence[Record]]:
        """The secret of a new link that creates an operator's account, and the records that create
        it in place of earlier ones. Raises StorageError."""
        return await self._new(None, owner=_FIRST, valid_s=FIRST_LINK_S)

    async def without_first(self) -> Sequence[Record]:
        """The records that end the link for the first operator: there is one now. Raises
        StorageError."""
        listed = await self.records.of_owner(idp_records.ONE_TIME_LINKS, _FIRST)
        return [idp_records.ONE_TIME_LINKS.drop(each.key) for each in listed]

    async def find(self, secret: str) -> Versioned[idp_records.OneTimeLink]:
        """The link with that secret. Raises LinkUsed, StorageError."""
        stored = await self.records.read(idp_records.ONE_TIME_LINKS, secret_key(secret))
        if stored is None:
            raise LinkUsed
        return stored

    def using_up(
        self, link: Versioned[idp_records.OneTimeLink]
    ) -> Callable[[idp_records.Account], FurtherRecords]:
        """What joins the write that creates an account with a link."""
        joined = FurtherRecords(
            [idp_records.ONE_TIME_LINKS.drop(link.key)], [link.unchanged], LinkUsedMeanwhile()
        )
        return lambda _: joined

    async def _new(
        self, account_id: str | None, *, owner: str, valid_s: int
    ) -> tuple[str, Sequence[Record]]:
        earlier = await self.records.of_owner(idp_records.ONE_TIME_LINKS, owner)
        secret, record = self._link(account_id, owner=owner, valid_s=valid_s)
        return secret, [*(idp_records.ONE_TIME_LINKS.drop(each.key) for each in earlier), record]

    def _link(self, account_id: str | None, *, owner: str, valid_s: int) -> tuple[str, Record]:
        secret = self.records.randomness.token_hex(_SECRET_BYTES)
        now_s = self.records.now_s()
        link = idp_records.OneTimeLink(account_id=account_id, created_s=now_s)
        expires_ms = (now_s + valid_s) * 1000
        record = idp_records.ONE_TIME_LINKS.put(
            secret_key(secret), link, owner=owner, expires_ms=expires_ms
        )
        return secret, record


Logging = Callable[..., Sequence[Record]]
"""The records that log an action, with further facts."""
_CarryOut = Callable[[str, Logging], Awaitable[None]]


class OwnAccount(Conflict):
    """Operators cannot lock themselves out of the console."""

    code = IdpCodes.OWN_ACCOUNT


@dataclass(frozen=True, slots=True)
class AccountReset:
    """Something of an account that an operator can remove for a person who has lost it, by command
    and in the console. It ends every session of the account."""

    name: str
    """That of the command, and the last segment of the address in the console."""
    event: EventKind
    records: Callable[[RecordStore, str], Awaitable[Sequence[Record]]]
    """The records that remove it from the account with this id, and tell the person."""
    short_help: str
    help: str
    done: str
    """What the command prints, with ``{name}`` for the account."""
    label: str
    """What the console calls it, and then ``hint`` what it is for; both are translated."""
    hint: str
    question: str
    """What the console asks before, with ``%(name)s`` for the pod."""
    consequence: str
    notice: str
    """The name of the notice in the console afterwards."""


class Administration(Actions):
    """Changes accounts for an operator. Every method raises Overloaded and StorageError."""

    def __init__(
        self,
        *,
        records: RecordStore,
        accounts: Accounts,
        audit: Audit,
        resets: Sequence[AccountReset] = (),
        ended_with: Sequence[RecordKind[Any]] = (),
    ) -> None:
        """``ended_with`` are kinds of records of pods that end with all sessions."""
        super().__init__(records, audit)
        self.resets = resets
        self._accounts = accounts
        self._sessions = Sessions(records, ended_with)
        self._links = OneTimeLinks(records)
        self._actions: Mapping[str, tuple[EventKind, _CarryOut]] = {
            "disable": (AuditEvent.ACCOUNT_DISABLED, self._disable),
            "enable": (AuditEvent.ACCOUNT_ENABLED, self._enable),
            "promote": (AuditEvent.OPERATOR_PROMOTED, self._promote),
            "demote": (AuditEvent.OPERATOR_DEMOTED, self._demote),
            "sign-out": (AuditEvent.SIGNED_OUT_EVERYWHERE, self._sign_out),
            "delete": (AuditEvent.ACCOUNT_DELETED, self._delete),
            **{each.name: (each.event, partial(self._reset, each)) for each in resets},
        }
        self._for_others = {"disable", "demote", "delete", *(each.name for each in resets)}
        """Operators cannot lock themselves out of the console; nor must whoever has only a session
        of an operator get rid of the rest."""

    async def find(self, name: str) -> Versioned[idp_records.Account]:
        """The account with this pod name, e-mail address or id. Raises NotFound."""
        stored = await self._accounts.find(name) or await self._accounts.read(name)
        if stored is None:
            raise NotFound(f"There is no account '{name}'.")
        return stored

    async def each(self) -> AsyncIterator[idp_records.Account]:
        """All accounts, by id."""
        async for stored in self._records.each(idp_records.ACCOUNTS):
            yield stored.value

    async def act(self, action: str, account_id: str, by: Operator | None = None) -> None:
        """Carry out the action with this name, which commands and the console share. Raises
        NotFound, and OwnAccount for one that is not for the operator's own account."""
        event, carry_out = self._actions[action]
        if action in self._for_others and by is not None and by.account_id == account_id:
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

    async def _reset(self, reset: AccountReset, account_id: str, logging: Logging) -> None:
        account = await self._account(account_id)
        joined = [*logging(), *await reset.records(self._records, account_id)]
        await self._sessions.end_all(account, joined)
        self._audit.note(reset.event, account_id=account_id)

    async def _delete(self, account_id: str, logging: Logging) -> None:
        """Delete an account and its pod. This is logged before it is done, because the deletion
        consists of several writes."""
        account = await self._accounts.resign(account_id)
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
                *await event_records(self._records, account_id, event, OPERATOR),
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

    async def _account(self, account_id: str) -> idp_records.Account:
        stored = await self._accounts.read(account_id)
        if stored is None:
            raise NotFound(IdpCodes.NO_SUCH_ACCOUNT)
        return stored.value


SENT_INVITATIONS_PER_DAY: Final = 200
"""How many invitations the server sends in a day, whoever asks for it."""


class InvitationActions(Actions):
    """Creates, lists and revokes invitations. Every method raises Overloaded and StorageError."""

    def __init__(self, records: RecordStore, audit: Audit) -> None:
        super().__init__(records, audit)
        self._invitations = invitations.Invitations(records)

    async def create(
        self,
        *,
        uses: int,
        days: int,
        note: str = "",
        send_to: str = "",
        language: str = "",
        by: Operator | None = None,
    ) -> invitations.NewInvitation:
        """Create an invitation, whose code is known only now. With an address to ``send_to``, a
        message in that language has another code, and this one ends with it. Raises BadRequest for
        what is out of bounds, and Conflict if there are too many invitations or messages."""
        note = " ".join(note.split())
        if len(note) > invitations.MAX_NOTE_CHARACTERS:
            raise BadRequest(IdpCodes.INVITATION_NOTE, number=invitations.MAX_NOTE_CHARACTERS)
        address = idp_records.check_email(send_to) if send_to.strip() else ""
        if not 1 <= uses <= invitations.MAX_USES:
            raise BadRequest(IdpCodes.INVITATION_USES, number=invitations.MAX_USES)
        if not 1 <= days <= invitations.MAX_DAYS:
            raise BadRequest(IdpCodes.INVITATION_DAYS, number=invitations.MAX_DAYS)
        if len(await self._invitations.all()) >= invitations.MAX_INVITATIONS:
            raise Conflict(IdpCodes.TOO_MANY_INVITATIONS)
        made = self._invitations.new(uses=uses, days=days, note=note, sent_to=address)
        facts = {"invitation": made.invitation.invitation_id, "uses": str(uses), "days": str(days)}
        queued: Sequence[Record] = ()
        if address:
            facts["to"] = address
            queued = await self._queued(made.invitation, language)
        event = AuditEvent.INVITATION_CREATED
        await self._records.commit([made.record, *queued, *self._log.action(event, by, **facts)])
        self._note(event, by, **facts)
        return made

    async def _queued(self, made: invitations.Invitation, language: str) -> Sequence[Record]:
        """The records that queue a message with the invitation. Raises Conflict."""
        queued = await MailQueue(self._records).joining(
            MailSubject.INVITATION,
            to=made.sent_to,
            language=language,
            facts={"invitation": made.invitation_id},
        )
        wait_s = await self._records.take(
            "invitation-mails", capacity=SENT_INVITATIONS_PER_DAY, period_s=24 * 3600
        )
        if not queued or wait_s is not None:
            raise Conflict(IdpCodes.TOO_MANY_INVITATION_MESSAGES)
        return queued

    async def list(self) -> Sequence[Versioned[invitations.Invitation]]:
        """The invitations that have not ended, the newest first."""
        return await self._invitations.all()

    async def revoke(self, invitation_id: str, by: Operator | None = None) -> None:
        """End an invitation. Accounts that were created with it remain. Raises NotFound."""
        stored = await self._invitations.find(invitation_id)
        event, facts = AuditEvent.INVITATION_REVOKED, {"invitation": invitation_id}
        acted = self._log.action(event, by, **facts)
        await self._records.commit([invitations.INVITATIONS.drop(stored.key), *acted])
        self._note(event, by, **facts)
