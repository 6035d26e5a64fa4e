"""All pods, however many there are: they are read in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from podstead.storage.protocol import PodRegistry
from podstead.storage.records import PodRecord

PAGE_PODS: Final = 1000


async def each_pod(pods: PodRegistry, *, after: str = "") -> AsyncIterator[PodRecord]:
    """The pods by name, after the name ``after``.

    A pod that exists from beginning to end is among them once, whatever happens to others
    meanwhile. Raises StorageError.
    """
    while page := await pods.list_pods(after=after, limit=PAGE_PODS):
        for pod in page:
            yield pod
        after = page[-1].name
