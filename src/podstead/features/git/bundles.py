"""Exports and imports git repositories as bundle files (git-bundle).

A bundle is one file with all references and objects, which ``git clone`` reads. It is written below
the directory of the repositories, as a file without a name: it disappears when nobody has it open.
Bundles from elsewhere are fetched, so git checks every object as in a push, and nothing else is
taken over: no configuration, no hooks, no alternates.
"""

import hashlib
import os
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from podstead.config import Settings
from podstead.core.errors import RequestRefused, ServerTrouble, StorageError, Unprocessable
from podstead.core.identifiers import ResourcePath
from podstead.features import TakenRepositories
from podstead.features.git import configuration, entries, repositories
from podstead.features.git.directories import Directories, directories_of
from podstead.features.git.processes import GitProcesses, installed_git
from podstead.resources.exporting.contents import Bundled, RepositoryBundle
from podstead.resources.importing.pod_archive import ArchivedRepository
from podstead.resources.importing.values import NotTaken
from podstead.storage import layout, open_body, record_store
from podstead.storage.records import Entry

_PIECE_BYTES: Final = 256 * 1024
_LIMIT_S: Final = 3600
_FILE: Final = "bundle"
_NO_GIT: Final = "git is not installed, so the repository was not imported"


_HEAD: Final = "HEAD"
_BRANCHES: Final = "refs/heads/"


class BundleFile(open_body.StreamedBody):
    """A bundle in a file that has no name (:class:`podstead.storage.open_body.OpenBody`)."""

    def __init__(self, path: Path) -> None:
        """Removes the name. Raises OSError."""
        self._descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._descriptor)
        path.unlink()
        self.size_bytes = os.fstat(self._descriptor).st_size
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            self.sha256 = hashlib.file_digest(file, "sha256").hexdigest()

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes of the bundle from ``start`` up to ``end``."""
        end = self.size_bytes if end is None else min(end, self.size_bytes)
        while start < end:
            try:
                piece = os.pread(self._descriptor, min(_PIECE_BYTES, end - start), start)
            except OSError as error:
                raise StorageError("A bundle could not be read") from error
            start += len(piece)
            yield piece


@dataclass(frozen=True, slots=True)
class RepositoryBundles:
    """Makes bundles of the repositories of containers, and repositories of bundles."""

    records: record_store.RecordStore
    directories: Directories
    processes: GitProcesses | None
    """``None`` if no repository can be bundled."""

    async def bundle_all(self, root: ResourcePath) -> Bundled:
        """The repositories in a pod. Raises ServerTrouble."""
        left_out: list[ResourcePath] = []
        bundles: dict[ResourcePath, RepositoryBundle] = {}
        now_ms = self.records.now_ms()
        async for each in entries.repository_entries(self.records.store, root=root, now_ms=now_ms):
            container = entries.container_of(each)
            if self.processes is None:
                left_out.append(container)
            elif (bundle := await self._bundle(each)) is not None:
                bundles[container] = bundle
        return Bundled(bundles, left_out)

    async def _bundle(self, entry: Entry) -> BundleFile | None:
        """One repository; ``None`` if it has no branch and no tag."""
        with await self.directories.claim(entries.repository_name_in(entry)):
            repository = self.directories.path(entries.repository_name_in(entry))
            if not await self._git(repository, "for-each-ref", "--count=1"):
                return None
            async with self.directories.draft() as draft:
                file = draft / _FILE
                await self._git(repository, "bundle", "create", "--quiet", str(file), "--all")
                return await self.directories.run(BundleFile, file)

    async def _take(
        self, container: ResourcePath, content: Callable[[], AsyncIterator[bytes]]
    ) -> repositories.ClaimedRepository:
        """A new repository with the content of a bundle. It is removed by the next sweep unless its
        record is committed before the claim is released.

        Raises Unprocessable if git cannot read the bundle, or finds something wrong in it;
        ServerTrouble, and what ``content`` raises.
        """
        processes = self.processes
        assert processes is not None  # noqa: S101 - the caller has looked

        async def fill(directory: Path) -> None:
            file = directory / _FILE
            await self.directories.write(file, content())
            await processes.initialize(directory)
            try:
                await self._fetch(directory, file)
            except StorageError:
                raise
            except ServerTrouble as error:
                raise Unprocessable("It is not a bundle of a valid git repository") from error
            file.unlink()

        name = repositories.new_name(self.records.randomness)
        claim = await self.directories.make(name, container, fill)
        return repositories.ClaimedRepository(name, container, claim)

    async def _fetch(self, repository: Path, bundle: Path) -> None:
        await self._git(
            repository,
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"),
            *(str(bundle), "+refs/*:refs/*"),
        )
        listed = _references(await self._git(repository, "bundle", "list-heads", str(bundle)))
        head = listed.pop(_HEAD, None)
        said = await self._git(repository, "for-each-ref", "--format=%(objectname) %(refname)")
        references = _references(said)
        if not references or references != listed:  # git skips those with odd names
            raise Unprocessable("It is not a bundle of a valid git repository")
        at_head = [
            name
            for name, value in references.items()
            if value == head and name.startswith(_BRANCHES)
        ]
        branches = at_head or [name for name in references if name.startswith(_BRANCHES)]
        if branches:
            await self._git(repository, "symbolic-ref", _HEAD, repositories.first_branch(branches))

    @asynccontextmanager
    async def taken(
        self, archived: Iterable[ArchivedRepository]
    ) -> AsyncIterator[TakenRepositories]:
        """The repositories, which are removed again unless the caller has committed their
        records."""
        taken: list[repositories.ClaimedRepository] = []
        not_taken: list[NotTaken] = []
        try:
            for each in archived:
                if self.processes is None:
                    not_taken.append(NotTaken(each.container, _NO_GIT))
                    continue
                try:
                    taken.append(await self._take(each.container, each.open))
                except RequestRefused as error:
                    reason = f"Its git repository was not imported: {error}"
                    not_taken.append(NotTaken(each.container, reason))
            yield TakenRepositories(
                [entries.put_repository(each.container, each.name) for each in taken], not_taken
            )
        except BaseException:
            for claimed in taken:
                claimed.claim.close()
                await self.directories.remove(claimed.name)
            raise
        store = self.records.store
        for claimed in taken:
            await repositories.charge_repository(
                store, self.directories, claimed.name, claimed.container
            )
            claimed.claim.close()

    async def _git(self, repository: Path, *arguments: str) -> str:
        assert self.processes is not None  # noqa: S101 - the callers have looked
        defects = {f"fetch.fsck.{each}": "ignore" for each in configuration.IGNORED_DEFECTS}
        return await self.processes.run_in(
            repository, *arguments, changes=defects, time_limit_s=_LIMIT_S
        )


def _references(listed: str) -> dict[str, str]:
    """The objects by their references, from lines with both."""
    pairs = (line.split(" ", 1) for line in listed.splitlines())
    return {name: value for value, name in pairs}


@contextmanager
def opened_bundles(
    settings: Settings, records: record_store.RecordStore
) -> Iterator[RepositoryBundles]:
    """For a command, with the git of this machine if there is one."""
    with closing(directories_of(layout.RootLayout(settings.root))) as directories:
        yield RepositoryBundles(records, directories, installed_git())
