"""A backup as one compressed file: a tar archive whose files are in one folder.

The records come first, so that an archive of a newer version is refused early, and the list of
files and the manifest last, because they contain hashes of the rest. Unpacked with tar, it is a
backup as a folder. Both directions are streams, and need memory for one piece of one file.
"""

import hashlib
import os
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, cast

import zstandard

from podstead.storage.backup import reading
from podstead.storage.files import sync_content

_LEVEL: Final = 3
_PIECE_BYTES: Final = 1024 * 1024


@contextmanager
def compressed_into(file: BinaryIO) -> Iterator[BinaryIO]:
    """A stream whose content is compressed into ``file``, which stays open. Each frame has a
    checksum. Needs some megabytes of memory."""
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with compressor.stream_writer(file, closefd=False) as stream:
        yield cast("BinaryIO", stream)


@contextmanager
def decompressed_from(file: BinaryIO) -> Iterator[BinaryIO]:
    """The content of a compressed ``file``, which stays open. Raises BackupDamaged."""
    decompressor = zstandard.ZstdDecompressor()
    try:
        with decompressor.stream_reader(
            file, read_size=_PIECE_BYTES, read_across_frames=True, closefd=False
        ) as stream:
            yield cast("BinaryIO", stream)
    except zstandard.ZstdError as error:
        raise reading.BackupDamaged(f"The archive is damaged: {error}") from error


def is_compressed(file: BinaryIO) -> bool:
    """Whether a file, which is open at its beginning and stays there, begins as one that was
    compressed (RFC 8878, section 3.1.1)."""
    begins = file.read(len(zstandard.FRAME_HEADER))
    file.seek(0)
    return begins == zstandard.FRAME_HEADER


_FOLDER: Final = "podstead-backup/"
_PRIVATE_FILE: Final = 0o600
_MAX_MANIFEST_BYTES: Final = 64 * 1024 * 1024


class ArchiveSink:
    """Writes an archive (:class:`podstead.storage.backup.sinks.Sink`)."""

    def __init__(self, stream: BinaryIO, files: BinaryIO, *, work: Path) -> None:
        """``files`` is a temporary file for the list of files."""
        self._tar = tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed by finish
        self._list = files
        self._now_s = int(time.time())
        self.work = work
        self.copied = reading.FileTotals()
        self.linked = reading.FileTotals()

    def add(
        self,
        name: str,
        source: BinaryIO,
        *,
        size_bytes: int,
        mode: int,
        known_sha256: str | None = None,  # noqa: ARG002 - a sink of folders needs it
        is_immutable: bool = False,  # noqa: ARG002
    ) -> reading.FileRecord:
        if _size_of(source) < size_bytes:
            raise EOFError  # before anything of it is in the archive
        hashed = _HashedReader(source)
        self._write(name, cast("BinaryIO", hashed), size_bytes, mode)
        self.copied.add(size_bytes)
        return self._record(reading.FileRecord(name, size_bytes, hashed.hexdigest(), f"{mode:04o}"))

    def add_directory(self, name: str) -> None:
        entry = self._entry(name, 0o700)
        entry.type = tarfile.DIRTYPE
        self._tar.addfile(entry)
        self._record(reading.FileRecord(f"{name}/", 0, "", "0700"))

    def add_database(self, copy: Path) -> None:
        with copy.open("rb", buffering=0) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            self.add(reading.DATABASE, file, size_bytes=size_bytes, mode=_PRIVATE_FILE)

    def finish_list(self) -> str:
        self._list.flush()
        self._list.seek(0)
        hashed = hashlib.sha256()
        for line in self._list:
            hashed.update(line)
        size_bytes = self._list.tell()
        self._list.seek(0)
        self._write(reading.FILES, self._list, size_bytes, _PRIVATE_FILE)
        return hashed.hexdigest()

    def finish(self, manifest: reading.Manifest) -> None:
        text = reading.manifest_text(manifest)
        self._write(reading.MANIFEST, BytesIO(text), len(text), _PRIVATE_FILE)
        self._tar.close()

    def _write(self, name: str, source: BinaryIO, size_bytes: int, mode: int) -> None:
        entry = self._entry(name, mode)
        entry.size = size_bytes
        self._tar.addfile(entry, source)
        _forget_members(self._tar)

    def _entry(self, name: str, mode: int) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(_FOLDER + name)
        entry.mode, entry.mtime = mode, self._now_s
        return entry

    def _record(self, record: reading.FileRecord) -> reading.FileRecord:
        self._list.write(reading.record_line(record))
        return record


