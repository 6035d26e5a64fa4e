"""Evaluates queries in processes, each of which has the documents of one view and stays warm.

A view is what one asker may read of a container. Its process never gets another document, so no
query reaches one. A process answers one query at a time. Those of one view that come together start
further processes, within the share of their requester; a query that exceeds its time or memory ends
its process and nothing else.
"""

import asyncio
import logging
import math
import signal
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from podstead.app.adapters import fair_semaphore, rdf_processes
from podstead.app.adapters.child_processes import ChildProcess
from podstead.core.errors import Overloaded, RateLimited, Unprocessable
from podstead.core.identifiers import ResourcePath
from podstead.features.sparql import evaluation
from podstead.rdf import sparql_query, tasks
from podstead.storage.records import Version

logger = logging.getLogger("podstead.sparql")

MAX_PROCESSES: Final = 4
_MAX_WAITING: Final = 64
_WAIT_S: Final = 30.0
PROCESSOR_S: Final = 10
"""The processor time of one query."""
MEMORY_MIB: Final = 1280
"""The memory of a process, with the documents."""
RESULT_MIB: Final = 256
TIME_LIMIT_S: Final = 60.0
"""How long a process may take for the next piece: on a loaded machine, it gets less of a
processor."""
LASTS_S: Final = 600.0
"""How long an answer may take in all: one that is received slowly keeps a process from others."""
IDLE_S: Final = 120.0
"""How long a process stays warm after a query."""
WARM_BYTES: Final = 128 * 1024 * 1024
"""The size of the documents of all warm processes of a worker, which take about ten times that."""

_TIME: Final = (
    f"The query takes more than the {PROCESSOR_S} seconds of processor time that it may take"
)
_MEMORY: Final = "The query and the documents here take more memory than they may take"


class ProcessDelta(msgspec.Struct, frozen=True):
    """What a process has to learn: what is gone, and what to read, by its versions."""

    gone: Sequence[ResourcePath]
    new: Mapping[ResourcePath, Version]


@dataclass(eq=False, slots=True)
class WarmProcess:
    """A process, and the documents that it has."""

    child: ChildProcess
    held: dict[ResourcePath, Version] = field(default_factory=dict)
    state: Hashable = None
    """The state of the container that they are from."""
    size_bytes: int = 0
    timer: asyncio.TimerHandle | None = None

    def change_to(self, wanted: Mapping[ResourcePath, Version]) -> ProcessDelta:
        """What it lacks."""
        held = self.held
        new = {path: version for path, version in wanted.items() if held.get(path) != version}
        return ProcessDelta([path for path in held if path not in wanted or path in new], new)

    async def send(self, kind: bytes, content: bytes) -> None:
        """Send a message. Raises ConnectionError if the process has ended."""
        await self.child.send(evaluation.FRAME.pack(kind, len(content)) + content)

    async def remove(self, path: ResourcePath, url: str) -> None:
        """Have it forget a document."""
        await self.send(evaluation.REMOVE, url.encode())
        del self.held[path]

    async def put(
        self, documents: Mapping[ResourcePath, tuple[Version, evaluation.StoredDocument]]
    ) -> None:
        """Have it keep documents."""
        messages = []
        for path, (version, document) in documents.items():
            content = msgspec.msgpack.encode(document)
            messages += [evaluation.FRAME.pack(evaluation.PUT, len(content)), content]
            self.held[path] = version
            self.size_bytes += len(document.content)
        await self.child.send(b"".join(messages))

    async def receive(self) -> tuple[bytes, bytes]:
        """The next message. Raises Unprocessable if the process has ended, or takes too long."""
        frame = evaluation.FRAME
        try:
            async with asyncio.timeout(TIME_LIMIT_S):
                prefix = await self.child.receive(frame.size)
                if len(prefix) == frame.size:
                    kind, size = frame.unpack(prefix)
                    if size <= evaluation.PIECE_BYTES:
                        content = await self.child.receive(size)
                        if len(content) == size:
                            return kind, content
        except TimeoutError as error:
            raise Unprocessable(_TIME) from error
        await self.child.end()
        raise Unprocessable(_TIME if self.child.status == -signal.SIGXCPU else _MEMORY)


_Owners = tuple[Hashable, Hashable]
"""A view and an asker: processes of either are used again."""


class QueriedDocuments(Protocol):
    """What a query is about."""

    async def look(self) -> _Owners:
        """Find out what the asker may read, which says whose process it can be."""

    async def fill(self, process: WarmProcess) -> None:
        """Bring the documents of a process up to date."""


