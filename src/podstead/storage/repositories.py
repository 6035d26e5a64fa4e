"""Entries that assign git repositories to containers.

A repository has a random name that is never reused, and is in a directory of that name. The write
that deletes a container also removes the entry, so that a container that is created later at the
same path does not get the repository of the first one, even after a crash.
"""

from __future__ import annotations

from typing import NewType

from podstead.core.identifiers import ResourcePath, storage_root
from podstead.storage.records import DropEntry, EntryId, PutEntry

RepositoryName = NewType("RepositoryName", str)
"""32 hexadecimal digits of randomness."""

KIND = "repository"
"""The kind of these entries. Each belongs to the root container of its storage."""


def repository_of(container: ResourcePath) -> EntryId:
    """The entry whose value is the name of the container's repository."""
    return EntryId(f"{KIND}/{container}")


def put_repository(container: ResourcePath, name: RepositoryName) -> PutEntry:
    """The record that gives a container a repository."""
    return PutEntry(repository_of(container), name.encode("ascii"), owner=storage_root(container))


def drop_repository(container: ResourcePath) -> DropEntry:
    """The record that removes a container's repository, if it has one."""
    return DropEntry(repository_of(container))
