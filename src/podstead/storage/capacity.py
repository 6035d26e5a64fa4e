"""Checks of quota and disk space before and while a body is received.

The commit of a write decides. These checks are made earlier, so that no client sends a body in vain
or fills the disk with bodies that cannot be committed.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from podstead.core.errors import DiskFull, QuotaExceeded
from podstead.core.identifiers import ResourcePath
from podstead.core.operation import RequestBody
from podstead.storage import disk_space, protocol, records


class PodRecords(Protocol):
    """Reads the records of pods; every store does, from memory where nothing has changed."""

    async def read_pod(self, name: str) -> records.PodRecord | None: ...


@dataclass(frozen=True, slots=True)
class PodQuotas:
    """Finds quotas; 0 means none."""

    pods: PodRecords
    default_bytes: Callable[[], int]
    """The quota of each pod that has none of its own."""

    async def of(self, storage: ResourcePath | None) -> int:
        """The quota of the storage with that root container. Raises StorageError."""
        if storage is None:
            return 0
        pod = await self.pods.read_pod(storage.strip("/"))
        if pod is None or pod.quota_bytes is None:
            return self.default_bytes()
        return pod.quota_bytes


class StorageCapacity:
    """Bounds what the requests of one worker store, by the disk space and by each quota."""

    def __init__(
        self,
        *,
        usage: protocol.PodRegistry,
        space: disk_space.DiskSpace,
        quota_bytes: Callable[[], int],
    ) -> None:
        """``quota_bytes`` tells the quota of each storage without one of its own; 0 for none."""
        self._usage = usage
        self._space = space
        self.quotas = PodQuotas(usage, quota_bytes)
        # Bytes that are being received. Otherwise, concurrent uploads could each use the same rest
        # of a quota.
        self._incoming_bytes: dict[ResourcePath, int] = {}

    def check_disk(self) -> None:
        """Raise DiskFull if there is not enough space for new content."""
        self._space.check()

    async def make_room(self) -> None:
        """Give back what the engine can do without, and check again. Raises DiskFull."""
        await self._space.make_room()

    async def check_share(self, new_bytes: int) -> None:
        """Raise DiskFull if that is more than one agent may announce: half of the free space."""
        try:
            self._space.check()
        except DiskFull:
            await self._space.make_room()
        if new_bytes > self._space.free_bytes() // 2:
            raise DiskFull

    async def limit_body(
        self, body: RequestBody, storage: ResourcePath | None, *, extra_bytes: int = 0
    ) -> RequestBody:
        """Wrap the body so that it raises QuotaExceeded when it exceeds the remaining quota.

        ``extra_bytes`` is the charge of the write in addition to its body, less what it frees.
        Raises DiskFull, and QuotaExceeded if the announced length is too large.
        """
        try:
            self._space.check()
        except DiskFull:
            await self._space.make_room()
        quota_bytes = await self.quotas.of(storage)
        if not quota_bytes or storage is None:
            return body
        used_bytes = await self._usage.used_bytes(storage.strip("/"))
        used_bytes += self._incoming_bytes.get(storage, 0)
        quota = _QuotaUse(storage, quota_bytes, used_bytes)
        bounded = _BodyWithinQuota(self, body, quota, extra_bytes)
        bounded.check(body.size_bytes or 0)  # a body of unknown length is checked as it arrives
        return bounded

    async def limit_to_disk(self, content: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Pass the content on, and raise DiskFull if the disk fills up while it arrives."""
        async for piece in content:
            self._space.check(len(piece))
            yield piece

    async def remaining_bytes(self, storage: ResourcePath | None) -> int | None:
        """The remaining quota of a storage; ``None`` if there is no quota.

        Raises QuotaExceeded if nothing remains.
        """
        quota_bytes = await self.quotas.of(storage)
        if not quota_bytes or storage is None:
            return None
        used_bytes = await self._usage.used_bytes(storage.strip("/"))
        used_bytes += self._incoming_bytes.get(storage, 0)
        if used_bytes >= quota_bytes:
            raise QuotaExceeded(used_bytes=used_bytes, limit_bytes=quota_bytes)
        return quota_bytes - used_bytes

    def add_incoming(self, storage: ResourcePath, extra_bytes: int) -> None:
        """Add to the bytes that are being received for a storage."""
        incoming_bytes = self._incoming_bytes.get(storage, 0) + extra_bytes
        if incoming_bytes:
            self._incoming_bytes[storage] = incoming_bytes
        else:
            self._incoming_bytes.pop(storage, None)


class _QuotaUse(NamedTuple):
    """A storage with its quota and what it uses, at the start of a request."""

    storage: ResourcePath
    limit_bytes: int
    used_bytes: int


class _BodyWithinQuota:
    """A body that raises QuotaExceeded when it exceeds the quota
    (:class:`podstead.core.operation.RequestBody`)."""

    __slots__ = (
        "_body",
        "_capacity",
        "_extra_bytes",
        "_quota",
        "announced",
        "size_bytes",
    )

    def __init__(
        self,
        capacity: StorageCapacity,
        body: RequestBody,
        quota: _QuotaUse,
        extra_bytes: int,
    ) -> None:
        self._capacity = capacity
        self._body = body
        self._quota = quota
        self._extra_bytes = extra_bytes
        self.announced = body.announced
        self.size_bytes = body.size_bytes

    def check(self, body_bytes: int) -> None:
        """Raise QuotaExceeded if a body of that length is too large."""
        needed_bytes = body_bytes + self._extra_bytes
        # As in the commit, a write that shrinks a storage is accepted even above its quota.
        quota = self._quota
        if needed_bytes > 0 and quota.used_bytes + needed_bytes > quota.limit_bytes:
            raise QuotaExceeded(
                used_bytes=quota.used_bytes,
                limit_bytes=quota.limit_bytes,
                needed_bytes=needed_bytes,
            )

    async def read(self, *, limit_bytes: int) -> bytes:
        """Receive the whole body."""
        return b"".join([chunk async for chunk in self.chunks(limit_bytes=limit_bytes)])

    async def chunks(self, *, limit_bytes: int) -> AsyncIterator[bytes]:
        """Receive the body piece by piece."""
        received_bytes = 0
        # The announced length is added at once, so that concurrent uploads take it into account.
        noted_bytes = self.size_bytes or 0
        self._capacity.add_incoming(self._quota.storage, noted_bytes)
        try:
            async for chunk in self._body.chunks(limit_bytes=limit_bytes):
                received_bytes += len(chunk)
                if received_bytes > noted_bytes:
                    self.check(received_bytes)
                    self._capacity.add_incoming(self._quota.storage, received_bytes - noted_bytes)
                    noted_bytes = received_bytes
                yield chunk
        finally:
            self._capacity.add_incoming(self._quota.storage, -noted_bytes)
