"""How much of the quota is used, where it matters: beside what people store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.errors import AccessDenied
from podstead.core.identifiers import ResourcePath
from podstead.resources.storage_usage import PodUsage
from podstead.web.pages.request import PageRequest

NEARLY_FULL_PERCENT: Final = 90


@dataclass(frozen=True, slots=True)
class StorageNote:
    """How full a pod with a quota is."""

    used_bytes: int
    quota_bytes: int

    @property
    def percent(self) -> int:
        """The used part of the quota."""
        return percent_used(self.used_bytes, self.quota_bytes) or 0

    @property
    def is_nearly_full(self) -> bool:
        """Whether a page should say so without being asked."""
        return self.percent >= NEARLY_FULL_PERCENT

    @property
    def left_bytes(self) -> int:
        """What can still be stored."""
        return max(0, self.quota_bytes - self.used_bytes)


@dataclass(frozen=True, slots=True)
class StorageNotes:
    """Tells owners how full their pods are."""

    usage: PodUsage

    async def of(self, page: PageRequest, target: ResourcePath) -> StorageNote | None:
        """The note about the person's pod that contains the target; ``None`` if the pod has no
        quota, or is not the person's. Raises ServerTrouble."""
        person = page.person
        pods = () if person is None else person.pods
        root = next((pod for pod in pods if target.startswith(pod)), None)
        if root is None:
            return None
        try:
            used_bytes, quota_bytes = await self.usage.total(page.identity, root)
        except AccessDenied:  # an application's rules, or somebody else's
            return None
        return StorageNote(used_bytes, quota_bytes) if quota_bytes else None


def percent_used(used_bytes: int, quota_bytes: int) -> int | None:
    """The used part of a quota in percent; ``None`` without a quota."""
    return None if not quota_bytes else min(100, 100 * used_bytes // quota_bytes)
