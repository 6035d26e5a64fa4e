"""Ties sessions and grants to the sign-in method that they began with, and ends them with it.

A sign-in method other than the password is an entry of the store, of a feature. A session or a
grant names the entry that it began with, and is created only while that entry exists. When the
entry is removed, every session and grant that began with it ends. Every account keeps one (A-124).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from podstead.core.errors import AccessDenied, Conflict
from podstead.idp import records as idp_records
from podstead.idp.codes import IdpCodes
from podstead.storage.record_store import RecordKind, RecordStore, Versioned
from podstead.storage.records import EntryAtVersion, EntryId, Precondition, Record


@dataclass(frozen=True, slots=True)
class SignInMethod:
    """A method besides the password: an account can sign in with each record that it has of this
    kind."""

    records: RecordKind[Any]
    is_second_factor: bool = False
    """Whether one of these, after a password, is the second factor."""


class SecondStep(Protocol):
    """What an account needs after its password. All methods raise StorageError and Overloaded."""

    async def begin(
        self,
        account: idp_records.Account,
        *,
        browser: str,
        path: str,
        lasting: bool = False,
        uid: str = "",
        common_password: bool = False,
    ) -> str | None:
        """After the right password, the path at which the browser with the secret ``browser``
        continues; ``None`` if the password is enough. Afterwards a session begins, ``lasting`` or
        not, and the browser goes to ``path`` or on with the interaction ``uid``."""

    async def is_needed(self, account_id: str) -> bool:
        """Whether an account needs more than its password."""

    async def method_removal(
        self, account: idp_records.Account, method: EntryId
    ) -> Sequence[Precondition]:
        """The preconditions for removing a sign-in method, which may be the second step of the
        account. Raises Conflict if it must stay."""


_AMR_OF_KIND: Final = {"passkey": "user", "nostr-key": "pop"}
"""Sessions and grants of earlier versions do not name their sign-in method. An ``amr`` with this
value shows which kind of entry they began with."""


class SignInMethodRemoved(AccessDenied):
    """The sign-in method was removed while somebody signed in with it."""

    code = IdpCodes.METHOD_REMOVED


async def method_precondition(
    records: RecordStore, method: str, *, account_id: str
) -> Sequence[Precondition]:
    """The precondition that the sign-in method still exists; none for a password. Raises
    SignInMethodRemoved."""
    if not method:
        return ()
    entry = await records.store.read_entry(EntryId(method), now_ms=records.now_ms())
    if entry is None or entry.owner != account_id:
        raise SignInMethodRemoved
    return (EntryAtVersion(entry.entry, entry.version),)


def began_with(method: str, begun: idp_records.BrowserSession | idp_records.Grant) -> bool:
    """Whether a session or a grant began with this sign-in method."""
    if begun.sign_in_method:
        return begun.sign_in_method == method
    return _AMR_OF_KIND.get(method.partition("/")[0]) in begun.amr


async def end_records(records: RecordStore, account_id: str, method: str) -> Sequence[Record]:
    """The records that end every session and grant that began with a sign-in method."""
    sessions = await records.of_owner(idp_records.SESSIONS, account_id)
    grants = await records.of_owner(idp_records.GRANTS, account_id)
    return [
        *(
            idp_records.SESSIONS.drop(each.key)
            for each in sessions
            if began_with(method, each.value)
        ),
        *(
            idp_records.GRANTS.replace(each, idp_records.revoked(each.value))
            for each in grants
            if began_with(method, each.value) and not each.value.revoked
        ),
    ]


_ENOUGH: Final = 2
"""How many to read to find one besides the one that is removed."""


class LastFactor(Conflict):
    """It is the only factor of the account; nothing was removed."""

    code = IdpCodes.LAST_FACTOR


async def remaining_factor(
    records: RecordStore,
    methods: Sequence[SignInMethod],
    account: Versioned[idp_records.Account],
    *,
    without: EntryId,
) -> EntryAtVersion:
    """A factor that remains when the entry ``without`` is removed.

    The removal has it as a precondition, so that it cannot be removed at the same time. Raises
    LastFactor.
    """
    if account.value.password_hash is not None:
        return account.unchanged
    remaining = await entry_to_sign_in(records, methods, account.value.account_id, without=without)
    if remaining is None:
        raise LastFactor
    return remaining


async def second_factor(
    records: RecordStore,
    methods: Sequence[SignInMethod],
    account_id: str,
    *,
    without: EntryId | None = None,
) -> EntryAtVersion | None:
    """An entry that is the second factor after a password, other than ``without``; ``None`` if the
    account has none."""
    among = [each for each in methods if each.is_second_factor]
    return await entry_to_sign_in(records, among, account_id, without=without)


async def entry_to_sign_in(
    records: RecordStore,
    methods: Sequence[SignInMethod],
    account_id: str,
    *,
    without: EntryId | None = None,
) -> EntryAtVersion | None:
    """An entry that the account can sign in with, other than ``without``."""
    for method in methods:
        for each in await records.of_owner(method.records, account_id, limit=_ENOUGH):
            if each.entry != without:
                return each.unchanged
    return None
