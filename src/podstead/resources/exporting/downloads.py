"""Serves a pod to its owner as an archive of its state at the request, a few at a time for each
person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final, Protocol

from podstead.core.errors import NotFound
from podstead.resources.agent_semaphores import AgentSemaphores
from podstead.resources.exporting.archive import PodArchive
from podstead.resources.exporting.contents import RepositoryBundler, read_contents
from podstead.storage.open_body import StreamedBody
from podstead.storage.protocol import PodRegistry, ResourceStore

MAX_RESOURCES: Final = 100_000
"""How many resources the archive of a download may have; the command has no limit."""
MAX_OF_PERSON: Final = 2


class DownloadStore(ResourceStore, PodRegistry, Protocol):
    """The parts of a store that downloads need."""


class PodDownload(StreamedBody):
    """An archive that waits for the person's other downloads (:class:`OpenBody` of the storage)."""

    def __init__(self, archive: PodArchive, turns: AgentSemaphores, requester: str) -> None:
        self._archive = archive
        self._turns = turns
        self._requester = requester
        self.size_bytes = archive.size_bytes
        self.tag = archive.tag

    async def chunks(self, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Raises RateLimited and ContentsChanged."""
        async with (
            self._turns.by(self._requester),
            aclosing(self._archive.chunks(start, end)) as chunks,
        ):
            async for chunk in chunks:
                yield chunk


class PodDownloads:
    """Opens archives of pods."""

    def __init__(
        self,
        *,
        store: DownloadStore,
        base_url: str,
        issuer: str,
        bundler: RepositoryBundler | None = None,
    ) -> None:
        """``bundler`` adds the repositories of containers."""
        self._store = store
        self._bundler = bundler
        self._base_url = base_url
        self._issuer = issuer
        self._turns = AgentSemaphores(at_once=MAX_OF_PERSON)

    async def open(self, name: str) -> PodDownload:
        """The archive of a pod as it is now. The caller has authorized the request. Raises NotFound
        and RateLimited."""
        pod = await self._store.read_pod(name)
        if pod is None:
            raise NotFound(f"There is no pod '{name}'")
        async with self._turns.by(pod.name):
            contents = await read_contents(
                self._store,
                pod,
                base_url=self._base_url,
                issuer=self._issuer,
                bundler=self._bundler,
                max_resources=MAX_RESOURCES,
            )
            # Determining the size takes a second for a hundred thousand resources.
            archive = await asyncio.to_thread(PodArchive, self._store, contents)
        return PodDownload(archive, self._turns, pod.name)
