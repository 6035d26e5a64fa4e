"""The members of a container in the order in which a person wants to see them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from podstead.core.caches import BoundedCache
from podstead.core.identifiers import ResourcePath
from podstead.core.media_types import essence
from podstead.resources.entity_tags import last_modified_ms, state_version
from podstead.resources.outcome import ResourceRequest
from podstead.resources.service import ResourceService
from podstead.storage.records import Metadata
from podstead.web.pages.formats import name_sort_key
from podstead.web.pages.request import PageRequest
from podstead.web.pages.texts import current_texts
from podstead.web.pod_pages.files.names import shown_name

MAX_SORTED: Final = 20_000
"""A container with more members is listed in the order of their paths."""
_CACHED_MEMBERS: Final = 60_000
_READ_AT_ONCE: Final = 1_000


class Order(Enum):
    """What the list is sorted by. The values are those of the query."""

    NAME = "name"
    SIZE = "size"
    CHANGED = "changed"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Sorting:
    """An order and its direction."""

    order: Order = Order.NAME
    descending: bool = False

    @classmethod
    def of(cls, text: str) -> Sorting:
        """Read ``name`` or ``-name``; anything else is the usual order."""
        name = text.removeprefix("-")
        known = [order for order in Order if order.value == name]
        return cls(known[0], text.startswith("-")) if known else cls()

    @property
    def text(self) -> str:
        """The form that :meth:`of` reads."""
        return ("-" if self.descending else "") + self.order.value

    def by(self, order: Order) -> Sorting:
        """What a click on the head of a column leads to: the newest and largest come first."""
        if order is self.order:
            return Sorting(order, not self.descending)
        return Sorting(order, order in {Order.SIZE, Order.CHANGED})


@dataclass(frozen=True, slots=True)
class Member:
    """A member with its name as people read it, and the sort key of that name."""

    name: str
    sort_key: bytes
    metadata: Metadata

    @property
    def path(self) -> ResourcePath:
        return self.metadata.path

    @property
    def is_container(self) -> bool:
        return self.metadata.kind.is_container


@dataclass(frozen=True, slots=True)
class Members:
    """All members of one state of a container; not all if they are too many to be sorted."""

    container: Metadata
    all: Sequence[Member]
    is_complete: bool = True
    _sorted: dict[Sorting, Sequence[Member]] = field(default_factory=dict)

    def sorted(self, sorting: Sorting) -> Sequence[Member]:
        """Folders first, then by the order, and by name where that is equal."""
        found = self._sorted.get(sorting)
        if found is None:
            found = self._sorted[sorting] = in_order(self.all, sorting)
        return found

    def matching(self, text: str, sorting: Sorting) -> Sequence[Member]:
        """Those whose name contains the text, in any case."""
        wanted = text.casefold()
        return [each for each in self.sorted(sorting) if wanted in each.name.casefold()]


def in_order(members: Sequence[Member], sorting: Sorting) -> Sequence[Member]:
    """Sort by name first, then stably by what was asked for, then folders before documents."""
    by_name_descending = sorting.order is Order.NAME and sorting.descending
    found = sorted(members, key=lambda each: (each.sort_key, each.name), reverse=by_name_descending)
    if sorting.order is Order.SIZE:
        found.sort(key=lambda each: each.metadata.size_bytes, reverse=sorting.descending)
    elif sorting.order is Order.CHANGED:
        found.sort(key=lambda each: last_modified_ms(each.metadata), reverse=sorting.descending)
    elif sorting.order is Order.TYPE:
        found.sort(key=lambda each: essence(each.metadata.content_type), reverse=sorting.descending)
    found.sort(key=lambda each: not each.is_container)
    return found


class MemberLists:
    """Reads the members of containers, and remembers the newest lists."""

    def __init__(self, resources: ResourceService) -> None:
        self._resources = resources
        self._cached: BoundedCache[tuple[ResourcePath, str], tuple[str, Members]] = BoundedCache(
            _CACHED_MEMBERS
        )

    async def read(
        self, page: PageRequest, target: ResourcePath
    ) -> tuple[Members, ResourceRequest]:
        """The members, and the request with what the person may do with the container.

        Every call passes the gate; what is remembered is the sorted list of one state. Raises
        NotAuthenticated, AccessDenied, NotFound, ServerTrouble.
        """
        request = page.operation("GET", target)
        first = await self._resources.members(request, limit=1)
        state = state_version(first.container)
        key = target, current_texts().language
        cached = self._cached.get(key)
        if cached is not None and cached[0] == state:
            return cached[1], request
        sort_key = name_sort_key()
        found: list[Member] = []
        after: ResourcePath | None = None
        listed = first
        while len(found) <= MAX_SORTED:
            listed = await self._resources.members(request, after=after, limit=_READ_AT_ONCE)
            for each in listed.members:
                name = shown_name(each.path)
                found.append(Member(name, sort_key(name), each))
            if len(listed.members) < _READ_AT_ONCE:
                break
            after = listed.members[-1].path
            await asyncio.sleep(0)  # lets other requests go on
        members = Members(listed.container, found[:MAX_SORTED], len(found) <= MAX_SORTED)
        if state_version(listed.container) == state:
            self._cached.put(key, (state, members), weight=len(found) + 1)
        return members, request