class _HashedReader:
    """A file, with the hash of what was read from it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size_bytes: int) -> bytes:
        piece = self._file.read(size_bytes)
        self._hash.update(piece)
        return piece

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


@contextmanager
def archive_sink(archive: Path) -> Iterator[ArchiveSink]:
    """A sink for a new file, which is on disk after the context. Raises OSError."""
    descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        with (
            tempfile.TemporaryFile(dir=archive.parent) as files,
            compressed_into(file) as stream,
        ):
            yield ArchiveSink(stream, files, work=archive.parent)
        file.flush()
        sync_content(file.fileno())
        if hasattr(os, "posix_fadvise"):  # what is read back later should come from the disk
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class ArchiveBackup:
    """A backup in an archive (:class:`podstead.storage.backup.reading.BackupReader`)."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive

    def read_all(self, on_file: reading.OnFile) -> reading.Manifest:
        with self._archive.open("rb", buffering=0) as file:
            if not is_compressed(file):
                raise reading.BackupUnusable(
                    f"{self._archive} is not a backup: 'podstead backup' writes folders and "
                    "archives compressed with Zstandard."
                )
            with decompressed_from(file) as stream:
                try:
                    with tarfile.open(fileobj=stream, mode="r|") as tar:
                        return self._read(tar, on_file)
                except tarfile.TarError as error:
                    raise reading.BackupUnusable(
                        f"{self._archive} is not a complete backup: {error}"
                    ) from error

    def _read(self, tar: tarfile.TarFile, on_file: reading.OnFile) -> reading.Manifest:
        """The hash of what is read, listed as it was when it was written, is that of the list."""
        found = hashlib.sha256()
        listed: bytes | None = None
        while (entry := tar.next()) is not None:
            _forget_members(tar)
            name = entry.name.removeprefix(_FOLDER)
            reading.check_file_name(name)
            if name == reading.FILES:
                listed = self._hash_of(tar, entry)
            elif name == reading.MANIFEST:
                manifest = reading.read_manifest(self._content(tar, entry))
                is_whole = listed == found.digest() == bytes.fromhex(manifest.files_sha256)
                if not is_whole:
                    raise reading.BackupDamaged(
                        f"What is in {self._archive} is not what was stored"
                    )
                return manifest
            else:
                found.update(reading.record_line(_read_entry(tar, entry, name, on_file)))
        raise reading.BackupUnusable(
            f"{self._archive} is not a complete backup: it has no {reading.MANIFEST}."
        )

    def _hash_of(self, tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
        hashed = hashlib.sha256()
        for piece in reading.pieces_of(_content_of(tar, entry), entry.size):
            hashed.update(piece)
        return hashed.digest()

    def _content(self, tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
        if entry.size > _MAX_MANIFEST_BYTES:
            raise reading.BackupDamaged(f"{reading.MANIFEST} is too large")
        return _content_of(tar, entry).read()


def _read_entry(
    tar: tarfile.TarFile, entry: tarfile.TarInfo, name: str, on_file: reading.OnFile
) -> reading.FileRecord:
    mode = f"{entry.mode & 0o7777:04o}"
    if entry.isdir():
        record = reading.FileRecord(f"{name}/", 0, "", mode)
        on_file(record, iter(()))
        return record
    hashed = hashlib.sha256()
    file = _content_of(tar, entry)

    def pieces() -> Iterator[bytes]:
        for piece in reading.pieces_of(file, entry.size):
            hashed.update(piece)
            yield piece

    on_file(reading.FileRecord(name, entry.size, "", mode), pieces())
    return reading.FileRecord(name, entry.size, hashed.hexdigest(), mode)


def _forget_members(tar: tarfile.TarFile) -> None:
    """Otherwise, memory would grow with each file."""
    tar.members.clear()  # type: ignore[attr-defined]


def _content_of(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> BinaryIO:
    file = tar.extractfile(entry) if entry.isreg() else None
    if file is None:
        raise reading.BackupDamaged(f"{entry.name} is not a file")
    return cast("BinaryIO", file)


def _size_of(source: BinaryIO) -> int:
    if isinstance(source, BytesIO):
        return len(source.getbuffer())
    return os.fstat(source.fileno()).st_size
