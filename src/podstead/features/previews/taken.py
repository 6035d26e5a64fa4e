"""When pictures were taken, which is read from them in the background and stored by path and
version.

A worker reads the pictures that requests to it have written, one at a time in a process with
limits. Pictures that came another way, such as with a moved pod, or while a server was stopped, are
read once a page has asked for them. What is stored is derived: removing it costs time only.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from podstead.core import background, identity, media_types
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.features.previews.processes import RenderingProcesses
from podstead.features.previews.schema import TAKEN
from podstead.storage.open_body import whole_body
from podstead.storage.record_store import RecordStore
from podstead.storage.records import DropRow, Metadata, PutRow, Record, Write

logger = logging.getLogger("podstead.previews")

MAX_PICTURE_BYTES: Final = 40 * 1024 * 1024
MAX_WAITING: Final = 10_000
"""How many pictures wait to be read; further ones wait until a page asks for them."""
_STEP: Final = 8
"""The dates of how many pictures are stored at once: a page shows them soon, and few writes do."""
_TROUBLE_S: Final = 5.0
_BATCH: Final = 500
_FORMAT: Final = "%Y:%m:%d %H:%M:%S"
"""How the metadata of pictures have dates."""
_TYPES: Final = frozenset(
    f"image/{kind}" for kind in ("avif", "bmp", "gif", "jpeg", "png", "tiff", "webp")
)
_ENDINGS: Final = (".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def has_thumbnail(metadata: Metadata) -> bool:
    """Whether a resource is of a type, and of a size, that thumbnails are made of."""
    return (
        not metadata.kind.is_container
        and metadata.size_bytes <= MAX_PICTURE_BYTES
        and media_types.essence(metadata.content_type) in _TYPES
    )


class PictureDates:
    """The dates of pictures, and their reader in one worker (:class:`WriteObserver`)."""

    def __init__(self, records: RecordStore, renderer: RenderingProcesses) -> None:
        self._records = records
        self._renderer = renderer
        self._waiting: dict[ResourcePath, None] = {}
        self._reading = background.Background(
            self._step, logger, "Dates of pictures could not be stored", again_s=_TROUBLE_S
        )

    def start(self) -> None:
        """Begin to read what waits."""
        self._reading.start(at_once=False)

    async def stop(self) -> None:
        """End that."""
        await self._reading.stop()

    def committed(self, agent: identity.Identity | None, write: Write) -> None:
        """As :class:`podstead.resources.committer.WriteObserver` says."""
        del agent
        puts = (put.path for put in write.puts if media_types.essence(put.content_type) in _TYPES)
        self._want(puts)
        if write.deletes:
            # Few of those that are deleted were pictures, so the others wait for further ones.
            self._want(path for path in write.deletes if path.lower().endswith(_ENDINGS))
            self._waiting |= dict.fromkeys(write.deletes[: MAX_WAITING - len(self._waiting)])
            if len(self._waiting) >= _STEP:
                self._reading.wake()

    async def taken(self, pictures: Sequence[Metadata]) -> Mapping[ResourcePath, int]:
        """When the pictures were taken, in Unix milliseconds, as far as that is stored; others are
        read. Raises StorageError."""
        rows = await self._rows([each.path for each in pictures])
        found: dict[ResourcePath, int] = {}
        for each in pictures:
            version, taken_ms = rows.get(each.path, ("", None))
            if version != each.version:
                self._want([each.path])
            elif taken_ms is not None:
                found[each.path] = taken_ms
        return found

    async def _rows(
        self, paths: Sequence[ResourcePath]
    ) -> Mapping[ResourcePath, tuple[str, int | None]]:
        """The versions with their dates, without one if the picture does not say."""
        if not paths:
            return {}
        select = (
            f"SELECT path, version, taken_ms FROM {TAKEN.name}"  # noqa: S608 - our table
            f" WHERE path IN ({', '.join(['%s'] * len(paths))})"
        )
        rows = await self._records.store.fetch(select, *paths)
        return {ResourcePath(path): (version, taken_ms) for path, version, taken_ms in rows}

    def _want(self, paths: Iterable[ResourcePath]) -> None:
        for path in paths:
            if len(self._waiting) < MAX_WAITING:
                self._waiting[path] = None
                self._reading.wake()

    async def _step(self) -> None:
        """Read some pictures, and remove what is stored of those that are gone. If that fails, a
        page asks for them again."""
        paths = list(self._waiting)[:_STEP]
        for path in paths:
            del self._waiting[path]
        if self._waiting:
            self._reading.wake()
        found = await self._records.store.read_metadata(paths)
        rows = await self._rows(paths)
        changes: list[Record] = []
        for path in paths:
            metadata = found[path]
            if metadata is None or not has_thumbnail(metadata):
                changes += [DropRow(TAKEN, (path,))] if path in rows else []
            elif path not in rows or rows[path][0] != metadata.version:
                body = await self._records.store.open_body(metadata)
                if body is None:
                    continue  # replaced meanwhile, which it is told of
                # A picture that fails is not tried again before it is another one.
                made = await self._renderer.carry_out(
                    "taken", {}, await whole_body(body), requester=""
                )
                values = (path, metadata.version, _taken_ms(made or b""), await self._pod_of(path))
                changes.append(PutRow(TAKEN, values))
        if changes:
            await self._records.commit(changes)

    async def _pod_of(self, path: ResourcePath) -> ResourcePath | None:
        """The root of the pod, with which the row is removed."""
        root = storage_root(path)
        pod = None if root is None else await self._records.store.read_pod(root.strip("/"))
        return None if pod is None else pod.root


def _taken_ms(text: bytes) -> int | None:
    with suppress(ValueError):
        at = datetime.strptime(text.decode(), _FORMAT).replace(tzinfo=UTC)
        return int(at.timestamp() * 1000)
    return None


async def forget_dates(records: RecordStore) -> None:
    """Remove what is stored of all pictures. Raises ServerTrouble."""
    select = f"SELECT path FROM {TAKEN.name} LIMIT %s"  # noqa: S608 - our table
    while rows := await records.store.fetch(select, _BATCH):
        await records.commit([DropRow(TAKEN, row) for row in rows])
