"""Reads a folder written by somebody else, without ever leaving it.

Every file and folder is opened from the folder above it and never through a symbolic link, so
everything read is below the root folder, even if folders are renamed meanwhile. Links, devices,
sockets and unreadable files are reported to the caller, which lists them as left out.

A walk through a folder turns its files into resources, by the naming of the server that wrote them.
Other Solid servers take the media type of a file from the table of the npm package ``mime-types``.
The table here (``media_types.txt``: a type and its extensions on each line) agrees with it, as a
test checks, and has the types that people keep in pods; others are reported, not guessed.
"""

import asyncio
import errno
import json
import os
import re
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec

from podstead.core.errors import BadRequest, RequestRefused
from podstead.core.identifiers import ACL_SUFFIX, DESCRIPTION_SUFFIX, encode_segment, parse_path
from podstead.core.media_types import TURTLE
from podstead.features.importers import values

Parts = tuple[str, ...]
"""The path from the root folder to a file or folder, as names."""

MAX_RECORD_BYTES: Final = 4 * 1024 * 1024
"""The largest file that is read into memory, such as an account."""
MAX_LEVELS: Final = 128
_ELSEWHERE: Final = frozenset({"", os.curdir, os.pardir})
_PIECE_BYTES: Final = 256 * 1024
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Opening a named pipe would wait for a writer.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Unreadable(RequestRefused):
    """A file or folder that cannot be read, and why."""


