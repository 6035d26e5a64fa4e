"""Which repository of git belongs to a container? An entry says so, and goes with the container.

A repository has a name of its own, random and never used again, and lies in a directory of that
name. The entry is removed by the very write that deletes the container, so that whoever makes a
container of the same path later, even after a crash, does not find what was pushed to the first.
"""

from __future__ import annotations

from typing import NewType

from podstead.core.identifiers import ResourcePath, storage_root
from podstead.storage.records import DropEntry, EntryId, PutEntry

RepositoryName = NewType("RepositoryName", str)
"""32 hexadecimal digits of randomness."""

KIND = "repository"
"""The kind of these entries; each is owned by the root of the storage it belongs to."""


def repository_of(container: ResourcePath) -> EntryId:
    """The entry whose value is the name of the container's repository."""
    return EntryId(f"{KIND}/{container}")


def put_repository(container: ResourcePath, name: RepositoryName) -> PutEntry:
    """The record that gives a container a repository."""
    return PutEntry(repository_of(container), name.encode("ascii"), owner=storage_root(container))


def drop_repository(container: ResourcePath) -> DropEntry:
    """The record that takes it away, if there is one."""
    return DropEntry(repository_of(container))
