"""Pods in the order of their names, the names of former pods, and pod tokens.

The name of a pod that was deleted or renamed stays taken, because access rules name WebIDs, here
and on other servers. A new owner of the name would get all the access of the previous one. The
tombstone of a pod that was renamed says which name it has now.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from podstead.storage import records as storage_records
from podstead.storage.protocol import EntryRegistry, PodRegistry, Store
from podstead.storage.state import folded

PAGE_PODS: Final = 1000


async def each_pod(
    pods: PodRegistry, *, after: str = ""
) -> AsyncIterator[storage_records.PodRecord]:
    """The pods by name, after the name ``after``.

    A pod that exists from beginning to end is among them once, whatever happens to others
    meanwhile. Raises StorageError.
    """
    while page := await pods.list_pods(after=after, limit=PAGE_PODS):
        for pod in page:
            yield pod
        after = page[-1].name


_KIND: Final = "former-pod"
_PAGE: Final = 1000


def pod_tombstone(name: str) -> storage_records.EntryId:
    """The entry for a former pod of this name, which is compared case-insensitively."""
    return storage_records.EntryId(f"{_KIND}/{folded(name)}")


def put_tombstone(name: str, *, new_name: str) -> storage_records.PutEntry:
    """The record that a pod of this name has another name now."""
    return storage_records.PutEntry(pod_tombstone(name), new_name.encode("ascii"))


def new_name_of(tombstone: storage_records.Entry) -> str | None:
    """The name that the pod has now; ``None`` if it was deleted."""
    return tombstone.value.decode("ascii") or None


async def leading_past(
    store: EntryRegistry, former: storage_records.Entry, *, now_ms: int
) -> tuple[list[storage_records.Record], list[storage_records.Precondition]]:
    """What lets former names that lead to that of ``former`` lead to where it leads itself, before
    somebody else may take it: their requests, and their WebIDs, are not for that person. Raises
    StorageError."""
    records: list[storage_records.Record] = []
    preconditions: list[storage_records.Precondition] = []
    after = ""
    while page := await store.list_entries(_KIND, after=after, limit=_PAGE, now_ms=now_ms):
        for each in page:
            new_name = new_name_of(each)
            if new_name is not None and pod_tombstone(new_name) == former.entry:
                records.append(storage_records.PutEntry(each.entry, former.value))
                preconditions.append(storage_records.EntryAtVersion(each.entry, each.version))
        after = page[-1].entry
    return records, preconditions


async def valid_tokens(
    store: Store, pod: str, *, now_s: int
) -> Sequence[storage_records.TokenRecord]:
    """The tokens of a pod that can be used now, newest first. Raises StorageError."""
    return [
        token
        for token in await store.list_tokens(pod=pod)
        if token.revoked_s is None and (token.expires_s is None or token.expires_s > now_s)
    ]


def revocations(
    tokens: Iterable[storage_records.TokenRecord], *, now_s: int
) -> Sequence[storage_records.TokenRevocation]:
    """The records that revoke those tokens that are not revoked yet."""
    return [
        storage_records.TokenRevocation(token.token_id, at_s=now_s)
        for token in tokens
        if token.revoked_s is None
    ]
