"""Private keys in the database, so that nodes need no disk in common (:mod:`..keys`).

They are stored as they are: whoever can read this table can sign as the server, as whoever can read
the files of a data root can. Access to it can be restricted, and ``pg_dump`` can leave it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from podstead.storage.postgresql.connecting import connect
from podstead.storage.postgresql.errors import storage_error
from podstead.storage.schema import Row

KEYS_LOCK: Final = 0x706F_6473_6B65_7973
"""The advisory lock of those who add and remove keys: "podskeys" in ASCII."""

_BELOW: Final = "starts_with(name, %s)"


class PostgresKeys:
    """Implements KeyStorage in a migrated database, with a connection for each call."""

    is_remote = True

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo

    def where(self, name: str) -> str:
        return f"{name} in the database"

    def read(self, name: str) -> bytes | None:
        found = self._run("SELECT content FROM private_keys WHERE name = %s", (name,))
        return bytes(found[0][0]) if found else None

    def read_folder(self, folder: str) -> Mapping[str, bytes]:
        select = f"SELECT name, content FROM private_keys WHERE {_BELOW} ORDER BY name"  # noqa: S608
        found = self._run(select, (f"{folder}/",))
        return {name: bytes(content) for name, content in found}

    def has_folder(self, folder: str) -> bool:
        return bool(self.mark(folder))

    def mark(self, folder: str) -> object:
        # A key never changes under its name.
        select = f"SELECT name FROM private_keys WHERE {_BELOW} ORDER BY name"  # noqa: S608
        return self._run(select, (f"{folder}/",))

    def add(self, name: str, content: bytes) -> None:
        self._run(
            "INSERT INTO private_keys (name, content) VALUES (%s, %s)"
            " ON CONFLICT (name) DO NOTHING RETURNING 1",
            (name, content),
        )

    def remove(self, name: str) -> bool:
        return bool(self._run("DELETE FROM private_keys WHERE name = %s RETURNING 1", (name,)))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Others wait for the lock, which ends with a transaction at the latest."""
        with _trouble(), connect(self._conninfo) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (KEYS_LOCK,))
            yield

    def _run(self, statement: str, values: Sequence[Any]) -> list[Row]:
        with _trouble(), connect(self._conninfo) as connection:
            return connection.execute(statement.encode(), values).fetchall()


@contextmanager
def _trouble() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise storage_error(
            error, "The keys in the database could not be read or stored"
        ) from error
