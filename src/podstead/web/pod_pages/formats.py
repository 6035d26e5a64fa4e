"""How are dates, numbers and sizes written in the language of the current request?"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from babel.dates import format_date, format_time, get_datetime_format
from babel.numbers import format_decimal
from babel.units import format_unit

from podstead.web.pod_pages.texts import current_texts

_UNITS: Final = ("byte", "kilobyte", "megabyte", "gigabyte", "terabyte")
_STEP: Final = 1000


def date_text(unix_ms: int) -> str:
    """A day, such as “22 Nov 2026”."""
    return _date(current_texts().language, unix_ms // 86_400_000)


def moment_text(unix_ms: int) -> str:
    """A day and a time in UTC, to the minute."""
    return _time(current_texts().language, unix_ms // 60_000)


def iso_time(unix_ms: int) -> str:
    """A time as ``<time datetime>`` has it; scripts show it in the reader's own time zone."""
    return _iso(unix_ms // 1000)


def number_text(number: float) -> str:
    """A number with the separators of the language."""
    return format_decimal(number, locale=current_texts().language)


def size_text(size_bytes: int) -> str:
    """A size in the largest unit that makes it at least 1, with up to one decimal."""
    value, unit = float(size_bytes), 0
    while value >= _STEP and unit < len(_UNITS) - 1:
        value /= _STEP
        unit += 1
    return _size(current_texts().language, round(value, 1 if unit else 0), unit)


@lru_cache(maxsize=4096)
def _iso(unix_s: int) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=4096)
def _date(language: str, day: int) -> str:
    return format_date(datetime.fromtimestamp(day * 86_400, UTC), "medium", locale=language)


@lru_cache(maxsize=4096)
def _time(language: str, minute: int) -> str:
    moment = datetime.fromtimestamp(minute * 60, UTC)
    date = format_date(moment, "medium", locale=language)
    time = format_time(moment, "short", locale=language)
    joined = str(get_datetime_format("medium", locale=language))
    return joined.replace("'", "").replace("{0}", time).replace("{1}", date)


@lru_cache(maxsize=4096)
def _size(language: str, value: float, unit: int) -> str:
    if unit == 0:
        return f"{format_decimal(value, locale=language)} B"  # not every locale has a word for it
    return format_unit(value, f"digital-{_UNITS[unit]}", "short", locale=language)
