"""How are lists and times printed? In columns and in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table whose columns are as wide as their widest cells."""
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def time_text(unix_s: int) -> str:
    """A time as ``2026-11-21T05:30:00Z``."""
    return datetime.fromtimestamp(unix_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
