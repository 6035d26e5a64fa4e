"""The names of accounts in the lines of the log, which otherwise have their ids alone.

A line is written where nothing can be awaited, so the names are those of the accounts that this
process has read: before anything happens to an account, it is read.
"""

from __future__ import annotations

from typing import Final

from podstead.core.caches import BoundedCache
from podstead.idp.records import ACCOUNTS, Account
from podstead.storage.record_store import RecordKind, RecordStore, Value, Versioned

_MAX_NAMES: Final = 10_000
_names: Final[BoundedCache[str, str]] = BoundedCache(_MAX_NAMES)


class NamingRecordStore(RecordStore):
    """A record store that remembers the names of the accounts that it reads."""

    async def read(self, kind: RecordKind[Value], key: str) -> Versioned[Value] | None:
        found = await super().read(kind, key)
        if kind is ACCOUNTS and found is not None and isinstance(found.value, Account):
            _names.put(key, found.value.pod)
        return found


def facts_of(account_id: str | None) -> dict[str, str]:
    """What a line of the log says of an account: its id, and its name if that is known."""
    if account_id is None:
        return {}
    name = _names.get(account_id)
    named = {} if name is None else {"account_name": name}
    return {"account": account_id, **named}
