"""Runs costly work on RDF so that other requests do not wait for it.

Small documents are processed directly. Large ones, and work that turns out to take long, are queued
by requester and by pod, and a few run at a time within a budget of processor time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeVar

from podstead.core.errors import Unprocessable
from podstead.rdf.jsonld_contexts import Context
from podstead.rdf.tasks import Task

_Result = TypeVar("_Result")

WAIT_S: Final = 30.0
"""How long a request waits for its turn."""
WRITE_WAIT_S: Final = 2.0
"""How long a patch waits for its turn, while other writers of the same document wait for it."""


class WorkTooCostly(Unprocessable):
    """The work exceeded its limit of processor time or memory; nothing was changed."""

    def __init__(self) -> None:
        super().__init__("This takes more processor time or memory than the server gives to it")


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
