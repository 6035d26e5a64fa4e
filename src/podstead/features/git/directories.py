"""The directories of repositories, their locks, and the removal of unused ones.

``<name>.git`` is a repository, whose ``description`` contains the path of its container; ``new-…``
is being created, ``gone-…`` is being removed. ``hooks`` contains the only hook that git runs, which
asks the server whether a push may change references. Creating or changing a repository requires a
claim, a shared file lock that the git processes inherit and that ends with the last of them. The
holder of an exclusive claim therefore knows that unfinished files are left over from a crash, and
that a repository without a container will never get one.
"""

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import FileIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, TypeVar

from podstead.core.errors import DiskFull, Overloaded, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.features.git.entries import RepositoryName
from podstead.storage.disk_space import is_full
from podstead.storage.files import replace_private, run_to_end, try_lock
from podstead.storage.layout import RootLayout
from podstead.storage.removal_lock import removals_allowed

T = TypeVar("T")

FOLDER: Final = "git"
"""The name of the folder with the repositories in the data root."""

_CLAIM: Final = "podstead.claim"
_DESCRIPTION: Final = "description"
_PRIVATE: Final = 0o700
_THREADS: Final = 4
_REPOSITORY: Final = re.compile(r"([0-9a-f]{32})\.git")
_LEFT_OVER: Final = (
    "*.lock",
    f".{_DESCRIPTION}.*.new",
    "gc.pid",
    "refs/**/*.lock",
    "objects/*.lock",
    "objects/tmp_*",
    "objects/info/**/*.lock",
    "objects/pack/tmp_*",
    "objects/pack/.tmp-*",
    "objects/pack/*.lock",
    "objects/pack/*.keep",
)
"""Temporary files of git, which exist only during a change."""
_INDEXES: Final = frozenset({".idx", ".rev", ".bitmap", ".mtimes"})
_CLAIM_WAIT_S: Final = 10
_CLAIM_NAP_S: Final = 0.02
_NAMED_IN: Final = (".", "objects", "objects/info", "objects/pack", "refs")

QUESTION_VARIABLE: Final = "PODSTEAD_QUESTION"
ANSWER_VARIABLE: Final = "PODSTEAD_ANSWER"
"""The environment variables that name the pipes of the hook."""
_HOOK: Final = f"""\
#!/bin/sh
# Written by Podstead at each start: asks the server whether this push may change references.
if echo >"${QUESTION_VARIABLE}" && read -r answer <"${ANSWER_VARIABLE}"; then
    [ "$answer" = yes ] && exit 0
fi
echo "The server no longer permits this push." >&2
exit 1
"""

IsKept = Callable[[RepositoryName, ResourcePath], Awaitable[bool]]
"""Whether a repository belongs to that container."""


DirectoryClaim = FileIO
"""An open file with a lock on a repository: to close it releases the claim, which processes that
inherited it still hold."""


def directories_of(layout: RootLayout) -> "Directories":
    """The repositories of a data root."""
    return Directories(layout.root / FOLDER, removal_lock=layout.removal_lock)


