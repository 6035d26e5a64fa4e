"""Writes a pod as a ZIP file whose every byte follows from its contents.

The files are stored, not compressed, so the place of each of them is known from the metadata, and
any part of the archive can be produced: a download that broke off continues where it was. Only the
checksums need the content. Files before the requested part are read for their checksums, because
the directory at the end contains them.

Reading an archive takes a few hundred bytes of memory for each file; content passes through in
pieces.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final

from podstead.core.errors import NotFound, StorageError
from podstead.core.identifiers import ResourcePath
from podstead.core.value import Value
from podstead.resources.costly_work import AgentSemaphores
from podstead.resources.entity_tags import last_modified_ms
from podstead.resources.exporting import contents as exporting_contents
from podstead.resources.exporting import crate
from podstead.storage.open_body import OpenBody, StreamedBody
from podstead.storage.protocol import Store

_IN_THREAD_FROM_BYTES: Final = 256 * 1024
_PIECE_BYTES: Final = 64 * 1024
_PIECES_AT_ONCE: Final = 100


class ContentsChanged(StorageError):
    """A document has changed since the archive began."""

    def __init__(self, path: ResourcePath) -> None:
        super().__init__(f"{path} was changed during the export; begin again")


class _WrittenEntry:
    """What the directory needs of an entry that is written."""

    __slots__ = ("crc", "entry", "offset")

    def __init__(self, entry: ZipEntry, crc: int, offset: int) -> None:
        self.entry = entry
        self.crc = crc
        self.offset = offset


class PodArchive(StreamedBody):
    """The archive of the contents of a pod (:class:`podstead.storage.open_body.OpenBody`).

    A document that has changed since is an error, unless the archive is ``lenient``: then its
    present state is taken, the archive says so, and :attr:`size_bytes` is only what was expected.
    """

    def __init__(
        self, store: Store, contents: exporting_contents.PodContents, *, lenient: bool = False
    ) -> None:
        self._store = store
        self._contents = contents
        self._lenient = lenient
        self._archived = list(exporting_contents.named(contents))
        self.changed: list[ResourcePath] = []
        """The documents that changed during a lenient export."""
        self._size_bytes = self._total_bytes()

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    @property
    def tag(self) -> str:
        """Two archives with the same tag are the same, byte for byte."""
        return self._contents.tag

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        """The bytes from ``start`` up to ``end``. Raises ContentsChanged."""
        waiting: list[bytes] = []
        waiting_bytes = 0
        async with aclosing(self._pieces(_Output(start, end))) as pieces:
            async for piece in pieces:
                waiting.append(piece)
                waiting_bytes += len(piece)
                if waiting_bytes >= _PIECE_BYTES:
                    yield b"".join(waiting)
                    waiting, waiting_bytes = [], 0
        if waiting:
            yield b"".join(waiting)

    async def _pieces(self, output: _Output) -> AsyncGenerator[bytes, None]:
        async for piece in self._resources(output):
            yield piece
        if self._lenient:
            later = await exporting_contents.changed_since(
                self._store, self._contents.pod.root, self._contents.sequence
            )
            self.changed += [path for path in later if path not in self.changed]
        contents, archived = self._contents, self._archived

        def page() -> Iterator[bytes]:
            return crate.page(contents, archived, self.changed)

        def manifest() -> Iterator[bytes]:
            return crate.manifest(
                contents, archived, output.hashes, page_bytes=page_bytes, changed=self.changed
            )

        page_bytes = await asyncio.to_thread(lambda: _length(page()))
        for name, make in ((crate.PAGE, page), (crate.MANIFEST, manifest)):
            if not output.is_complete:
                async for piece in output.generated(name, make):
                    yield piece
        async for piece in output.directory():
            yield piece

    async def _resources(self, output: _Output) -> AsyncIterator[bytes]:
        gone: set[str] = set()
        for each in self._archived:
            async for piece in self._folder(each, output):
                yield piece
            if not _file_name(each):
                continue
            body = await self._open(each)
            if body is None:
                gone.add(each.name)
                continue
            entry = ZipEntry(_file_name(each), body.size_bytes, each.metadata.modified_ms)
            async for piece in output.file(entry, body):
                yield piece
            if output.is_complete:
                return
        if gone:
            self._archived = [each for each in self._archived if each.name not in gone]

    async def _folder(
        self, each: exporting_contents.ArchivedResource, output: _Output
    ) -> AsyncIterator[bytes]:
        """The folder of a container, and its repository; that of all versions before the first."""
        if each.former is not None and each.former is self._contents.versions[0]:
            for part in output.header(_folder_of_versions(self._contents), 0):
                yield part
        if not each.metadata.kind.is_container:
            return
        for part in output.header(ZipEntry(each.name, 0, last_modified_ms(each.metadata)), 0):
            yield part
        if not each.repository:
            return
        bundle = self._contents.bundles[each.metadata.path]
        entry = ZipEntry(each.repository, bundle.size_bytes, self._contents.modified_ms)
        async for piece in output.file(entry, bundle):
            yield piece

    async def _open(self, each: exporting_contents.ArchivedResource) -> OpenBody | None:
        """The content; ``None`` if it is gone and the archive is lenient."""
        if each.former is not None:
            body = await self._store.open_former(each.former)
        else:
            body = await self._store.open_body(each.metadata)
        while body is None:
            path = each.metadata.path
            if not self._lenient:
                raise ContentsChanged(path)
            if each.former is not None:
                return None  # it need not be kept any longer
            if path not in self.changed:
                self.changed.append(path)
            current = (await self._store.read_metadata([path]))[path]
            if current is None:
                return None
            each.metadata = current
            body = await self._store.open_body(current)
        return body

    def _total_bytes(self) -> int:
        """The length of the archive, which depends on the metadata only."""
        contents, archived = self._contents, self._archived
        page_bytes = _length(crate.page(contents, archived))
        manifest_bytes = _length(crate.manifest(contents, archived, {}, page_bytes=page_bytes))
        newest_ms = max((last_modified_ms(each.metadata) for each in archived), default=0)
        entries = [
            *_entries(contents, archived),
            ZipEntry(crate.PAGE, page_bytes, newest_ms),
            ZipEntry(crate.MANIFEST, manifest_bytes, newest_ms),
        ]
        position = directory_bytes = 0
        for entry in entries:
            directory_bytes += len(central_header(entry, 0, position))
            position += len(local_header(entry, 0)) + entry.size_bytes
        end = end_of_archive(entries=len(entries), offset=position, size_bytes=directory_bytes)
        return position + directory_bytes + len(end)


class _Output:
    """The requested part of an archive while it is written, the position reached, and what the
    directory and the manifest need of what has been written."""

    def __init__(self, start: int, end: int | None) -> None:
        self._start = start
        self._end = end
        self._position = 0
        self._written: list[_WrittenEntry] = []
        self.hashes: dict[str, str] = {}
        """The SHA-256 of each file by its name."""

    @property
    def is_complete(self) -> bool:
        return self._end is not None and self._position >= self._end

    def header(self, entry: ZipEntry, crc: int) -> Iterator[bytes]:
        """Begin an entry."""
        self._written.append(_WrittenEntry(entry, crc, self._position))
        return self._cut(local_header(entry, crc))

    async def file(self, entry: ZipEntry, body: OpenBody) -> AsyncIterator[bytes]:
        crc, self.hashes[entry.name] = await _checksums(body)
        for part in self.header(entry, crc):
            yield part
        first, last = self._range_of_next(body.size_bytes)
        if first < last:
            async for piece in body.chunks(first, last):
                yield piece

    async def generated(
        self, name: str, make: Callable[[], Iterator[bytes]]
    ) -> AsyncIterator[bytes]:
        """A generated file, whose pieces are made twice: first for the checksum."""
        crc, size_bytes, self.hashes[name] = await asyncio.to_thread(_measured, make)
        newest_ms = max((each.entry.modified_ms for each in self._written), default=0)
        for part in self.header(ZipEntry(name, size_bytes, newest_ms), crc):
            yield part
        for index, piece in enumerate(make()):
            if index % _PIECES_AT_ONCE == 0:
                await asyncio.sleep(0)
            for part in self._cut(piece):
                yield part

    async def directory(self) -> AsyncIterator[bytes]:
        """The directory at the end of the archive."""
        offset, written = self._position, self._written
        for index, each in enumerate(written):
            if index % _PIECES_AT_ONCE == 0:
                await asyncio.sleep(0)
            for part in self._cut(central_header(each.entry, each.crc, each.offset)):
                yield part
        size_bytes = self._position - offset
        end = end_of_archive(entries=len(written), offset=offset, size_bytes=size_bytes)
        for part in self._cut(end):
            yield part

    def _range_of_next(self, size_bytes: int) -> tuple[int, int]:
        """The requested range within the next ``size_bytes``; advances the position past them."""
        first = min(max(self._start - self._position, 0), size_bytes)
        last = size_bytes
        if self._end is not None:
            last = min(max(self._end - self._position, 0), size_bytes)
        self._position += size_bytes
        return first, max(first, last)

    def _cut(self, piece: bytes) -> Iterator[bytes]:
        """The requested part of the next piece, if any."""
        first, last = self._range_of_next(len(piece))
        if first < last:
            yield piece[first:last]


def _measured(make: Callable[[], Iterator[bytes]]) -> tuple[int, int, str]:
    """Checksum, length and SHA-256."""
    crc, size_bytes, digest = 0, 0, hashlib.sha256()
    for piece in make():
        crc = zlib.crc32(piece, crc)
        size_bytes += len(piece)
        digest.update(piece)
    return crc, size_bytes, digest.hexdigest()


def _entries(
    contents: exporting_contents.PodContents,
    archived: Iterable[exporting_contents.ArchivedResource],
) -> Iterator[ZipEntry]:
    for each in archived:
        metadata = each.metadata
        if metadata.kind.is_container:
            yield ZipEntry(each.name, 0, last_modified_ms(metadata))
        if each.repository:
            bundle = contents.bundles[metadata.path]
            yield ZipEntry(each.repository, bundle.size_bytes, contents.modified_ms)
        if name := _file_name(each):
            yield ZipEntry(name, metadata.size_bytes, metadata.modified_ms)
    if contents.versions:
        yield _folder_of_versions(contents)


def _folder_of_versions(contents: exporting_contents.PodContents) -> ZipEntry:
    return ZipEntry(exporting_contents.VERSIONS, 0, contents.modified_ms)


def _file_name(each: exporting_contents.ArchivedResource) -> str:
    """The name of the file with the body of a resource; empty if there is none."""
    return each.described_by if each.metadata.kind.is_container else each.name


async def _checksums(body: OpenBody) -> tuple[int, str]:
    crc, digest = 0, hashlib.sha256()
    async for piece in body.chunks():
        if len(piece) < _IN_THREAD_FROM_BYTES:
            crc = zlib.crc32(piece, crc)
            digest.update(piece)
        else:
            crc = await asyncio.to_thread(_update, piece, crc, digest)
    return crc, digest.hexdigest()


def _update(piece: bytes, crc: int, digest: hashlib._Hash) -> int:
    digest.update(piece)
    return zlib.crc32(piece, crc)


def _length(pieces: Iterable[bytes]) -> int:
    return sum(map(len, pieces))


MAX_RESOURCES: Final = 100_000
"""How many resources the archive of a download may have; the command has no limit."""
MAX_OF_PERSON: Final = 2


class PodDownload(StreamedBody):
    """An archive that waits for the person's other downloads (:class:`OpenBody` of the storage)."""

    def __init__(self, archive: PodArchive, semaphores: AgentSemaphores, requester: str) -> None:
        self._archive = archive
        self._semaphores = semaphores
        self._requester = requester
        self.size_bytes = archive.size_bytes
        self.tag = archive.tag

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Raises RateLimited and ContentsChanged."""
        async with (
            self._semaphores.by(self._requester),
            aclosing(self._archive.chunks(start, end)) as chunks,
        ):
            async for chunk in chunks:
                yield chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDownloads:
    """Serves pods to their owners as archives of their state at the request, a few at a time for
    each person. ``bundler`` adds the repositories of containers."""

    store: Store
    base_url: str
    issuer: str
    bundler: exporting_contents.RepositoryBundler | None = None
    _semaphores: AgentSemaphores = field(
        default_factory=partial(AgentSemaphores, at_once=MAX_OF_PERSON)
    )

    async def open(self, name: str, *, with_versions: bool = False) -> PodDownload:
        """The archive of a pod as it is now. The caller has authorized the request. Raises
        NotFound, Overloaded and RateLimited."""
        pod = await self.store.read_pod(name)
        if pod is None:
            raise NotFound(f"There is no pod '{name}'")
        async with self._semaphores.by(pod.name):
            contents = await exporting_contents.read_contents(
                self.store,
                pod,
                base_url=self.base_url,
                issuer=self.issuer,
                bundler=self.bundler,
                max_resources=MAX_RESOURCES,
                with_versions=with_versions,
            )
            # Determining the size takes a second for a hundred thousand resources.
            archive = await asyncio.to_thread(PodArchive, self.store, contents)
        return PodDownload(archive, self._semaphores, pod.name)


# The records of a ZIP file whose entries are stored without compression (PKWARE APPNOTE 6.3.10).
#
# Pure. The length of each record follows from the name, size and place of its entry, so the place
# of everything is known before anything is read. Each local header has the final size and checksum,
# so that programs which read an archive as it arrives can unpack it. Sizes and places that do not
# fit into 32 bits are in ZIP64 fields.

_MAX_32: Final = 0xFFFFFFFF
_MAX_16: Final = 0xFFFF
_ZIP64_VERSION: Final = 45
_PLAIN_VERSION: Final = 20
_MADE_ON_UNIX: Final = 3 << 8
_UTF8_NAME: Final = 1 << 11
_FILE_MODE: Final = 0o100644 << 16
_FOLDER_MODE: Final = (0o40755 << 16) | 0x10
_LOCAL: Final = struct.Struct("<4sHHHHHLLLHH")
_CENTRAL: Final = struct.Struct("<4sHHHHHHLLLHHHHHLL")
_END: Final = struct.Struct("<4sHHHHLLH")
_END_64: Final = struct.Struct("<4sQHHLLQQQQ")
_LOCATOR_64: Final = struct.Struct("<4sLQL")
# Info-ZIP's extended timestamp: tag, length, flags (modification time), Unix seconds.
_TIMESTAMP: Final = struct.Struct("<HHBl")
_EARLIEST: Final = datetime(1980, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2107, 12, 31, 23, 59, 58, tzinfo=UTC)


class ZipEntry(Value):
    """A file or folder of the archive; the name of a folder ends in a slash."""

    name: str
    size_bytes: int
    modified_ms: int

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")


def local_header(entry: ZipEntry, crc: int) -> bytes:
    """What precedes the content of an entry."""
    name, size = entry.name.encode(), entry.size_bytes
    large = size >= _MAX_32
    extra = _timestamp(entry)
    if large:
        extra = struct.pack("<HHQQ", 1, 16, size, size) + extra
    shown = _MAX_32 if large else size
    return (
        _LOCAL.pack(
            b"PK\x03\x04",
            _ZIP64_VERSION if large else _PLAIN_VERSION,
            _UTF8_NAME,
            0,
            *_dos_time(entry),
            crc,
            shown,
            shown,
            len(name),
            len(extra),
        )
        + name
        + extra
    )


def central_header(entry: ZipEntry, crc: int, offset: int) -> bytes:
    """The entry in the directory at the end of the archive."""
    name, size = entry.name.encode(), entry.size_bytes
    fields = b""
    if size >= _MAX_32:
        fields += struct.pack("<QQ", size, size)
    if offset >= _MAX_32:
        fields += struct.pack("<Q", offset)
    extra = _timestamp(entry)
    if fields:
        extra = struct.pack("<HH", 1, len(fields)) + fields + extra
    shown = min(size, _MAX_32)
    return (
        _CENTRAL.pack(
            b"PK\x01\x02",
            _MADE_ON_UNIX | _ZIP64_VERSION,
            _ZIP64_VERSION if fields else _PLAIN_VERSION,
            _UTF8_NAME,
            0,
            *_dos_time(entry),
            crc,
            shown,
            shown,
            len(name),
            len(extra),
            0,
            0,
            0,
            _FOLDER_MODE if entry.is_folder else _FILE_MODE,
            min(offset, _MAX_32),
        )
        + name
        + extra
    )


def end_of_archive(*, entries: int, offset: int, size_bytes: int) -> bytes:
    """What follows the directory, which begins at ``offset`` and has that size. Always includes the
    ZIP64 records, so that the length is constant."""
    end_64 = _END_64.pack(
        b"PK\x06\x06",
        _END_64.size - 12,
        _MADE_ON_UNIX | _ZIP64_VERSION,
        _ZIP64_VERSION,
        0,
        0,
        entries,
        entries,
        size_bytes,
        offset,
    )
    locator = _LOCATOR_64.pack(b"PK\x06\x07", 0, offset + size_bytes, 1)
    shown = min(entries, _MAX_16)
    end = _END.pack(
        b"PK\x05\x06", 0, 0, shown, shown, min(size_bytes, _MAX_32), min(offset, _MAX_32), 0
    )
    return end_64 + locator + end


def _timestamp(entry: ZipEntry) -> bytes:
    seconds = entry.modified_ms // 1000
    if not -(2**31) <= seconds < 2**31:
        return b""
    return _TIMESTAMP.pack(0x5455, 5, 1, seconds)


def _dos_time(entry: ZipEntry) -> tuple[int, int]:
    """Time and date; ZIP has no time zones, this is UTC."""
    modified = datetime.fromtimestamp(entry.modified_ms / 1000, UTC)
    at = min(max(modified, _EARLIEST), _LATEST)
    return (
        at.hour << 11 | at.minute << 5 | at.second // 2,
        (at.year - 1980) << 9 | at.month << 5 | at.day,
    )
