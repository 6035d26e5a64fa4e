"""What lets a person into their account besides the password, and what began by it?

A way in is an entry of the store: a passkey, a linked Nostr key, or a key that a profile names and
that the owner allowed. What begins by a way names that entry and relies on its being there. When
the way is removed, everything that began by it ends: the sessions of browsers, and what
applications got in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from podstead.core.errors import AccessDenied
from podstead.idp.records import GRANTS, SESSIONS, BrowserSession, Grant, revoked
from podstead.storage.record_store import RecordStore
from podstead.storage.records import EntryAt, EntryId, Precondition, Record

_METHODS: Final = {"passkey": "user", "nostr-key": "pop"}
"""By which method of ``amr`` something that began in an earlier version, which did not note the
way, is taken for having begun by a kind of way."""


class WayRemoved(AccessDenied):
    """What somebody signed in with was removed meanwhile."""

    def __init__(self) -> None:
        super().__init__("What you signed in with was removed meanwhile: sign in in another way")


async def reliance_on(records: RecordStore, way: str, *, account_id: str) -> Sequence[Precondition]:
    """That the way is there, for what begins by it; nothing for a password. Raises WayRemoved,
    StorageError."""
    if not way:
        return ()
    entry = await records.store.read_entry(EntryId(way), now_ms=records.now_ms())
    if entry is None or entry.owner != account_id:
        raise WayRemoved
    return (EntryAt(entry.entry, entry.version),)


def began_by(way: str, begun: BrowserSession | Grant) -> bool:
    """Whether a session or a grant began by a way."""
    if begun.way:
        return begun.way == way
    return _METHODS.get(way.partition("/")[0]) in begun.amr


async def ending(records: RecordStore, account_id: str, way: str) -> Sequence[Record]:
    """What ends everything that began by a way. Raises StorageError."""
    sessions = await records.of_owner(SESSIONS, account_id)
    grants = await records.of_owner(GRANTS, account_id)
    return [
        *(SESSIONS.drop(each.key) for each in sessions if began_by(way, each.value)),
        *(
            GRANTS.replace(each, revoked(each.value))
            for each in grants
            if began_by(way, each.value) and not each.value.revoked
        ),
    ]
