"""Composes the writes that create accounts, rename them, and take them over from another server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from podstead.core.errors import BadRequest, Conflict
from podstead.idp import codes, passwords
from podstead.idp import records as idp_records
from podstead.storage import records as storage_records
from podstead.storage.invitations import MAX_ATTEMPTS, Admission
from podstead.storage.record_store import Contention, RecordKind, RecordStore, secret_key

# Composes the write that creates an account: the plan of its pod, and its records.
#
# :class:`podstead.idp.accounts.Accounts` commits all of it in one write.


class PodPlan(Protocol):
    """A pod that does not exist yet, and the write that creates it."""

    @property
    def name(self) -> str: ...

    @property
    def web_id(self) -> str: ...

    @property
    def pod_uri(self) -> str: ...

    @property
    def write(self) -> storage_records.Write: ...


class PodPlanner(Protocol):
    """Plans pods; ``pods.provision`` has the implementation."""

    def plan(self, name: object) -> PodPlan:
        """A pod of that name. Raises BadRequest for a name that no pod may have."""

    def name_taken(self) -> Conflict:
        """The error to raise when another pod has the name."""


@dataclass(frozen=True, slots=True)
class NewAccount:
    """A newly created account, with its pod."""

    account: idp_records.Account
    pod_uri: str


class FurtherRecordsRefused(Conflict):
    """Further records of a new account are no longer valid; without them, it can be created."""


@dataclass(frozen=True, slots=True)
class FurtherRecords:
    """Further records for the write that creates an account. If one of ``preconditions`` does not
    hold, ``refusal`` is raised and no account is created."""

    records: Sequence[storage_records.Record]
    preconditions: Sequence[storage_records.Precondition]
    refusal: Conflict


NO_FURTHER_RECORDS: Final = FurtherRecords((), (), Conflict("There was nothing to merge"))


@dataclass(frozen=True, slots=True)
class AccountWrite:
    """The parts of the write that creates an account, and its errors."""

    account: idp_records.Account
    write: storage_records.Write
    """The write without the invitation; it creates the pod or relies on it."""
    name_taken: Conflict
    further: FurtherRecords = NO_FURTHER_RECORDS


async def commit_creation(
    records: RecordStore, creation: AccountWrite, admitted: Admission | None = None
) -> str:
    """Create the account, and return the id of the invitation that was used, if any.

    Raises EmailTaken, the Conflict of the creation, its further refusal, UnusableInvitation,
    Contention, StorageError; then nothing was used up or created.
    """
    write = creation.write
    for _ in range(MAX_ATTEMPTS):
        use = None if admitted is None else await admitted()
        if use is not None:
            write = use.joined_to(creation.write)
        outcome = await records.store.commit(write)
        if isinstance(outcome, storage_records.Committed):
            return "" if use is None else use.invitation_id
        if not isinstance(outcome, storage_records.VersionConflict):
            break
        if use is not None and outcome.precondition in use.preconditions:
            continue  # somebody else has used the invitation: is there a use left?
        if outcome.precondition in creation.further.preconditions:
            raise creation.further.refusal
        email = creation.account.email
        if email is not None and outcome.precondition == idp_records.EMAILS.absent(
            idp_records.name_key(email)
        ):
            raise idp_records.EmailTaken
        raise creation.name_taken
    raise Contention


def records_of_new(
    account: idp_records.Account,
) -> tuple[list[storage_records.Record], list[storage_records.Precondition]]:
    """The records of a new account, and the preconditions that its names are free."""
    owner = account.account_id
    leads_here = idp_records.AccountName(owner)
    name = idp_records.name_key(account.pod)
    records: list[storage_records.Record] = [
        idp_records.ACCOUNTS.put(owner, account, owner=owner),
        idp_records.USERNAMES.put(name, leads_here, owner=owner),
    ]
    preconditions: list[storage_records.Precondition] = [
        idp_records.ACCOUNTS.absent(owner),
        idp_records.USERNAMES.absent(name),
    ]
    if account.email is not None:
        email = idp_records.name_key(account.email)
        records.append(idp_records.EMAILS.put(email, leads_here, owner=owner))
        preconditions.append(idp_records.EMAILS.absent(email))
    return records, preconditions


# Renames the account of a pod that gets another name, and with it another WebID.
#
# The account is renamed in the write that renames the pod. Everything issued for the former WebID
# ends: sessions, grants, their tokens, and client credentials. Passwords and other ways to sign in
# remain.

_ENDED: Final[Sequence[RecordKind[Any]]] = (
    idp_records.SESSIONS,
    idp_records.GRANTS,
    idp_records.REFRESH_TOKENS,
    idp_records.CODES,
    idp_records.CREDENTIALS,
)

NAME_IN_USE: Final = Conflict(codes.IdpCodes.NAME_TAKEN)


_NAMING_THE_SERVER: Final[Sequence[RecordKind[Any]]] = (
    idp_records.SESSIONS, idp_records.GRANTS, idp_records.REFRESH_TOKENS, idp_records.CODES,
)  # fmt: skip
_BATCH: Final = 500


async def move_accounts(records: RecordStore, renamed: Callable[[str], str]) -> int:
    """Give all accounts and client credentials their new WebIDs, and end what was issued under the
    former URL of the server. Returns the number of accounts. May be repeated."""
    for kind in _NAMING_THE_SERVER:
        while page := await kind.page(records.store, now_ms=records.now_ms(), limit=_BATCH):
            await records.commit([kind.drop(each.key) for each in page])
    count = 0
    of_web_ids: Sequence[RecordKind[Any]] = (idp_records.ACCOUNTS, idp_records.CREDENTIALS)
    for each_kind in of_web_ids:
        after = ""
        while page := await each_kind.page(
            records.store, after=after, now_ms=records.now_ms(), limit=_BATCH
        ):
            await records.commit(
                each_kind.replace(
                    each, msgspec.structs.replace(each.value, web_id=renamed(each.value.web_id))
                )
                for each in page
            )
            count += len(page) if each_kind is idp_records.ACCOUNTS else 0
            after = page[-1].key
    return count


async def renaming_account(
    records: RecordStore, pod: storage_records.PodRecord
) -> Callable[[storage_records.PodRecord], FurtherRecords]:
    """A function from the renamed pod to the records that rename its account; none if it has no
    account."""
    old = idp_records.name_key(pod.name)
    named = await records.read(idp_records.USERNAMES, old)
    stored = (
        None if named is None else await records.read(idp_records.ACCOUNTS, named.value.account_id)
    )
    if stored is None:
        return lambda _: NO_FURTHER_RECORDS
    account = stored.value
    ended = [
        kind.drop(each.key)
        for kind in _ENDED
        for each in await records.of_owner(kind, account.account_id)
    ]

    def joined(after: storage_records.PodRecord) -> FurtherRecords:
        new = idp_records.name_key(after.name)
        changed = msgspec.structs.replace(
            account,
            pod=after.name,
            web_id=after.owner if account.web_id == pod.owner else account.web_id,
            valid_after_s=max(account.valid_after_s, records.now_s() + 1),
        )
        written: list[storage_records.Record] = [
            idp_records.ACCOUNTS.replace(stored, changed),
            idp_records.USERNAMES.drop(old),
            idp_records.USERNAMES.put(
                new, idp_records.AccountName(account.account_id), owner=account.account_id
            ),
            *ended,
        ]
        return FurtherRecords(
            written, [stored.unchanged, idp_records.USERNAMES.absent(new)], NAME_IN_USE
        )

    return joined


# Plans the accounts of people who come from another server.
#
# The records are committed with the pod (:mod:`podstead.idp.account_creation`). The password is
# known by its hash only, which is replaced at the first sign-in (:mod:`podstead.idp.sign_in`).

_ID_BYTES: Final = 16
_MAX_ID_CHARACTERS: Final = 200
_MAX_LABEL_CHARACTERS: Final = 100


class PlannedAccount(msgspec.Struct, frozen=True):
    """An account that does not exist yet, and the parts of it that cannot be imported."""

    account: idp_records.Account
    records: Sequence[storage_records.Record]
    preconditions: Sequence[storage_records.Precondition]
    left_out: Sequence[str]


class ImportedAccounts:
    """Plans accounts. With ``planned``, names of accounts that were planned before are taken."""

    def __init__(self, records: RecordStore, planned: set[tuple[str, str]] | None = None) -> None:
        self._records = records
        self._planned = planned

    async def plan(
        self,
        *,
        pod: str,
        web_id: str,
        email: str | None,
        password_hash: str | None,
        secrets: Sequence[tuple[str, str, str]] = (),
    ) -> PlannedAccount:
        """The account of a new pod. Each of ``secrets`` is the id, the secret and the label of
        client credentials."""
        left_out: list[str] = []
        account = idp_records.Account(
            account_id=self._records.randomness.token_hex(_ID_BYTES),
            pod=pod,
            web_id=web_id,
            email=await self._email(email, left_out),
            password_hash=_usable(password_hash, pod, left_out),
            created_s=self._records.now_s(),
        )
        records, preconditions = records_of_new(account)
        for credential_id, secret, label in secrets:
            if len(credential_id) > _MAX_ID_CHARACTERS or not credential_id.isprintable():
                left_out.append("Client credentials have an id that cannot be used")
                continue
            if await self._is_taken(idp_records.CREDENTIALS, credential_id):
                left_out.append(f"The client credentials {credential_id} exist already")
                continue
            credential = idp_records.ClientCredential(
                credential_id=credential_id,
                name=label[:_MAX_LABEL_CHARACTERS],
                account_id=account.account_id,
                web_id=web_id,
                secret_hash=secret_key(secret),
                created_s=account.created_s,
            )
            records.append(
                idp_records.CREDENTIALS.put(credential_id, credential, owner=account.account_id)
            )
            preconditions.append(idp_records.CREDENTIALS.absent(credential_id))
        return PlannedAccount(account, records, preconditions, left_out)

    async def _email(self, email: str | None, left_out: list[str]) -> str | None:
        if email is None:
            return None
        try:
            address = idp_records.check_email(email)
        except BadRequest as error:
            left_out.append(f"{error}: the account has no e-mail address")
            return None
        if await self._is_taken(idp_records.EMAILS, idp_records.name_key(address)):
            left_out.append("Another account has its e-mail address: it has none")
            return None
        return address

    async def _is_taken(self, kind: RecordKind[Any], key: str) -> bool:
        if self._planned is not None:
            if (kind.kind, key) in self._planned:
                return True
            self._planned.add((kind.kind, key))
        return await self._records.read(kind, key) is not None


def _usable(password_hash: str | None, pod: str, left_out: list[str]) -> str | None:
    if password_hash is not None and passwords.is_usable_bcrypt(password_hash):
        return password_hash
    problem = "has no password" if password_hash is None else "has a password hash of another kind"
    left_out.append(
        f"The account {problem}: create a link for its owner with "
        f"'podstead account sign-in-link {pod}'"
    )
    return None
