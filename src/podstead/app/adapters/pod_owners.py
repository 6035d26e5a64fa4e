"""The owners of storages, from the registry of pods."""

from __future__ import annotations

from dataclasses import dataclass

from podstead.core.identifiers import ResourcePath
from podstead.storage.protocol import PodRegistry


@dataclass(frozen=True, slots=True)
class PodOwners:
    """Implements StorageOwners of ``wac.gate``."""

    pods: PodRegistry

    async def owner_of(self, storage: ResourcePath) -> str | None:
        pod = await self.pods.read_pod(storage.strip("/"))
        return pod.owner if pod is not None and pod.root == storage else None
