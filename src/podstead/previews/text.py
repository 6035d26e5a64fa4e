"""Decodes bytes as text for display, within a limit, and text as a table (RFC 4180).

Cells are text and stay text: nothing here evaluates a formula, and the page escapes every cell.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_TEXT_BYTES: Final = 512 * 1024
"""How much of a text is shown: more than anyone reads in a browser."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENCODINGS: Final = frozenset(
    {
        *("ascii", "big5", "cp1250", "cp1251", "cp1252", "euc_jp", "euc_kr", "gb18030", "gb2312"),
        *("gbk", "iso8859-1", "iso8859-15", "iso8859-2", "koi8-r", "shift_jis"),
        *("utf-16", "utf-16-be", "utf-16-le", "utf-8"),
    }
)
"""What a ``charset`` may name. Python knows codecs that are no encodings of text, and slow ones."""

_LAST_RESORT: Final = "cp1252"
"""The encoding that browsers assume where none is stated (WHATWG Encoding)."""


@dataclass(frozen=True, slots=True)
class DecodedText:
    """Text as it is shown. ``truncated`` means that the document is longer.

    ``exact`` means that encoding the text again gives the same bytes, so that it may be edited.
    """

    text: str
    encoding: str
    truncated: bool = False
    exact: bool = True


def decode_text(
    content: bytes, charset: str | None = None, *, max_bytes: int = MAX_TEXT_BYTES
) -> DecodedText | None:
    """Decode text for display; ``None`` if it is not text.

    A byte order mark takes precedence, then ``charset``, then UTF-8 if it fits, then the encoding
    that browsers assume. Bytes that are invalid in the encoding become U+FFFD.
    """
    truncated = len(content) > max_bytes
    content = content[:max_bytes]
    mark, encoding = _encoding(content, charset, truncated=truncated)
    if mark == b"" and not encoding.startswith("utf-16") and b"\0" in content:
        return None
    body = content[len(mark) :]
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    # A character that the limit cut in two is left out instead of being shown as damaged.
    text = decoder.decode(body, final=not truncated)
    exact = not truncated and mark == b"" and encoding == "utf-8" and "\ufffd" not in text
    return DecodedText(text, encoding, truncated, exact)


def _encoding(content: bytes, charset: str | None, *, truncated: bool) -> tuple[bytes, str]:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return mark, encoding
    stated = _known(charset)
    if stated is not None:
        return b"", stated
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(content, final=not truncated)
    except UnicodeDecodeError:
        return b"", _LAST_RESORT
    return b"", "utf-8"


def _known(charset: str | None) -> str | None:
    if charset is None or len(charset) > 40:
        return None
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    if name == "utf-16":  # without a byte order mark (WHATWG Encoding)
        return "utf-16-le"
    return name if name in _ENCODINGS else None


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
