"""What errors of the database mean to those who use the store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import psycopg_pool
from psycopg import errors

from podstead.core.errors import DiskFull, Overloaded, StorageError, StoreUnavailable

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
