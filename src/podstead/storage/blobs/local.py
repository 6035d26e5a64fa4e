"""Blobs as files in two levels of directories, by their random names.

``blobs/3f/a9/3fa9…-<SHA-256>`` is a blob that is complete and on disk, ``blobs/drafts/3fa9…`` one
that is still being received. Blobs of earlier versions have no hash in their names. Which blobs are
in use is recorded in the engine's rows, not here. ``blobs/uploads`` has the drafts of resumable
uploads (``uploads.py``).
"""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar
from weakref import WeakValueDictionary

from podstead.core.errors import StorageError
from podstead.storage.blobs import body_store, files, uploads
from podstead.storage.disk_space import DiskSpace
from podstead.storage.files import run_storing, run_to_end, sync_content, sync_directory
from podstead.storage.records import BlobId


class BlobDraft:
    """One large body that is being received; leaving its context removes it unless published.

    Calls must not overlap.
    """

    def __init__(
        self, name: str, file: files.ReceivedFile, *, path_of: Callable[[BlobId], Path]
    ) -> None:
        """``name`` is random. The file must be in an existing directory on the file system of the
        paths that ``path_of`` returns."""
        self._name = name
        self._file = file
        self._path_of = path_of

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    @property
    def blob(self) -> BlobId:
        """The ID of the blob with the content that was synced."""
        return files.named_by_content(self._name, self._file.sha256)

    async def __aenter__(self) -> Self:
        """Create the file. Raises StorageError, including DiskFull."""
        await self._file.create()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()
        self._file.path.unlink(missing_ok=True)

    async def append(self, piece: bytes) -> None:
        """Append bytes, of which up to CHUNK_BYTES are buffered. Raises StorageError."""
        await self._file.append(piece)

    async def sync(self) -> None:
        """Flush all bytes to disk. Raises StorageError."""
        await self._file.sync()

    async def publish(self) -> None:
        """Rename the file to its final name among the blobs, durably. Raises StorageError."""
        await self._file.run(self._publish)

    def _publish(self) -> None:
        """Rename the file, and sync every directory above it, any of which may be new."""
        blob_path = self._path_of(self.blob)
        directory = blob_path.parent
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file.path.rename(blob_path)
        for changed in (directory, directory.parent, directory.parent.parent):
            sync_directory(changed)


_THREADS = 8
_WITHOUT_LINKS = frozenset(
    {errno.EPERM, errno.EMLINK, errno.EXDEV, errno.ENOTSUP, errno.EOPNOTSUPP}
)
"""The errors of file systems without hard links, and of a file that has too many."""
_NAME_BYTES = 16

MAX_OPEN_PATHS: Final = 512
"""How many files the HTTP server is told to open itself at the same time, because each takes two
descriptors, one of them for some seconds."""

_Result = TypeVar("_Result")


class LocalBlobs:
    """The blobs below one directory, which must exist with ``drafts`` and ``uploads`` in it
    (:class:`~podstead.storage.blobs.body_store.BodyStore`).

    Whoever reads a blob holds a shared lock on its file (``flock``), and only who has the lock
    alone removes it. So no reader meets a file that is being removed, on whatever node.
    """

    removal_delay_s: Final = 0.0
    """Readers hold locks."""

    def __init__(self, directory: Path, space: DiskSpace, *, is_shared: bool = False) -> None:
        """``is_shared`` states that other machines may remove its files. Over a network, that would
        end reading without a lock."""
        self._directory = directory
        self._is_shared = is_shared
        self._space = space
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="podstead-blobs")
        self._verification = files.Verification(self._executor)
        self._open: WeakValueDictionary[BlobId, body_store.OpenFile] = WeakValueDictionary()
        self.uploads = uploads.DraftDirectory(directory / body_store.UPLOADS, self._executor, space)

    def close(self) -> None:
        """Release the threads, which finish what they are doing."""
        self._verification.close()
        self._executor.shutdown(wait=False)

    def draft(self, content_type: str | None = None) -> BlobDraft:  # noqa: ARG002
        """A draft of a new blob."""
        name = secrets.token_hex(_NAME_BYTES)
        file = files.ReceivedFile(
            self._directory / body_store.DRAFTS / name, self._executor, self._space
        )
        return BlobDraft(name, file, path_of=self.path_of)

    def draft_of_upload(
        self,
        upload: str,
        size_bytes: int,
        content_type: str | None = None,  # noqa: ARG002
    ) -> "UploadedDraft":
        """A draft of a new blob, which becomes another name of the file of an upload."""
        return UploadedDraft(
            secrets.token_hex(_NAME_BYTES),
            upload_path=self.uploads.body_of(upload),
            size_bytes=size_bytes,
            path_of=self.path_of,
            executor=self._executor,
        )

    async def open(self, blob: BlobId, size_bytes: int) -> body_store.FileBody:
        """Open a blob. Raises BodyMissing, and StorageError, also if it is damaged."""
        path = self.path_of(blob)
        try:
            file = self._open.get(blob) or _open_locked(path)
            status = os.fstat(file.descriptor)
        except (FileNotFoundError, BlockingIOError) as error:
            raise body_store.BodyMissing("A large body is missing") from error
        except OSError as error:
            raise StorageError("A large body could not be opened") from error
        if not stat.S_ISREG(status.st_mode) or status.st_size != size_bytes:
            raise StorageError("A large body is damaged")
        self._open[blob] = file
        await self._verification.check(blob, path, status)
        is_shown = not self._is_shared and len(self._open) <= MAX_OPEN_PATHS
        return body_store.FileBody(file, size_bytes, self._executor, path if is_shown else None)

    def name_copy(self, blob: BlobId) -> BlobId:
        """A new name for a copy of a blob."""
        return files.copy_of(blob, secrets.token_hex(_NAME_BYTES))

    async def copy(self, copies: Iterable[tuple[BlobId, BlobId]]) -> None:
        """Give each first blob a copy with the name of the second, durably. Raises BodyMissing,
        StorageError."""
        paths = [(self.path_of(blob), self.path_of(copy)) for blob, copy in copies]
        await run_storing(
            self._executor, partial(_copy_all, paths), failed="Large bodies could not be copied"
        )

    async def remove(self, blobs: Iterable[BlobId]) -> Sequence[BlobId]:
        """Remove those of the blobs that nobody is reading, and return those that are gone.

        Raises StorageError.
        """
        paths = {blob: self.path_of(blob) for blob in blobs}
        return await self._run(partial(_unlink_unread, paths))

    async def remove_drafts(self, *, before_ms: int) -> None:
        """Remove drafts that have not grown since ``before_ms``. Raises StorageError."""
        await self._run(partial(_unlink_older, self._directory / body_store.DRAFTS, before_ms))

    def path_of(self, blob: BlobId) -> Path:
        """The path of a blob, whether it exists or not."""
        return body_store.blob_path(self._directory, blob)

    async def _run(self, removal: Callable[[], _Result]) -> _Result:
        try:
            return await run_to_end(self._executor, removal)
        except OSError as error:
            raise StorageError("Large bodies could not be removed") from error