class Directories:
    """The repositories below one directory, which is created with the first of them."""

    def __init__(self, place: Path, *, removal_lock: Path | None = None) -> None:
        """While a backup holds the lock on ``removal_lock``, no sweep removes a repository."""
        self._place = place.absolute()
        self._removal_lock = removal_lock
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="podstead-git")

    def close(self) -> None:
        """Release the threads, which finish what they are doing."""
        self._executor.shutdown(wait=False)

    def path(self, name: RepositoryName) -> Path:
        """The directory of a repository."""
        return self._place / f"{name}.git"

    @property
    def hooks(self) -> Path:
        """The directory of the hook that pushes run."""
        return self._place / "hooks"

    async def write_hook(self) -> None:
        """Write the hook that asks whether a push may change references.

        Raises StorageError, also if the file system does not allow programs to run: git would then
        change references without asking.
        """
        await self.run(self._write_hook)

    def _write_hook(self) -> None:
        self._place.mkdir(mode=_PRIVATE, exist_ok=True)
        self.hooks.mkdir(mode=_PRIVATE, exist_ok=True)
        path = self.hooks / "pre-receive"
        replace_private(path, _HOOK.encode("ascii"), mode=_PRIVATE)
        if not os.access(path, os.X_OK):
            raise StorageError(
                f"{path} cannot be run. --git requires a data root on a file system that allows "
                "programs to run (not mounted with noexec)"
            )

    # --- making and changing ------------------------------------------------------------------

    async def make(
        self,
        name: RepositoryName,
        container: ResourcePath,
        fill: Callable[[Path], Awaitable[object]],
    ) -> DirectoryClaim:
        """Create the repository of a container; ``fill`` initializes its directory.

        Atomic and durable. Raises StorageError, also if the name is taken, and what ``fill``
        raises.
        """
        draft, claim = self._new_draft()
        try:
            await fill(draft)
            await self.run(self._finish, draft, name, container)
        except BaseException:
            claim.close()
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return claim

    def _new_draft(self) -> tuple[Path, DirectoryClaim]:
        """A directory that no sweep removes while it is claimed."""
        with _trouble():
            self._place.mkdir(mode=_PRIVATE, exist_ok=True)
            draft = Path(mkdtemp(prefix="new-", dir=self._place))
            claim = _open_claim(draft, mode="xb")
            fcntl.flock(claim.fileno(), fcntl.LOCK_SH)
        return draft, claim

    @contextlib.asynccontextmanager
    async def draft(self) -> AsyncIterator[Path]:
        """A temporary directory."""
        draft, claim = self._new_draft()
        try:
            yield draft
        finally:
            claim.close()
            shutil.rmtree(draft, ignore_errors=True)

    async def write(self, path: Path, content: AsyncIterator[bytes]) -> None:
        """Write a file in a draft. Raises StorageError, and what ``content`` raises."""
        with _trouble(), path.open("xb") as file:
            async for piece in content:
                file.write(piece)

    def _finish(self, draft: Path, name: RepositoryName, container: ResourcePath) -> None:
        (draft / _DESCRIPTION).write_text(f"{container}\n", encoding="ascii")
        for directory, _, names in os.walk(draft):
            for each in (*names, "."):
                _sync(Path(directory, each))
        draft.rename(self.path(name))
        _sync(self._place)

    async def claim(self, name: RepositoryName) -> DirectoryClaim:
        """Acquire a shared claim on a repository; the first one removes the leftovers of a crash.

        Raises StorageError, also if the repository is missing, and Overloaded if it is claimed
        exclusively for too long.
        """
        with _trouble():
            claim = _open_claim(self.path(name))
        try:
            async with asyncio.timeout(_CLAIM_WAIT_S):
                # Other processes lock it, too, and there is no notification when they are done.
                while not await self.run(_join, claim, self.path(name)):  # noqa: ASYNC110
                    await asyncio.sleep(_CLAIM_NAP_S)
        except TimeoutError:
            claim.close()
            raise Overloaded("The repository is being packed; try again in a moment") from None
        except BaseException:
            claim.close()
            raise
        return claim

    async def claim_exclusively(self, name: RepositoryName) -> DirectoryClaim | None:
        """Acquire an exclusive claim; ``None`` if the repository is claimed or missing."""
        with _trouble():
            return _claim_exclusively(self.path(name))

    async def describe(self, name: RepositoryName, container: ResourcePath) -> None:
        """Record the container of a repository, atomically."""
        await self.run(self._describe, self.path(name), container)

    @staticmethod
    def _describe(repository: Path, container: ResourcePath) -> None:
        replace_private(repository / _DESCRIPTION, f"{container}\n".encode("ascii"))

    async def sync(self, name: RepositoryName) -> None:
        """Sync the names in a repository to disk; git has synced the content."""
        await self.run(_sync_names, self.path(name))

    # --- looking ------------------------------------------------------------------------------

    async def exists(self, name: RepositoryName) -> bool:
        return await self.run(self.path(name).exists)

    async def size_bytes(self, name: RepositoryName) -> int:
        """The size of all files in a repository; 0 if it is missing."""
        return await self.run(_size_bytes, self.path(name))

    async def object_bytes(self, name: RepositoryName) -> int:
        """The size of the objects in a repository, without indexes."""
        return await self.run(_object_bytes, self.path(name))

    async def default_branch(self, name: RepositoryName) -> str:
        """The full name of the default branch, which need not exist."""
        head = await self.run((self.path(name) / "HEAD").read_text)
        return head.strip().removeprefix("ref: ")

    # --- removing -----------------------------------------------------------------------------

    async def remove(self, name: RepositoryName) -> None:
        """Remove a repository that has no container."""
        await self.run(self._remove, self.path(name))

    async def sweep(self, is_kept: IsKept) -> None:
        """Remove every repository that has no container and is not claimed.

        ``is_kept`` is called while the repository is claimed exclusively. Continues after failures,
        and raises the last StorageError at the end.
        """
        trouble: StorageError | None = None
        for path in await self.run(self._all):
            try:
                await self._sweep(path, is_kept)
            except StorageError as error:
                trouble = error
        if trouble is not None:
            raise trouble

    async def _sweep(self, path: Path, is_kept: IsKept) -> None:
        with _trouble():
            claim = _claim_exclusively(path)
        if claim is None:
            return
        with claim:
            if not await self._is_kept(path, is_kept):
                await self._remove_unless_held(path)

    async def _remove_unless_held(self, path: Path) -> None:
        if self._removal_lock is None:
            await self.run(self._remove, path)
            return
        async with removals_allowed(self._removal_lock) as is_allowed:
            if is_allowed:
                await self.run(self._remove, path)

    async def _is_kept(self, path: Path, is_kept: IsKept) -> bool:
        named = _REPOSITORY.fullmatch(path.name)
        if named is None:
            return False
        description = await self.run((path / _DESCRIPTION).read_text)
        return await is_kept(RepositoryName(named[1]), ResourcePath(description.strip()))

    async def run(self, call: Callable[..., T], *arguments: object) -> T:
        """Run a call in a thread, to its end."""
        with _trouble():
            return await run_to_end(self._executor, partial(call, *arguments))

    def _all(self) -> list[Path]:
        try:
            found = sorted(self._place.iterdir())
        except FileNotFoundError:
            return []
        return [
            path
            for path in found
            if path.name.startswith(("new-", "gone-")) or _REPOSITORY.fullmatch(path.name)
        ]

    def _remove(self, path: Path) -> None:
        gone = path
        if _REPOSITORY.fullmatch(path.name):
            gone = Path(mkdtemp(prefix="gone-", dir=self._place))
            path.rename(gone)  # replaces the empty directory
        # The lock file is removed last, so that an interrupted removal can be continued.
        for each in gone.iterdir():
            if each.name != _CLAIM:
                shutil.rmtree(each) if each.is_dir() else each.unlink()
        shutil.rmtree(gone)


