"""The jobs that wait for a writer: which are next, and how many there may be.

While there is room for all in a batch, jobs go in their order. When more wait, the storages take
turns, so that whoever floods one delays the others by no more than one write of his for each of
theirs.
"""

from typing import Generic, TypeVar

from podstead.core.errors import Overloaded
from podstead.core.identifiers import storage_root
from podstead.storage import codes, records

T = TypeVar("T")


class WaitingJobs(Generic[T]):
    """The jobs that no batch has taken yet. Used from one event loop only."""

    __slots__ = ("_counts", "_jobs", "_max_waiting")

    def __init__(self, max_waiting: int) -> None:
        """The maximum of all together; those of one storage are half of it at most."""
        self._max_waiting = max_waiting
        self._jobs: list[tuple[str, T]] = []
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: T, storage: str) -> None:
        """Add a job about a storage, or about none. Raises Overloaded."""
        if len(self._jobs) >= self._max_waiting:
            raise Overloaded(codes.StorageCodes.TOO_MANY_CHANGES)
        count = self._counts.get(storage, 0)
        if storage and count >= (self._max_waiting + 1) // 2:
            raise Overloaded("Too many changes of this storage are waiting to be stored")
        self._counts[storage] = count + 1
        self._jobs.append((storage, job))

    def take(self, limit: int) -> list[T]:
        """The jobs of the next batch, in their order."""
        if len(self._jobs) <= limit:
            taken, self._jobs = self._jobs, []
            self._counts.clear()
            return [job for _, job in taken]
        return self._take_in_turns(limit)

    def _take_in_turns(self, limit: int) -> list[T]:
        turns: dict[str, int] = {}
        ranked = []
        for place, (storage, _) in enumerate(self._jobs):
            turn = turns.get(storage, 0)
            turns[storage] = turn + 1
            ranked.append((turn, place))
        next_places = {place for _, place in sorted(ranked)[:limit]}
        taken = [job for place, (_, job) in enumerate(self._jobs) if place in next_places]
        self._jobs = [each for place, each in enumerate(self._jobs) if place not in next_places]
        self._counts.clear()
        for storage, _ in self._jobs:
            self._counts[storage] = self._counts.get(storage, 0) + 1
        return taken


def storage_of_write(write: records.Write) -> str:
    """The root container of the storage that a write changes first, empty if it changes none."""
    if write.puts:
        return storage_root(write.puts[0].path) or ""
    return (storage_root(write.deletes[0]) or "") if write.deletes else ""
