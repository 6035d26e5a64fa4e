"""Copying a data root while a server uses it.

The caller holds removals back (``removal_lock.py``) and has an :class:`Inspection`, whose moment is
that of the backup. Every large body that its records refer to exists for as long as that, because
bodies are immutable and not removed. Drafts of uploads do not wait for anybody, so they are opened
at the moment and copied later, up to the length that their records state: bytes before it never
change.
"""

import contextlib
import os
import resource
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

import msgspec

from podstead.core.errors import StorageError
from podstead.storage.backup.reading import DATABASE, FILES, MANIFEST, FileRecord
from podstead.storage.backup.sinks import Sink
from podstead.storage.blobs.body_store import blob_path, draft_path
from podstead.storage.blobs.files import digest_of
from podstead.storage.copying.bodies import StoredBlobs
from podstead.storage.inspection import Inspection, LargeBody
from podstead.storage.layout import RootLayout
from podstead.storage.uploads import UPLOADS, UploadRecord

OnCopied = Callable[[int, int], None]
"""Called with the bytes that are done and that there are to do."""

_PRIVATE_FILE: Final = 0o600
_MAX_SMALL_BYTES: Final = 16 * 1024 * 1024
_BLOBS: Final = Path("blobs")
"""Where large bodies are in a backup, wherever the server keeps them."""
_ATTEMPTS: Final = 20
_record = msgspec.json.Decoder(UploadRecord)


