"""Exports and imports git repositories as bundle files (git-bundle).

A bundle is one file with all references and objects, which ``git clone`` reads. It is written below
the directory of the repositories, as a file without a name: it disappears when nobody has it open.
Bundles from elsewhere are fetched, so git checks every object as in a push, and nothing else is
taken over: no configuration, no hooks, no alternates.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from podstead.core.clock import Clock, Randomness
from podstead.core.errors import ServerTrouble, StorageError, Unprocessable
from podstead.core.identifiers import ResourcePath
from podstead.git.configuration import IGNORED_DEFECTS, environment
from podstead.git.directories import Directories, DirectoryClaim
from podstead.git.processes import Processes
from podstead.git.repositories import charge_repository, first_branch, new_name
from podstead.storage.open_body import StreamedBody
from podstead.storage.protocol import Store
from podstead.storage.records import Record
from podstead.storage.repositories import (
    RepositoryName,
    put_repository,
    repository_name_in,
    repository_of,
)

_PIECE_BYTES: Final = 256 * 1024
_LIMIT_S: Final = 3600
_FILE: Final = "bundle"


_HEAD: Final = "HEAD"
_BRANCHES: Final = "refs/heads/"


class BundleFile(StreamedBody):
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


class RepositoryBundles:
    """Makes bundles of the repositories of containers, and repositories of bundles."""

    def __init__(
        self,
        *,
        store: Store,
        directories: Directories,
        processes: Processes,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._store = store
        self._directories = directories
        self._processes = processes
        self._clock = clock
        self._randomness = randomness

    async def bundle(self, container: ResourcePath) -> BundleFile | None:
        """The repository of a container; ``None`` if it has no branch and no tag. Raises
        ServerTrouble."""
        now_ms = self._clock.now_ms()
        entry = await self._store.read_entry(repository_of(container), now_ms=now_ms)
        if entry is None:
            return None
        claim = await self._directories.claim(repository_name_in(entry))
        try:
            repository = self._directories.path(repository_name_in(entry))
            if not await self._git(repository, "for-each-ref", "--count=1"):
                return None
            async with self._directories.draft() as draft:
                file = draft / _FILE
                await self._git(repository, "bundle", "create", "--quiet", str(file), "--all")
                return await self._directories.run(BundleFile, file)
        finally:
            claim.release()

    async def take(
        self, container: ResourcePath, content: Callable[[], AsyncIterator[bytes]]
    ) -> TakenRepository:
        """A new repository with the content of a bundle. It is removed by the next sweep unless its
        record is committed before the claim is released.

        Raises Unprocessable if git cannot read the bundle, or finds something wrong in it;
        ServerTrouble, and what ``content`` raises.
        """

        async def fill(directory: Path) -> None:
            file = directory / _FILE
            await self._directories.write(file, content())
            await self._git(
                directory, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", "."
            )
            try:
                await self._fetch(directory, file)
            except StorageError:
                raise
            except ServerTrouble as error:
                raise Unprocessable("It is not a bundle of a valid git repository") from error
            file.unlink()

        name = new_name(self._randomness)
        claim = await self._directories.make(name, container, fill)
        return TakenRepository(name, container, claim)

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
            await self._git(repository, "symbolic-ref", _HEAD, first_branch(branches))

    async def charge(self, taken: TakenRepository) -> None:
        """Charge the storage for a repository whose record was committed."""
        await charge_repository(self._store, self._directories, taken.name, taken.container)

    async def remove(self, taken: TakenRepository) -> None:
        """Remove a repository whose record was not committed."""
        taken.claim.release()
        await self._directories.remove(taken.name)

    async def _git(self, repository: Path, *arguments: str) -> str:
        defects = {f"fetch.fsck.{each}": "ignore" for each in IGNORED_DEFECTS}
        place = str(repository)
        return await self._processes.run(
            *("-C", place) if arguments[0] == "init" else (f"--git-dir={place}",),
            *arguments,
            environment=environment(self._processes.search_path, repository=place, changes=defects),
            time_limit_s=_LIMIT_S,
        )


def _references(listed: str) -> dict[str, str]:
    """The objects by their references, from lines with both."""
    pairs = (line.split(" ", 1) for line in listed.splitlines())
    return {name: value for value, name in pairs}


@dataclass(frozen=True, slots=True)
class TakenRepository:
    """A repository from elsewhere, and the claim that protects it from removal."""

    name: RepositoryName
    container: ResourcePath
    claim: DirectoryClaim

    @property
    def record(self) -> Record:
        """The record that assigns it to its container."""
        return put_repository(self.container, self.name)
