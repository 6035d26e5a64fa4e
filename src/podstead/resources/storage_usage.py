"""Breaks down the space that a pod takes by folder, kind of content and largest file, for its
owner.

Counting reads every resource of the pod, up to a bound, in steps between which other requests run.
The result of a large pod is cached for a minute even while it changes.
"""

import asyncio
import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from podstead.core.clock import Clock
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.media_types import RDF_TYPES, essence
from podstead.resources.trees import tree_pages
from podstead.storage.capacity import PodQuotas
from podstead.storage.protocol import Store
from podstead.storage.records import Metadata
from podstead.wac.gate import Gate

STEP_RESOURCES: Final = 1_000
MAX_RESOURCES: Final = 200_000
"""How many resources are counted; of a larger pod, the page shows a part."""
LARGEST: Final = 20
_CACHED_MS: Final = 60_000
_LARGE_POD: Final = 5_000
"""Counting fewer resources takes some milliseconds, so their count is always current."""
_CACHED_PODS: Final = 256


class MediaCategory(Enum):
    """The kinds of content that people distinguish."""

    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    DOCUMENT = "document"
    """Text, PDF and office documents."""
    DATA = "data"
    """Linked data, with access rules and the descriptions of containers."""
    OTHER = "other"


_DOCUMENT_TYPES: Final = frozenset(
    {"application/pdf", "application/rtf", "application/msword", "application/epub+zip"}
)
_DOCUMENT_PREFIXES: Final = (
    "text/",
    "application/vnd.oasis.opendocument",
    "application/vnd.openxmlformats",
    "application/vnd.ms-",
)


def category_of(media_type: str) -> MediaCategory:
    """The kind of a media type without parameters."""
    if media_type in RDF_TYPES:
        return MediaCategory.DATA
    top = media_type.partition("/")[0]
    if top in ("image", "video", "audio"):
        return MediaCategory(top)
    if media_type in _DOCUMENT_TYPES or media_type.startswith(_DOCUMENT_PREFIXES):
        return MediaCategory.DOCUMENT
    return MediaCategory.OTHER


@dataclass(slots=True)
class UsedSpace:
    """The space that some of the resources take."""

    size_bytes: int = 0
    resources: int = 0


@dataclass(slots=True)
class Breakdown:
    """The breakdown of the space below a container at a given time."""

    at_ms: int
    folders: dict[ResourcePath, UsedSpace] = field(default_factory=lambda: defaultdict(UsedSpace))
    """By direct child container; documents in none are counted under the container's own path."""
    categories: dict[MediaCategory, UsedSpace] = field(
        default_factory=lambda: defaultdict(UsedSpace)
    )
    largest: Sequence[Metadata] = ()
    counted: int = 0
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class StorageUsage:
    """How much of a pod is used. ``quota_bytes`` is 0 without a quota."""

    used_bytes: int
    quota_bytes: int
    charges: Mapping[str, int]
    """The charges besides resources, of features."""
    breakdown: Breakdown


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUsage:
    """Counts what takes the space of a pod."""

    store: Store
    gate: Gate
    clock: Clock
    quotas: PodQuotas
    max_resources: int = MAX_RESOURCES
    _cached: dict[ResourcePath, tuple[int | None, Breakdown]] = field(
        default_factory=dict, init=False
    )
    _counting: dict[ResourcePath, asyncio.Task[Breakdown]] = field(default_factory=dict, init=False)

    async def total(self, agent: Identity | None, root: ResourcePath) -> tuple[int, int]:
        """The used bytes and the quota of a storage, for an agent with Control of it. Raises
        NotAuthenticated and AccessDenied."""
        await self.gate.require_control(agent, root)
        return await self.store.used_bytes(root.strip("/")), await self.quotas.of(root)

    async def of(self, agent: Identity | None, root: ResourcePath) -> StorageUsage:
        """The breakdown of a storage's space, for an agent with Control of it. Raises
        NotAuthenticated and AccessDenied."""
        used_bytes, quota_bytes = await self.total(agent, root)
        charges = await self.store.list_charges(root)
        return StorageUsage(used_bytes, quota_bytes, charges, await self._breakdown(root))

    async def _breakdown(self, root: ResourcePath) -> Breakdown:
        state, now_ms = self.store.data_version(), self.clock.now_ms()
        if root in self._cached:
            counted_at, cached = self._cached[root]
            is_recent = cached.counted > _LARGE_POD and now_ms - cached.at_ms < _CACHED_MS
            if is_recent or (state is not None and state == counted_at):
                return cached
        running = self._counting.get(root)
        if running is None:
            # Concurrent requests wait for the same count.
            running = asyncio.create_task(self._count(root, now_ms))
            self._counting[root] = running
            running.add_done_callback(lambda _: self._counting.pop(root, None))
        breakdown = await asyncio.shield(running)
        if len(self._cached) >= _CACHED_PODS:
            self._cached.clear()
        self._cached[root] = (state, breakdown)
        return breakdown

    async def _count(self, root: ResourcePath, now_ms: int) -> Breakdown:
        breakdown = Breakdown(now_ms)
        largest: list[tuple[int, ResourcePath, Metadata]] = []
        async for resources in tree_pages(self.store, root, page_resources=STEP_RESOURCES):
            for resource in resources:
                _add(breakdown, resource, root)
                if not resource.kind.is_container and resource.kind.is_member:
                    entry = (resource.size_bytes, resource.path, resource)
                    if len(largest) < LARGEST:
                        heapq.heappush(largest, entry)
                    elif entry > largest[0]:
                        heapq.heapreplace(largest, entry)
            if breakdown.counted >= self.max_resources:
                breakdown.is_complete = False
                break
        breakdown.largest = [each for _, _, each in sorted(largest, reverse=True)]
        return breakdown


def _add(breakdown: Breakdown, resource: Metadata, root: ResourcePath) -> None:
    folder, slash, _ = resource.path[len(root) :].partition("/")
    place = ResourcePath(root + folder + slash) if slash else root
    for share in (
        breakdown.folders[place],
        breakdown.categories[category_of(essence(resource.content_type))],
    ):
        share.size_bytes += resource.size_bytes
        share.resources += 1
    breakdown.counted += 1