@dataclass(slots=True)
class RootCopy:
    """Copies everything but the records and the repositories of a root into a sink.

    ``faults`` collects what is damaged or missing in the root. A backup with faults is better than
    none.
    """

    layout: RootLayout
    sink: Sink
    faults: list[str] = field(default_factory=list)
    keys: Mapping[str, bytes] | None = None
    """The private keys by their names, if they are not in files of the root."""

    def copy_large_bodies(self, records: Inspection, on_copied: OnCopied) -> None:
        """Raises StorageError, OSError."""
        total = sum(body.size_bytes for body in records.large_bodies())
        done = 0
        for body in records.large_bodies():
            source = blob_path(self.layout.blobs, body.blob)
            sha256 = digest_of(body.blob)
            try:
                with source.open("rb", buffering=0) as file:
                    stored = self._add_body(body, file)
            except FileNotFoundError:
                self.faults.append(f"The body of {body.path} is missing: there is no {source}")
                continue
            except EOFError:
                self.faults.append(f"The body of {body.path} is shorter than it was: {source}")
                continue
            if sha256 is not None and stored.sha256 != sha256:
                self.faults.append(f"The body of {body.path} is damaged: {source}")
            done += body.size_bytes
            on_copied(done, total)

    async def copy_objects(
        self, records: Inspection, objects: StoredBlobs, on_copied: OnCopied
    ) -> None:
        """Copy large bodies that are not files. Raises StorageError, OSError."""
        total = sum(body.size_bytes for body in records.large_bodies())
        done = 0
        for body in records.large_bodies():
            if await objects.size_of(body.blob) != body.size_bytes:
                self.faults.append(f"The body of {body.path} is missing: there is no {body.blob}")
                continue
            if not self._share(body):
                with TemporaryFile(dir=self.sink.work) as file:
                    async for piece in objects.read(body.blob, body.size_bytes):
                        file.write(piece)
                    file.seek(0)
                    stored = self._add_body(body, file)
                if digest_of(body.blob) not in {None, stored.sha256}:
                    self.faults.append(f"The body of {body.path} is damaged: {body.blob}")
            done += body.size_bytes
            on_copied(done, total)

    def _share(self, body: LargeBody) -> bool:
        """Whether an earlier backup has the body, so that it need not be read."""
        try:
            self._add_body(body, BytesIO())
        except EOFError:
            return False
        return True

    def _add_body(self, body: LargeBody, file: BinaryIO) -> FileRecord:
        return self.sink.add(
            str(blob_path(_BLOBS, body.blob)),
            file,
            size_bytes=body.size_bytes,
            mode=_PRIVATE_FILE,
            known_sha256=digest_of(body.blob),
            is_immutable=True,
        )

    def copy_other_files(self, left_out: Collection[str]) -> None:
        """Copy the keys and whatever else is in the root, for example of later versions, except for
        folders with the names in ``left_out``.

        Raises StorageError, OSError.
        """
        for name, content in (self.keys or {}).items():
            self._add_content(f"{self.layout.keys.name}/{name}", content, _PRIVATE_FILE)
        names = {*not_copied(self.layout), *left_out}
        for path in sorted(self.layout.root.iterdir()):
            if self.keys is not None and path == self.layout.keys:
                continue
            if path.name in names or path.name.startswith(DATABASE):
                continue
            if path.is_dir():
                for name, content, mode in _stable_content(path):
                    self._add_content(f"{path.name}/{name}", content, mode)
                for large in _large_files(path):
                    self._add_file(str(large.relative_to(self.layout.root)), large)
            elif path.is_file():
                self._add_file(path.name, path)

    def _add_content(self, name: str, content: bytes, mode: int) -> None:
        self.sink.add(name, BytesIO(content), size_bytes=len(content), mode=mode)

    def _add_file(self, name: str, path: Path) -> None:
        try:
            with path.open("rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                mode = stat.S_IMODE(status.st_mode)
                self.sink.add(name, file, size_bytes=status.st_size, mode=mode)
        except FileNotFoundError:
            return  # removed since it was listed
        except EOFError:
            self.faults.append(f"{path} became shorter while it was copied")


@dataclass(slots=True)
class OpenDrafts:
    """The drafts of the uploads in progress at the moment of a backup, held open."""

    _drafts: list[tuple[str, int, BinaryIO]] = field(default_factory=list)
    _files: ExitStack = field(default_factory=ExitStack)

    def __len__(self) -> int:
        return len(self._drafts)

    def open(self, layout: RootLayout, records: Inspection) -> None:
        """Open the drafts, as soon as possible after the moment. One that is gone was finished or
        cancelled since. Raises StorageError, OSError."""
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        for entry in records.entries(UPLOADS.kind):
            name = entry.entry.removeprefix(f"{UPLOADS.kind}/")
            path = draft_path(layout.blobs, name)
            with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
                offset_bytes = _record.decode(entry.value).offset_bytes
                file = self._files.enter_context(path.open("rb", buffering=0))
                self._drafts.append((str(draft_path(_BLOBS, name)), offset_bytes, file))

    def copy(self, sink: Sink, faults: list[str]) -> None:
        """Raises OSError."""
        for name, size_bytes, file in self._drafts:
            try:
                sink.add(name, file, size_bytes=size_bytes, mode=_PRIVATE_FILE)
            except EOFError:
                faults.append(f"The upload {name} is shorter than it was")

    def close(self) -> None:
        self._files.close()


def not_copied(layout: RootLayout) -> frozenset[str]:
    """The names in a root of what is copied otherwise, belongs to running processes, or can be made
    again."""
    copied_otherwise = (layout.blobs, layout.received.parent)
    of_processes = (layout.lock, layout.fair_lock, layout.removal_lock, layout.change_pipes)
    made_again = (layout.thumbnails, layout.root / "reserve")
    of_backups = (layout.last_backup, layout.failed_backup)
    ephemeral = [
        layout.ephemeral_database.with_name(layout.ephemeral_database.name + suffix)
        for suffix in ("", "-wal", "-shm")
    ]
    left_out = (layout.set_aside, layout.restoring, layout.records_elsewhere)
    not_stored = (*of_processes, *made_again, *of_backups, *ephemeral, *left_out)
    names = {path.name for path in (*copied_otherwise, *not_stored)}
    return frozenset(names | {FILES, MANIFEST})


def _stable_content(directory: Path) -> list[tuple[str, bytes, int]]:
    """The small files below a directory, as they all were at one time. Raises StorageError,
    OSError."""
    for _ in range(_ATTEMPTS):
        before = _listing(directory)
        try:
            found = [
                (name, (directory / name).read_bytes(), stat.S_IMODE(mode))
                for name, mode, *_ in before
            ]
        except FileNotFoundError:
            continue  # renamed or removed since the listing
        if _listing(directory) == before:
            return found
    raise StorageError(f"{directory} changes all the time and could not be copied")


def _large_files(directory: Path) -> list[Path]:
    """The files below a directory that :func:`_stable_content` leaves out, such as logs."""
    return [
        path
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.stat().st_size > _MAX_SMALL_BYTES
    ]


def _listing(directory: Path) -> list[tuple[str, int, int, int, int]]:
    """What changes with any change below a directory, file by file."""
    return list(_listed(directory))


def _listed(directory: Path) -> Iterator[tuple[str, int, int, int, int]]:
    for place, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted(names):
            path = Path(place, name)
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                if not stat.S_ISREG(status.st_mode):
                    continue
                if status.st_size > _MAX_SMALL_BYTES:
                    continue
                yield (
                    str(path.relative_to(directory)),
                    status.st_mode,
                    status.st_ino,
                    status.st_size,
                    status.st_mtime_ns,
                )
