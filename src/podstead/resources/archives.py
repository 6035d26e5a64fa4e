"""Archives a container with everything in it, as a stream of ZIP.

The archive contains the documents that the agent may read, each as it is stored when its turn
comes; access rules and descriptions are not files and are left out. Nothing is collected: the
members are listed in pages, and bodies are compressed piece by piece. The only thing that grows is
the directory at the end of the archive, a few hundred bytes for each file.

The archive is written by the standard library, which writes to streams, too: sizes follow the
content, large files and archives use ZIP64, and names are UTF-8. Any system can unpack it: a name
is one path segment, never absolute, never ``..``, without a drive letter, a separator or a
character that some system does not allow, and different from its siblings even if case is ignored.
Documents whose name says nothing about their media type get an extension.
"""

import asyncio
import mimetypes
import re
import struct
import unicodedata
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

from podstead.core import media_types
from podstead.core.errors import MethodNotAllowed, NotFound, Overloaded
from podstead.core.identifiers import ResourcePath, allowed_methods, is_container, segment_name
from podstead.core.media_types import essence
from podstead.resources.codes import ResourceCodes
from podstead.resources.context import ResourceContext
from podstead.resources.costly_work import AgentSemaphores
from podstead.resources.outcome import ResourceRequest
from podstead.resources.reading import pages_of_members
from podstead.resources.target_state import TargetState
from podstead.storage.open_body import OpenBody
from podstead.storage.records import Metadata
from podstead.wac import effective, modes
from podstead.wac.modes import Mode

MAX_NAME_BYTES: Final = 200
"""The longest name, in UTF-8. Common file systems allow 255 bytes; some add to them."""

_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"/\\|?*]')
# Windows reserves these names with any extension.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|\Z)", re.IGNORECASE)
_BIDIRECTIONAL = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")

_EXTENSIONS: Final = {
    media_types.TURTLE: ".ttl",
    media_types.JSON_LD: ".jsonld",
    media_types.N_TRIPLES: ".nt",
    media_types.N_QUADS: ".nq",
    media_types.TRIG: ".trig",
    media_types.N3: ".n3",
    media_types.RDF_XML: ".rdf",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/avif": ".avif",
}
_TYPES: Final = mimetypes.MimeTypes()
"""Python's own types, without those of the system."""
_OF_NO_TYPE: Final = frozenset({"application/octet-stream"})


def archive_name(segment: str, content_type: str | None) -> str:
    """The name of a resource by the last segment of its path, without the slash of a container.

    ``content_type`` is that of a document, ``None`` for a container.
    """
    decoded = unquote_to_bytes(segment).decode("utf-8", "replace")
    name = _BIDIRECTIONAL.sub("_", _FORBIDDEN.sub("_", unicodedata.normalize("NFC", decoded)))
    name = name.rstrip(". ") or "_"
    if name.startswith(" "):
        name = "_" + name.lstrip(" ")
    if _RESERVED.match(name):
        name = "_" + name
    extension = "" if content_type is None else _missing_extension(name, content_type)
    return _shortened(name, extension)


def _missing_extension(name: str, content_type: str) -> str:
    media_type = essence(content_type)
    known = _EXTENSIONS.get(media_type)
    if known is not None and name.lower().endswith(known):
        return ""
    guessed, _ = _TYPES.guess_type(f"x/{name}", strict=False)
    if guessed is not None or media_type in _OF_NO_TYPE:
        return ""
    return known or _TYPES.guess_extension(media_type, strict=False) or ""


def _shortened(name: str, extension: str) -> str:
    if len((name + extension).encode()) <= MAX_NAME_BYTES:
        return name + extension
    if not extension:
        stem, dot, last = name.rpartition(".")
        if dot and stem and len(last.encode()) <= 20:
            name, extension = stem, f".{last}"
    room = MAX_NAME_BYTES - len(extension.encode())
    return name.encode()[:room].decode("utf-8", "ignore").rstrip(". ") + extension


