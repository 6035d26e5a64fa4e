"""A process that keeps an index up and is killed at a named step: ``python -m`` with one argument.

The argument is JSON with the members of :class:`Order`. It ends normally if it never comes to the
step for the nth time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from podstead.app.operator.data_root import opened_records
from podstead.features.search import fts5, indexer
from podstead.features.search.extractor import Extractor
from podstead.features.search.fts5 import Fts5Index
from podstead.features.search.indexer import Indexer
from podstead.features.search.postgresql import PostgresqlIndex
from podstead.features.search.worker import index_of
from podstead.storage.disk_space import DiskSpace
from podstead.storage.record_store import RecordStore
from tests.support.usual_roots import usual_settings

MODULE: Final = "tests.features.search.killed_indexer"


class Order(msgspec.Struct):
    """Which root, whether to build its index anew, and where to be killed."""

    root: str
    database: str | None
    anew: bool
    step: str
    nth: int


STEPS: Final[dict[str, tuple[tuple[Any, str, bool], ...]]] = {
    "before a step": ((Fts5Index, "apply", False), (PostgresqlIndex, "apply", False)),
    "within a step": ((fts5, "_put", True), (RecordStore, "commit", True)),
    "after a step": ((Fts5Index, "apply", True), (PostgresqlIndex, "apply", True)),
    "after the beginning": ((Fts5Index, "begin", True), (PostgresqlIndex, "begin", True)),
}
"""The functions of each step, and whether it is after their call."""


def _killing(
    called: Callable[..., Any], counts: list[int], *, is_after: bool
) -> Callable[..., Any]:
    def count() -> bool:
        counts[0] -= 1
        return counts[0] == 0

    def replaced(*values: Any) -> Any:  # noqa: ANN401
        found = called(*values)
        if count():
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    async def awaited(*values: Any) -> Any:  # noqa: ANN401
        is_last = count()
        if is_last and not is_after:
            os.kill(os.getpid(), signal.SIGKILL)
        found = await called(*values)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    return awaited if asyncio.iscoroutinefunction(called) else replaced


async def obey(order: Order) -> None:
    indexer.ROWS = 3  # type: ignore[misc]
    counts = [order.nth]
    for owner, name, is_after in STEPS[order.step]:
        setattr(owner, name, _killing(getattr(owner, name), counts, is_after=is_after))
    settings = usual_settings(Path(order.root)).with_values(database=order.database)
    async with opened_records(settings) as records:
        index = index_of(settings, records, DiskSpace(settings.root))
        async for _ in Indexer(index, records.store, Extractor()).steps(anew=order.anew):
            pass
        await index.close()


if __name__ == "__main__":
    asyncio.run(obey(msgspec.json.decode(sys.argv[1], type=Order)))
