"""Is the data root ready for a server, and does no other server run on it?"""

from __future__ import annotations

import contextlib
import fcntl
import os
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from podstead.core.errors import RootInUse, RootUnusable, StorageError
from podstead.storage.blobs.local import DRAFTS
from podstead.storage.layout import RootLayout
from podstead.storage.sqlite.ephemeral_store import prepare_ephemeral_store
from podstead.storage.sqlite.migrate import migrate

_PRIVATE = 0o700
_PRIVATE_FILE = 0o600


def prepare_root(root: Path) -> RootLayout:
    """Make what is missing under ``root``, and bring the database's schema up to date.

    Everything made is for this account only; ``keys`` is made so if it is not. Raises
    RootUnusable, of which SchemaTooNew is one.
    """
    layout = RootLayout(root)
    try:
        root.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        _rename_files_of_earlier_versions(layout)
        for directory in (layout.blobs, layout.blobs / DRAFTS, layout.keys, layout.change_pipes):
            directory.mkdir(mode=_PRIVATE, exist_ok=True)
        layout.keys.chmod(_PRIVATE)
        for database in (layout.database, layout.ephemeral_database):
            os.close(os.open(database, os.O_RDWR | os.O_CREAT, _PRIVATE_FILE))
    except OSError as error:
        raise _unusable(root, error) from error
    try:
        migrate(layout.database)
        prepare_ephemeral_store(layout.ephemeral_database)
    except RootUnusable:
        raise
    except StorageError as error:
        raise RootUnusable(f"The data root {root} cannot be used. {error}") from error
    return layout


def _rename_files_of_earlier_versions(layout: RootLayout) -> None:
    """The ephemeral database was called passing.db before. Its rows are worth keeping, since they
    say which proofs have been used. The pipes were in doorbells/, which is empty by now."""
    former = layout.root / "passing.db"
    if former.exists() and not layout.ephemeral_database.exists():
        # The database comes last: until then, a start that was interrupted is repeated.
        for suffix in ("-wal", "-shm", ""):
            part = former.with_name(former.name + suffix)
            if part.exists():
                part.rename(
                    layout.ephemeral_database.with_name(layout.ephemeral_database.name + suffix)
                )
    with contextlib.suppress(OSError):
        (layout.root / "doorbells").rmdir()


def lock_root(root: Path) -> RootLock:
    """Claim a prepared root for one server, until the lock is released or the process ends.

    Only servers claim it: other commands may write beside a running server. Raises RootInUse,
    RootUnusable.
    """
    try:
        descriptor = os.open(RootLayout(root).lock, os.O_RDWR | os.O_CREAT, _PRIVATE_FILE)
    except OSError as error:
        raise _unusable(root, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise RootInUse(
                f"Another server is running on the data root {root}. Stop it first, or choose "
                "another root with --root."
            ) from error
        raise _unusable(root, error) from error
    return RootLock(descriptor)


class RootLock(AbstractContextManager["RootLock"]):
    """A claim on a data root. Released by leaving its context, or when the process ends."""

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
        """Give the claim up; harmless when done twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _unusable(root: Path, error: OSError) -> RootUnusable:
    message = f"The data root {root} cannot be used: {error.strerror}"
    if isinstance(error, PermissionError):
        return RootUnusable(
            f"{message}. Allow the current user to write there, or choose another root with --root."
        )
    return RootUnusable(f"{message}.")
