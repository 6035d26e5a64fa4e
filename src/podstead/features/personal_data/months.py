"""A month as a calendar shows it: weeks of seven days, with what is on each.

Pure: days are texts such as ``2026-11-22``. Weeks begin on Monday, as ISO 8601 has it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final, Generic, TypeVar

MAX_OF_DAY: Final = 4
"""How many events a day of the grid shows; the list below it has all."""

E = TypeVar("E")


@dataclass(slots=True)
class MonthDay(Generic[E]):
    """One day of the grid; ``is_beside`` if it belongs to the month before or after."""

    day: str
    number: int
    is_beside: bool
    is_today: bool
    events: list[E] = field(default_factory=list)
    more: int = 0

    def add(self, event: E) -> None:
        """Show one more event, or count it."""
        if len(self.events) < MAX_OF_DAY:
            self.events.append(event)
        else:
            self.more += 1


def weeks_of(
    month: str, events: Iterable[tuple[str, str, E]], *, today: str
) -> Sequence[Sequence[MonthDay[E]]]:
    """The weeks of a month such as ``2026-11``, with the events as ``(first day, last day, event)``
    on each day that they cover. Raises ValueError for what is no month of the calendar."""
    first = date.fromisoformat(f"{month}-01")
    start = first - timedelta(days=first.weekday())
    days: dict[str, MonthDay[E]] = {}
    at = start
    while not days or at.weekday() != 0 or at.isoformat()[:7] == month:
        text = at.isoformat()
        days[text] = MonthDay(text, at.day, text[:7] != month, text == today)
        at += timedelta(days=1)
    last_shown = (at - timedelta(days=1)).isoformat()
    for begins, ends, event in events:
        begin, end = max(begins, start.isoformat()), min(ends, last_shown)
        if begin > end:
            continue
        on = date.fromisoformat(begin)
        while on.isoformat() <= end:
            days[on.isoformat()].add(event)
            on += timedelta(days=1)
    listed = list(days.values())
    return [listed[i : i + 7] for i in range(0, len(listed), 7)]
