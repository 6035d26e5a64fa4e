"""What happens to the account of a pod that gets another name, and with it another WebID?

The account gets them, too, in the write that renames the pod. What names the former WebID ends:
sessions, grants, their tokens, and client credentials. Passwords, passkeys and keys remain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from podstead.core.errors import Conflict
from podstead.idp.account_creation import NOTHING_JOINED, Joined
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
from podstead.storage.record_store import RecordStore
from podstead.storage.records import PodRecord, Record
from podstead.storage.registry import RecordKind

_ENDED: Final[Sequence[RecordKind[Any]]] = (SESSIONS, GRANTS, REFRESH_TOKENS, CODES, CREDENTIALS)

NAME_IN_USE: Final = Conflict("Another account has this name")


async def renaming_account(records: RecordStore, pod: PodRecord) -> Callable[[PodRecord], Joined]:
    """The records that rename the account of a pod, from the pod as it will be. Nothing if it has
    no account. Raises StorageError."""
    old = name_key(pod.name)
    named = await records.read(USERNAMES, old)
    kept = None if named is None else await records.read(ACCOUNTS, named.value.account_id)
    if kept is None:
        return lambda _: NOTHING_JOINED
    account = kept.value
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
            ACCOUNTS.replace(kept, changed),
            USERNAMES.drop(old),
            USERNAMES.put(new, AccountName(account.account_id), owner=account.account_id),
            *ended,
        ]
        return Joined(written, [kept.unchanged, USERNAMES.absent(new)], NAME_IN_USE)

    return joined