class QueryProcesses:
    """The processes of one worker."""

    def __init__(
        self,
        *,
        processor_s: int = PROCESSOR_S,
        memory_mib: int = MEMORY_MIB,
        result_mib: int = RESULT_MIB,
    ) -> None:
        self._arguments = str(processor_s), str(memory_mib), str(result_mib)
        self._slots = fair_semaphore.FairSemaphore(
            MAX_PROCESSES,
            wait_s=_WAIT_S,
            refusal="Too many queries are being answered; try again later",
            max_waiting=_MAX_WAITING,
        )
        self._budgets = rdf_processes.ProcessorBudgets()
        self._idle: dict[WarmProcess, _Owners] = {}
        """With the view and the asker of the last query."""
        self._ending: set[asyncio.Task[None]] = set()

    async def answer(
        self,
        documents: QueriedDocuments,
        query: sparql_query.SparqlQuery,
        media_type: str,
        *,
        requester: str,
        pod: str,
    ) -> AsyncIterator[bytes]:
        """The result in pieces, of which the first is there.

        Raises RateLimited and Overloaded, what evaluating raises (Unprocessable, BadRequest), and
        what the documents raise, which nothing is asked of before it is the turn of the requester.
        """
        wait_s = self._budgets.wait_s(requester)
        if wait_s > 0:
            retry_after_s = math.ceil(wait_s)
            raise RateLimited(
                "You have used up the processor time for queries. "
                f"Try again in {retry_after_s} seconds.",
                retry_after_s=retry_after_s,
            )
        await self._slots.acquire(requester, pod=pod)
        running = _Running(self, requester, pod)
        try:
            running.owners = await documents.look()
            process = running.process = await self._started(*running.owners)
            await documents.fill(process)
            asked = msgspec.msgpack.encode((query, media_type))
            await process.send(evaluation.QUERY, asked)
            running.first = await anext(running, None)
        except ConnectionError as error:
            await running.aclose()
            raise Unprocessable(_MEMORY) from error
        except BaseException:
            await running.aclose()
            raise
        return running

    async def close(self) -> None:
        """End all processes that are idle."""
        for process in list(self._idle):
            self._end_idle(process)
        await asyncio.gather(*self._ending)

    async def _started(self, view: Hashable, asker: Hashable) -> WarmProcess:
        """A process of the view, or else of the asker, whose view was another before."""
        idle = sorted(self._idle.items(), key=lambda each: each[1][0] != view)
        for process, owners in idle:
            if process.child.status is not None:
                self._take(process)
            elif view == owners[0] or asker == owners[1]:
                self._take(process)
                return process
        try:
            child = await ChildProcess.start(evaluation.__name__, *self._arguments)
        except OSError as error:
            logger.warning("No process for queries could be started", exc_info=True)
            raise Overloaded("No query can be answered now; try again later") from error
        process = WarmProcess(child)
        try:
            await process.receive()
        except BaseException as error:
            await child.end()
            if isinstance(error, Unprocessable):
                logger.warning("The process for queries ended at its start")
                raise Overloaded("No query can be answered now; try again later") from error
            raise
        return process

    def release(self, running: "_Running", processor_s: float | None) -> None:
        """Keep the process for the next query, or end it if it does not tell what it has used."""
        used_s = float(PROCESSOR_S) if processor_s is None else processor_s
        process = running.process
        if process is not None:
            self._budgets.spend(running.requester, used_s)
            if processor_s is None:  # it may still be running
                self._ended(process)
            else:
                loop = asyncio.get_running_loop()
                process.timer = loop.call_later(IDLE_S, self._end_idle, process)
                self._idle[process] = running.owners
                while sum(each.size_bytes for each in self._idle) > WARM_BYTES:
                    self._end_idle(next(iter(self._idle)))
        self._slots.release(running.requester, pod=running.pod)

    def _take(self, process: WarmProcess) -> None:
        del self._idle[process]
        if process.timer is not None:
            process.timer.cancel()

    def _end_idle(self, process: WarmProcess) -> None:
        self._take(process)
        self._ended(process)

    def _ended(self, process: WarmProcess) -> None:
        ending = asyncio.create_task(process.child.end())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


class _Running:
    """A query that a process is answering, or is about to; iterates over the result."""

    def __init__(self, processes: QueryProcesses, requester: str, pod: str) -> None:
        self.owners: _Owners = (None, None)
        self.requester = requester
        self.pod = pod
        self.process: WarmProcess | None = None
        self.first: bytes | None = None
        """A piece that was received before the others were asked for."""
        self._processes = processes
        self._ended = False
        self._until_s = asyncio.get_running_loop().time() + LASTS_S

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """The next piece. Raises what evaluating raises."""
        if (piece := self.first) is not None:
            self.first = None
            return piece
        if self.process is None or self._ended:
            raise StopAsyncIteration
        try:
            if asyncio.get_running_loop().time() > self._until_s:
                raise Unprocessable("The result was not received in time")
            kind, content = await self.process.receive()
            if kind == evaluation.DATA:
                return content
            failed = None
            if kind == evaluation.FAILED:
                failed = msgspec.msgpack.decode(content, type=tasks.Failure).error()
                _, content = await self.process.receive()
        except BaseException:
            await self.aclose()
            raise
        self._end(msgspec.msgpack.decode(content, type=float))
        raise failed or StopAsyncIteration

    async def aclose(self) -> None:
        """End the process, unless it has answered."""
        self._end(None)

    def _end(self, processor_s: float | None) -> None:
        if not self._ended:
            self._ended = True
            self._processes.release(self, processor_s)
