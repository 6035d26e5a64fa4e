"""How the database is connected to, so that nobody waits for it without end.

A network that drops packets, or a database that stops without closing its connections, looks like
one that is slow. The system ends connections on which nothing is acknowledged, and the pools give
up statements that take too long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool

from podstead.storage.postgresql.array_values import register_arrays

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

    def __init__(self, conninfo: str, *, size: int, limit_s: float) -> None:
        """Opens nothing yet."""
        super().__init__(
            _named(with_limits(conninfo)),
            min_size=size,
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
    kept = connection._prepared  # noqa: SLF001 - only a rollback would do this, and forget all
    prepared = kept._prepared_idx  # noqa: SLF001
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
        if kept._prepared_idx != prepared:  # noqa: SLF001
            kept.clear()
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
