"""Changing records of other parts of the server in one atomic write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from podstead.core.clock import Randomness
from podstead.storage.protocol import ResourceStore
from podstead.storage.records import Committed, Precondition, Record, Version, Write

VERSION_BYTES: Final = 8


async def commit_entries(
    store: ResourceStore,
    records: Iterable[Record],
    *,
    preconditions: Iterable[Precondition] = (),
    now_ms: int,
    randomness: Randomness,
) -> bool:
    """Commit the records; False if a precondition does not hold, and nothing is changed then.

    Does nothing if there are no records. Raises StorageError, Overloaded.
    """
    changed = tuple(records)
    if not changed:
        return True
    write = Write(
        version=Version(randomness.token_hex(VERSION_BYTES)),
        at_ms=now_ms,
        preconditions=tuple(preconditions),
        records=changed,
    )
    return isinstance(await store.commit(write), Committed)
