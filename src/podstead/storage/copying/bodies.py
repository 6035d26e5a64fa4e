"""Copying large bodies from one place to another, under the same names."""

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final, Protocol

from podstead.core.errors import DiskFull, StorageError
from podstead.storage.blobs.body_store import DRAFTS, blob_path
from podstead.storage.blobs.files import digest_of
from podstead.storage.copying.rows import CopyFailed
from podstead.storage.disk_space import is_full
from podstead.storage.files import make_private_directory, sync_content, sync_directory, write_all
from podstead.storage.inspection import LargeBody, OnProgress
from podstead.storage.records import BlobId

_PIECE_BYTES: Final = 1024 * 1024
_AT_ONCE: Final = 8
"""How many bodies are copied at the same time; more only help where each request takes long."""


ListBodies = Callable[[], Iterator[LargeBody]]
"""Lists the large bodies from the first one on."""


class StoredBlobs(Protocol):
    """The large bodies of one place, of which records say elsewhere which are in use."""

    async def size_of(self, blob: BlobId) -> int | None:
        """The size of a blob; ``None`` if there is none. Raises StorageError."""

    def read(self, blob: BlobId, size_bytes: int) -> AsyncIterator[bytes]:
        """The bytes of a blob of that size, which are not verified. Raises StorageError."""

    async def write(self, blob: BlobId, size_bytes: int, content: AsyncIterator[bytes]) -> None:
        """Store a blob durably under this name. Raises StorageError, and errors of ``content``."""


class FileBlobs:
    """Implements StoredBlobs on the files of a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def size_of(self, blob: BlobId) -> int | None:
        try:
            return blob_path(self._directory, blob).stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"The large body {blob} could not be read") from error

    async def read(self, blob: BlobId, size_bytes: int) -> AsyncIterator[bytes]:
        try:
            with blob_path(self._directory, blob).open("rb", buffering=0) as file:
                while size_bytes > 0 and (piece := file.read(min(size_bytes, _PIECE_BYTES))):
                    size_bytes -= len(piece)
                    yield piece
        except OSError as error:
            raise StorageError(f"The large body {blob} could not be read") from error

    async def write(self, blob: BlobId, size_bytes: int, content: AsyncIterator[bytes]) -> None:  # noqa: ARG002
        path = blob_path(self._directory, blob)
        draft = self._directory / DRAFTS / secrets.token_hex(16)
        try:
            make_private_directory(path.parent)
            await _write_file(draft, content)
            draft.replace(path)
            for directory in (path.parent, path.parent.parent, self._directory):
                sync_directory(directory)
        except OSError as error:
            if is_full(error):
                raise DiskFull from error
            raise StorageError(f"The large body {blob} could not be stored") from error
        finally:
            draft.unlink(missing_ok=True)


async def copy_bodies(
    list_bodies: ListBodies, source: StoredBlobs, target: StoredBlobs, on_bytes: OnProgress
) -> None:
    """Copy those of the bodies that the target does not have. Raises StorageError, CopyFailed."""

    async def copy(body: LargeBody) -> None:
        if await target.size_of(body.blob) != body.size_bytes:
            pieces = _checked(body, source.read(body.blob, body.size_bytes))
            await target.write(body.blob, body.size_bytes, pieces)

    await _for_all(list_bodies, copy, on_bytes)


async def verify_bodies(
    list_bodies: ListBodies, source: StoredBlobs, target: StoredBlobs, on_bytes: OnProgress
) -> None:
    """Read all of the bodies from the target. Raises StorageError, CopyFailed."""

    async def verify(body: LargeBody) -> None:
        found = await _hash_of(_checked(body, target.read(body.blob, body.size_bytes)))
        if digest_of(body.blob) is None:  # of an early version: compared with the source
            expected = await _hash_of(source.read(body.blob, body.size_bytes))
            if found != expected:
                raise CopyFailed(f"The copy of the body of {body.path} is another one.")

    await _for_all(list_bodies, verify, on_bytes)


async def _for_all(
    list_bodies: ListBodies, act: Callable[[LargeBody], Awaitable[None]], on_bytes: OnProgress
) -> None:
    """Call ``act`` for each body, with a few at a time."""
    total = sum(body.size_bytes for body in list_bodies())
    done = 0
    bodies = iter(list_bodies())

    async def act_on_next() -> None:
        nonlocal done
        for body in bodies:
            await act(body)
            done += body.size_bytes
            on_bytes(done, total)

    try:
        async with asyncio.TaskGroup() as acting:
            for _ in range(_AT_ONCE):
                acting.create_task(act_on_next())
    except ExceptionGroup as errors:  # "except*" would raise another group
        raise errors.exceptions[0] from None


async def _checked(body: LargeBody, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces of a body. Raises CopyFailed if they are not what was stored."""
    hashed, size_bytes = hashlib.sha256(), 0
    async for piece in pieces:
        hashed.update(piece)
        size_bytes += len(piece)
        yield piece
    if size_bytes != body.size_bytes or digest_of(body.blob) not in {None, hashed.hexdigest()}:
        raise CopyFailed(
            f"The body of {body.path} is damaged. Find out more with 'podstead check'."
        )


async def _hash_of(pieces: AsyncIterator[bytes]) -> bytes:
    hashed = hashlib.sha256()
    async for piece in pieces:
        hashed.update(piece)
    return hashed.digest()


async def _write_file(path: Path, content: AsyncIterator[bytes]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        async for piece in content:
            write_all(descriptor, [piece])
        sync_content(descriptor)
    finally:
        os.close(descriptor)
