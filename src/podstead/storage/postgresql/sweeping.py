"""Work in many small transactions, so that requests can run in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from podstead.storage.postgresql.apply import Connection
from podstead.storage.postgresql.change_listening import ChangeListening
from podstead.storage.postgresql.removal import continue_removal
from podstead.storage.postgresql.writer import Writer


async def finish_removals(writer: Writer, listening: ChangeListening) -> None:
    """Remove the rest of deleted pods in batches."""
    while await writer.run(continue_removal):
        listening.wake()


async def run_in_batches(writer: Writer, *batches: Callable[[Connection], Awaitable[bool]]) -> None:
    """Run each of them until it says that there is no more to do. Each removes a limited number of
    rows in a transaction of its own."""
    for batch in batches:
        while await writer.run(batch):
            pass
