"""Opening the database for reading and for writing.

The database uses write-ahead logging with full synchronization: a commit is on disk when it
returns, and readers never wait for writers. Only writers checkpoint the log. Memory mapping is off,
so that an I/O error raises an exception and not a signal.
"""

import random
import time
from pathlib import Path

import apsw

from podstead.storage.files import why_not_usable

READ_BUSY_MS = 250
"""How long a read may block, and the event loop with it. Readers only wait for the recovery of the
log after a crash."""

WRITE_BUSY_S = 10.0
"""How long a writer waits for the writers of other processes."""

_RETRY_DELAY_S = (0.0001, 0.001)
_CACHE_KIB = 16 * 1024
_PAGE_BYTES = 4096
_CHECKPOINT_PAGES = 4000
_MIN_CHECKPOINT_PAGES = 100
_LOG_LIMIT_BYTES = 64 * 1024 * 1024
_STATEMENTS = 300

_READER_SETTINGS = f"""
    PRAGMA query_only = ON;
    PRAGMA cache_size = -{_CACHE_KIB};
"""
_WRITER_SETTINGS = f"""
    PRAGMA cache_size = -{_CACHE_KIB};
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    PRAGMA journal_size_limit = {_LOG_LIMIT_BYTES};
"""


class BusyHandler:
    """Makes a writer wait up to ``wait_s`` seconds for the writers of other processes.

    The delays are short and random; those of SQLite's own handler grow to 100 ms and starve
    writers.
    """

    __slots__ = ("_deadline_s", "wait_s")

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        self._deadline_s = 0.0

    def __call__(self, attempt: int) -> bool:
        """SQLite's busy handler: whether to try again."""
        now_s = time.monotonic()
        if attempt == 0:
            self._deadline_s = now_s + self.wait_s
        if now_s >= self._deadline_s:
            return False
        time.sleep(random.uniform(*_RETRY_DELAY_S))  # noqa: S311 - no secret
        return True


def open_reader(database: Path, *, vfs: str | None = None) -> apsw.Connection:
    """Open an existing database for reading only. Raises apsw.Error."""
    # Not SQLITE_OPEN_READONLY: a reader must write its read marks into the index of the log.
    connection = _connect(database, apsw.SQLITE_OPEN_READWRITE, vfs)
    connection.set_busy_timeout(READ_BUSY_MS)
    connection.execute(_READER_SETTINGS)
    return connection


def open_writer(
    database: Path,
    busy_handler: BusyHandler,
    *,
    vfs: str | None = None,
    create: bool = False,
    max_log_bytes: int = _CHECKPOINT_PAGES * _PAGE_BYTES,
) -> apsw.Connection:
    """Open a database for writing, and create it if missing and ``create``.

    When the log has ``max_log_bytes``, at the latest, it is checkpointed. Raises apsw.Error.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    connection = _connect(database, flags, vfs)
    connection.set_busy_handler(busy_handler)
    connection.execute(_WRITER_SETTINGS)
    pages = min(max(max_log_bytes // _PAGE_BYTES, _MIN_CHECKPOINT_PAGES), _CHECKPOINT_PAGES)
    connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
    return connection


def _connect(database: Path, flags: int, vfs: str | None) -> apsw.Connection:
    """Connect without executing anything: even a PRAGMA may have to wait for another process."""
    return apsw.Connection(str(database), flags=flags, vfs=vfs, statementcachesize=_STATEMENTS)


def bytes_on_disk(database: Path) -> int:
    """The size of a database with its log. Raises OSError."""
    files = (database, database.with_name(f"{database.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def explained(database: Path, error: Exception, *, otherwise: str) -> str:
    """Why the database cannot be used; ``otherwise``, with the error, if nothing else is known."""
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return f"{database} is damaged or no database: restore a backup, or give another root."
    reason = why_not_usable(database)
    return f"{otherwise}: {error}{f'. {reason}' if reason else ''}."
