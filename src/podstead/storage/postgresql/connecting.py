"""Connections to the database, what their errors mean, and how arrays are sent.

A network that drops packets, or a database that stops without closing its connections, looks like
one that is slow. The system ends connections on which nothing is acknowledged, and the pools give
up statements that take too long, so nobody waits without end.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from struct import Struct
from typing import Any, Final

import psycopg
import psycopg_pool
from psycopg import errors, pq
from psycopg.adapt import AdaptersMap, Dumper, PyFormat
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool

from podstead.core.errors import DiskFull, Overloaded, StorageError, StoreUnavailable

_BYTEA: Final = 17
_BYTEA_ARRAY: Final = 1001
_HEADER: Final = Struct("!iiIii")
"""Of the binary format: dimensions, whether there are nulls, type, and length and first index of
the only dimension."""
_LENGTH: Final = Struct("!i")
_NULL: Final = _LENGTH.pack(-1)


def register_arrays(adapters: AdaptersMap) -> None:
    """Convert lists of text, numbers or bytes, in which ``None`` stands for null."""
    adapters.register_dumper(list, _ArrayDumper)


class _ArrayDumper(Dumper):
    """Writes arrays as text, of the type that the statement expects."""

    def get_key(self, obj: Sequence[Any], format: PyFormat) -> Any:  # noqa: A002, ANN401, ARG002 - the driver's
        first = next((each for each in obj if each is not None), None)
        return (list, bytes) if isinstance(first, bytes) else self.cls

    def upgrade(self, obj: Sequence[Any], format: PyFormat) -> Dumper:  # noqa: A002, ARG002 - the driver's
        return _ByteArrayDumper(self.cls)

    def dump(self, obj: Sequence[Any]) -> bytes:
        """Raises psycopg.DataError."""
        try:
            text = '","'.join(obj)
            is_plain = text.count('"') == 2 * (len(obj) - 1) and "\\" not in text
        except TypeError:  # there are others than texts
            text, is_plain = "", False
        if not obj:
            return b"{}"
        written = f'{{"{text}"}}' if is_plain else f"{{{','.join(map(_element, obj))}}}"
        if "\0" in written:
            raise psycopg.DataError("A text has a character that the database does not know")
        return written.encode()


class _ByteArrayDumper(Dumper):
    """Writes arrays of bytes in binary form."""

    oid = _BYTEA_ARRAY
    format = pq.Format.BINARY

    def dump(self, obj: Sequence[bytes | None]) -> bytes:
        """The elements, each after its length."""
        pieces = [_HEADER.pack(1, 1 if None in obj else 0, _BYTEA, len(obj), 1)]
        for each in obj:
            pieces += (_NULL,) if each is None else (_LENGTH.pack(len(each)), each)
        return b"".join(pieces)


def _element(value: str | int | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(int(value))


CONNECTION_WAIT_S: Final = 5.0
"""How long a request waits for a connection before it is answered with 503."""

RECONNECT_S: Final = 3.0
"""How long the pool tries to replace a lost connection by itself. Its attempts become rarer, so
after this time the next request begins a new series."""

READ_LIMIT_S: Final = 10.0
"""After this time a read is ended, and answered with 503."""

WRITE_LIMIT_S: Final = 40.0
"""The same for a batch of writes. Waiting for a lock ends earlier."""

NODE: Final = "podstead node"
"""How the ``application_name`` of each pooled connection ends."""

_UNLESS_GIVEN: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Parameters of libpq that the URL may set otherwise: after 10 to 25 seconds without any
acknowledgement, a connection is lost."""


def with_limits(conninfo: str) -> str:
    """The connection string with limits for what it does not limit itself. Raises
    psycopg.ProgrammingError."""
    given = conninfo_to_dict(conninfo)
    missing = {name: value for name, value in _UNLESS_GIVEN.items() if name not in given}
    return make_conninfo(conninfo, **missing)


def _named(conninfo: str) -> str:
    """The connection string with a name by which nodes know the sessions of nodes."""
    given = conninfo_to_dict(conninfo).get("application_name")
    return make_conninfo(conninfo, application_name=f"{given} {NODE}" if given else NODE)


_shared: ContextVar[tuple[str, psycopg.Connection] | None]
_shared = ContextVar("podstead_shared_connection", default=None)


@contextmanager
def connect(conninfo: str) -> Iterator[psycopg.Connection]:
    """A connection for a command, or for the start of a server, with one transaction around what is
    done with it. Raises psycopg.Error.

    Within :func:`sharing_connection`, it is the shared one; a transaction in another is a part of
    that.
    """
    shared = _shared.get()
    if shared is not None and shared[0] == conninfo:
        with shared[1].transaction():
            yield shared[1]
        return
    with psycopg.connect(with_limits(conninfo)) as connection:
        yield connection


