"""Containers as git repositories, over git's smart HTTP protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.config import value_types
from podstead.config.table import setting
from podstead.features import Compacted, DataFolder, Feature, WorkerFeature

if TYPE_CHECKING:  # a server without git loads none of this
    from podstead.app.operator.backup import RunningBackup
    from podstead.app.operator.checking.findings import CheckContext, Finding
    from podstead.app.operator.data_root import OnStep
    from podstead.app.services import Services
    from podstead.config import Settings
    from podstead.core.identifiers import ResourcePath
    from podstead.features import RepositoryArchives
    from podstead.resources.planning import ContainerHook
    from podstead.storage.layout import RootLayout
    from podstead.storage.protocol import Store
    from podstead.storage.record_store import RecordStore


@dataclass(frozen=True, kw_only=True)
class GitSettings:
    """The settings of this part."""

    git: bool = setting(
        False,
        value_types.SWITCH,
        "Git",
        "Whether every container is also a git repository that clients can clone, fetch from and "
        "push to over HTTP. Requires git to be installed.",
        common=True,
    )
    git_processes: int = setting(
        8,
        value_types.integer(1, 1000),
        "Git",
        "The maximum number of git requests that each worker handles at once; a single address may "
        "use half of them. A request that has to wait longer than ten seconds gets 503.",
        unit="processes",
        reason="Each runs a process that may occupy one core and use several hundred MiB of "
        "memory.",
    )


class RepositoryFolder(DataFolder):
    """The folder with the repositories."""

    name = "git"
    contents = "git repositories"
    item = "repository"
    items = "repositories"
    entry_kind = "repository"
    advice = (
        "Git repositories are in a folder that all servers with --git have: mount it there, or "
        "start this one without --git."
    )

    def is_used(self, settings: Settings) -> bool:
        return settings.of(GitSettings).git

    async def back_up(self, backup: RunningBackup) -> int:
        from podstead.features.git.data_root import back_up_repositories

        return await back_up_repositories(backup)

    def check(self, check: CheckContext) -> AsyncIterator[Finding]:
        from podstead.features.git.data_root import check_repositories

        return check_repositories(check)

    async def compact(self, layout: RootLayout, store: Store, on_step: OnStep) -> Compacted:
        from podstead.features.git.data_root import pack_repositories

        return await pack_repositories(layout, store, on_step)

    def opened_archives(
        self, settings: Settings, records: RecordStore
    ) -> AbstractContextManager[RepositoryArchives]:
        from podstead.features.git.bundles import opened_bundles

        return opened_bundles(settings, records)

    async def follow_name(
        self, settings: Settings, records: RecordStore, root: ResourcePath
    ) -> None:
        from podstead.features.git.repositories import follow_name

        await follow_name(settings, records, root)


class GitFeature(Feature):
    """The server's git."""

    settings = GitSettings
    folder = RepositoryFolder()

    def check_machine(self, settings: Settings) -> None:
        if settings.of(GitSettings).git:
            from podstead.features.git.processes import find_git

            find_git()

    def summary(self, settings: Settings) -> Mapping[str, str]:
        is_on = settings.of(GitSettings).git
        return {"git": "each container is a git repository"} if is_on else {}

    def container_hooks(self, records: RecordStore) -> Sequence[ContainerHook]:
        from podstead.features.git.entries import RepositoryRecords

        return (RepositoryRecords(records),)

    def modules(self, settings: Settings) -> Sequence[str]:
        worker = ("podstead.features.git.worker",) if _has_repositories(settings) else ()
        return ("podstead.features.git.entries", *worker)

    def in_worker(self, services: Services) -> WorkerFeature | None:
        if not _has_repositories(services.settings):
            return None
        from podstead.features.git.worker import GitInWorker, RepositorySweep

        is_on = services.settings.of(GitSettings).git
        return GitInWorker(services) if is_on else RepositorySweep(services)


def _has_repositories(settings: Settings) -> bool:
    """Whether there may be some, also if git is off by now: those of deleted containers are to be
    removed."""
    return settings.of(GitSettings).git or (settings.root / RepositoryFolder.name).exists()


FEATURE = GitFeature()
