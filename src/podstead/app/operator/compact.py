"""Gives space back: of the database, of bodies that nothing refers to, and of git repositories."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from podstead.app.adapters.body_stores import layout_of
from podstead.app.adapters.git_processes import GitProcesses, installed_git
from podstead.app.operator.backup import OnStep
from podstead.app.operator.data_root import opened_store
from podstead.config import Settings
from podstead.core.errors import RootInUse, ServerTrouble
from podstead.git.configuration import environment
from podstead.git.directories import Directories
from podstead.git.repositories import charge_repository
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Compaction, Store
from podstead.storage.repositories import KIND, RepositoryName, container_of, repository_name_in
from podstead.storage.root import lock_root

_GC_LIMIT_S: Final = 3600


@dataclass(frozen=True, slots=True)
class RootSizes:
    """The bytes that the parts of a data root take on disk."""

    database: int
    bodies: int
    repositories: int

    @property
    def total(self) -> int:
        return self.database + self.bodies + self.repositories


@dataclass(frozen=True, slots=True)
class CompactResult:
    """What was achieved. ``busy`` is the number of repositories that were in use."""

    before: RootSizes
    after: RootSizes
    database: Compaction
    packed: int
    busy: int


async def compact_root(settings: Settings, *, on_step: OnStep) -> CompactResult:
    """Give space back. Beside a running server, the database is not rewritten."""
    layout = layout_of(settings)
    with ExitStack() as stack:
        async with opened_store(settings) as store:
            is_alone = False
            with suppress(RootInUse):
                stack.enter_context(lock_root(layout.root))
                is_alone = True
            before = await _sizes(layout, store)
            packed, busy = await _pack_repositories(layout, store, on_step)
            on_step("Removing what is not in use, and compacting the database", 0, 0)
            outcome = await store.compact(now_ms=time.time_ns() // 1_000_000, is_alone=is_alone)
            after = await _sizes(layout, store)
        return CompactResult(before, after, outcome, packed, busy)


async def _pack_repositories(layout: RootLayout, store: Store, on_step: OnStep) -> tuple[int, int]:
    """Pack each repository that nobody is using; how many were packed, and how many in use."""
    with closing(store.inspect()) as records:
        entries = list(records.entries(KIND))
    processes = installed_git()
    if processes is None:
        return 0, 0
    packed = busy = 0
    with closing(Directories(layout.git)) as directories:
        for number, entry in enumerate(entries, 1):
            on_step("Packing repositories", number, len(entries))
            name = repository_name_in(entry)
            if not await directories.exists(name):
                continue
            if await _pack(directories, processes, name):
                packed += 1
            else:
                busy += 1
            container = container_of(entry)
            await charge_repository(store, directories, name, container)
    return packed, busy


async def _pack(directories: Directories, processes: GitProcesses, name: RepositoryName) -> bool:
    """False if somebody else uses the repository, or it is damaged."""
    claim = await directories.claim_exclusively(name)
    if claim is None:
        return False
    path = str(directories.path(name))
    try:
        await processes.run(
            f"--git-dir={path}",
            *("gc", "--prune=now", "--quiet"),
            environment=environment(processes.search_path, repository=path),
            holding=claim.descriptor,
            time_limit_s=_GC_LIMIT_S,
        )
    except ServerTrouble:
        return False
    finally:
        claim.release()
    return True


async def _sizes(layout: RootLayout, store: Store) -> RootSizes:
    database_bytes = await store.database_bytes()
    return RootSizes(database_bytes, _bytes_below(layout.blobs), _bytes_below(layout.git))


def _bytes_below(directory: Path) -> int:
    total = 0
    for place, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(place, name).stat().st_size
    return total
