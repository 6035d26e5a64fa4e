"""Reads a folder written by somebody else, without ever leaving it.

Every file and folder is opened from the folder above it and never through a symbolic link, so
everything read is below the root folder, even if folders are renamed meanwhile. Links, devices,
sockets and unreadable files are reported to the caller, which lists them as left out.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from podstead.core.errors import RequestRefused
from podstead.features.importers.values import FoundResource

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

    async def content(self, resource: FoundResource) -> AsyncIterator[bytes]:
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
