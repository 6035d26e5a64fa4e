"""The objects that all operations on resources work with."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.resources.documents import Documents
from podstead.resources.planning import ContainerHook, NewVersion, WriteHook
from podstead.storage import protocol, record_store
from podstead.storage.records import random_version
from podstead.wac.gate import Gate


class ReadObserver(Protocol):
    """Learns of what requests read."""

    @property
    def watched(self) -> Collection[ResourcePath]:
        """The containers in which it wants to know of reads; nothing is told while there are
        none."""

    def note_read(self, agent: Identity | None, path: ResourcePath) -> bool:
        """Note that the resource is read by an agent who may; whether it is in a container that is
        watched, so that the same request must not be answered from a cache. Raises nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """What writes of resources work with: the store with its records, the RDF documents, and what
    adds records to a write. ``quota_bytes`` tells the quota of each pod without one of its own; 0
    for none."""

    records: record_store.RecordStore
    documents: Documents
    quota_bytes: Callable[[], int]
    write_hooks: Sequence[WriteHook] = ()
    container_hooks: Sequence[ContainerHook] = ()

    @property
    def store(self) -> protocol.Store:
        return self.records.store


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceContext(WriteContext):
    """What operations on resources work with, for agents whom the gate admits."""

    gate: Gate
    read_observers: Sequence[ReadObserver] = ()

    def note_read(self, agent: Identity | None, path: ResourcePath) -> bool:
        """Tell the observers; whether one of them watches the resource."""
        is_watched = False
        for each in self.read_observers:
            if each.watched and each.note_read(agent, path):
                is_watched = True
        return is_watched

    def new_version(self) -> NewVersion:
        """The version of the next write."""
        records = self.records
        return NewVersion(
            version=random_version(records.randomness),
            at_ms=records.store.shared_ms(records.clock.now_ms()),
        )
