"""What is stored about Nostr keys, and the records of which profile states which key.

The latter change in the same write as the profile. They are looked up by key, and tell
:mod:`podstead.features.nostr.profile_keys` which profiles to read. Pure.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from podstead.core.codes import ErrorCode
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.features.nostr.keys import npub, stated_keys
from podstead.idp.audit import EventKind, RequestSource, profile_change
from podstead.idp.records import USERNAMES, Challenge, name_key
from podstead.idp.security_events import event_records
from podstead.idp.sign_in_methods import end_records
from podstead.rdf.graph import Dataset
from podstead.resources.planning import ContainerHook
from podstead.storage.record_store import Changes, RecordKind, RecordStore, Versioned
from podstead.storage.records import PodRecord, Record


class NostrLink(msgspec.Struct, frozen=True):
    """A Nostr key of an account (A-128); the key of the record is the public key.

    ``published`` means that the key was added to the profile, and that anybody may ask whose it is.
    """

    public_key: str
    """64 hexadecimal digits in lower case."""
    account_id: str
    created_s: int
    published: bool = False
    last_used_s: int | None = None


class AllowedKey(msgspec.Struct, frozen=True):
    """A Nostr key that its owner has allowed to sign in to an account while the profile names the
    key (:class:`podstead.features.nostr.profile_keys.AllowedKeys`). The key of the record consists
    of the account id and the public key."""

    public_key: str
    account_id: str
    created_s: int


class ProfileKey(msgspec.Struct, frozen=True):
    """A statement in a profile that names a Nostr key (A-127). The key of the record consists of
    that key and the path of the profile. Its owner is the pod, not an account, since a profile may
    exist before its account."""

    public_key: str


class ProvenKey(msgspec.Struct, frozen=True):
    """A Nostr key that a browser has proven to hold and that belongs to no account, so that an
    account can be created with it (A-131); the key of the record is the hash of the browser's
    secret."""

    public_key: str


NOSTR_LINKS: Final = RecordKind("nostr-key", NostrLink)
ALLOWED_KEYS: Final = RecordKind("allowed-key", AllowedKey)
NOSTR_CHALLENGES: Final = RecordKind("nostr-challenge", Challenge)
PROFILE_KEYS: Final = RecordKind("profile-key", ProfileKey)
PROVEN_KEYS: Final = RecordKind("proven-key", ProvenKey)


class NostrEvents(EventKind):
    """What is recorded about keys for the operator and the owner of the account."""

    KEY_LINKED = "Nostr key linked"
    KEY_UNLINKED = "Nostr key unlinked"
    PROFILE_KEY_NAMED = "Nostr key named by the profile"
    PROFILE_KEY_UNNAMED = "Nostr key no longer named by the profile"
    PROFILE_KEY_ALLOWED = "Nostr key of the profile allowed to sign in"
    PROFILE_KEY_ENDED = "Nostr key of the profile no longer signs in"


class NostrCodes(ErrorCode):
    """What errors about keys say to people."""

    NO_SUCH_KEY = "There is no such key; it may have been removed"
    KEY_NOT_ALLOWED = "This key cannot sign in; its permission may have been removed"
    KEY_UNKNOWN = (
        "No account here has this key. If you have an account, sign in to it in another way, and "
        "link the key there"
    )
    KEY_NOT_LINKED = (
        "Only your profile names this key, which is not enough here: use your password, a passkey, "
        "or a key that is linked to your account"
    )
    LINKED_ELSEWHERE = "This key is linked to another account"
    PROFILE_NOT_CHANGED = (
        "The key was not linked, because your profile could not be changed to state it. Link it "
        "without changing the profile, or repair the profile"
    )
    PROOF_GONE = (
        "Your Nostr key was not linked: it was too long ago that you signed in with it, or it has "
        "an account by now"
    )
    NOT_IN_PROFILE = "Your profile does not state this key; it may have been removed"
    TOO_MANY_LINKED = "An account can have at most {number} keys; unlink one first"
    TOO_MANY_ALLOWED = "At most {number} such keys can sign in to an account; remove one first"


def allowed_key(account_id: str, public_key: str) -> str:
    """The key of the record of a permission."""
    return f"{account_id}.{public_key}"


async def ending_allowed_key(
    records: RecordStore, stored: Versioned[AllowedKey], source: RequestSource
) -> Sequence[Record]:
    """The records that withdraw a permission and end what began with it."""
    owner, subject = stored.value.account_id, npub(stored.value.public_key)
    event = NostrEvents.PROFILE_KEY_ENDED
    return [
        ALLOWED_KEYS.drop(stored.key),
        *await end_records(records, owner, stored.entry),
        *await event_records(records, owner, event, source, subject=subject),
    ]


class ProfileKeyRecords(ContainerHook):
    """Keeps the records of the keys that profiles state: a WriteHook and a ContainerHook of
    :mod:`podstead.resources.planning`."""

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
        known = {each.value.public_key for each in before}
        return Changes(
            None,
            await self._changed(path, came=sorted(keys - known), gone=sorted(known - keys)),
        )

    async def of_renaming(
        self,
        pod: PodRecord,
        after: PodRecord,
        renamed: Callable[[ResourcePath], ResourcePath],  # noqa: ARG002
    ) -> Changes[None]:
        """The profile states its keys under the new name, too; :meth:`of` does not know that pod
        yet, and drops those under the old one."""
        stored = await self._records.of_owner(PROFILE_KEYS, pod.root)
        keys = sorted(each.value.public_key for each in stored)
        records = await self._changed(after.root, came=keys, name=pod.name)
        return Changes(None, records)

    async def _changed(
        self,
        path: ResourcePath,
        *,
        came: Sequence[str],
        gone: Sequence[str] = (),
        name: str | None = None,
    ) -> Sequence[Record]:
        """The records for keys that the profile at ``path`` now names or no longer names. They tell
        the owner, and withdraw the permission of the latter to sign in. A linked key is reported
        when it is linked or unlinked instead. ``name`` is the pod whose account is the owner, by
        default that at the path."""
        if not came and not gone:
            return ()
        records: list[Record] = [PROFILE_KEYS.drop(f"{key}{path}") for key in gone]
        records += [PROFILE_KEYS.put(f"{key}{path}", ProfileKey(key), owner=path) for key in came]
        account = await self._records.read(USERNAMES, name_key(name or path.strip("/")))
        if account is None:
            return records
        owner = account.value.account_id
        for public_key in gone:
            allowed = await self._records.read(ALLOWED_KEYS, allowed_key(owner, public_key))
            if allowed is not None:
                records += await ending_allowed_key(self._records, allowed, profile_change())
        linked = {each.key for each in await self._records.of_owner(NOSTR_LINKS, owner)}
        for event, keys in (
            (NostrEvents.PROFILE_KEY_NAMED, came),
            (NostrEvents.PROFILE_KEY_UNNAMED, gone),
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
