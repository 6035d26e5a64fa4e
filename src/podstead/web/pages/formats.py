"""Writes dates, numbers and sizes in the language of the current request.

As the Unicode CLDR says: dates in its medium format, times in its short one. The tests compare what
this table says with the library Babel, which has all of the CLDR and takes 8 MiB of memory for the
few lines of it that are needed here.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from typing import Final, NamedTuple

import icu

from podstead.web.pages.texts import current_texts

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_STEP: Final = 1000


class _Format(NamedTuple):
    """How a language writes numbers and dates."""

    decimal: str
    group: str
    date: str
    time: str
    months: tuple[str, ...]


_FORMATS: Final = {
    "en": _Format(
        ".",
        ",",
        "{month_name} {0.day}, {0.year}",
        "{hour}:{0.minute:02}\N{NARROW NO-BREAK SPACE}{half}",
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    ),
    "de": _Format(
        ",",
        ".",
        "{0.day:02}.{0.month:02}.{0.year}",
        "{0.hour:02}:{0.minute:02}",
        (),
    ),
    "es": _Format(
        ",",
        ".",
        "{0.day} {month_name} {0.year}",
        "{0.hour}:{0.minute:02}",
        ("ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sept", "oct", "nov", "dic"),
    ),
    "nl": _Format(
        ",",
        ".",
        "{0.day} {month_name} {0.year}",
        "{0.hour:02}:{0.minute:02}",
        ("jan", "feb", "mrt", "apr", "mei", "jun", "jul", "aug", "sep", "okt", "nov", "dec"),
    ),
}


def date_text(unix_ms: int) -> str:
    """A day, such as “22 Nov 2026”."""
    return _date(current_texts().language, unix_ms // 86_400_000)


def month_text(unix_ms: int) -> str:
    """A month, such as “November 2026”."""
    return day_text(unix_ms, "yMMMM")


def day_text(unix_ms: int, skeleton: str) -> str:
    """The parts of a day that a skeleton of the CLDR names, such as “Friday, December 4” for
    ``EEEEMMMMd``, as the language orders and writes them."""
    return _day(current_texts().language, skeleton, unix_ms // 86_400_000)


def moment_text(unix_ms: int) -> str:
    """A day and a time in UTC, to the minute."""
    return _time(current_texts().language, unix_ms // 60_000)


def iso_time(unix_ms: int) -> str:
    """A time as ``<time datetime>`` has it; scripts show it in the reader's own time zone."""
    return _iso(unix_ms // 1000)


def number_text(number: float) -> str:
    """A number with the separators of the language."""
    return _number(current_texts().language, number)


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
    return _written(_FORMATS[language].date, language, datetime.fromtimestamp(day * 86_400, UTC))


@lru_cache(maxsize=4096)
def _day(language: str, skeleton: str, day: int) -> str:
    return str(_day_format(language, skeleton).format(day * 86_400.0))


@cache
def _day_format(language: str, skeleton: str) -> icu.SimpleDateFormat:
    locale = icu.Locale(language)
    pattern = icu.DateTimePatternGenerator.createInstance(locale).getBestPattern(skeleton)
    shown = icu.SimpleDateFormat(pattern, locale)
    shown.setTimeZone(icu.TimeZone.createTimeZone("UTC"))
    return shown


@lru_cache(maxsize=4096)
def _time(language: str, minute: int) -> str:
    formats = _FORMATS[language]
    pattern = f"{formats.date}, {formats.time}"
    return _written(pattern, language, datetime.fromtimestamp(minute * 60, UTC))


def _written(pattern: str, language: str, moment: datetime) -> str:
    months = _FORMATS[language].months
    return pattern.format(
        moment,
        month_name=months[moment.month - 1] if months else "",
        hour=moment.hour % 12 or 12,
        half="AM" if moment.hour < 12 else "PM",
    )


@lru_cache(maxsize=4096)
def _size(language: str, value: float, unit: int) -> str:
    return f"{_number(language, value)} {_UNITS[unit]}"


def _number(language: str, number: float) -> str:
    """A number with up to three decimals."""
    whole, _, decimals = f"{Decimal(str(number)):,.3f}".partition(".")
    decimals = decimals.rstrip("0")
    formats = _FORMATS[language]
    grouped = whole.replace(",", formats.group)
    return f"{grouped}{formats.decimal}{decimals}" if decimals else grouped


SortKey = Callable[[str], bytes]


def name_sort_key() -> SortKey:
    """The sort key of names in the language of the current request."""
    return _sort_key(current_texts().language)


@cache
def _sort_key(language: str) -> SortKey:
    collator = icu.Collator.createInstance(icu.Locale(language))
    collator.setAttribute(icu.UCollAttribute.NUMERIC_COLLATION, icu.UCollAttributeValue.ON)
    sort_key: SortKey = collator.getSortKey
    return sort_key


def machine_time(unix_s: int) -> str:
    """A time for programs, as HTML's ``datetime`` takes it: in ISO 8601, in UTC."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat().replace("+00:00", "Z")
