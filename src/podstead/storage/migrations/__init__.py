"""The schema as numbered migrations: ``0001_name.sql`` and so on, applied once and in order.

A released migration is never edited; a change of the schema is a new migration.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

_FILE_NAME = re.compile(r"(\d{4})_\w+\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration: the number of the resulting schema, and its statements."""

    number: int
    sql: str


@cache
def read_migrations(package: str = __name__) -> Sequence[Migration]:
    """All migrations in the folder of a package in order, numbered from 1 without a gap."""
    found = []
    for entry in resources.files(package).iterdir():
        match = _FILE_NAME.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), entry.read_text("utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.number))