@contextmanager
def sharing_connection(conninfo: str) -> Iterator[None]:
    """Use one connection for everything that :func:`connect` is called for in this context. Raises
    psycopg.Error."""
    with psycopg.connect(with_limits(conninfo)) as connection:
        token = _shared.set((conninfo, connection))
        try:
            yield
        finally:
            _shared.reset(token)


async def connect_for(conninfo: str) -> psycopg.AsyncConnection:
    """A connection of a worker that no pool has. Raises psycopg.Error."""
    return await psycopg.AsyncConnection.connect(with_limits(conninfo), autocommit=True)


class ConnectionPool(AsyncConnectionPool):
    """The connections of a worker for one purpose, each of which is used for a limited time.

    Whoever asks first is first to get one.
    """

    def __init__(self, conninfo: str, size: int, *, limit_s: float, is_lazy: bool = False) -> None:
        """Opens nothing yet, and later at once or, if it ``is_lazy``, what is asked for."""
        super().__init__(
            _named(with_limits(conninfo)),
            min_size=0 if is_lazy else size,
            max_size=size,
            open=False,
            timeout=CONNECTION_WAIT_S,
            reconnect_timeout=RECONNECT_S,
            configure=_configure,
            kwargs={"autocommit": True},
        )
        self.limit_s = limit_s

    @asynccontextmanager
    async def connection(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the driver
    ) -> AsyncIterator[Any]:
        """A connection for statements that end in time.

        Raises TimeoutError after the limit: the driver has canceled the statement then, or closed
        the connection. Raises psycopg.Error.
        """
        async with asyncio.timeout(self.limit_s), super().connection(timeout) as connection:
            yield connection


@asynccontextmanager
async def pipelined(connection: psycopg.AsyncConnection[Any]) -> AsyncIterator[None]:
    """A pipeline of the connection. Raises psycopg.Error.

    What the database has skipped after an error, the driver takes for done: also the preparation of
    a statement, which would be missing from then on.
    """
    manager = connection._prepared  # noqa: SLF001 - only a rollback would do this, and forget all
    prepared = manager._prepared_idx  # noqa: SLF001
    failed: psycopg.Error | None = None
    try:
        async with connection.pipeline():
            try:
                yield
            except psycopg.Error as error:  # of which the end of the pipeline would log a second
                failed = error
    except psycopg.Error as error:
        failed = failed or error
    if failed is not None:
        if manager._prepared_idx != prepared:  # noqa: SLF001
            manager.clear()
        raise failed


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    """Prepare no statements behind a pooler, which may pass each transaction to another session.

    A pooler gives its clients numbers of its own for sessions. Raises psycopg.Error.
    """
    register_arrays(connection.adapters)
    cursor = await connection.execute("SELECT pg_backend_pid()")
    row = await cursor.fetchone()
    if row is not None and row[0] != connection.info.backend_pid:
        connection.prepare_threshold = None


RETRIED = (errors.SerializationFailure, errors.DeadlockDetected)
"""A transaction that fails so has changed nothing and can be run again."""

JOB_ERRORS = (errors.IntegrityError, errors.DataError, errors.ProgramLimitExceeded)
"""Errors that one job of a batch causes, so that the others may succeed without it."""

_POOL_ERRORS = (
    psycopg_pool.PoolClosed,
    psycopg_pool.PoolTimeout,
    psycopg_pool.TooManyRequests,
)
_READ_ERRORS = (psycopg.Error, OSError, ValueError, TypeError, LookupError)
"""Errors of the database, of its connection, and those caused by rows with unexpected values."""


def storage_error(error: BaseException, message: str) -> StorageError | Overloaded:
    """The error to raise instead of ``error``."""
    if isinstance(error, StorageError | Overloaded):
        return error
    if isinstance(error, psycopg_pool.TooManyRequests):
        return Overloaded("The server has too few connections to its database at the moment")
    found = _found(error, message)
    found.__cause__ = error
    return found


def is_lost_connection(error: psycopg.OperationalError) -> bool:
    """Whether a connection that had been open is lost: the database was shut down or has failed
    over, or the network is gone."""
    if isinstance(error, _POOL_ERRORS):
        return False
    # What the driver notices itself has no code of the database.
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def _found(error: BaseException, message: str) -> StorageError:
    if isinstance(error, errors.DiskFull):
        return DiskFull()
    # The database was shut down, has failed over, or the connection is lost.
    is_away = isinstance(error, psycopg.OperationalError | errors.ReadOnlySqlTransaction)
    if (is_away and not isinstance(error, psycopg_pool.PoolClosed)) or isinstance(
        error, TimeoutError
    ):
        return StoreUnavailable()
    return StorageError(message)


@contextmanager
def reading() -> Iterator[None]:
    """Raise StorageError or Overloaded for what fails in the context."""
    try:
        yield
    except (StorageError, Overloaded):
        raise
    except _READ_ERRORS as error:
        raise storage_error(error, "The store could not be read") from error
