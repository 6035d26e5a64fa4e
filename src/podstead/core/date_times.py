"""Reads and writes ``xsd:dateTime`` (XML Schema Part 2), and days in UTC, as Unix milliseconds.

Times without a time zone are in UTC.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

DAY_MS: Final = 86_400_000
_MS: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_END_OF_TIME_MS: Final = 253_402_300_800_000
"""The year 10000."""
# XML Schema Part 2, dateTime; years of four digits, to which Python's are limited.
_TIME: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,30}))?(Z|[+-]\d{2}:\d{2})?", re.ASCII
)


def read_time(text: str) -> int:
    """The Unix milliseconds of an ``xsd:dateTime`` from 1970 on. Raises ValueError."""
    matched = _TIME.fullmatch(text.strip())
    if matched is None:
        raise ValueError("No date and time")
    moment, fraction, zone = matched.groups()
    read = datetime.fromisoformat(moment + ("+00:00" if zone in (None, "Z") else zone))
    at_ms = (read - _EPOCH) // _MS + int((fraction or "0")[:3].ljust(3, "0"))
    if not 0 <= at_ms < _END_OF_TIME_MS:
        raise ValueError("No date and time")
    return at_ms


def write_time(at_ms: int) -> str:
    """Unix milliseconds as ``xsd:dateTime`` in UTC, such as ``2026-11-21T10:53:38.000Z``."""
    moment = _EPOCH + at_ms * _MS
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_day(text: str) -> int:
    """The Unix milliseconds at which a day such as ``2026-11-21`` begins. Raises ValueError."""
    return read_time(f"{text}T00:00:00Z")


def day_of(at_ms: int) -> str:
    """The day of a moment."""
    return write_time(at_ms).partition("T")[0]
