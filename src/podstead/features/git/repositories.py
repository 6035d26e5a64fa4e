"""The repositories of containers: creation, maintenance and removal.

The entry in the store is authoritative (``features/git/entries.py``); the directory is created
before the entry and removed after it. Containers without an entry share one empty repository, so
nothing must be created before the first push.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from podstead.config import Settings
from podstead.core.background import cancel_and_wait
from podstead.core.clock import Clock, Randomness
from podstead.core.errors import ServerTrouble, StorageError
from podstead.core.identifiers import ROOT, ResourcePath, storage_root
from podstead.features.git import entries
from podstead.features.git.directories import Directories, DirectoryClaim, directories_of
from podstead.features.git.processes import GitProcesses
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from podstead.storage.records import NoEntry, Precondition, Present

logger = logging.getLogger("podstead.git")

EMPTY: Final = entries.RepositoryName("empty")
"""The shared repository of containers without their own. Nothing is ever pushed to it."""

_FIRST_BRANCHES: Final = ("refs/heads/main", "refs/heads/master")
_NAME_BYTES: Final = 16
_TIDYING_LIMIT_S: Final = 600
_MIN_WASTE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class ClaimedRepository:
    """The repository of a container, with a claim for changing it."""

    name: entries.RepositoryName
    container: ResourcePath
    claim: DirectoryClaim


class Repositories:
    """The repositories of all containers."""

    def __init__(
        self, records: RecordStore, directories: Directories, processes: GitProcesses
    ) -> None:
        self._records = records
        self._store = records.store
        self._directories = directories
        self._processes = processes
        self._tidying: set[asyncio.Task[None]] = set()
        self._to_tidy: set[entries.RepositoryName] = set()
        self._one_at_a_time = asyncio.Semaphore(1)

    async def open(self) -> None:
        """Write the hook, and create the empty repository if missing. Raises ServerTrouble."""
        await self._directories.write_hook()
        if await self._directories.exists(EMPTY):
            return
        try:
            claim = await self._directories.make(EMPTY, ROOT, self._processes.initialize)
        except StorageError:
            if not await self._directories.exists(EMPTY):  # another worker was faster
                raise
        else:
            claim.close()

    async def close(self) -> None:
        """Cancel background tasks."""
        await cancel_and_wait(self._tidying)

    def path(self, name: entries.RepositoryName) -> str:
        """The absolute path of a repository."""
        return str(self._directories.path(name))

    @property
    def hooks(self) -> str:
        """The absolute path of the directory of the hook."""
        return str(self._directories.hooks)

    async def name_of(self, container: ResourcePath) -> entries.RepositoryName | None:
        """The name of the container's own repository, if it has one."""
        entry = await self._store.read_entry(
            entries.repository_of(container), now_ms=self._records.now_ms()
        )
        return None if entry is None else entries.repository_name_in(entry)

    async def join(
        self, name: entries.RepositoryName, container: ResourcePath
    ) -> ClaimedRepository:
        """Claim a container's repository for changes.

        Raises StorageError, and Overloaded while the repository is being pruned.
        """
        return ClaimedRepository(name, container, await self._directories.claim(name))

    async def make(
        self, container: ResourcePath, preconditions: Sequence[Precondition]
    ) -> ClaimedRepository | None:
        """Create a repository for a container; ``None`` if it already has one, was deleted,
        or a precondition no longer holds. Raises ServerTrouble."""
        name = new_name(self._records.randomness)
        claim = await self._directories.make(name, container, self._processes.initialize)
        try:
            is_ours = await self._records.try_commit(
                [entries.put_repository(container, name)],
                [*preconditions, Present(container), NoEntry(entries.repository_of(container))],
            )
        except BaseException:
            claim.close()
            raise
        if is_ours:
            return ClaimedRepository(name, container, claim)
        claim.close()
        await self._directories.remove(name)
        return None

    async def settle(self, claimed: ClaimedRepository) -> None:
        """Complete a push: choose an existing default branch, and make the push durable.

        Raises ServerTrouble.
        """
        chosen = await self._directories.default_branch(claimed.name)
        if not await self._branches(claimed, chosen):
            branches = await self._branches(claimed, "refs/heads")
            if branches:
                first = first_branch(branches)
                await self._git(claimed, "symbolic-ref", "HEAD", first)
        await self._directories.sync(claimed.name)
        await self._charge(claimed.name, claimed.container)

    async def _branches(self, claimed: ClaimedRepository, below: str) -> list[str]:
        said = await self._git(claimed, "for-each-ref", "--format=%(refname)", below)
        return said.splitlines()

    def schedule_tidying(self, claimed: ClaimedRepository) -> None:
        """Merge packs, prune, and update the charge of the storage, in the background."""
        if claimed.name in self._to_tidy:
            return  # the waiting task will include this push
        self._to_tidy.add(claimed.name)
        task = asyncio.create_task(self._tidy(claimed.name, claimed.container))
        self._tidying.add(task)
        task.add_done_callback(self._tidying.discard)

    async def _tidy(self, name: entries.RepositoryName, container: ResourcePath) -> None:
        async with self._one_at_a_time:
            self._to_tidy.discard(name)
            try:
                if await self._pack(name, container):
                    await self._prune(name, container)
            except StorageError:
                if await self._directories.exists(name):
                    logger.exception("A repository could not be tidied up")
            except ServerTrouble:
                logger.exception("A repository could not be tidied up; the next push tries again")
            finally:
                with contextlib.suppress(StorageError):  # the next push, or start, charges
                    await self._charge(name, container)

    async def _pack(self, name: entries.RepositoryName, container: ResourcePath) -> bool:
        """Merge packs if there are many. Returns whether much is unreachable or duplicated."""
        claimed = await self.join(name, container)
        with claimed.claim:
            await self._git(claimed, "gc", "--auto", "--quiet", time_limit_s=_TIDYING_LIMIT_S)
            # Each push adds one pack, even if it replaces everything that was there before.
            reached = await self._git(
                claimed,
                *("rev-list", "--objects", "--all", "--disk-usage"),
                time_limit_s=_TIDYING_LIMIT_S,
            )
            stored_bytes = await self._directories.object_bytes(name)
        reached_bytes = int(reached)
        return stored_bytes - reached_bytes > max(_MIN_WASTE_BYTES, reached_bytes // 4)

    async def _prune(self, name: entries.RepositoryName, container: ResourcePath) -> None:
        """Remove unreachable objects while nobody pushes, since a push may refer to them."""
        claim = await self._directories.claim_exclusively(name)
        if claim is None:
            return  # a push is in progress, and will schedule this again
        claimed = ClaimedRepository(name, container, claim)
        with claim:
            await self._git(claimed, "gc", "--prune=now", "--quiet", time_limit_s=_TIDYING_LIMIT_S)

    async def _charge(self, name: entries.RepositoryName, container: ResourcePath) -> None:
        await charge_repository(self._store, self._directories, name, container)

    # --- git ----------------------------------------------------------------------------------

    async def _git(
        self, claimed: ClaimedRepository, *arguments: str, time_limit_s: float = 60
    ) -> str:
        place = self._directories.path(claimed.name)
        return await self._processes.run_in(
            place, *arguments, holding=claimed.claim, time_limit_s=time_limit_s
        )


def new_name(randomness: Randomness) -> entries.RepositoryName:
    """A name that no repository has ever had."""
    return entries.RepositoryName(randomness.token_hex(_NAME_BYTES))


def first_branch(branches: Sequence[str]) -> str:
    """The default branch, among those that were pushed."""
    return next((each for each in _FIRST_BRANCHES if each in branches), min(branches))


async def sweep_repositories(
    store: Store, directories: Directories, clock: Clock, *, measured: set[entries.RepositoryName]
) -> None:
    """Remove repositories without a container, and charge storages for the others.

    Repositories in ``measured`` have been charged for already; the others are added to it.
    """
    seen: dict[entries.RepositoryName, ResourcePath] = {}

    async def is_kept(name: entries.RepositoryName, container: ResourcePath) -> bool:
        if storage_root(container) is None:
            return False
        found = await container_with(store, name, container, clock)
        seen[name] = found or container
        if found is None:
            measured.discard(name)
        return found is not None

    try:
        await directories.sweep(is_kept)
    finally:
        for name, container in seen.items():
            if name not in measured:
                await charge_repository(store, directories, name, container)
                if await directories.exists(name):
                    measured.add(name)


async def container_with(
    store: Store, name: entries.RepositoryName, was_of: ResourcePath, clock: Clock
) -> ResourcePath | None:
    """The container whose repository this is: the one in ``was_of``, or another one, since pods can
    be renamed."""
    entry = await store.read_entry(entries.repository_of(was_of), now_ms=clock.now_ms())
    if entry is not None and entries.repository_name_in(entry) == name:
        return was_of
    async for each in entries.repository_entries(store, now_ms=clock.now_ms()):
        if entries.repository_name_in(each) == name:
            return entries.container_of(each)
    return None


async def charge_repository(
    store: Store, directories: Directories, name: entries.RepositoryName, container: ResourcePath
) -> None:
    """Charge a storage for the current size of a repository, 0 if it is missing."""
    storage = storage_root(container)
    if storage is not None:
        size_bytes = await directories.size_bytes(name)
        await store.put_charge(f"repository/{name}", root=storage, size_bytes=size_bytes)


async def follow_name(settings: Settings, records: RecordStore, root: ResourcePath) -> None:
    """After a pod was renamed: charge it for its repositories, and note of which containers they
    are now."""
    with closing(directories_of(RootLayout(settings.root))) as directories:
        async for each in entries.repository_entries(
            records.store, root=root, now_ms=records.now_ms()
        ):
            name, container = entries.repository_name_in(each), entries.container_of(each)
            if await directories.exists(name):
                await directories.describe(name, container)
            await charge_repository(records.store, directories, name, container)
