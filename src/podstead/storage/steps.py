"""Changes of the tables that are written once for both engines.

Such a function yields one statement after another, each with its values, and is sent the rows that
the statement returns. ``%s`` stands for a value, and rows may be locked. Each engine runs it in a
transaction of its writer, and waits for the database in its own way.
"""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from podstead.storage.schema import Row

Result = TypeVar("Result")


class SqlStatement(NamedTuple):
    """One statement with its values. Rows are waited for only if it ``returns_rows``."""

    text: str
    values: tuple[Any, ...]
    returns_rows: bool


Steps = Generator[SqlStatement, list[Row], Result]
Begin = Callable[[], Steps[Result]]
"""Begins the steps, once for each attempt."""


def run_sql(text: str, *values: object) -> SqlStatement:
    """A statement that returns nothing."""
    return SqlStatement(text, values, returns_rows=False)


def query(text: str, *values: object) -> SqlStatement:
    """A statement that returns rows."""
    return SqlStatement(text, values, returns_rows=True)
