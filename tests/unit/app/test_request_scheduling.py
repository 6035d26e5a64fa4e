"""How does the HTTP server hand over a request? By the queue of the event loop and not otherwise.

One look at the store serves a turn of the loop (``storage/sqlite/row_changes.py``), so a request
must not begin inside a callback that was queued before it arrived. This is what the server runs for
each request, in one of its threads.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context

from granian import _futures


class Watcher:
    """What the HTTP server keeps of a request that is being answered."""

    def taskref(self, task: asyncio.Task[None]) -> None:
        self.task = task


async def test_a_request_begins_in_a_callback_that_is_queued_when_it_arrives() -> None:
    begun: list[str] = []

    async def answer(_: Watcher) -> None:
        begun.append("request")

    loop, arrived = asyncio.get_running_loop(), Watcher()
    loop.call_soon(begun.append, "queued before")
    _futures._cbsched_aioschedule(loop, copy_context(), answer)(arrived)  # type: ignore[no-untyped-call]
    assert begun == []
    await asyncio.sleep(0)
    assert begun == ["queued before"]
    await arrived.task
    assert begun == ["queued before", "request"]