@dataclass(slots=True, eq=False)
class UploadedDraft:
    """The file of an upload of which everything has arrived
    (:class:`~podstead.storage.blobs.body_store.BodyDraft`); it remains."""

    name: str
    _: KW_ONLY
    upload_path: Path
    size_bytes: int
    path_of: Callable[[BlobId], Path]
    executor: ThreadPoolExecutor
    _digest: bytes = field(default=b"", init=False)

    @property
    def blob(self) -> BlobId:
        return files.named_by_content(self.name, self._digest)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """There is nothing to remove."""

    async def append(self, piece: bytes) -> None:  # noqa: ARG002
        raise StorageError("An upload that is complete does not grow")

    async def sync(self) -> None:
        """Hash the content, which is on disk. Raises StorageError."""
        digest = await files.hash_file(self.executor, self.upload_path)
        if digest is None:
            raise StorageError("An upload could not be read")
        self._digest = digest

    async def publish(self) -> None:
        """Give the file the name of the blob as well, durably. Raises StorageError."""
        paths = [(self.upload_path, self.path_of(self.blob))]
        await run_storing(
            self.executor, partial(_copy_all, paths), failed="An upload could not be stored"
        )


def _copy_all(paths: Iterable[tuple[Path, Path]]) -> None:
    changed: set[Path] = set()
    for original, copy in paths:
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            _link_or_copy(original, copy)
        except FileNotFoundError as error:
            raise body_store.BodyMissing("A large body is missing") from error
        changed.update((copy.parent, copy.parent.parent, copy.parent.parent.parent))
    for directory in changed:
        sync_directory(directory)


def _link_or_copy(original: Path, copy: Path) -> None:
    try:
        copy.hardlink_to(original)
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        _copy_content(original, copy)


def _copy_content(original: Path, copy: Path) -> None:
    shutil.copyfile(original, copy)  # in the kernel where that is possible
    copy.chmod(0o600)
    descriptor = os.open(copy, os.O_WRONLY)
    try:
        sync_content(descriptor)
    finally:
        os.close(descriptor)


def _open_locked(path: Path) -> body_store.OpenFile:
    """Open a file so that nobody removes it. Raises OSError: BlockingIOError if it is just being
    removed."""
    file = body_store.OpenFile(path)
    fcntl.flock(file.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return file


def _unlink_unread(paths: Mapping[BlobId, Path]) -> list[BlobId]:
    gone = []
    for blob, path in paths.items():
        with contextlib.suppress(BlockingIOError):  # somebody is reading it
            with contextlib.suppress(FileNotFoundError):
                _unlink_locked(path)
            gone.append(blob)
    return gone


def _unlink_locked(path: Path) -> None:
    # Some file systems of networks lock a file for one alone only if it is open for writing.
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(descriptor)


def _unlink_older(directory: Path, before_ms: int) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            # Another process may publish or remove it concurrently.
            with contextlib.suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mtime * 1000 < before_ms:
                    Path(entry.path).unlink()
