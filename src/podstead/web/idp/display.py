"""How are times written on a page? Briefly, and in everyday words."""

from __future__ import annotations

from datetime import UTC, datetime


def format_day(unix_s: int) -> str:
    """A day as people write it, such as "3 May 2026" (UTC)."""
    time = datetime.fromtimestamp(unix_s, UTC)
    return f"{time.day} {time:%B %Y}"


def shown_time(unix_s: int) -> str:
    """A time as people write it, such as "3 May 2026, 14:05 UTC"."""
    time = datetime.fromtimestamp(unix_s, UTC)
    return f"{format_day(unix_s)}, {time:%H:%M} UTC"


def machine_time(unix_s: int) -> str:
    """The same time for programs, as HTML's ``datetime`` takes it."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat().replace("+00:00", "Z")
