"""Handles a git request: authorizes it, finds the repository, runs git.

The gate decides, as for resources. A fetch needs Read on the container and its contents; a push
needs the modes of a PUT of the container: Write, and Append above it if the container must be
created. A refusal looks the same whether there is a container, a repository, or neither.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from podstead.core.errors import Conflict, NotFound, Overloaded
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.identity import Identity
from podstead.core.operation import NO_BODY, Operation, RequestBody
from podstead.core.vocab import LDP_BASIC_CONTAINER
from podstead.features.git import configuration, entries, protocol
from podstead.features.git.processes import GitProcesses, HttpBackend
from podstead.features.git.repositories import EMPTY, ClaimedRepository, Repositories
from podstead.resources import outcome, service
from podstead.storage.capacity import StorageCapacity
from podstead.storage.protocol import Store
from podstead.wac import effective, modes
from podstead.wac.gate import Gate, GrantedAccess

_MAX_ATTEMPTS: Final = 16


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request; ``origin`` is the Origin header as received, ``network`` the part of
    the address that identifies one customer."""

    agent: Identity | None
    origin: str | None
    address: str
    network: str


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """The response of git: a status, header fields, and streamed content."""

    head: protocol.Head
    content: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class _Admitted:
    """The result of authorizing a request."""

    exists: bool
    repository: entries.RepositoryName | None
    grant: GrantedAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class GitService:
    """Handles git requests.

    ``max_body_bytes`` is the limit for one push.
    """

    store: Store
    gate: Gate
    resources: service.ResourceService
    repositories: Repositories
    processes: GitProcesses
    capacity: StorageCapacity
    max_body_bytes: int

    async def answer(
        self,
        asked: protocol.GitRequest,
        caller: Caller,
        transfer: protocol.Transfer,
        body: RequestBody,
    ) -> GitAnswer:
        """Handle one request. Raises RequestRefused and ServerTrouble."""
        admitted = await self._admit(asked, caller)
        transfer.check(asked)
        if asked.is_push and not asked.advertises:
            return await self._receive_push(asked, caller, transfer, body, admitted)
        if not (admitted.exists or asked.is_push):
            raise NotFound("There is no container here")
        content = _content(
            asked,
            transfer,
            NO_BODY if asked.advertises else body,
            limit_bytes=min(self.max_body_bytes, protocol.MAX_COMMAND_BYTES),
        )
        running = await self._start(
            asked, caller, transfer, content, name=admitted.repository or EMPTY
        )
        if not (asked.is_push or asked.advertises):
            self.resources.note_read(caller.agent, asked.container)
        return await _answered(running, running.chunks())

    # --- deciding -----------------------------------------------------------------------------

    async def _admit(self, asked: protocol.GitRequest, caller: Caller) -> _Admitted:
        """Pass the gate. The repository is that of the container that was authorized.

        Raises NotAuthenticated, AccessDenied, and ServerTrouble.
        """
        container = asked.container
        for _ in range(_MAX_ATTEMPTS):
            name = await self.repositories.name_of(container)
            snapshot = await self.store.read_metadata(
                effective.paths_to_read(modes.any_member(container))
            )
            required = (
                modes.for_put(container, snapshot) if asked.is_push else modes.for_clone(container)
            )
            grant = await self.gate.authorize(
                caller.agent, caller.origin, container, required, snapshot
            )
            if await self.repositories.name_of(container) == name:
                return _Admitted(snapshot[container] is not None, name, grant)
        raise Overloaded("The container is changing too fast to be read; try again")

    # --- pushing ------------------------------------------------------------------------------

    async def _receive_push(
        self,
        asked: protocol.GitRequest,
        caller: Caller,
        transfer: protocol.Transfer,
        body: RequestBody,
        admitted: _Admitted,
    ) -> GitAnswer:
        storage = storage_root(asked.container)
        body = await self.capacity.limit_body(
            body, storage, extra_bytes=1
        )  # an empty push takes some, too
        remaining_bytes = await self.capacity.remaining_bytes(storage)
        limit_bytes = max(min(self.max_body_bytes, remaining_bytes or self.max_body_bytes), 1)
        claimed = await self._own(asked, caller, admitted)

        async def permit() -> None:
            await self._recheck(asked, caller, claimed)

        content = _content(asked, transfer, body, limit_bytes=limit_bytes)
        try:
            running = await self._start(
                asked,
                caller,
                transfer,
                _then(permit, self.capacity.limit_to_disk(content)),
                name=claimed.name,
                holding=claimed.claim.fileno(),
                changes={
                    "receive.maxInputSize": str(limit_bytes),
                    "core.hooksPath": self.repositories.hooks,
                },
                permit=permit,
            )
            return await _answered(running, self._finish(running, claimed))
        except BaseException:
            claimed.claim.close()
            self.repositories.schedule_tidying(claimed)
            raise

    async def _recheck(
        self, asked: protocol.GitRequest, caller: Caller, claimed: ClaimedRepository
    ) -> None:
        """Check that the caller may still push to this repository.

        A push can take hours to arrive. This is called when it has arrived, so that a refusal is an
        ordinary response, and again by the hook just before references change. Raises
        RequestRefused and ServerTrouble.
        """
        admitted = await self._admit(asked, caller)
        if admitted.repository != claimed.name:
            raise Conflict("The container was deleted during the push")

    async def _own(
        self, asked: protocol.GitRequest, caller: Caller, admitted: _Admitted
    ) -> ClaimedRepository:
        """The repository to push to; creates it and its container if necessary."""
        for _ in range(_MAX_ATTEMPTS):
            if not admitted.exists:
                await self._make_container(asked.container, caller)
            elif admitted.repository is not None:
                return await self.repositories.join(admitted.repository, asked.container)
            else:
                claimed = await self.repositories.make(
                    asked.container, admitted.grant.preconditions
                )
                if claimed is not None:
                    return claimed
            admitted = await self._admit(asked, caller)
        raise Overloaded("The container is changing too fast for a push; try again")

    async def _make_container(self, container: ResourcePath, caller: Caller) -> None:
        """Create a missing container and those above it, as PUT does."""
        operation = Operation(
            method="PUT",
            target=container,
            link_types=(LDP_BASIC_CONTAINER,),
            origin=caller.origin,
        )
        await self.resources.handle(outcome.ResourceRequest(operation, caller.agent))

    async def _finish(
        self, running: HttpBackend, claimed: ClaimedRepository
    ) -> AsyncIterator[bytes]:
        """Pass the response on, and end it only once the push is durable."""
        try:
            async for chunk in running.chunks():
                yield chunk
            await self.repositories.settle(claimed)
        finally:
            await running.end()
            claimed.claim.close()
            self.repositories.schedule_tidying(claimed)

    # --- running ------------------------------------------------------------------------------

    async def _start(
        self,
        asked: protocol.GitRequest,
        caller: Caller,
        transfer: protocol.Transfer,
        content: AsyncIterator[bytes],
        *,
        name: entries.RepositoryName,
        holding: int | None = None,
        changes: Mapping[str, str] | None = None,
        permit: Callable[[], Awaitable[None]] | None = None,
    ) -> HttpBackend:
        directory = self.repositories.path(name)
        agent = caller.agent
        asking = protocol.variables(
            asked,
            transfer,
            directory=directory,
            agent=None if agent is None else agent.iri,
            client_address=caller.address,
        )
        settings = configuration.environment(
            self.processes.search_path,
            repository=directory,
            changes={"http.receivepack": _word(asked.is_push), **(changes or {})},
        )
        return await self.processes.answer(
            {**settings, **asking},
            content,
            requester=caller.network,
            holding=holding,
            permit=permit,
        )


def _content(
    asked: protocol.GitRequest, transfer: protocol.Transfer, body: RequestBody, *, limit_bytes: int
) -> AsyncIterator[bytes]:
    """The decompressed content of a body for git, up to the limit."""
    content = body.chunks(limit_bytes=limit_bytes)
    if transfer.is_compressed and not asked.advertises:
        content = protocol.decompressed(content, limit_bytes=limit_bytes)
    return protocol.limit_commands(content) if asked.is_push else content


async def _then(
    check: Callable[[], Awaitable[None]], content: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Pass the content on, and run the check at its end; git receives the last piece only then."""
    async for piece in content:
        yield piece
    await check()


async def _answered(running: HttpBackend, content: AsyncIterator[bytes]) -> GitAnswer:
    try:
        return GitAnswer(protocol.read_head(running.head), content)
    except BaseException:
        await running.end()
        raise


def _word(switch: bool) -> str:  # noqa: FBT001 - a value
    return "true" if switch else "false"
