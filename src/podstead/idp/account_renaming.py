"""Renames the account of a pod that gets another name, and with it another WebID.

The account is renamed in the write that renames the pod. Everything issued for the former WebID
ends: sessions, grants, their tokens, and client credentials. Passwords, passkeys and keys remain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from podstead.core.errors import Conflict
from podstead.idp.account_creation import NOTHING_JOINED, Joined
from podstead.idp.codes import IdpCodes
from podstead.idp.names import name_key
from podstead.idp.records import (
    ACCOUNTS,
    CODES,
    CREDENTIALS,
    GRANTS,
    REFRESH_TOKENS,
    SESSIONS,
    USERNAMES,
    AccountName,
)
from podstead.storage.record_store import RecordKind, RecordStore
from podstead.storage.records import PodRecord, Record

_ENDED: Final[Sequence[RecordKind[Any]]] = (SESSIONS, GRANTS, REFRESH_TOKENS, CODES, CREDENTIALS)

NAME_IN_USE: Final = Conflict(IdpCodes.NAME_TAKEN)


_NAMING_THE_SERVER: Final[Sequence[RecordKind[Any]]] = (
    SESSIONS, GRANTS, REFRESH_TOKENS, CODES,
)  # fmt: skip
_BATCH: Final = 500


async def move_accounts(records: RecordStore, renamed: Callable[[str], str]) -> int:
    """Give all accounts and client credentials their new WebIDs, and end what was issued under the
    former URL of the server. Returns the number of accounts. May be repeated."""
    for kind in _NAMING_THE_SERVER:
        while page := await kind.page(records.store, now_ms=records.now_ms(), limit=_BATCH):
            await records.commit([kind.drop(each.key) for each in page])
    count = 0
    of_web_ids: Sequence[RecordKind[Any]] = (ACCOUNTS, CREDENTIALS)
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
            count += len(page) if each_kind is ACCOUNTS else 0
            after = page[-1].key
    return count


async def renaming_account(records: RecordStore, pod: PodRecord) -> Callable[[PodRecord], Joined]:
    """A function from the renamed pod to the records that rename its account; none if it has no
    account."""
    old = name_key(pod.name)
    named = await records.read(USERNAMES, old)
    stored = None if named is None else await records.read(ACCOUNTS, named.value.account_id)
    if stored is None:
        return lambda _: NOTHING_JOINED
    account = stored.value
    ended = [
        kind.drop(each.key)
        for kind in _ENDED
        for each in await records.of_owner(kind, account.account_id)
    ]

    def joined(after: PodRecord) -> Joined:
        new = name_key(after.name)
        changed = msgspec.structs.replace(
            account,
            pod=after.name,
            web_id=after.owner if account.web_id == pod.owner else account.web_id,
            valid_after_s=max(account.valid_after_s, records.now_s() + 1),
        )
        written: list[Record] = [
            ACCOUNTS.replace(stored, changed),
            USERNAMES.drop(old),
            USERNAMES.put(new, AccountName(account.account_id), owner=account.account_id),
            *ended,
        ]
        return Joined(written, [stored.unchanged, USERNAMES.absent(new)], NAME_IN_USE)

    return joined
