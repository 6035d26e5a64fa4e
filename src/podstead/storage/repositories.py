"""Entries that assign git repositories to containers.

A repository has a random name that is never reused, and is in a directory of that name. The write
that deletes a container also removes the entry, so that a container that is created later at the
same path does not get the repository of the first one, even after a crash.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NewType

from podstead.core.identifiers import ResourcePath, storage_root
from podstead.storage.protocol import EntryRegistry
from podstead.storage.records import DropEntry, Entry, EntryId, PutEntry

RepositoryName = NewType("RepositoryName", str)
"""32 hexadecimal digits of randomness."""

KIND = "repository"
"""The kind of these entries. Each belongs to the root container of its storage."""


_AT_ONCE: Final = 1000


async def repository_entries(
    store: EntryRegistry, *, now_ms: int, root: ResourcePath | None = None
) -> AsyncIterator[Entry]:
    """The entries of one storage, or of all. Raises StorageError."""
    after = ""
    while page := await store.list_entries(
        KIND, owner=root, after=after, limit=_AT_ONCE, now_ms=now_ms
    ):
        for each in page:
            yield each
        after = page[-1].entry


def repository_of(container: ResourcePath) -> EntryId:
    """The entry whose value is the name of the container's repository."""
    return EntryId(f"{KIND}/{container}")


def container_of(entry: Entry) -> ResourcePath:
    """The container whose repository an entry names."""
    return ResourcePath(entry.entry.removeprefix(f"{KIND}/"))


def repository_name_in(entry: Entry) -> RepositoryName:
    """The repository that an entry names."""
    return RepositoryName(entry.value.decode("ascii"))


def put_repository(container: ResourcePath, name: RepositoryName) -> PutEntry:
    """The record that gives a container a repository."""
    return PutEntry(repository_of(container), name.encode("ascii"), owner=storage_root(container))


def drop_repository(container: ResourcePath) -> DropEntry:
    """The record that removes a container's repository, if it has one."""
    return DropEntry(repository_of(container))
