"""Reads text as a table (RFC 4180).

Cells are text and stay text: nothing here evaluates a formula, and the page escapes every cell.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_ROWS: Final = 500
MAX_COLUMNS: Final = 60
MAX_CELL_CHARACTERS: Final = 500
_DELIMITERS: Final = (",", ";", "\t", "|")
_SAMPLE_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table with its first row as the head. All rows are as long as the head.

    ``more_rows`` and ``more_columns`` mean that the document has more than are shown.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    delimiter: str
    more_rows: bool = False
    more_columns: bool = False


def read_table(text: str, *, delimiter: str | None = None) -> TextTable:
    """Read a table; the delimiter is guessed if it is not given. Never fails: a malformed row is
    shown as well as possible."""
    lines = text.splitlines(keepends=True)
    delimiter = delimiter or _delimiter(lines)
    rows: list[list[str]] = []
    more_rows = False
    try:
        for row in csv.reader(_separator_line_skipped(lines), delimiter=delimiter):
            if not row:
                continue
            if len(rows) > MAX_ROWS:
                more_rows = True
                break
            rows.append(row)
    except csv.Error:  # a cell longer than the module's limit, for example
        more_rows = True
    width = max(map(len, rows), default=0)
    shown = min(width, MAX_COLUMNS)
    cells = [tuple(_cell(row, column) for column in range(shown)) for row in rows]
    head = cells[0] if cells else ()
    return TextTable(head, tuple(cells[1:]), delimiter, more_rows, width > MAX_COLUMNS)


def _cell(row: list[str], column: int) -> str:
    if column >= len(row):
        return ""
    cell = row[column]
    if len(cell) <= MAX_CELL_CHARACTERS:
        return cell
    return cell[:MAX_CELL_CHARACTERS] + "…"


def _separator_line_skipped(lines: list[str]) -> Iterator[str]:
    """Spreadsheets write the delimiter into a first line of its own: ``sep=;``."""
    start = 1 if lines and lines[0].startswith("sep=") else 0
    return iter(lines[start:])


def _delimiter(lines: list[str]) -> str:
    """The delimiter that occurs in most of the first lines, and most evenly.

    ``csv.Sniffer`` is not used: its patterns take quadratic time on hostile input.
    """
    if lines and lines[0].startswith("sep="):
        stated = lines[0][4:5]
        if stated in _DELIMITERS:
            return stated
    sample = [line[:2000] for line in lines[:_SAMPLE_LINES] if line.strip()]
    best, best_score = ",", 0
    for delimiter in _DELIMITERS:
        counts = [_outside_quotes(line, delimiter) for line in sample]
        present = [count for count in counts if count]
        if not present:
            continue
        usual = max(set(present), key=lambda count: (present.count(count), count))
        score = present.count(usual) * 1000 + min(usual, 999)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _outside_quotes(line: str, delimiter: str) -> int:
    return sum(part.count(delimiter) for part in line.split('"')[::2])
