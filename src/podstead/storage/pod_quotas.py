"""Which quota does a pod have? Its own, set by an operator, or that of the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from podstead.core.identifiers import ResourcePath
from podstead.storage.records import PodRecord


class PodRecords(Protocol):
    """Reads the records of pods; every store does, from memory where nothing has changed."""

    async def read_pod(self, name: str) -> PodRecord | None: ...


@dataclass(frozen=True, slots=True)
class PodQuotas:
    """Finds quotas; 0 means none."""

    pods: PodRecords
    default_bytes: int
    """The quota of each pod that has none of its own."""

    async def of(self, storage: ResourcePath | None) -> int:
        """The quota of the storage with that root container. Raises StorageError."""
        if storage is None:
            return 0
        pod = await self.pods.read_pod(storage.strip("/"))
        if pod is None or pod.quota_bytes is None:
            return self.default_bytes
        return pod.quota_bytes
