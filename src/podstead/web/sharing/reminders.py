"""What people should know about the access that they have given: what ends soon or has ended, and
what has not been used for a year.

The rules of a pod are looked through here; features add what they let in themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from podstead.core.caches import BoundedCache
from podstead.core.clock import Clock
from podstead.core.date_times import DAY_MS
from podstead.core.identifiers import ResourcePath
from podstead.resources.sharing.shared import SharedLists
from podstead.wac.sharing.rules import Grantee
from podstead.web.pages.addresses import share_url, shown_name
from podstead.web.pages.request import PageRequest, Person

SOON_MS: Final = 3 * DAY_MS
"""How long before an end people are told: what they give for a week is no news at once."""
ENDED_MS: Final = 7 * DAY_MS
"""How long after an end they are told."""
_SHORT_MS: Final = 8 * DAY_MS
UNUSED_MS: Final = 365 * DAY_MS
MAX_SHOWN: Final = 50
"""How many reminders a person gets at most."""
_REMEMBERED_MS: Final = 60_000
_MAX_REMEMBERED: Final = 20_000


class ReminderKind(Enum):
    """What a reminder says."""

    ENDS = "ends"
    ENDED = "ended"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True)
class AccessReminder:
    """A reminder about ``name``, or about the access of a ``grantee`` to what is called ``name``.
    ``at_ms`` is when that ends or was last used, and ``address`` the page where it is changed."""

    kind: ReminderKind
    name: str
    address: str
    at_ms: int
    grantee: Grantee | None = None


def reminder_of_end(
    ends_ms: int | None,
    name: str,
    address: str,
    *,
    now_ms: int,
    made_ms: int | None = None,
    grantee: Grantee | None = None,
) -> Sequence[AccessReminder]:
    """The reminder about an end, if it is near. What was ``made_ms`` with an end after a few days
    needs none before it."""
    if ends_ms is None or not now_ms - ENDED_MS <= ends_ms < now_ms + SOON_MS:
        return ()
    kind = ReminderKind.ENDED if ends_ms <= now_ms else ReminderKind.ENDS
    if kind is ReminderKind.ENDS and made_ms is not None and ends_ms - made_ms <= _SHORT_MS:
        return ()
    return (AccessReminder(kind, name, address, ends_ms, grantee),)


class ReminderSource(Protocol):
    """Finds reminders."""

    async def of(self, person: Person, *, now_ms: int) -> Sequence[AccessReminder]:
        """Those for a person. Raises StorageError."""


@dataclass(frozen=True, slots=True)
class RuleReminders:
    """Reminders of access rules with an end."""

    lists: SharedLists

    async def of(self, person: Person, *, now_ms: int) -> Sequence[AccessReminder]:
        """Raises StorageError."""
        return [
            reminder
            for pod in person.pods
            for each in await self.lists.ending(
                pod, since_ms=now_ms - ENDED_MS, until_ms=now_ms + SOON_MS
            )
            for reminder in self._of(each.resource, each.ends_ms, each.grantee, now_ms)
        ]

    def _of(
        self, resource: ResourcePath, ends_ms: int, grantee: Grantee, now_ms: int
    ) -> Sequence[AccessReminder]:
        name, address = shown_name(resource), share_url(resource)
        return reminder_of_end(ends_ms, name, address, now_ms=now_ms, grantee=grantee)


class Reminders:
    """All reminders of people. Every page says how many there are, so they are remembered for a
    minute; the pages that show them look again."""

    def __init__(self, sources: Sequence[ReminderSource], clock: Clock) -> None:
        self._sources = sources
        self._clock = clock
        self._remembered: BoundedCache[str, tuple[int, Sequence[AccessReminder]]] = BoundedCache(
            _MAX_REMEMBERED
        )

    async def of(self, person: Person) -> Sequence[AccessReminder]:
        """Those of a person, ends first. Raises StorageError."""
        now_ms = self._clock.now_ms()
        found = [
            each for source in self._sources for each in await source.of(person, now_ms=now_ms)
        ]
        found.sort(key=lambda each: (each.kind is ReminderKind.UNUSED, each.at_ms))
        shown = found[:MAX_SHOWN]
        self._remembered.put(person.web_id, (now_ms, shown), weight=len(shown) + 1)
        return shown

    async def on(self, page: PageRequest) -> Sequence[AccessReminder]:
        """Those of the person who is signed in, for a page that shows them; the badge of the page
        is as new. Raises NotAuthenticated, StorageError."""
        person = page.signed_in()
        found = await self.of(person)
        if person.pods:
            page.waiting = page.waiting._replace(reminders=await self.count(person))
        return found

    async def count(self, person: Person) -> int:
        """How many of them are about an end, as of a minute ago at most: a reminder of what is not
        used must not stay on every page. Raises StorageError."""
        made = self._remembered.get(person.web_id)
        if made is not None and 0 <= self._clock.now_ms() - made[0] < _REMEMBERED_MS:
            found = made[1]
        else:
            found = await self.of(person)
        return sum(each.kind is not ReminderKind.UNUSED for each in found)
