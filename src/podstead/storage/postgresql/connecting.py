"""How the database is connected to, so that nobody waits for it without end.

A network that drops packets, or a database that stops without closing its connections, looks like
one that is slow. The system ends connections on which nothing is acknowledged, and the pools give
up statements that take too long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool

CONNECTION_WAIT_S: Final = 5.0
"""How long a request waits for a connection before it is answered with 503."""

RECONNECT_S: Final = 3.0
"""How long the pool tries to replace a lost connection by itself. Its attempts become rarer, so
after this time the next request begins a new series."""

READ_LIMIT_S: Final = 10.0
"""After this time a read is ended, and answered with 503."""

WRITE_LIMIT_S: Final = 40.0
"""The same for a batch of writes, each statement of which the database ends earlier."""

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


def connect(conninfo: str) -> psycopg.Connection:
    """A connection for a command, or for the start of a server. Raises psycopg.Error."""
    return psycopg.connect(with_limits(conninfo))


async def connect_for(conninfo: str) -> psycopg.AsyncConnection:
    """A connection of a worker that no pool has. Raises psycopg.Error."""
    return await psycopg.AsyncConnection.connect(with_limits(conninfo), autocommit=True)


class ConnectionPool(AsyncConnectionPool):
    """The connections of a worker for one purpose, each of which is used for a limited time."""

    def __init__(self, conninfo: str, *, size: int, limit_s: float) -> None:
        """Opens nothing yet."""
        super().__init__(
            with_limits(conninfo),
            min_size=size,
            max_size=size,
            open=False,
            timeout=CONNECTION_WAIT_S,
            reconnect_timeout=RECONNECT_S,
            kwargs={"autocommit": True},
        )
        self._limit_s = limit_s

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator[Any]:  # noqa: ASYNC109
        """A connection for statements that end in time. Raises TimeoutError after the limit: the
        driver has canceled the statement then, or closed the connection."""
        async with asyncio.timeout(self._limit_s), super().connection(timeout) as connection:
            yield connection
