"""Arrays as values of statements.

Most statements have some, and the driver's own conversion takes a tenth of the processor time of a
request: it looks at each element several times.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.adapt import AdaptersMap, Dumper, PyFormat

_BYTEA: Final = 17
_BYTEA_ARRAY: Final = 1001
_HEADER: Final = Struct("!iiIii")
"""Of the binary format: dimensions, whether there are nulls, type, and length and first index of
the only dimension."""
_LENGTH: Final = Struct("!i")
_NULL: Final = _LENGTH.pack(-1)


def register_arrays(adapters: AdaptersMap) -> None:
    """Convert lists of text, numbers or bytes, in which ``None`` stands for null."""
    adapters.register_dumper(list, _ArrayDumper)


class _ArrayDumper(Dumper):
    """Writes arrays as text, of the type that the statement expects."""

    def get_key(self, obj: Sequence[Any], format: PyFormat) -> Any:  # noqa: A002, ANN401, ARG002 - the driver's
        first = next((each for each in obj if each is not None), None)
        return (list, bytes) if isinstance(first, bytes) else self.cls

    def upgrade(self, obj: Sequence[Any], format: PyFormat) -> Dumper:  # noqa: A002, ARG002 - the driver's
        return _ByteArrayDumper(self.cls)

    def dump(self, obj: Sequence[Any]) -> bytes:
        """Raises psycopg.DataError."""
        try:
            text = '","'.join(obj)
            is_plain = text.count('"') == 2 * (len(obj) - 1) and "\\" not in text
        except TypeError:  # there are others than texts
            text, is_plain = "", False
        if not obj:
            return b"{}"
        written = f'{{"{text}"}}' if is_plain else f"{{{','.join(map(_element, obj))}}}"
        if "\0" in written:
            raise psycopg.DataError("A text has a character that the database does not know")
        return written.encode()


class _ByteArrayDumper(Dumper):
    """Writes arrays of bytes in binary form."""

    oid = _BYTEA_ARRAY
    format = pq.Format.BINARY

    def dump(self, obj: Sequence[bytes | None]) -> bytes:
        """The elements, each after its length."""
        pieces = [_HEADER.pack(1, 1 if None in obj else 0, _BYTEA, len(obj), 1)]
        for each in obj:
            pieces += (_NULL,) if each is None else (_LENGTH.pack(len(each)), each)
        return b"".join(pieces)


def _element(value: str | int | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(int(value))