@contextlib.contextmanager
def _trouble() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise DiskFull from error
        raise StorageError("A repository could not be read or written") from error


def _open_claim(repository: Path, *, mode: str = "rb") -> DirectoryClaim:
    return FileIO(repository / _CLAIM, mode)


def _join(claim: DirectoryClaim, repository: Path) -> bool:
    """Acquire a shared lock; False if the repository is locked exclusively."""
    if try_lock(claim.fileno()):
        _clear_left_over(repository)
    return try_lock(claim.fileno(), shared=True)


def _claim_exclusively(repository: Path) -> DirectoryClaim | None:
    """An exclusive claim; ``None`` if the repository is claimed or missing."""
    try:
        claim = _open_claim(repository)
    except FileNotFoundError:
        return None
    if try_lock(claim.fileno()):
        return claim
    claim.close()
    return None


def _clear_left_over(repository: Path) -> None:
    for pattern in _LEFT_OVER:
        for path in repository.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _sync_names(repository: Path) -> None:
    for name in _NAMED_IN:
        _sync(repository / name)
    for directory in _directories_in(repository / "refs"):
        _sync(directory)


def _directories_in(place: Path) -> Iterator[Path]:
    for directory, names, _ in os.walk(place):
        yield from (Path(directory, name) for name in names)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size_bytes(repository: Path, ignored: Container[str] = ()) -> int:
    total_bytes = 0
    for directory, _, names in os.walk(repository):
        for name in names:
            path = Path(directory, name)
            if path.suffix not in ignored:
                with contextlib.suppress(FileNotFoundError):
                    total_bytes += path.stat().st_size
    return total_bytes


def _object_bytes(repository: Path) -> int:
    packs = _size_bytes(repository / "objects/pack", _INDEXES)
    loose = sum(_size_bytes(each) for each in (repository / "objects").glob("[0-9a-f][0-9a-f]"))
    return packs + loose
