"""Bundles the git repositories of whole pods, takes them from an archive, and keeps what follows
from a pod's name in step with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass

from podstead.app.adapters.git_processes import installed_git
from podstead.config import Settings
from podstead.core.errors import RequestRefused
from podstead.core.identifiers import ResourcePath
from podstead.git.bundles import RepositoryBundles, TakenRepository
from podstead.git.directories import Directories
from podstead.git.repositories import charge_repository
from podstead.resources.importing.pod_archive import ArchivedRepository
from podstead.resources.importing.values import NotTaken
from podstead.storage.layout import RootLayout
from podstead.storage.record_store import RecordStore
from podstead.storage.repositories import container_of, repository_entries, repository_name_in

_NO_GIT = "git is not installed, so the repository was not imported"


@asynccontextmanager
async def opened_bundles(
    settings: Settings, records: RecordStore
) -> AsyncIterator[RepositoryBundles | None]:
    """``None`` if there is no git on this machine."""
    processes = installed_git()
    if processes is None:
        yield None
        return
    layout = RootLayout(settings.root)
    with closing(Directories(layout.git, removal_lock=layout.removal_lock)) as directories:
        yield RepositoryBundles(
            store=records.store,
            directories=directories,
            processes=processes,
            clock=records.clock,
            randomness=records.randomness,
        )


@dataclass(frozen=True, slots=True)
class TakenRepositories:
    """The repositories of an archive, whose records are to be committed with the pod."""

    repositories: Sequence[TakenRepository]
    not_taken: Sequence[NotTaken]


@asynccontextmanager
async def taken_repositories(
    settings: Settings, records: RecordStore, archived: Iterable[ArchivedRepository]
) -> AsyncIterator[TakenRepositories]:
    """The repositories, which are removed again unless the caller has committed their records."""
    taken: list[TakenRepository] = []
    not_taken: list[NotTaken] = []
    async with opened_bundles(settings, records) as bundles:
        try:
            for each in archived:
                if bundles is None:
                    not_taken.append(NotTaken(each.container, _NO_GIT))
                    continue
                try:
                    taken.append(await bundles.take(each.container, each.open))
                except RequestRefused as error:
                    reason = f"Its git repository was not imported: {error}"
                    not_taken.append(NotTaken(each.container, reason))
            yield TakenRepositories(taken, not_taken)
        except BaseException:
            for each_taken in taken:
                assert bundles is not None  # noqa: S101 - it has taken them
                await bundles.remove(each_taken)
            raise
        for each_taken in taken:
            assert bundles is not None  # noqa: S101 - it has taken them
            await bundles.charge(each_taken)
            each_taken.claim.release()


async def follow_name(settings: Settings, records: RecordStore, root: ResourcePath) -> None:
    """After a pod was renamed: charge it for its repositories, and note of which containers they
    are now."""
    layout = RootLayout(settings.root)
    with closing(Directories(layout.git, removal_lock=layout.removal_lock)) as directories:
        async for each in repository_entries(records.store, root=root, now_ms=records.now_ms()):
            name, container = repository_name_in(each), container_of(each)
            if await directories.exists(name):
                await directories.describe(name, container)
            await charge_repository(records.store, directories, name, container)
