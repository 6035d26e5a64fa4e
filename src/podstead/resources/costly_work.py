"""Runs costly work so that other requests do not wait for it.

Small RDF documents are processed directly. Large ones, and work that turns out to take long, are
queued by requester and by pod, and a few run at a time within a budget of processor time. Each
agent has one costly operation at a time, such as one on a tree.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeVar

from podstead.core.errors import RateLimited, Unprocessable
from podstead.core.identity import Identity
from podstead.core.request_context import limit_key
from podstead.rdf.jsonld_contexts import Context
from podstead.rdf.tasks import Task
from podstead.resources.codes import ResourceCodes
from podstead.storage.keyed_semaphores import KeyedSemaphores

_Result = TypeVar("_Result")

WAIT_S: Final = 30.0
"""How long a request waits for its turn."""
WRITE_WAIT_S: Final = 2.0
"""How long a patch waits for its turn, while other writers of the same document wait for it."""


class WorkTooCostly(Unprocessable):
    """The work exceeded its limit of processor time or memory; nothing was changed."""

    code = ResourceCodes.TOO_COSTLY


class CostlyWork(Protocol):
    """Does work for the current requester (``core.request_context``), in turn."""

    async def in_process(self, task: Task, *, pod: str, wait_s: float = WAIT_S) -> bytes:
        """The result of a task, for a resource of the pod with this root ("" for none).

        Raises WorkTooCostly, RateLimited if the requester has used up its processor time,
        Overloaded if its turn does not come in time, and what the task raises.
        """

    async def in_thread(self, work: Callable[[], _Result], *, pod: str) -> _Result:
        """The result of work that is short, or lets other threads run. Raises as
        :meth:`in_process` does, but never WorkTooCostly."""

    async def close(self) -> None:
        """Stop the processes and threads that wait for work."""


class InThreads:
    """Runs everything in threads without queueing, for commands, which serve only the operator."""

    def __init__(self, bundled: Mapping[str, Context]) -> None:
        self._bundled = bundled

    async def in_process(self, task: Task, *, pod: str, wait_s: float = WAIT_S) -> bytes:
        """As :class:`CostlyWork` does."""
        del pod, wait_s
        return await asyncio.to_thread(task.carry_out, self._bundled)

    async def in_thread(self, work: Callable[[], _Result], *, pod: str) -> _Result:
        """As :class:`CostlyWork` does."""
        del pod
        return await asyncio.to_thread(work)

    async def close(self) -> None:
        """Does nothing."""


MAX_WAITING: Final = 32
"""The operations of one agent that may run or wait."""
_RETRY_AFTER_S: Final = 5


class AgentSemaphores:
    """Limits the costly operations of one worker, by agent, or by network for those without
    credentials.

    An operation on ten thousand resources takes tens of megabytes and seconds of work. An agent
    that sends many at once waits for its own operations and delays nobody else's. Only some may
    wait; the rest are refused.
    """

    def __init__(self, *, base_url: str = "", at_once: int = 1) -> None:
        """``at_once`` operations of one agent run at once. With a ``base_url``, agents of other
        servers share the limit of their network."""
        self._base_url = base_url
        self._semaphores = KeyedSemaphores(at_once)

    @asynccontextmanager
    async def of(self, agent: Identity | None) -> AsyncIterator[None]:
        """Wait for the agent's turn, which lasts until the context is left. Raises RateLimited."""
        async with self.by(limit_key(agent, base_url=self._base_url)):
            yield

    @asynccontextmanager
    async def by(self, key: str) -> AsyncIterator[None]:
        """Wait for a turn under the key. Raises RateLimited if too many are waiting under it."""
        if self._semaphores.count(key) >= MAX_WAITING:
            raise RateLimited(retry_after_s=_RETRY_AFTER_S)
        async with self._semaphores.take(key):
            yield
