"""Creates, finds, changes and deletes accounts (A-90 to A-97).

One write creates an account, its pod and the names by which people sign in to it, or nothing at
all; one write deletes them. Every change requires that the account is still as it was read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from podstead.core.errors import Conflict, NotFound
from podstead.core.identifiers import ResourcePath
from podstead.idp import account_creation
from podstead.idp import records as idp_records
from podstead.idp.audit import OPERATOR, Audit, AuditEvent, RequestSource
from podstead.idp.codes import IdpCodes
from podstead.idp.email_verification import queued_verification
from podstead.idp.passwords import PasswordHasher, check_password
from podstead.idp.security_events import event_records
from podstead.storage import records as storage_records
from podstead.storage.codes import StorageCodes
from podstead.storage.invitations import Admission
from podstead.storage.pods import leading_past, pod_tombstone, revocations
from podstead.storage.record_store import Changes, RecordKind, RecordStore, Versioned

_ID_BYTES: Final = 16
_ENDED_BY_A_NEW_PASSWORD: Final[Sequence[RecordKind[Any]]] = (
    idp_records.SESSIONS,
    idp_records.GRANTS,
    idp_records.REFRESH_TOKENS,
    idp_records.CODES,
    idp_records.ONE_TIME_LINKS,
)


class LastOperator(Conflict):
    """Nobody could use the console any more."""

    code = IdpCodes.LAST_OPERATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """Creates, finds, changes and deletes accounts.

    ``sends_mail`` tells whether the server sends messages, by which addresses are confirmed.
    """

    records: RecordStore
    pods: account_creation.PodPlanner
    passwords: PasswordHasher
    audit: Audit
    sends_mail: Callable[[], bool]

    # --- making -------------------------------------------------------------------------------

    async def create(
        self,
        *,
        name: object,
        email: object,
        password: object,
        needs_email: bool = True,
        source: RequestSource = OPERATOR,
        joined: Callable[[idp_records.Account], account_creation.FurtherRecords] | None = None,
        admitted: Admission | None = None,
        terms_hash: str = "",
        operator: bool = False,
    ) -> account_creation.NewAccount:
        """Create an account and its pod, whole or not at all (A-90, A-94). An ``operator`` may use
        the console. ``admitted`` is the invitation, if the person needs one, and ``terms_hash``
        that of the terms that they have accepted.

        Raises, in this order: BadRequest for a name that no pod may have, UnusableEmail,
        UnusablePassword, the planner's Conflict for a taken name, EmailTaken, the refusal in
        ``joined``, and UnusableInvitation. Unless ``needs_email``, the address may be ``None``.
        """
        self.pods.plan(name)  # refuses the name; the pod is planned when everything else is known
        address = None if email is None and not needs_email else idp_records.check_email(email)
        chosen = check_password(password)
        await self._check_free(str(name), address)
        password_hash = await self.passwords.hash(chosen, network=source.network)
        pod = self.pods.plan(name)
        account = self._new(pod.name, pod.web_id, address, password_hash)
        accepted_s = account.created_s if terms_hash else 0
        account = msgspec.structs.replace(
            account,
            operator=operator,
            terms_accepted_s=accepted_s,
            terms_hash=terms_hash,
            language=source.language,
        )
        records, preconditions = account_creation.records_of_new(account)
        further = account_creation.NO_FURTHER_RECORDS if joined is None else joined(account)
        write = msgspec.structs.replace(
            pod.write,
            preconditions=(*pod.write.preconditions, *preconditions, *further.preconditions),
            records=(
                *pod.write.records,
                *records,
                *further.records,
                *await self._verification(account, source),
            ),
        )
        creation = account_creation.AccountWrite(account, write, self.pods.name_taken(), further)
        await self._commit_new(creation, admitted)
        return account_creation.NewAccount(account, pod.pod_uri)

    async def create_for_pod(
        self, name: str, *, email: str | None, password: str
    ) -> idp_records.Account:
        """Create an account for a pod that was created without one.

        Raises NotFound if there is no such pod, Conflict if it has an account, and what
        :meth:`create` raises.
        """
        address = None if email is None else idp_records.check_email(email)
        chosen = check_password(password)
        pod = await self.records.store.read_pod(name)
        if pod is None:
            raise NotFound(StorageCodes.NO_SUCH_POD, name=name)
        password_hash = await self.passwords.hash(chosen, network=OPERATOR.network)
        account = self._new(pod.name, pod.owner, address, password_hash)
        records, preconditions = account_creation.records_of_new(account)
        write = storage_records.Write(
            version=self.records.new_version(),
            at_ms=self.records.now_ms(),
            preconditions=(storage_records.Present(pod.root), *preconditions),
            records=tuple(records),
        )
        has_one = Conflict(IdpCodes.POD_HAS_ACCOUNT, name=pod.name)
        await self._commit_new(account_creation.AccountWrite(account, write, has_one))
        return account

    # --- finding ------------------------------------------------------------------------------

    async def read(self, account_id: str) -> Versioned[idp_records.Account] | None:
        """The account with this id."""
        return await self.records.read(idp_records.ACCOUNTS, account_id)

    async def find(self, login: str) -> Versioned[idp_records.Account] | None:
        """The account with this e-mail address or pod name, ignoring case."""
        key = idp_records.name_key(login)
        named = await self.records.read(idp_records.login_records(key), key)
        return None if named is None else await self.read(named.value.account_id)

    async def is_disabled(self, storage: ResourcePath) -> bool:
        """Whether the account of a storage is disabled; False if it has no account."""
        stored = await self.find(storage.strip("/"))
        return stored is not None and stored.value.disabled

    # --- changing -----------------------------------------------------------------------------

    async def accept_terms(self, account_id: str, terms_hash: str) -> idp_records.Account:
        """Record that the person accepts the terms with this hash. Raises NotFound."""
        now_s = self.records.now_s()
        changed = await self._change(
            account_id,
            lambda account: msgspec.structs.replace(
                account, terms_accepted_s=now_s, terms_hash=terms_hash
            ),
        )
        self.audit.note(AuditEvent.TERMS_ACCEPTED, account_id=account_id, terms=terms_hash)
        return changed

    async def set_password(
        self,
        account_id: str,
        password: object,
        *,
        source: RequestSource = OPERATOR,
        permission: Versioned[idp_records.OneTimeLink] | None = None,
    ) -> idp_records.Account:
        """Change the password, and end everything that began before: sessions, grants and the
        tokens of both. The caller has checked that the change is allowed.

        The write uses up the ``permission``. Raises UnusablePassword, NotFound, Overloaded, also if
        the permission is gone.
        """
        chosen = check_password(password)
        password_hash = await self.passwords.hash(chosen, network=source.network)
        account = await self._end_all(
            account_id,
            lambda account: msgspec.structs.replace(account, password_hash=password_hash),
            await event_records(self.records, account_id, AuditEvent.PASSWORD_CHANGED, source),
            () if permission is None else (permission.unchanged,),
        )
        self.audit.note(AuditEvent.PASSWORD_CHANGED, account_id=account_id)
        return account

    async def set_email(
        self, account_id: str, email: object, *, source: RequestSource = OPERATOR
    ) -> idp_records.Account:
        """Change the e-mail address, and end the links that were sent to the former one, whose
        readers may be the reason for the change. Raises UnusableEmail, EmailTaken, NotFound."""
        address = idp_records.check_email(email)
        key = idp_records.name_key(address)

        async def compute() -> Changes[idp_records.Account]:
            stored = await self._existing(account_id)
            before = stored.value.email
            changed = msgspec.structs.replace(stored.value, email=address)
            if address != before:
                changed = msgspec.structs.replace(changed, email_verified_s=0)
            proofs = await self.records.of_owner(idp_records.EMAIL_PROOFS, account_id)
            links = await self.records.of_owner(idp_records.ONE_TIME_LINKS, account_id)
            records: list[storage_records.Record] = [
                idp_records.ACCOUNTS.replace(stored, changed),
                *(idp_records.EMAIL_PROOFS.drop(each.key) for each in proofs),
                *(idp_records.ONE_TIME_LINKS.drop(each.key) for each in links),
                *await event_records(self.records, account_id, AuditEvent.EMAIL_CHANGED, source),
                *await self._verification(changed, source),
            ]
            preconditions: list[storage_records.Precondition] = [stored.unchanged]
            if before is None or idp_records.name_key(before) != key:
                if await self.records.read(idp_records.EMAILS, key) is not None:
                    raise idp_records.EmailTaken
                records.append(
                    idp_records.EMAILS.put(
                        key, idp_records.AccountName(account_id), owner=account_id
                    )
                )
                preconditions.append(idp_records.EMAILS.absent(key))
                if before is not None:
                    records.append(idp_records.EMAILS.drop(idp_records.name_key(before)))
            return Changes(changed, records, preconditions)

        account = await self.records.transact(compute)
        facts = {"email": idp_records.masked_email(address)}
        self.audit.note(AuditEvent.EMAIL_CHANGED, account_id=account_id, **facts)
        return account

    async def set_mails_requests(self, account_id: str, *, wanted: bool) -> None:
        """Change whether the person gets a message when somebody asks for access. Raises
        NotFound."""
        await self._change(
            account_id, lambda account: msgspec.structs.replace(account, mails_requests=wanted)
        )

    async def disable(
        self, account_id: str, joined: Sequence[storage_records.Record] = ()
    ) -> idp_records.Account:
        """Disable the account, end its sessions and grants, and revoke the tokens of its pod; the
        ``joined`` records are part of the write. Raises NotFound, LastOperator."""
        pod = (await self._existing(account_id)).value.pod
        tokens = await self.records.store.list_tokens(pod=pod)
        account = await self._end_all(
            account_id,
            lambda account: msgspec.structs.replace(account, disabled=True),
            [*revocations(tokens, now_s=self.records.now_s()), *joined],
        )
        self.audit.note(AuditEvent.ACCOUNT_DISABLED, account_id=account_id)
        return account

    async def enable(
        self, account_id: str, joined: Sequence[storage_records.Record] = ()
    ) -> idp_records.Account:
        """Enable the account again. Raises NotFound."""
        account = await self._change(
            account_id, lambda account: msgspec.structs.replace(account, disabled=False), joined
        )
        self.audit.note(AuditEvent.ACCOUNT_ENABLED, account_id=account_id)
        return account

    async def set_operator(
        self, account_id: str, *, operator: bool, joined: Sequence[storage_records.Record] = ()
    ) -> idp_records.Account:
        """Allow or forbid a person to use the console. Raises NotFound, LastOperator."""
        account = await self._change(
            account_id, lambda account: msgspec.structs.replace(account, operator=operator), joined
        )
        event = AuditEvent.OPERATOR_PROMOTED if operator else AuditEvent.OPERATOR_DEMOTED
        self.audit.note(event, account_id=account_id)
        return account

    async def rehash(
        self, stored: Versioned[idp_records.Account], password: str, *, network: str
    ) -> None:
        """Store the password with the current cost of hashing. Nothing happens if the account has
        changed meanwhile."""
        password_hash = await self.passwords.hash(password, network=network)
        changed = msgspec.structs.replace(stored.value, password_hash=password_hash)
        await self.records.try_commit(
            [idp_records.ACCOUNTS.replace(stored, changed)], [stored.unchanged]
        )

    # --- ending -------------------------------------------------------------------------------

    async def delete(self, account_id: str, *, agent: str | None = None) -> None:
        """Delete an account with its pod and everything that belongs to it (A-97). Nobody can take
        the name again unless :meth:`free_name` allows it.

        ``agent`` is the IRI of the agent that deletes it, ``None`` for the operator. Raises
        NotFound, and LastOperator while there are other accounts.
        """
        account = await self.resign(account_id)
        removal = storage_records.PodRemoval(
            name=account.pod,
            version=self.records.new_version(),
            at_ms=self.records.now_ms(),
            agent=agent,
            entry_owner=account_id,
        )
        if not await self.records.store.remove_pod(removal):
            raise NotFound(StorageCodes.NO_SUCH_POD, name=account.pod)
        self.audit.note(AuditEvent.ACCOUNT_DELETED, account_id=account_id)

    async def resign(self, account_id: str) -> idp_records.Account:
        """Take the console away from an account that is about to be deleted: the deletion consists
        of several writes, which cannot require that another operator remains. Raises NotFound, and
        LastOperator while there are other accounts."""
        account = (await self._existing(account_id)).value
        if not account.operator:
            return account
        return await self._change(
            account_id, lambda each: msgspec.structs.replace(each, operator=False), ends=True
        )

    async def free_name(self, name: str) -> None:
        """Allow somebody else to take the name of a deleted pod, and with it the WebID and whatever
        others have shared with that WebID. Raises NotFound if no deleted pod had the name."""

        async def compute() -> Changes[None]:
            store, now_ms = self.records.store, self.records.now_ms()
            former = await store.read_entry(pod_tombstone(name), now_ms=now_ms)
            if former is None:
                raise NotFound(IdpCodes.NO_SUCH_DELETED_POD, name=name)
            records, unchanged = await leading_past(store, former, now_ms=now_ms)
            unchanged.append(storage_records.EntryAtVersion(former.entry, former.version))
            return Changes(None, [storage_records.DropEntry(former.entry), *records], unchanged)

        await self.records.transact(compute)
        self.audit.note(AuditEvent.NAME_FREED)

    async def _verification(
        self, account: idp_records.Account, source: RequestSource
    ) -> Sequence[storage_records.Record]:
        """The records that queue a message with which the person confirms a new address."""
        if not self.sends_mail():
            return ()
        return await queued_verification(self.records, account, source.language)

    # --- parts --------------------------------------------------------------------------------

    def _new(
        self, pod: str, web_id: str, email: str | None, password_hash: str | None
    ) -> idp_records.Account:
        return idp_records.Account(
            account_id=self.records.randomness.token_hex(_ID_BYTES),
            pod=pod,
            web_id=web_id,
            email=email,
            password_hash=password_hash,
            created_s=self.records.now_s(),
        )

    async def _check_free(self, name: str, email: str | None) -> None:
        """Refuse a name or an address that is taken, before the cost of hashing a password; the
        write checks it again."""
        if await self.records.store.read_pod(name) is not None:
            raise self.pods.name_taken()
        if (
            email is not None
            and await self.records.read(idp_records.EMAILS, idp_records.name_key(email)) is not None
        ):
            raise idp_records.EmailTaken

    async def _commit_new(
        self, creation: account_creation.AccountWrite, admitted: Admission | None = None
    ) -> None:
        invitation_id = await account_creation.commit_creation(self.records, creation, admitted)
        account = creation.account
        facts = {"pod": account.pod} | ({"invitation": invitation_id} if invitation_id else {})
        self.audit.note(AuditEvent.ACCOUNT_CREATED, account_id=account.account_id, **facts)

    async def _existing(self, account_id: str) -> Versioned[idp_records.Account]:
        stored = await self.read(account_id)
        if stored is None:
            raise NotFound(IdpCodes.NO_SUCH_ACCOUNT)
        return stored

    async def _change(
        self,
        account_id: str,
        change: Callable[[idp_records.Account], idp_records.Account],
        joined: Sequence[storage_records.Record] = (),
        *,
        ends: bool = False,
    ) -> idp_records.Account:
        async def compute() -> Changes[idp_records.Account]:
            stored = await self._existing(account_id)
            changed = change(stored.value)
            remaining = await self._another_operator(stored.value, changed, ends=ends)
            return Changes(
                changed,
                [idp_records.ACCOUNTS.replace(stored, changed), *joined],
                [stored.unchanged, *remaining],
            )

        return await self.records.transact(compute)

    async def _another_operator(
        self, before: idp_records.Account, after: idp_records.Account, *, ends: bool = False
    ) -> Sequence[storage_records.Precondition]:
        """The condition that somebody else remains an operator, if this account was one before and
        is none after the change; if the account ``ends``, nobody has to remain at all. Raises
        LastOperator."""
        if not _is_operator(before) or _is_operator(after):
            return ()
        is_alone = True
        async for each in self.records.each(idp_records.ACCOUNTS):
            if each.value.account_id != before.account_id:
                if _is_operator(each.value):
                    return (each.unchanged,)
                is_alone = False
        if ends and is_alone:
            return ()
        raise LastOperator

    async def _end_all(
        self,
        account_id: str,
        change: Callable[[idp_records.Account], idp_records.Account],
        further: Sequence[storage_records.Record] = (),
        preconditions: Sequence[storage_records.Precondition] = (),
    ) -> idp_records.Account:
        """Change an account and end what began before; ``further`` records and ``preconditions``
        join the write.

        Times are whole seconds. Sessions and tokens created earlier in the current second must
        become invalid, so the account accepts only those dated to the next second or later, and
        those created after the change get that date (:func:`issue_time_s`).
        """

        async def compute() -> Changes[idp_records.Account]:
            now_s = self.records.now_s()
            stored = await self._existing(account_id)
            changed = msgspec.structs.replace(
                change(stored.value), valid_after_s=max(stored.value.valid_after_s, now_s + 1)
            )
            remaining = await self._another_operator(stored.value, changed)
            ended = [
                kind.drop(each.key)
                for kind in _ENDED_BY_A_NEW_PASSWORD
                for each in await self.records.of_owner(kind, account_id)
            ]
            return Changes(
                changed,
                [idp_records.ACCOUNTS.replace(stored, changed), *ended, *further],
                [stored.unchanged, *remaining, *preconditions],
            )

        return await self.records.transact(compute)


def _is_operator(account: idp_records.Account) -> bool:
    """Whether the person can use the console now."""
    return account.operator and not account.disabled


def issue_time_s(account: idp_records.Account, now_s: int) -> int:
    """The Unix time to record for a session or a token that is created for an account now. Just
    after a change of the password this is the next second."""
    return max(now_s, account.valid_after_s)
