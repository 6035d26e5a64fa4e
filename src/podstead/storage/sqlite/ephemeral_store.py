"""Rate buckets and the replay cache, which workers share but which need not survive the machine.

Most requests write to this store, so a write must neither cost a durable commit nor notify the
readers of the change log. The store is a database of its own, whose writes are not synced to disk.
A crash of the server leaves it intact; a failure of the machine can damage it, so the first start
after a reboot creates it again. Writes run on the event loop and take about twenty microseconds.
"""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import apsw

from podstead.core.errors import DiskFull, Overloaded, StorageError
from podstead.storage.buckets import BucketRate, RetryAfter, Taken, one_us, take_one
from podstead.storage.disk_space import DiskSpace
from podstead.storage.sqlite.connection import BusyHandler

Outcome = TypeVar("Outcome")

MAX_BYTES: Final = 512 * 1024 * 1024
"""Enough for about five million rows; none is evicted early to make room for others (A-104)."""

SWEEP_ROWS: Final = 2000
"""The maximum number of rows that one step of a sweep removes."""

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_PAGE_BYTES: Final = 4096
_WAIT_S: Final = 0.25
_SCHEMA = """
    CREATE TABLE rate_buckets (
        bucket TEXT NOT NULL PRIMARY KEY,
        full_at_us BIGINT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE used_once (
        key BLOB NOT NULL PRIMARY KEY,
        until_ms BIGINT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX used_once_by_time ON used_once (until_ms);
"""
_SETTINGS = f"""
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -4096;
    PRAGMA max_page_count = {MAX_BYTES // _PAGE_BYTES};
"""
_USE = (
    "INSERT INTO used_once (key, until_ms) VALUES (?, ?) ON CONFLICT (key) DO UPDATE"
    " SET until_ms = excluded.until_ms WHERE until_ms <= ? RETURNING 1"
)

_IS_USED = "SELECT 1 FROM used_once WHERE key = ? AND until_ms > ?"
_GIVE_BACK = "UPDATE rate_buckets SET full_at_us = full_at_us - ? WHERE bucket = ?"


def prepare_ephemeral_store(database: Path, *, boot: Path = _BOOT) -> None:
    """Create the database, replacing one from before the last reboot. Raises StorageError.

    Several processes may do this at once. ``boot`` is a file whose content changes with each boot
    of the machine; without it, only a damaged database is replaced.
    """
    boot_number = _boot_number(boot)
    try:
        try:
            fresh = _prepare(database, boot_number)
        except (apsw.NotADBError, apsw.CorruptError):
            fresh = False
        if not fresh:
            _remove(database)
            _prepare(database, boot_number)
    except (apsw.Error, OSError) as error:
        raise _error() from error


def _boot_number(boot: Path) -> int:
    """A number for the current boot that fits SQLite's ``user_version``; 0 if unknown."""
    try:
        return zlib.crc32(boot.read_bytes()) & 0x7FFFFFFF
    except OSError:
        return 0


def _prepare(database: Path, boot_number: int) -> bool:
    """Create the tables; False if they are from before the last reboot."""
    connection = _connect(database, create=True)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.transaction_mode = "IMMEDIATE"
        with connection:
            if not connection.execute("SELECT count(*) FROM sqlite_schema").get:
                connection.execute(_SCHEMA)
                connection.pragma("user_version", boot_number)
        made: int = connection.pragma("user_version")
    finally:
        connection.close()
    return made == boot_number


