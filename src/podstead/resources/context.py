"""The objects that all operations on resources work with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podstead.resources.documents import Documents
from podstead.resources.planning import ContainerHook, NewVersion
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from podstead.storage.records import random_version
from podstead.wac.gate import Gate


@dataclass(frozen=True, slots=True)
class ResourceContext:
    """What operations on resources work with: the store with its records, the gate, and the RDF
    documents. ``quota_bytes`` is the quota of each pod without one of its own; 0 for none."""

    records: RecordStore
    gate: Gate
    documents: Documents
    quota_bytes: int = 0
    container_hooks: Sequence[ContainerHook] = ()

    @property
    def store(self) -> Store:
        return self.records.store

    def new_version(self) -> NewVersion:
        """The version of the next write."""
        records = self.records
        return NewVersion(
            version=random_version(records.randomness),
            at_ms=records.store.shared_ms(records.clock.now_ms()),
        )
