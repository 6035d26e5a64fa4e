"""Decides which backups of a series to keep. Pure.

``7d,4w,6m`` keeps the newest backup of each of seven days, of four weeks and of six months: of the
newest days, weeks and months in which there is a backup. So a pause does not remove anything. Days
begin at midnight UTC, weeks on Monday.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

Period = tuple[int, ...]

_PERIOD_OF: Final[Mapping[str, Callable[[datetime], Period]]] = {
    "h": lambda at: (at.year, at.month, at.day, at.hour),
    "d": lambda at: (at.year, at.month, at.day),
    "w": lambda at: at.isocalendar()[:2],
    "m": lambda at: (at.year, at.month),
    "y": lambda at: (at.year,),
}
_RULE: Final = re.compile(r"([1-9][0-9]{0,3})([hdwmy])")
_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True)
class KeepRule:
    """Keep the newest backup of each of ``count`` periods."""

    count: int
    unit: str


def parse_keep_rules(text: str) -> Sequence[KeepRule]:
    """The rules of a text such as ``7d,4w,6m``. Raises ValueError."""
    rules = []
    for part in text.split(","):
        match = _RULE.fullmatch(part.strip())
        if match is None:
            raise ValueError(
                "must be numbers with units, such as 7d,4w,6m (h, d, w, m or y for hours, days, "
                "weeks, months or years)"
            )
        rules.append(KeepRule(int(match[1]), match[2]))
    return rules


def parse_interval_s(text: str) -> int:
    """The seconds of a text such as ``6h``. Raises ValueError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError("must be a number with a unit, such as 30m, 6h or 1d")
    return int(match[1]) * _SECONDS[match[2]]


def kept(moments: Iterable[datetime], rules: Iterable[KeepRule]) -> frozenset[datetime]:
    """The moments of the backups to keep; the newest is always among them."""
    newest_first = sorted(moments, reverse=True)
    keep = set(newest_first[:1])
    for rule in rules:
        period_of = _PERIOD_OF[rule.unit]
        newest: dict[Period, datetime] = {}
        for moment in newest_first:
            newest.setdefault(period_of(moment), moment)
        keep.update(list(newest.values())[: rule.count])
    return frozenset(keep)