def _remove(database: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


def _connect(database: Path, *, create: bool = False) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    connection = apsw.Connection(str(database), flags=flags)
    connection.set_busy_handler(BusyHandler(_WAIT_S))
    connection.execute(_SETTINGS)
    return connection


class EphemeralStore:
    """Stores rate buckets and used keys. Used from one thread only."""

    def __init__(self, database: Path, space: DiskSpace) -> None:
        """Open a prepared database. Raises apsw.Error."""
        self._space = space
        self._connection = _connect(database)

    def close(self) -> None:
        """Release the connection. Raises apsw.Error."""
        self._connection.close()

    async def take(self, bucket: str, rate: BucketRate, *, now_ms: int) -> int | None:
        """Take a token; ``None`` on success, otherwise the whole seconds to wait.

        Raises StorageError, Overloaded.
        """
        try:
            outcome = self._write(lambda: self._take(bucket, rate, now_ms))
        except apsw.Error as error:
            raise self._error(error) from error
        return None if isinstance(outcome, Taken) else outcome.seconds

    def _take(self, bucket: str, rate: BucketRate, now_ms: int) -> Taken | RetryAfter:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            outcome = take_one(self._full_at_us(bucket), rate, now_ms=now_ms)
            if isinstance(outcome, Taken):
                connection.execute(
                    "INSERT INTO rate_buckets (bucket, full_at_us) VALUES (?, ?)"
                    " ON CONFLICT (bucket) DO UPDATE SET full_at_us = excluded.full_at_us",
                    (bucket, outcome.full_at_us),
                )
            connection.execute("COMMIT")
        except BaseException:
            _roll_back(connection)
            raise
        return outcome

    def _write(self, note: Callable[[], Outcome]) -> Outcome:
        """Run a write, on a full disk with the help of the reserve. Raises apsw.Error."""
        try:
            return note()
        except (apsw.FullError, apsw.IOError):
            if not (self._space.is_exhausted() and self._space.release()):
                raise
            return note()

    async def wait_s(self, bucket: str, rate: BucketRate, *, now_ms: int) -> int | None:
        """What :meth:`take` would return, without taking a token. Raises StorageError,
        Overloaded."""
        try:
            outcome = take_one(self._full_at_us(bucket), rate, now_ms=now_ms)
        except apsw.Error as error:
            raise _error(error) from error
        return None if isinstance(outcome, Taken) else outcome.seconds

    async def give_back(self, bucket: str, per_s: float) -> None:
        """Return a token that was taken. Raises StorageError, Overloaded."""
        try:
            self._write(lambda: self._connection.execute(_GIVE_BACK, (one_us(per_s), bucket)))
        except apsw.Error as error:
            raise self._error(error) from error

    async def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> bool:
        """Record a use; False if the key was used before. Raises StorageError, Overloaded."""
        try:
            return self._write(
                lambda: self._connection.execute(_USE, (key, until_ms, now_ms)).get is not None
            )
        except apsw.Error as error:
            raise self._error(error) from error

    async def is_used(self, key: bytes, *, now_ms: int) -> bool:
        """Whether the key has been used. Raises StorageError, Overloaded."""
        try:
            return self._connection.execute(_IS_USED, (key, now_ms)).get is not None
        except apsw.Error as error:
            raise _error(error) from error

    def _full_at_us(self, bucket: str) -> int | None:
        full_at_us: int | None = self._connection.execute(
            "SELECT full_at_us FROM rate_buckets WHERE bucket = ?", (bucket,)
        ).get
        return full_at_us

    def sweep(self, *, now_ms: int) -> bool:
        """Delete a batch of expired rows; whether there may be more. Raises StorageError."""
        try:
            self._connection.execute(
                "DELETE FROM rate_buckets WHERE full_at_us <= ?", (now_ms * 1000,)
            )
            self._connection.execute(
                "DELETE FROM used_once WHERE key IN (SELECT key FROM used_once"
                " WHERE until_ms <= ? ORDER BY until_ms LIMIT ?)",
                (now_ms, SWEEP_ROWS),
            )
            return self._connection.changes() == SWEEP_ROWS
        except apsw.Error as error:
            raise _error(error) from error

    def _error(self, error: apsw.Error) -> StorageError | Overloaded:
        if isinstance(error, apsw.FullError | apsw.IOError) and self._space.is_exhausted():
            return DiskFull()
        return _error(error)


def _roll_back(connection: apsw.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _error(error: apsw.Error | None = None) -> StorageError | Overloaded:
    if isinstance(error, apsw.FullError | apsw.BusyError):
        return Overloaded("The server cannot record more requests at the moment")
    return StorageError("The ephemeral store could not be read or written")
