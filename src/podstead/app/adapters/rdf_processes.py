"""Does costly work on RDF in turn (:class:`podstead.resources.costly_work.CostlyWork`).

Tasks run in processes (``rdf_child.py``), which are started when they are needed, are used again
for a while, and end with the memory that they have taken. A requester has half of them at most, the
requesters of one pod all but one, and each requester a budget of processor time. What runs in
threads takes turns and counts in the same way.
"""

import asyncio
import ctypes
import logging
import math
import pickle
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final, TypeVar

import msgspec

from podstead.app.adapters.child_processes import ChildProcess
from podstead.app.adapters.fair_semaphore import FairSemaphore
from podstead.app.adapters.rdf_child import LENGTH, READY, Reply
from podstead.core.errors import RateLimited
from podstead.core.request_context import requester, requester_agent
from podstead.rdf.jsonld_contexts import Context
from podstead.rdf.tasks import Task
from podstead.resources.costly_work import WAIT_S, WorkTooCostly

BUDGET_S: Final = 20.0
"""How much processor time one requester may use in a worker without a pause."""
WINDOW_S: Final = 60.0
"""How long it takes until an empty budget is full again."""

_RATE: Final = BUDGET_S / WINDOW_S
_MAX_REQUESTERS: Final = 10_000


class ProcessorBudgets:
    """The budgets of one worker. Whoever has used nothing for a while takes no memory."""

    def __init__(self, *, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._used: dict[str, tuple[float, float]] = {}  # seconds used, and when that was so

    def wait_s(self, requester: str) -> float:
        """How long the requester has to wait until there is something left for it."""
        return max(0.0, self._level(requester) - BUDGET_S) / _RATE

    def spend(self, requester: str, processor_s: float) -> None:
        """Note that the requester has used so much, even if that was more than it had left."""
        if len(self._used) >= _MAX_REQUESTERS:
            self._used = {key: used for key, used in self._used.items() if self._level(key) > 0}
        self._used[requester] = self._level(requester) + processor_s, self._now_s()

    def _level(self, requester: str) -> float:
        used_s, then_s = self._used.get(requester, (0.0, 0.0))
        return max(0.0, used_s - (self._now_s() - then_s) * _RATE)


logger = logging.getLogger("podstead.resources")

MAX_PROCESSES: Final = 4
MAX_THREADS: Final = 2
_MAX_WAITING: Final = 64
PROCESSOR_S: Final = 10
MEMORY_MIB: Final = 768
MAX_RESULT_BYTES: Final = 64 * 1024 * 1024
TIME_LIMIT_S: Final = 60.0
"""On a loaded machine, a process gets less of a processor than it may use."""
IDLE_S: Final = 10.0
"""How long a process is kept for the next task."""
_GIVE_BACK_AFTER_S: Final = 2.0
_KEPT_UP_TO_BYTES: Final = 192 * 1024 * 1024
"""The memory of a process that is used again."""
_PATIENCE_S: Final = 5.0
"""How long a request waits because its requester has used up its budget."""
_BUSY: Final = "Too many large documents are being worked on; try again later"

_Result = TypeVar("_Result")


class RdfProcesses:
    """The processes and threads of one worker."""

    def __init__(
        self,
        *,
        base_url: str,
        bundled: Mapping[str, Context],
        budgets: ProcessorBudgets | None = None,
        module: str = "podstead.app.adapters.rdf_child",
        idle_s: float = IDLE_S,
        processor_s: int = PROCESSOR_S,
        memory_mib: int = MEMORY_MIB,
    ) -> None:
        """``module`` is what the processes run, with so much processor time for each task, and so
        much memory for each process."""
        self._base_url = base_url
        self._bundled = bundled
        self._budgets = budgets or ProcessorBudgets()
        self._processor_s = processor_s
        self._command = module, str(processor_s), str(memory_mib)
        self._idle_s = idle_s
        self._processes = FairSemaphore(
            MAX_PROCESSES, wait_s=WAIT_S, refusal=_BUSY, max_waiting=_MAX_WAITING
        )
        self._threads = FairSemaphore(
            MAX_THREADS, wait_s=WAIT_S, refusal=_BUSY, max_waiting=_MAX_WAITING
        )
        self._idle: dict[ChildProcess, asyncio.TimerHandle] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._giving_back: asyncio.TimerHandle | None = None

    async def in_process(self, task: Task, *, pod: str, wait_s: float = WAIT_S) -> bytes:
        """As :class:`podstead.resources.costly_work.CostlyWork` does. Where no process can be
        started, as when the package has been replaced, the task is done in a thread."""
        key = self._requester()
        async with self._turn(self._processes, key, pod, wait_s):
            process = await self._started()
            if process is None:
                return await self._measured(key, lambda: task.carry_out(self._bundled))
            reply = await self._reply(process, task, key)
        if reply.failure is not None:
            raise reply.failure.error()
        return reply.result

    async def in_thread(self, work: Callable[[], _Result], *, pod: str) -> _Result:
        """As :class:`podstead.resources.costly_work.CostlyWork` does."""
        key = self._requester()
        async with self._turn(self._threads, key, pod, WAIT_S):
            return await self._measured(key, work)

    async def close(self) -> None:
        """End all processes that are idle."""
        if self._giving_back is not None:
            self._giving_back.cancel()
        for process in list(self._idle):
            self._end_idle(process)
        await asyncio.gather(*self._ending)

    def _requester(self) -> str:
        """As ``core.request_context``: people of this server by name, all others by network.

        Empty for work of the server itself, which has no budget.
        """
        agent = requester_agent()
        return agent if agent and agent.startswith(f"{self._base_url}/") else requester()

    @asynccontextmanager
    async def _turn(
        self, slots: FairSemaphore, key: str, pod: str, wait_s: float
    ) -> AsyncIterator[None]:
        while True:
            await self._afford(key, min(wait_s, _PATIENCE_S))
            await slots.acquire(key, pod=pod, wait_s=wait_s)
            # Others of this requester have used the budget up in the meantime.
            if not key or self._budgets.wait_s(key) == 0:
                break
            slots.release(key, pod=pod)
        try:
            yield
        finally:
            slots.release(key, pod=pod)

    async def _afford(self, key: str, patience_s: float) -> None:
        needed_s = self._budgets.wait_s(key) if key else 0.0
        if needed_s > patience_s:
            raise RateLimited(
                "You have used up the processor time for large documents and costly patches. "
                f"Try again in {math.ceil(needed_s)} seconds.",
                retry_after_s=math.ceil(needed_s),
            )
        if needed_s > 0:
            await asyncio.sleep(needed_s)

    async def _measured(self, key: str, work: Callable[[], _Result]) -> _Result:
        def measured() -> _Result:
            began_s = time.thread_time()
            try:
                return work()
            finally:
                self._budgets.spend(key, time.thread_time() - began_s)
                _give_memory_back()

        try:
            return await asyncio.to_thread(measured)
        finally:
            self._give_memory_back_later()

    def _give_memory_back_later(self) -> None:
        """Once more, when requests no longer hold what the threads have returned to them."""
        if self._giving_back is not None:
            self._giving_back.cancel()
        loop = asyncio.get_running_loop()
        self._giving_back = loop.call_later(
            _GIVE_BACK_AFTER_S, loop.run_in_executor, None, _give_memory_back
        )

    async def _started(self) -> ChildProcess | None:
        while self._idle:
            process, timer = self._idle.popitem()
            timer.cancel()
            if process.status is None:
                return process
        try:
            process = await ChildProcess.start(*self._command)
        except OSError:
            logger.warning("No process for large documents could be started", exc_info=True)
            return None
        try:
            if await process.receive(len(READY)) == READY:
                return process
        except BaseException:
            await process.end()
            raise
        logger.warning("The process for large documents ended at its start")
        await process.end()
        return None

    async def _reply(self, process: ChildProcess, task: Task, key: str) -> Reply:
        """Send the task and receive its reply. The process is kept, or ended in any case."""
        used_s = float(self._processor_s)  # if the process does not tell
        keeps = False
        try:
            async with asyncio.timeout(TIME_LIMIT_S):
                reply = await _exchange(process, task)
            used_s = reply.processor_s
            keeps = reply.peak_bytes < _KEPT_UP_TO_BYTES
        except (TimeoutError, ConnectionError) as error:
            raise WorkTooCostly from error
        finally:
            self._budgets.spend(key, used_s)
            if keeps:
                loop = asyncio.get_running_loop()
                self._idle[process] = loop.call_later(self._idle_s, self._end_idle, process)
            else:
                await asyncio.shield(self._ended(process))
        return reply

    def _end_idle(self, process: ChildProcess) -> None:
        self._idle.pop(process).cancel()
        self._ended(process)

    def _ended(self, process: ChildProcess) -> asyncio.Task[None]:
        ending = asyncio.create_task(_end(process))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending


async def _end(process: ChildProcess) -> None:
    """End a process, and give back what its replies took: clients have received them by now."""
    await asyncio.to_thread(_give_memory_back)
    await process.end()


async def _exchange(process: ChildProcess, task: Task) -> Reply:
    """Raises WorkTooCostly if the process has ended."""
    sent = pickle.dumps(task)
    await process.send(LENGTH.pack(len(sent)) + sent)
    prefix = await process.receive(LENGTH.size)
    if len(prefix) < LENGTH.size:
        raise WorkTooCostly
    (length,) = LENGTH.unpack(prefix)
    if length > MAX_RESULT_BYTES:
        raise WorkTooCostly
    content = await process.receive(length)
    if len(content) < length:
        raise WorkTooCostly
    return msgspec.msgpack.decode(content, type=Reply)


def _give_memory_back() -> None:
    """Have the C library return what is free; without this, it keeps most of it."""
    if _trim is not None:
        _trim(0)


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""Exists in glibc."""
