"""Preparing the data root, and locking it for one server."""

import contextlib
import hashlib
import os
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from podstead.core.errors import RootInUse, RootUnusable, StorageError
from podstead.storage.blobs.body_store import DRAFTS, UPLOADS
from podstead.storage.files import try_lock, why_not_usable
from podstead.storage.layout import RootLayout
from podstead.storage.sqlite.database import migrate
from podstead.storage.sqlite.ephemeral_store import prepare_ephemeral_store

_PRIVATE = 0o700
_PRIVATE_FILE = 0o600


def prepare_root(root: Path) -> RootLayout:
    """Create what is missing under ``root``, and migrate the database to the current schema.

    Raises RootUnusable, including its subclass SchemaTooNew.
    """
    layout = prepare_folders(root)
    try:
        for database in (layout.database, layout.ephemeral_database):
            _create_file(database)
    except OSError as error:
        raise unusable(root, error) from error
    try:
        migrate(layout.database)
        prepare_ephemeral_store(layout.ephemeral_database)
    except RootUnusable:
        raise
    except StorageError as error:
        raise RootUnusable(f"The data root {root} cannot be used. {error}") from error
    return layout


def prepare_folders(root: Path) -> RootLayout:
    """Create what is missing under ``root`` besides databases.

    Everything is created for this account only; the permissions of ``keys`` are corrected if
    necessary. Raises RootUnusable.
    """
    layout = RootLayout(root)
    if layout.restoring.exists():
        raise RootUnusable(
            f"A backup was being restored into {root}, and that did not finish. Remove everything "
            "in it, and restore again."
        )
    try:
        root.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        _rename_files_of_earlier_versions(layout)
        blobs = layout.blobs
        for directory in (
            blobs,
            blobs / DRAFTS,
            blobs / UPLOADS,
            layout.keys,
            layout.change_pipes,
        ):
            directory.mkdir(mode=_PRIVATE, exist_ok=True)
        layout.keys.chmod(_PRIVATE)
        # The lock of backups belongs to the server's account, whoever makes the first backup.
        _create_file(layout.removal_lock)
    except OSError as error:
        raise unusable(root, error) from error
    return layout


def _create_file(path: Path) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, _PRIVATE_FILE))


def _rename_files_of_earlier_versions(layout: RootLayout) -> None:
    """Earlier versions called the ephemeral database passing.db. Its rows are kept, because they
    record which proofs have been used. The pipes were in doorbells/, which is empty by now."""
    old = layout.root / "passing.db"
    if old.exists() and not layout.ephemeral_database.exists():
        # The database is renamed last: until then, an interrupted start is repeated.
        for suffix in ("-wal", "-shm", ""):
            part = old.with_name(old.name + suffix)
            if part.exists():
                part.rename(
                    layout.ephemeral_database.with_name(layout.ephemeral_database.name + suffix)
                )
    with contextlib.suppress(OSError):
        (layout.root / "doorbells").rmdir()


def root_mark(root: Path) -> str:
    """A text by which those who can read a data root know it, and nobody else: its lock is never
    written, so its date is that of the first start, to the nanosecond. Empty without one."""
    try:
        status = RootLayout(root).lock.stat()
    except OSError:
        return ""
    return hashlib.sha256(f"{status.st_ino}:{status.st_mtime_ns}".encode()).hexdigest()


def lock_root(root: Path, *, shared: bool = False) -> "RootLock":
    """Lock a prepared root for one server, until the lock is released or the process ends.

    Servers whose records are elsewhere share it. Only servers lock it: other commands may write
    while a server is running. Raises RootInUse, RootUnusable.
    """
    try:
        descriptor = os.open(RootLayout(root).lock, os.O_RDWR | os.O_CREAT, _PRIVATE_FILE)
    except OSError as error:
        raise unusable(root, error) from error
    try:
        is_ours = try_lock(descriptor, shared=shared)
    except OSError as error:
        os.close(descriptor)
        raise unusable(root, error) from error
    if not is_ours:
        os.close(descriptor)
        raise RootInUse(
            f"Another server is running on the data root {root}. Stop it first, or choose "
            "another root with --root."
        )
    return RootLock(descriptor)


class RootLock(AbstractContextManager["RootLock"]):
    """The lock on a data root, released by leaving its context or when the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def unusable(root: Path, error: OSError) -> RootUnusable:
    """The refusal of a data root that cannot be read or written, with the reason."""
    reason = why_not_usable(root)
    if reason:
        return RootUnusable(f"The data root {root} cannot be used: {reason}.")
    message = f"The data root {root} cannot be used: {error.strerror}"
    if isinstance(error, PermissionError):
        return RootUnusable(
            f"{message}. Allow the current user to write there, or choose another root with --root."
        )
    return RootUnusable(f"{message}.")
