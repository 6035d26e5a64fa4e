"""How are lists and times printed? In columns and in UTC."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import click
import msgspec

from podstead.cli.output import echo
from podstead.core.printable import printable

_KIB: Final = 1024

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option of every command that prints something about the server's data; docs/operate says
what the objects have in common."""


names_argument = click.argument("names", metavar="NAME...", nargs=-1, required=True)
"""The argument of a command that does the same with each of several things."""


def print_each_json(values: Sequence[object]) -> None:
    """Print what a command says of each of its arguments: of a single one as an object, of several
    as a list."""
    print_json(values[0] if len(values) == 1 else values)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose columns are as wide as their widest cells."""
    lines = [head, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        echo("  ".join(cells).rstrip())


def print_json(value: object) -> None:
    """Print a value as JSON, for programs."""
    for line in _json(value, indent=2).split("\n"):
        echo(_escaped(line))


def print_json_line(value: object) -> None:
    """Print a value as one line of JSON, at once."""
    echo(_escaped(_json(value)))


def _json(value: object, indent: int | None = None) -> str:
    # msgspec's own encoder refuses the halves of surrogate pairs that stand for bytes in names.
    return json.dumps(msgspec.to_builtins(value, enc_hook=str), ensure_ascii=False, indent=indent)


def _escaped(text: str) -> str:
    """JSON with what cannot be printed as JSON has it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def now_s() -> int:
    """The time, in Unix seconds."""
    return int(datetime.now(tz=UTC).timestamp())


def bytes_text(size_bytes: int) -> str:
    """A size as ``4.2 MiB``."""
    size = float(size_bytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < _KIB:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= _KIB
    return f"{size:.1f} TiB"


def time_text(unix_s: int) -> str:
    """A time as ``2026-11-21T05:30:00Z``."""
    return datetime.fromtimestamp(unix_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