class EntryKind(Enum):
    """The kinds of entries in a folder."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "symbolic link"
    OTHER = "device, pipe or socket"


class FolderEntry(msgspec.Struct, frozen=True):
    """A file or folder, by its place below the root folder."""

    parts: Parts
    kind: EntryKind
    size_bytes: int
    modified_ms: int

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def is_text(self) -> bool:
        """Whether its name is UTF-8."""
        try:
            self.name.encode()
        except UnicodeEncodeError:
            return False
        return True


class Folder:
    """A folder and everything below it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def entries(self, parts: Parts = ()) -> list[FolderEntry]:
        """The entries of a folder, by name. Raises Unreadable."""
        if len(parts) > MAX_LEVELS:
            raise Unreadable(f"It is more than {MAX_LEVELS} levels deep")
        try:
            with self._opened(parts, _FOLDER) as descriptor, os.scandir(descriptor) as listed:
                found = [
                    _entry((*parts, each.name), each.stat(follow_symlinks=False)) for each in listed
                ]
        except OSError as error:
            raise Unreadable(_reason(error)) from error
        return sorted(found, key=lambda entry: os.fsencode(entry.name))

    def has_folder(self, parts: Parts) -> bool:
        """Whether there is a folder that can be opened."""
        try:
            with self._opened(parts, _FOLDER):
                return True
        except OSError:
            return False

    def has_file(self, parts: Parts) -> bool:
        """Whether there is a file that can be opened."""
        try:
            with self._opened(parts, _FILE) as descriptor:
                return stat.S_ISREG(os.fstat(descriptor).st_mode)
        except OSError:
            return False

    def read(self, parts: Parts, *, max_bytes: int = MAX_RECORD_BYTES) -> bytes:
        """The content of a small file. Raises Unreadable."""
        content = self.beginning(parts, max_bytes + 1)
        if len(content) > max_bytes:
            raise Unreadable(f"It is larger than {max_bytes} bytes")
        return content

    def beginning(self, parts: Parts, size_bytes: int) -> bytes:
        """The first bytes of a file. Raises Unreadable."""
        try:
            with self._opened_file(parts) as descriptor, open(descriptor, "rb", closefd=False) as f:
                return f.read(size_bytes)
        except OSError as error:
            raise Unreadable(_reason(error)) from error

    async def pieces(self, parts: Parts) -> AsyncIterator[bytes]:
        """The content of a file, however large. Raises Unreadable."""
        try:
            with self._opened_file(parts) as descriptor:
                while piece := await asyncio.to_thread(os.read, descriptor, _PIECE_BYTES):
                    yield piece
        except OSError as error:
            raise Unreadable(_reason(error)) from error

    async def content(self, resource: values.FoundResource) -> AsyncIterator[bytes]:
        """What a reader provides for a resource, or its file. Raises Unreadable."""
        if resource.content is not None:
            yield resource.content
            return
        async for piece in self.pieces(resource.parts or ()):
            yield piece

    @contextmanager
    def _opened_file(self, parts: Parts) -> Iterator[int]:
        with self._opened(parts, _FILE) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unreadable("It is not a file")
            yield descriptor

    @contextmanager
    def _opened(self, parts: Parts, flags: int) -> Iterator[int]:
        """The descriptor of an entry, opened step by step. Raises OSError."""
        descriptor = os.open(self._root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for index, name in enumerate(parts):
                if name in _ELSEWHERE or "/" in name or "\0" in name:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
                last = index == len(parts) - 1
                inner = os.open(name, flags if last else _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)


def _entry(parts: Parts, status: os.stat_result) -> FolderEntry:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        kind = EntryKind.FILE
    elif stat.S_ISDIR(mode):
        kind = EntryKind.FOLDER
    elif stat.S_ISLNK(mode):
        kind = EntryKind.LINK
    else:
        kind = EntryKind.OTHER
    return FolderEntry(parts, kind, status.st_size, status.st_mtime_ns // 1_000_000)


def json_of(content: bytes) -> Any:  # noqa: ANN401 - any JSON
    """The JSON in a file. Raises Unreadable, also if it is nested too deeply."""
    try:
        return json.loads(content.decode(), parse_constant=_not_json)
    except RecursionError as error:
        raise Unreadable("It is nested too deeply") from error
    except ValueError as error:
        raise Unreadable("It is not JSON") from error


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def readable_path(parts: Parts) -> str:
    """The parts as printable text, whatever bytes they contain."""
    return "/".join(os.fsencode(part).decode("utf-8", "backslashreplace") for part in parts)


def _reason(error: OSError) -> str:
    return error.strerror or "It cannot be read"


SUFFIXES: Final = (ACL_SUFFIX, DESCRIPTION_SUFFIX)

Found = Iterator[values.FoundResource | values.LeftOut]


class NamedFiles:
    """The files of a folder, by the naming of the server that wrote them. Methods about names raise
    BadRequest for one that no URL has."""

    suffixes: Sequence[str] = SUFFIXES
    """The suffixes of the names of auxiliary resources."""

    kept: re.Pattern[str] | None = None
    """What is percent-encoded in the names of files."""

    def __init__(self, path: Path) -> None:
        self._folder = Folder(path)

    def segment(self, name: str) -> str:
        """The path segment of a container or document by the name of its file, encoded."""
        return segment_of(name, kept=self.kept)

    def without_extension(self, name: str) -> str:
        """The name of a file without the server's addition for the media type."""
        return name

    def document_type(self, entry: FolderEntry, url: str) -> str:
        """The media type of the document with this URL."""
        raise NotImplementedError

    def auxiliary_type(self, entry: FolderEntry) -> str:  # noqa: ARG002 - some look into it
        """The media type of an ACL or a description."""
        return TURTLE

    def passed_over(self, entry: FolderEntry) -> str | None:  # noqa: ARG002 - some look at it
        """Why an entry is not a resource: empty if nothing is lost, ``None`` if it is one."""
        return None

    def content(self, resource: values.FoundResource) -> AsyncIterator[bytes]:
        """The content of a resource that is not a container. Iterating raises Unreadable."""
        return self._folder.content(resource)


class OtherServer(NamedFiles):
    """The data of another server."""

    base_url: str
    """The URL at which it was served, with a trailing slash."""

    pods: Sequence[values.FoundPod]
    accounts: Sequence[values.FoundAccount] = ()

    left_out: list[values.LeftOut]
    """The items outside of pods that cannot be imported."""

    def __init__(self, path: Path, *, base_url: str | None = None) -> None:  # noqa: ARG002
        """``base_url`` is needed if the data does not contain it. Raises NotThisServer."""
        super().__init__(path)
        self.left_out = []

    def resources(self, pod: values.FoundPod) -> Found:
        """Everything in a pod, containers before their members."""
        raise NotImplementedError

    def _leave_out(self, parts: Parts, reason: str) -> None:
        self.left_out.append(values.LeftOut(readable_path(parts), reason))

    def _owner_in_acl(self, parts: Parts, url: str) -> str | None:
        try:
            return values.owner_in_acl(self._folder.read((*parts, ACL_SUFFIX)), container_url=url)
        except RequestRefused:
            return None


def checked_base_url(found: object) -> str:
    """The URL at which a server was served, with a trailing slash. Raises NotThisServer."""
    if not isinstance(found, str) or not urlsplit(found).netloc:
        raise values.NotThisServer("The data does not say its base URL. Add --from-url")
    return found.removesuffix("/") + "/"


def resources_of(
    folder: Folder, pod: values.FoundPod, naming: NamedFiles, *, but: frozenset[Parts]
) -> Found:
    """Everything in a pod, except the folders ``but`` of other pods."""
    return _Walk(folder, pod, naming, but).container(pod.folder, "")


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk through the folders of one pod."""

    folder: Folder
    pod: values.FoundPod
    naming: NamedFiles
    but: frozenset[Parts]

    def container(self, parts: Parts, path: str) -> Found:
        """A container with everything below it."""
        try:
            entries = self.folder.entries(parts)
        except Unreadable as error:
            yield values.LeftOut(readable_path(parts), str(error))
            return
        yield values.FoundResource(path, self.pod.url + path, TURTLE)
        taken: dict[str, FolderEntry] = {}
        for entry in entries:
            if entry.parts not in self.but:
                yield from self._entry(entry, path, taken)

    def _entry(self, entry: FolderEntry, path: str, taken: dict[str, FolderEntry]) -> Found:
        place = readable_path(entry.parts)
        reason = _why_not(entry, self.naming)
        if reason is not None:
            if reason:
                yield values.LeftOut(place, reason)
            return
        try:
            if entry.kind is EntryKind.FOLDER:
                inner = f"{path}{self.naming.segment(entry.name)}/"
                yield from self.container(entry.parts, inner)
                return
            found = self._file(entry, path)
        except BadRequest as error:
            yield values.LeftOut(place, str(error))
            return
        if found.path in taken:
            other = taken[found.path].name
            yield values.LeftOut(place, f"It has the same URL as the file {other}")
            return
        taken[found.path] = entry
        yield found

    def _file(self, entry: FolderEntry, path: str) -> values.FoundResource:
        naming = self.naming
        suffix = next((each for each in naming.suffixes if entry.name.endswith(each)), None)
        if suffix is None:
            path += naming.segment(naming.without_extension(entry.name))
            media_type = naming.document_type(entry, self.pod.url + path)
        else:
            subject = entry.name.removesuffix(suffix)
            path += (naming.segment(subject) if subject else "") + suffix
            media_type = naming.auxiliary_type(entry)
        return values.FoundResource(
            path, self.pod.url + path, media_type, entry.parts, entry.modified_ms
        )


def _why_not(entry: FolderEntry, naming: NamedFiles) -> str | None:
    if not entry.is_text:
        return "Its name is not UTF-8"
    reason = naming.passed_over(entry)
    if reason is not None:
        return reason
    if entry.kind is EntryKind.LINK:
        return "It is a symbolic link, which is not followed"
    if entry.kind is EntryKind.OTHER:
        return "It is neither a file nor a folder"
    return None


def segment_of(name: str, *, kept: re.Pattern[str] | None = None) -> str:
    """The canonical path segment for a name. Raises BadRequest for one that no URL has.

    ``kept`` matches the parts of the name that are already percent-encoded.
    """
    decoded, position = b"", 0
    for match in kept.finditer(name) if kept is not None else ():
        decoded += name[position : match.start()].encode() + unquote_to_bytes(match[0])
        position = match.end()
    segment = encode_segment(decoded + name[position:].encode())
    parse_path(f"/{segment}".encode())
    return segment


OCTET_STREAM: Final = "application/octet-stream"

_TABLE: Final = files("podstead.features.importers").joinpath("media_types.txt").read_text("utf-8")
_TYPES: Final = {
    extension: line.split()[0] for line in _TABLE.splitlines() for extension in line.split()[1:]
}


def extension_of(name: str) -> str:
    """The extension of a file name in lower case, without the dot; empty if it has none."""
    _, dot, extension = name.rpartition(".")
    return extension.lower() if dot else ""


def type_by_extension(extension: str) -> str | None:
    """The media type; ``None`` for an extension that is not known."""
    return _TYPES.get(extension)
