"""What a worker does for git: it answers git's requests, and removes unused repositories."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.operation import InMemoryBody, RequestBody
from podstead.features import WorkerFeature
from podstead.features.git import GitSettings, bundles, directories, entries, protocol, repositories
from podstead.features.git.processes import GitProcesses, find_git
from podstead.features.git.service import Caller, GitService
from podstead.storage import layout, records
from podstead.web.limits import address_key
from podstead.web.request import Request
from podstead.web.response import Response, relayed_response

if TYPE_CHECKING:
    from podstead.app.services import Services


MAX_SIGNED_BYTES: Final = 4 * 1024 * 1024
"""The maximum size of signed content in a request of git. Helpers for git sign no content."""


async def _whole(body: RequestBody) -> InMemoryBody:
    """Check signed content before git receives any of it, since git acts on each piece (A-145)."""
    return InMemoryBody(await body.read(limit_bytes=MAX_SIGNED_BYTES))


@dataclass(frozen=True, slots=True)
class ClaimedGitRequest:
    """One request of git (:class:`podstead.web.routes.ClaimedRequest`)."""

    asked: protocol.GitRequest
    service: GitService
    label = "git"

    @property
    def sequence(self) -> ResourcePath:
        return self.asked.container

    async def handle(self, request: Request, agent: Identity | None) -> Response:
        """Pass the request to git and its response back. Raises RequestRefused and
        ServerTrouble."""
        get = request.fields.get
        transfer = protocol.Transfer(
            content_type=get(b"content-type"),
            content_coding=get(b"content-encoding"),
            protocol=get(b"git-protocol"),
            size_bytes=request.body.size_bytes,
        )
        address = request.client_address
        caller = Caller(agent, get(b"origin"), address, network=address_key(address))
        body = request.body
        if agent is not None and agent.content_digest is not None:
            body = await _whole(body)
        answer = await self.service.answer(self.asked, caller, transfer, body)
        fields = [(name.encode(), value.encode("ascii")) for name, value in answer.head.fields]
        return relayed_response(answer.head.status, fields, answer.content)


logger = logging.getLogger("podstead.git")


class RepositorySweep(WorkerFeature):
    """Removes repositories of deleted containers, also if git is off by now."""

    def __init__(self, services: Services, processes: GitProcesses | None = None) -> None:
        self._store = services.store
        self._clock = services.clock
        self._directories = directories.directories_of(layout.RootLayout(services.settings.root))
        self._measured: set[entries.RepositoryName] = set()
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self.observer = self
        self.bundler = bundles.RepositoryBundles(services.records, self._directories, processes)

    async def sweep(self) -> None:
        """Remove them now. Raises StorageError."""
        await repositories.sweep_repositories(
            self._store, self._directories, self._clock, measured=self._measured
        )

    def committed(self, agent: Identity | None, write: records.Write) -> None:  # noqa: ARG002
        """Remove repositories in the background if a container was deleted."""
        for path in write.deletes:  # few writes delete anything
            if path.endswith("/"):
                self._again = True
                if self._task is None or self._task.done():
                    self._task = asyncio.create_task(self._sweep())
                return

    async def _sweep(self) -> None:
        while self._again:
            self._again = False
            try:
                await self.sweep()
            except Exception:
                logger.exception("Repositories could not be swept; the next sweep will do it")

    async def stop(self) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._directories.close()


class GitInWorker(RepositorySweep):
    """Git, if the setting ``git`` is on."""

    def __init__(self, services: Services) -> None:
        """Raises StartRefused."""
        settings = services.settings.of(GitSettings)
        self._processes = GitProcesses(find_git(), max_processes=settings.git_processes)
        super().__init__(services, self._processes)
        self._services = services
        self._repositories = repositories.Repositories(
            services.records, self._directories, self._processes
        )
        self.claim = self._claim

    @cached_property
    def _service(self) -> GitService:
        services = self._services
        return GitService(
            store=services.store,
            gate=services.gate,
            resources=services.resources,
            repositories=self._repositories,
            processes=self._processes,
            capacity=services.capacity,
            max_body_bytes=services.settings.max_body_bytes,
        )

    def _claim(self, method: str, path: ResourcePath, query: bytes) -> ClaimedGitRequest | None:
        """The request, if it is one of git's protocol."""
        asked = protocol.git_request(method, path, query)
        return None if asked is None else ClaimedGitRequest(asked, self._service)

    async def start(self) -> None:
        await self._repositories.open()

    async def stop(self) -> None:
        await self._repositories.close()
        await self._processes.close()
        await super().stop()
