"""Which bytes of a representation does a Range header ask for? (RFC 9110 section 14, P-27)

A server may always answer with everything, so a header that is malformed, names an unknown unit or
asks for several ranges is read as absent. Only a well-formed single range of which no byte exists
is an error. Range has a meaning for GET alone; the caller does not ask for other methods, nor for
representations that are made on demand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from podstead.core.errors import RangeNotSatisfiable

# RFC 9110 section 14.1: unit names compare without case.
# RFC 9110 section 5.6.1: list members may be empty.
# Eighteen digits are more bytes than anybody stores, and keep the numbers small.
_SINGLE_RANGE = re.compile(
    r"[Bb][Yy][Tt][Ee][Ss]=[ \t,]*(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})[ \t,]*"
)


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from ``first`` to ``last``, both included."""

    first: int
    last: int

    @property
    def size_bytes(self) -> int:
        """How many bytes it holds; at least one."""
        return self.last - self.first + 1

    def content_range(self, complete_bytes: int) -> str:
        """The Content-Range header of the 206 (RFC 9110 section 14.4)."""
        return f"bytes {self.first}-{self.last}/{complete_bytes}"


def unsatisfied_content_range(complete_bytes: int) -> str:
    """The Content-Range header of the 416 (RFC 9110 section 14.4)."""
    return f"bytes */{complete_bytes}"


def select_range(header: str | None, complete_bytes: int) -> ByteRange | None:
    """The range to send of a representation of ``complete_bytes``; ``None`` means all of it.

    Raises RangeNotSatisfiable when a well-formed single range selects no byte.
    """
    matched = None if header is None else _SINGLE_RANGE.fullmatch(header)
    if matched is None:
        return None
    first, last = matched["first"], matched["last"]
    if first == "":
        return None if last == "" else _suffix(int(last), complete_bytes)
    if last != "" and int(last) < int(first):
        return None  # invalid (section 14.1.1), not unsatisfiable
    return _from_first(int(first), int(last) if last else None, complete_bytes)


def if_range_holds(header: str | None, etag: str, last_modified: str | None) -> bool:
    """Whether If-Range lets a Range header count (RFC 9110 section 13.1.5).

    ``etag`` is the representation's entity tag as sent, quotes included; comparison is strong.
    ``last_modified`` is its Last-Modified as sent, to be given only where it is a strong validator
    (section 8.8.2.2: the representation cannot have changed twice in that second); otherwise a
    date never holds, and the client gets everything, which is safe.
    """
    if header is None:
        return True
    validator = header.strip(" \t")
    if validator.startswith('"'):
        return validator == etag
    return validator == last_modified


def _suffix(length_bytes: int, complete_bytes: int) -> ByteRange | None:
    if length_bytes == 0:
        raise _unsatisfiable(complete_bytes)
    if complete_bytes == 0:
        return None  # satisfiable by RFC 9110 section 14.1.2, yet no Content-Range can say so
    return ByteRange(max(0, complete_bytes - length_bytes), complete_bytes - 1)


def _from_first(first: int, last: int | None, complete_bytes: int) -> ByteRange:
    if first >= complete_bytes:
        raise _unsatisfiable(complete_bytes)
    end = complete_bytes - 1
    return ByteRange(first, end if last is None else min(last, end))


def _unsatisfiable(complete_bytes: int) -> RangeNotSatisfiable:
    return RangeNotSatisfiable("No byte of the asked range exists", size_bytes=complete_bytes)
