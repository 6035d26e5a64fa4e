"""Entries that assign git repositories to containers.

A repository has a random name that is never reused, and is in a directory of that name. The write
that deletes a container also removes the entry, so that a container that is created later at the
same path does not get the repository of the first one, even after a crash. Pure.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, NewType

from podstead.core import codes, errors
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.storage import records as storage_records
from podstead.storage.protocol import EntryRegistry
from podstead.storage.record_store import Changes, RecordStore

RepositoryName = NewType("RepositoryName", str)
"""32 hexadecimal digits of randomness."""

KIND = "repository"
"""The kind of these entries. Each belongs to the root container of its storage."""


_AT_ONCE: Final = 1000


async def repository_entries(
    store: EntryRegistry, *, now_ms: int, root: ResourcePath | None = None
) -> AsyncIterator[storage_records.Entry]:
    """The entries of one storage, or of all. Raises StorageError."""
    after = ""
    while page := await store.list_entries(
        KIND, owner=root, after=after, limit=_AT_ONCE, now_ms=now_ms
    ):
        for each in page:
            yield each
        after = page[-1].entry


def repository_of(container: ResourcePath) -> storage_records.EntryId:
    """The entry whose value is the name of the container's repository."""
    return storage_records.EntryId(f"{KIND}/{container}")


def container_of(entry: storage_records.Entry) -> ResourcePath:
    """The container whose repository an entry names."""
    return ResourcePath(entry.entry.removeprefix(f"{KIND}/"))


def repository_name_in(entry: storage_records.Entry) -> RepositoryName:
    """The repository that an entry names."""
    return RepositoryName(entry.value.decode("ascii"))


def put_repository(container: ResourcePath, name: RepositoryName) -> storage_records.PutEntry:
    """The record that gives a container a repository."""
    return storage_records.PutEntry(
        repository_of(container), name.encode("ascii"), owner=storage_root(container)
    )


class GitCodes(codes.ErrorCode):
    """What errors of git repositories say to people."""

    CONTAINS_REPOSITORY = (
        "A container in it is a git repository, which stays where it is. Clone it, push it to "
        "another container, and delete this one"
    )


class RepositoryRecords:
    """Keeps the entries in step with containers (:class:`ContainerHook` of the resources)."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    def of_deletion(self, container: ResourcePath) -> Sequence[storage_records.Record]:
        """Remove the repository of a container, if it has one."""
        return (storage_records.DropEntry(repository_of(container)),)

    async def of_move(
        self,
        source: ResourcePath,
        destination: ResourcePath,
        containers: Sequence[ResourcePath],
    ) -> Changes[None]:
        """Refuse to move a container that is a repository: a push that is in progress belongs to
        the container at its present URL."""
        del destination
        store, now_ms = self._records.store, self._records.now_ms()
        entries = [repository_of(container) for container in containers]
        # Most storages have no repository at all.
        some = await store.list_entries(KIND, owner=storage_root(source), limit=1, now_ms=now_ms)
        for entry in entries if some else ():
            if await store.read_entry(entry, now_ms=now_ms) is not None:
                raise errors.Conflict(GitCodes.CONTAINS_REPOSITORY)
        return Changes(None, (), [storage_records.NoEntry(entry) for entry in entries])

    async def of_renaming(
        self,
        pod: storage_records.PodRecord,
        after: storage_records.PodRecord,
        renamed: Callable[[ResourcePath], ResourcePath],
    ) -> Changes[None]:
        """The repositories stay where they are, and belong to the new containers."""
        del after
        preconditions: list[storage_records.Precondition] = []
        records: list[storage_records.Record] = []
        now_ms = self._records.now_ms()
        async for each in repository_entries(self._records.store, root=pod.root, now_ms=now_ms):
            preconditions.append(storage_records.EntryAtVersion(each.entry, each.version))
            name = repository_name_in(each)
            records += [
                storage_records.DropEntry(each.entry),
                put_repository(renamed(container_of(each)), name),
            ]
        return Changes(None, records, preconditions)
