"""What does the creation of an account consist of? The plan of its pod, and its records.

:class:`podstead.idp.accounts.Accounts` commits all of it in one write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from podstead.core.errors import Conflict
from podstead.idp.names import EmailTaken, name_key
from podstead.idp.records import ACCOUNTS, EMAILS, USERNAMES, Account, AccountName
from podstead.storage.invitations import MAX_ATTEMPTS, Admission
from podstead.storage.record_store import Contention, RecordStore
from podstead.storage.records import Committed, Precondition, Record, VersionConflict, Write


class PodPlan(Protocol):
    """A pod that does not exist yet, and the write that creates it."""

    @property
    def name(self) -> str: ...

    @property
    def web_id(self) -> str: ...

    @property
    def pod_uri(self) -> str: ...

    @property
    def write(self) -> Write: ...


class PodPlanner(Protocol):
    """Plans pods; ``pods.provision`` has the implementation."""

    def plan(self, name: object) -> PodPlan:
        """A pod of that name. Raises BadRequest for a name that no pod may have."""

    def name_taken(self) -> Conflict:
        """The error to raise when another pod has the name."""


@dataclass(frozen=True, slots=True)
class NewAccount:
    """A newly created account, with its pod."""

    account: Account
    pod_uri: str


@dataclass(frozen=True, slots=True)
class Joined:
    """Further records for the write that creates an account. If one of ``preconditions`` does not
    hold, ``refusal`` is raised and no account is created."""

    records: Sequence[Record]
    preconditions: Sequence[Precondition]
    refusal: Conflict


NOTHING_JOINED: Final = Joined((), (), Conflict("There was nothing to merge"))


@dataclass(frozen=True, slots=True)
class AccountWrite:
    """What the write that creates an account is made of, and what it raises."""

    account: Account
    write: Write
    """The write without the invitation; it creates the pod or relies on it."""
    name_taken: Conflict
    further: Joined = NOTHING_JOINED


async def commit_creation(
    records: RecordStore, creation: AccountWrite, admitted: Admission | None = None
) -> str:
    """Create the account, and return the id of the invitation that was used, if any.

    Raises EmailTaken, the Conflict of the creation, its further refusal, UnusableInvitation,
    Contention, StorageError; nothing has been used up or created then.
    """
    write = creation.write
    for _ in range(MAX_ATTEMPTS):
        use = None if admitted is None else await admitted()
        if use is not None:
            write = msgspec.structs.replace(
                creation.write,
                preconditions=(*creation.write.preconditions, *use.preconditions),
                records=(*creation.write.records, *use.records),
            )
        outcome = await records.store.commit(write)
        if isinstance(outcome, Committed):
            return "" if use is None else use.invitation_id
        if not isinstance(outcome, VersionConflict):
            break
        if use is not None and outcome.precondition in use.preconditions:
            continue  # somebody else has used the invitation: is there a use left?
        if outcome.precondition in creation.further.preconditions:
            raise creation.further.refusal
        email = creation.account.email
        if email is not None and outcome.precondition == EMAILS.absent(name_key(email)):
            raise EmailTaken
        raise creation.name_taken
    raise Contention


def records_of_new(account: Account) -> tuple[list[Record], list[Precondition]]:
    """The records of a new account, and the preconditions that nobody has its names."""
    owner = account.account_id
    leads_here = AccountName(owner)
    name = name_key(account.pod)
    records: list[Record] = [
        ACCOUNTS.put(owner, account, owner=owner),
        USERNAMES.put(name, leads_here, owner=owner),
    ]
    preconditions: list[Precondition] = [ACCOUNTS.absent(owner), USERNAMES.absent(name)]
    if account.email is not None:
        email = name_key(account.email)
        records.append(EMAILS.put(email, leads_here, owner=owner))
        preconditions.append(EMAILS.absent(email))
    return records, preconditions
