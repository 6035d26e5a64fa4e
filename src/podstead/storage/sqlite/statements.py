"""Statements with many keys or rows.

Each statement costs a call of the driver and, in a thread, a switch of the interpreter lock.
Therefore one statement reads many keys or writes many rows. Statements have only a few sizes,
powers of two, so that they stay in the cache of prepared statements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import apsw

from podstead.storage.schema import Row
from podstead.storage.steps import Begin, Result

MAX_ROWS = 64
"""The maximum number of rows or keys in one statement, far below SQLite's parameter limit."""


def run_in(connection: apsw.Connection, statement: str, keys: Sequence[str]) -> list[Row]:
    """Run ``statement``, which ends in ``IN``, for all ``keys``, and return the rows of a SELECT.

    Up to :data:`MAX_ROWS` keys are one statement, and thus one snapshot.
    """
    rows: list[Row] = []
    for start in range(0, len(keys), MAX_ROWS):
        some = tuple(keys[start : start + MAX_ROWS])
        size = _power_of_two_from(len(some))
        padded = some + some[-1:] * (size - len(some))
        rows += connection.execute(_in_text(statement, size), padded).fetchall()
    return rows


def insert_rows(
    connection: apsw.Connection,
    insert: str,
    rows: Sequence[Sequence[apsw.SQLiteValue]],
    conflict: str = "",
) -> None:
    """Run ``insert``, which ends before ``VALUES``, with all ``rows`` and a conflict clause."""
    start = 0
    while start < len(rows):
        size = min(MAX_ROWS, _power_of_two_to(len(rows) - start))
        some = rows[start : start + size]
        text = _values_text(insert, size, len(some[0]), conflict)
        connection.execute(text, tuple(chain.from_iterable(some)))
        start += size


def run_steps(connection: apsw.Connection, begin: Begin[Result]) -> Result:
    """Run the statements of some steps. Raises apsw.Error."""
    steps = begin()
    try:
        text, values, _ = next(steps)
        while True:
            rows: list[Row] = connection.execute(in_sqlite(text), values).fetchall()
            text, values, _ = steps.send(rows)
    except StopIteration as end:
        result: Result = end.value
        return result


@lru_cache(maxsize=64)
def in_sqlite(statement: str) -> str:
    """A statement for both engines, with the marks of this one for its values, and without locks of
    rows, since one transaction at a time writes."""
    return re.sub(r" FOR UPDATE( SKIP LOCKED)?", "", statement).replace("%s", "?")


@lru_cache(maxsize=256)
def _in_text(statement: str, size: int) -> str:
    """``statement`` with a list of ``size`` parameters at its end."""
    return f"{statement} ({', '.join('?' * size)})"


@lru_cache(maxsize=256)
def _values_text(insert: str, size: int, columns: int, conflict: str) -> str:
    row = f"({', '.join('?' * columns)})"
    return f"{insert} VALUES {', '.join([row] * size)} {conflict}"


def _power_of_two_from(count: int) -> int:
    """The smallest power of two not below ``count``."""
    return 1 << (count - 1).bit_length()


def _power_of_two_to(count: int) -> int:
    """The largest power of two not above ``count``."""
    return 1 << (count.bit_length() - 1)
