"""Stores private keys, in files of the data root or in the database that nodes share.

A key has a name, which may begin with a folder, as ``provider/1.json`` does.
"""

import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol, TypeVar

from podstead.core.errors import StorageError
from podstead.storage.files import sync_directory, write_private

Result = TypeVar("Result")

_PRIVATE = 0o700


class DamagedKey(StorageError):
    """What is stored under the name of a key is none."""


class KeyStorage(Protocol):
    """Stores private keys. Every method raises StorageError."""

    @property
    def is_remote(self) -> bool:
        """Whether reading takes so long that an event loop must not wait for it."""

    def where(self, name: str) -> str:
        """Where a key or folder is, for messages."""

    def read(self, name: str) -> bytes | None:
        """The key with that name, if there is one."""

    def read_folder(self, folder: str) -> Mapping[str, bytes]:
        """All keys of a folder, by their full names, in the order of those."""

    def has_folder(self, folder: str) -> bool:
        """Whether any key of the folder has ever been stored."""

    def mark(self, folder: str) -> object:
        """Something that is different after a key of the folder was added or removed."""

    def add(self, name: str, content: bytes) -> None:
        """Store a key durably, unless there is one with that name."""

    def remove(self, name: str) -> bool:
        """Remove a key; whether there was one."""

    def locked(self) -> AbstractContextManager[None]:
        """Lock the keys while it lasts, where that can be had."""


class KeyFiles:
    """Implements KeyStorage on a directory that only the server's account can read. Several
    processes may use it; each file appears as a whole."""

    is_remote = False

    def __init__(self, directory: Path) -> None:
        """The directory exists."""
        self._directory = directory

    def where(self, name: str) -> str:
        return str(self._directory / name)

    def read(self, name: str) -> bytes | None:
        return self._run("read", lambda: _read(self._directory / name))

    def read_folder(self, folder: str) -> Mapping[str, bytes]:
        return self._run("read", lambda: self._read_folder(folder))

    def has_folder(self, folder: str) -> bool:
        return (self._directory / folder).is_dir()

    def mark(self, folder: str) -> object:
        return self._run("read", lambda: (self._directory / folder).stat().st_mtime_ns)

    def add(self, name: str, content: bytes) -> None:
        self._run("stored", lambda: self._add(self._directory / name, content))

    def remove(self, name: str) -> bool:
        return self._run("removed", lambda: _remove(self._directory / name))

    def locked(self) -> AbstractContextManager[None]:
        """Several may add keys at the same time: an additional key does no harm."""
        return nullcontext()

    def _read_folder(self, folder: str) -> Mapping[str, bytes]:
        names = [path.name for path in sorted((self._directory / folder).glob("*.json"))]
        read = {f"{folder}/{name}": _read(self._directory / folder / name) for name in names}
        # One that has gone meanwhile was removed by another process.
        return {name: content for name, content in read.items() if content is not None}

    @staticmethod
    def _add(path: Path, content: bytes) -> None:
        if path.exists():
            return
        path.parent.mkdir(mode=_PRIVATE, exist_ok=True)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        write_private(draft, content)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        sync_directory(path.parent)

    def _run(self, what: str, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except OSError as error:
            raise StorageError(f"The keys in {self._directory} could not be {what}") from error


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