class ArchiveFolder:
    """The names that are taken in one folder of an archive."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def free(self, name: str) -> str:
        """The name, with a number if a sibling has it already, ignoring case."""
        stem, dot, extension = name.rpartition(".")
        if not dot or not stem:
            stem, extension = name, ""
        proposed, number = name, 1
        while (key := _folded(proposed)) in self._taken:
            number += 1
            proposed = f"{stem} ({number}){dot if extension else ''}{extension}"
        self._taken.add(key)
        return proposed


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", name).casefold())


MAX_FILES: Final = 100_000
"""How many files and folders one archive may contain."""
MAX_OF_REQUESTER: Final = 2
"""How many archives of one person or network are made at a time: compressing takes a processor."""

_MEMBERS_AT_ONCE: Final = 500
_PIECE_BYTES: Final = 64 * 1024
_IN_THREAD_FROM_BYTES: Final = 32 * 1024
_ATTEMPTS: Final = 8
_EARLIEST: Final = datetime(1980, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2107, 12, 31, 23, 59, 58, tzinfo=UTC)
# Info-ZIP's extended timestamp: tag, length, flags (modification time), Unix seconds.
_TIMESTAMP: Final = struct.Struct("<HHBl")
_COMPRESSED: Final = frozenset(
    {
        "application/gzip",
        "application/zip",
        "application/x-7z-compressed",
        "application/zstd",
        "image/jpeg",
        "image/png",
        "image/webp",
        "image/avif",
        "image/gif",
    }
)


class Archive(msgspec.Struct, frozen=True):
    """An archive that is about to be sent: its file name, and its bytes as they are made."""

    name: str
    chunks: AsyncIterator[bytes]


class TooManyFiles(Overloaded):
    """The archive would have more entries than are allowed."""


class Archives:
    """Makes archives of containers."""

    def __init__(self, context: ResourceContext) -> None:
        self._context = context
        self._store = context.store
        self._gate = context.gate
        self._semaphores = AgentSemaphores(at_once=MAX_OF_REQUESTER)

    async def open(
        self, request: ResourceRequest, *, only: Collection[ResourcePath] = (), requester: str
    ) -> Archive:
        """The archive of the container that the request is about, or of those of its members that
        are in ``only``. Further archives of one ``requester`` begin when others have ended.

        Raises AccessDenied, NotAuthenticated, NotFound, and MethodNotAllowed for a document.
        Iterating over the bytes may raise ServerTrouble: the archive is then
        incomplete, and no program takes it for a whole one.
        """
        target = request.operation.target
        snapshot = await self._store.read_metadata(effective.paths_to_read(target))
        state = TargetState(target, snapshot)
        await request.authorize(self._gate, state, modes.for_read(target))
        if state.existing is None:
            raise NotFound
        if not is_container(target):
            raise MethodNotAllowed(ResourceCodes.NO_CONTAINER, allow=allowed_methods(target))
        name = archive_name(segment_name(target).rstrip("/"), None)
        chunks = self._chunks(request, state.existing, name, only)
        return Archive(f"{name}.zip", self._within_limit(requester, chunks))

    async def _within_limit(
        self, requester: str, chunks: AsyncGenerator[bytes, None]
    ) -> AsyncIterator[bytes]:
        async with self._semaphores.by(requester), aclosing(chunks):
            async for chunk in chunks:
                yield chunk

    async def _chunks(
        self, request: ResourceRequest, root: Metadata, name: str, only: Collection[ResourcePath]
    ) -> AsyncGenerator[bytes, None]:
        writer = _ZipWriter()
        written = 0
        async for path, metadata in self._walk(request, root, f"{name}/", only):
            written += 1
            if written > MAX_FILES:
                raise TooManyFiles(ResourceCodes.TOO_MANY_FILES, number=MAX_FILES)
            if metadata.kind.is_container:
                writer.add_folder(path, metadata)
            else:
                body = await self._readable_body(request, metadata)
                if body is None:
                    continue
                async for piece in writer.add_file(path, body[0], body[1]):
                    yield piece
            # Small files are read and written without waiting for anything.
            await asyncio.sleep(0)
            if writer.waiting_bytes >= _PIECE_BYTES:
                yield writer.take()
        await asyncio.to_thread(writer.finish)  # a second for a hundred thousand files
        yield writer.take()

    async def _walk(
        self, request: ResourceRequest, root: Metadata, prefix: str, only: Collection[ResourcePath]
    ) -> AsyncIterator[tuple[str, Metadata]]:
        """Each container and document that may be readable, with its path in the archive."""
        yield prefix, root
        opened = [_OpenFolder(prefix, self._members(root.path))]
        while opened:
            folder = opened[-1]
            member = await anext(folder.members, None)
            if member is None:
                opened.pop()
                continue
            if only and len(opened) == 1 and member.path not in only:
                continue
            if not member.kind.is_container:
                name = archive_name(segment_name(member.path), member.content_type)
                yield folder.prefix + folder.names.free(name), member
                continue
            # Only those who may read a container learn what is in it.
            if not await self._may_read(request, member.path):
                continue
            name = folder.names.free(archive_name(segment_name(member.path).rstrip("/"), None))
            inner = f"{folder.prefix}{name}/"
            yield inner, member
            opened.append(_OpenFolder(inner, self._members(member.path)))

    async def _members(self, container: ResourcePath) -> AsyncIterator[Metadata]:
        async for page in pages_of_members(self._store, container, page_members=_MEMBERS_AT_ONCE):
            for member in page:
                yield member

    async def _may_read(self, request: ResourceRequest, path: ResourcePath) -> bool:
        grant, _ = await self._gate.current_grant(request.agent, request.operation.origin, path)
        return grant.allows(Mode.READ)

    async def _readable_body(
        self, request: ResourceRequest, listed: Metadata
    ) -> tuple[Metadata, OpenBody] | None:
        """The current version of a document and its body; ``None`` if the agent may not read it
        or it does not exist any more."""
        path, origin = listed.path, request.operation.origin
        for _ in range(_ATTEMPTS):
            grant, snapshot = await self._gate.current_grant(request.agent, origin, path)
            metadata = snapshot[path]
            if metadata is None or not grant.allows(Mode.READ):
                return None
            body = await self._store.open_body(metadata)
            if body is not None:
                self._context.note_read(request.agent, path)
                return metadata, body
        raise Overloaded("A document changes too fast to be read; try again")


class _OpenFolder(msgspec.Struct):
    """A container that is being written to the archive: its path there, and what is left of it."""

    prefix: str
    members: AsyncIterator[Metadata]
    names: ArchiveFolder = msgspec.field(default_factory=ArchiveFolder)


class _Sink:
    """Collects the output of the archive writer until it is taken. It cannot seek."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.waiting_bytes = 0

    def write(self, piece: bytes) -> int:
        self.pieces.append(bytes(piece))
        self.waiting_bytes += len(piece)
        return len(piece)

    def flush(self) -> None:
        """Nothing is buffered."""


