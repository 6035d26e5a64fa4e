"""Selects the bytes that a Range header requests (RFC 9110, section 14; P-27).

A server may always send the entire representation, so a header that is malformed, has an unknown
unit or requests several ranges is ignored. Only a well-formed single range that selects no byte is
an error. Range is defined for GET only; the caller must not use it for other methods, nor for
representations that are generated on demand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from podstead.core.errors import RangeNotSatisfiable

# RFC 9110 section 14.1: unit names are case-insensitive.
# RFC 9110 section 5.6.1: list members may be empty.
# Eighteen digits are enough for any stored body and keep the numbers small.
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
        """The number of bytes, at least one."""
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
    """Whether If-Range allows a Range header to be applied (RFC 9110, section 13.1.5).

    ``etag`` is the representation's entity tag as sent, including the quotes; the comparison is
    strong. ``last_modified`` is its Last-Modified as sent if that is a strong validator (section
    8.8.2.2: the representation cannot have changed twice in that second), else ``None``; then a
    date never matches, and the client gets the entire representation, which is safe.
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
        return None  # satisfiable by RFC 9110 section 14.1.2, but no Content-Range expresses it
    return ByteRange(max(0, complete_bytes - length_bytes), complete_bytes - 1)


def _from_first(first: int, last: int | None, complete_bytes: int) -> ByteRange:
    if first >= complete_bytes:
        raise _unsatisfiable(complete_bytes)
    end = complete_bytes - 1
    return ByteRange(first, end if last is None else min(last, end))


def _unsatisfiable(complete_bytes: int) -> RangeNotSatisfiable:
    return RangeNotSatisfiable(
        "The representation has no byte of the requested range", size_bytes=complete_bytes
    )
