"""Changes of the tables that are written once for both engines.

Such a function yields one statement after another, each with its values, and is sent the rows that
the statement returns. ``%s`` stands for a value, and rows may be locked. Each engine runs it in a
transaction of its writer, and waits for the database in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from podstead.storage.schema import Row

Result = TypeVar("Result")


class Statement(NamedTuple):
    """One statement with its values. Rows are waited for only if it ``returns_rows``."""

    text: str
    values: tuple[Any, ...]
    returns_rows: bool


Steps = Generator[Statement, list[Row], Result]
Begin = Callable[[], Steps[Result]]
"""Begins the steps, once for each attempt."""


def do(text: str, *values: object) -> Statement:
    """A statement that returns nothing."""
    return Statement(text, values, returns_rows=False)


def ask(text: str, *values: object) -> Statement:
    """A statement that returns rows."""
    return Statement(text, values, returns_rows=True)
