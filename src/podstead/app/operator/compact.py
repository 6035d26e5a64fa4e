"""Gives space back: of the database, of bodies that nothing refers to, and of features' folders."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from podstead.app.adapters.engine import layout_of
from podstead.app.operator.data_root import OnStep, opened_store
from podstead.config import Settings
from podstead.core.errors import RootInUse
from podstead.features import Compacted, DataFolder, folders
from podstead.storage.layout import RootLayout
from podstead.storage.protocol import Compaction, Store
from podstead.storage.root import lock_root

Sizes = Mapping[str, int]
"""The bytes that the parts of a data root take on disk, and in all."""


@dataclass(frozen=True, slots=True)
class CompactResult:
    """What was achieved."""

    before: Sizes
    after: Sizes
    database: Compaction
    folders: Sequence[tuple[DataFolder, Compacted]]


async def compact_root(settings: Settings, *, on_step: OnStep) -> CompactResult:
    """Give space back. Beside a running server, the database is not rewritten."""
    layout = layout_of(settings)
    with ExitStack() as stack:
        async with opened_store(settings) as store:
            is_alone = False
            with suppress(RootInUse):
                stack.enter_context(lock_root(layout.root))
                is_alone = True
            before = await _sizes(layout, store)
            done = [(each, await each.compact(layout, store, on_step)) for each in folders()]
            on_step("Removing what is not in use, and compacting the database", 0, 0)
            outcome = await store.compact(now_ms=time.time_ns() // 1_000_000, is_alone=is_alone)
            after = await _sizes(layout, store)
        return CompactResult(before, after, outcome, done)


async def _sizes(layout: RootLayout, store: Store) -> Sizes:
    sizes = {"database": await store.database_bytes(), "bodies": _bytes_below(layout.blobs)}
    sizes |= {each.items: _bytes_below(layout.root / each.name) for each in folders()}
    return {**sizes, "total": sum(sizes.values())}


def _bytes_below(directory: Path) -> int:
    total = 0
    for place, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(place, name).stat().st_size
    return total
