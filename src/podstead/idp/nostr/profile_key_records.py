"""Records which profile states which Nostr key, in the same write as the profile.

The records are looked up by key, and tell :mod:`podstead.idp.nostr.profile_keys` which profiles to
read.
"""

from __future__ import annotations

from collections.abc import Sequence

from podstead.core.identifiers import ResourcePath, storage_root
from podstead.idp.audit import AuditEvent, profile_change
from podstead.idp.nostr.allowed_keys import allowed_key, ending_allowed_key
from podstead.idp.records import (
    ALLOWED_KEYS,
    NOSTR_LINKS,
    PROFILE_KEYS,
    USERNAMES,
    ProfileKey,
    name_key,
)
from podstead.idp.security_events import event_records
from podstead.nostr.npub import npub
from podstead.rdf.graph import Dataset
from podstead.rdf.nostr_keys import stated_keys
from podstead.storage.record_store import Changes, RecordStore
from podstead.storage.records import Record


class ProfileKeyRecords:
    """Keeps the records of the keys that profiles state, as a write hook."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    def applies_to(self, path: ResourcePath) -> bool:
        """Whether the document is a profile: WebIDs of this server are ``{base}/<pod>/#me``."""
        return storage_root(path) == path

    async def of(self, path: ResourcePath, content: Dataset) -> Changes[None]:
        """The records to write together with a profile of this content."""
        pod = await self._records.store.read_pod(path.strip("/"))
        before = await self._records.of_owner(PROFILE_KEYS, path)
        keys = stated_keys(content.default, pod.owner) if pod is not None else frozenset[str]()
        named = {f"{key}{path}": ProfileKey(key) for key in sorted(keys)}
        known = {each.key for each in before}
        gone = sorted(known - named.keys())
        came = [key for key in named if key not in known]
        of_account = await self._of_account(
            path,
            came=[key.removesuffix(path) for key in came],
            gone=[key.removesuffix(path) for key in gone],
        )
        return Changes(
            None,
            [
                *(PROFILE_KEYS.drop(key) for key in gone),
                *(PROFILE_KEYS.put(key, named[key], owner=path) for key in came),
                *of_account,
            ],
        )

    async def _of_account(
        self, path: ResourcePath, *, came: Sequence[str], gone: Sequence[str]
    ) -> Sequence[Record]:
        """The records that tell the owner which keys the profile now names or no longer names, and
        that withdraw the permission of the latter to sign in. A linked key is reported when it is
        linked or unlinked instead."""
        if not came and not gone:
            return ()
        name = name_key(path.strip("/"))
        account = await self._records.read(USERNAMES, name)
        if account is None:
            return ()
        owner = account.value.account_id
        records: list[Record] = []
        for public_key in gone:
            key = allowed_key(owner, public_key)
            allowed = await self._records.read(ALLOWED_KEYS, key)
            if allowed is not None:
                records += await ending_allowed_key(self._records, allowed, profile_change())
        stored = await self._records.of_owner(NOSTR_LINKS, owner)
        linked = {each.key for each in stored}
        for event, keys in (
            (AuditEvent.PROFILE_KEY_NAMED, came),
            (AuditEvent.PROFILE_KEY_UNNAMED, gone),
        ):
            reported = [key for key in keys if key not in linked]
            if reported:
                records += await event_records(
                    self._records, owner, event, profile_change(), subject=_summary(reported)
                )
        return records


def _summary(keys: Sequence[str]) -> str:
    """The keys of one change, which is one event however many there are."""
    more = "" if len(keys) == 1 else f" and {len(keys) - 1} more"
    return npub(keys[0]) + more
