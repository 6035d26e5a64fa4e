"""The record of what a person has starred, and how it follows what is moved.

Only people with a pod here can star anything, since anyone can sign in with any number of
identities of other providers. The record belongs to their first pod and goes with it.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from podstead.core.identifiers import ResourcePath, moved_path, storage_root
from podstead.resources.planning import PodRecordsHook
from podstead.storage.record_store import Changes, RecordKind, RecordStore
from podstead.storage.records import PodRecord

MAX_STARRED: Final = 500


class Stars(msgspec.Struct, frozen=True):
    """What the owner of the pod whose root is the key has starred, the newest last."""

    paths: tuple[str, ...]


STARS: Final = RecordKind("starred", Stars)


class StarsHook(PodRecordsHook):
    """Lets the stars of the owner of a pod follow what is moved in it, and the pod when it is
    renamed. Those of other people are lost then."""

    def __init__(self, records: RecordStore) -> None:
        super().__init__(records, STARS)

    async def of_move(
        self,
        source: ResourcePath,
        destination: ResourcePath,
        containers: Sequence[ResourcePath],
    ) -> Changes[None]:
        del containers
        pod = storage_root(source)
        stored = None if pod is None else await self._records.read(STARS, pod)
        if stored is None:
            return Changes(None)
        paths = tuple(moved_path(each, source, destination) for each in stored.value.paths)
        if paths == stored.value.paths:
            return Changes(None)
        return Changes(None, [STARS.replace(stored, Stars(paths))], [stored.unchanged])

    def changed(
        self, value: Stars, pod: PodRecord, renamed: Callable[[ResourcePath], ResourcePath]
    ) -> Stars:
        paths = (ResourcePath(each) for each in value.paths)
        return Stars(tuple(renamed(each) if each.startswith(pod.root) else each for each in paths))