class _ZipWriter:
    """Writes one archive."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._zip = zipfile.ZipFile(self._sink, "w")  # type: ignore[call-overload]  # not a whole file

    @property
    def waiting_bytes(self) -> int:
        return self._sink.waiting_bytes

    def take(self) -> bytes:
        """What has been written since the last call."""
        taken = b"".join(self._sink.pieces)
        self._sink.pieces.clear()
        self._sink.waiting_bytes = 0
        return taken

    def add_folder(self, path: str, metadata: Metadata) -> None:
        info = _info(path, metadata)
        info.external_attr = (0o40755 << 16) | 0x10
        self._zip.writestr(info, b"")

    async def add_file(self, path: str, metadata: Metadata, body: OpenBody) -> AsyncIterator[bytes]:
        info = _info(path, metadata)
        info.external_attr = 0o100644 << 16
        info.file_size = body.size_bytes  # whether the entry needs ZIP64
        if not _is_compressed(metadata.content_type):
            info.compress_type = zipfile.ZIP_DEFLATED
        with self._zip.open(info, "w") as entry:
            async for piece in body.chunks():
                if len(piece) < _IN_THREAD_FROM_BYTES:
                    entry.write(piece)
                else:  # compression takes milliseconds
                    await asyncio.to_thread(entry.write, piece)
                if self.waiting_bytes >= _PIECE_BYTES:
                    yield self.take()

    def finish(self) -> None:
        """Write the directory of the archive. It takes ten microseconds for each file."""
        self._zip.close()


def _info(path: str, metadata: Metadata) -> zipfile.ZipInfo:
    modified = datetime.fromtimestamp(metadata.modified_ms / 1000, UTC)
    date = min(max(modified, _EARLIEST), _LATEST)
    info = zipfile.ZipInfo(
        path, (date.year, date.month, date.day, date.hour, date.minute, date.second)
    )
    info.create_system = 3  # Unix, so that the permissions below apply
    seconds = int(metadata.modified_ms // 1000)
    if -(2**31) <= seconds < 2**31:
        info.extra = _TIMESTAMP.pack(0x5455, 5, 1, seconds)
    return info


def _is_compressed(content_type: str) -> bool:
    media_type = essence(content_type)
    return media_type in _COMPRESSED or media_type.startswith(("video/", "audio/"))
