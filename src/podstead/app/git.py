"""What a worker needs to serve git, and to remove repositories of deleted containers."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podstead.app.adapters.git_processes import GitProcesses, find_git
from podstead.config import Settings
from podstead.core.clock import Clock
from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.operation import InMemoryBody, Operation
from podstead.core.vocab import LDP_BASIC_CONTAINER
from podstead.git.bundles import RepositoryBundles
from podstead.git.directories import Directories
from podstead.git.repositories import Repositories, sweep_repositories
from podstead.git.service import GitService
from podstead.resources.outcome import ResourceRequest
from podstead.resources.service import ResourceService
from podstead.storage.protocol import Store
from podstead.storage.repositories import RepositoryName
from podstead.web.git_endpoint import GitEndpoint

if TYPE_CHECKING:
    from podstead.app.services import Services

logger = logging.getLogger("podstead.git")


def check_git(settings: Settings) -> None:
    """Raises StartRefused if git is on and no suitable git is installed."""
    if settings.git:
        find_git()


@dataclass(frozen=True, slots=True)
class _Containers:
    """Creates containers (:class:`podstead.git.service.Containers`)."""

    resources: ResourceService

    async def make(
        self, container: ResourcePath, agent: Identity | None, origin: str | None
    ) -> None:
        operation = Operation(
            method="PUT",
            target=container,
            body=InMemoryBody(),
            link_types=(LDP_BASIC_CONTAINER,),
            origin=origin,
        )
        await self.resources.handle(ResourceRequest(operation, agent))


class GitServices:
    """The endpoint for git, if the setting ``git`` is on."""

    def __init__(self, services: Services) -> None:
        """Raises StartRefused."""
        settings, store = services.settings, services.store
        self._processes = GitProcesses(find_git(), max_processes=settings.git_processes)
        self._repositories = Repositories(
            store=store,
            directories=services.directories,
            processes=self._processes,
            clock=services.clock,
            randomness=services.randomness,
        )
        self.bundles = RepositoryBundles(
            store=store,
            directories=services.directories,
            processes=self._processes,
            clock=services.clock,
            randomness=services.randomness,
        )
        self.endpoint = GitEndpoint(
            GitService(
                store=store,
                gate=services.gate,
                containers=_Containers(services.resources),
                repositories=self._repositories,
                processes=self._processes,
                capacity=services.capacity,
                max_body_bytes=settings.max_body_bytes,
            )
        )

    async def open(self) -> None:
        await self._repositories.open()

    async def close(self) -> None:
        await self._repositories.close()
        await self._processes.close()


class RepositorySweep:
    """Removes repositories of deleted containers, also if git is off by now."""

    def __init__(self, directories: Directories, store: Store, clock: Clock) -> None:
        self._directories = directories
        self._store = store
        self._clock = clock
        self._measured: set[RepositoryName] = set()
        self._task: asyncio.Task[None] | None = None
        self._again = False

    async def now(self) -> None:
        """Raises StorageError."""
        await sweep_repositories(
            self._store, self._directories, self._clock, measured=self._measured
        )

    def soon(self) -> None:
        """Run it in the background, because a container was deleted."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        while self._again:
            self._again = False
            try:
                await self.now()
            except StorageError:
                logger.exception("Repositories could not be swept; it is tried again")

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._directories.close()
