"""Where a test keeps large bodies, and how it looks at what is kept and damages it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

import obstore
from obstore.store import S3Store

from podstead.app.adapters.engine import body_store_factory
from podstead.config import Settings
from podstead.storage.blobs.body_store import BodyStoreFactory
from podstead.storage.blobs.s3_location import parse_s3_location
from podstead.storage.layout import RootLayout
from tests.support.seaweedfs import shared_s3_server

STORES = ("files", "s3")


class KeptBodies(Protocol):
    """The bodies of one data root, behind the back of its engine."""

    factory: BodyStoreFactory | None
    """What an engine needs to use them."""

    def names(self) -> list[str]:
        """Everything that is kept, what is being received in files included."""

    def sizes_bytes(self) -> list[int]:
        """How large each of that is."""

    def truncate(self, name: str, size_bytes: int) -> None:
        """Cut something short."""

    def remove(self, name: str) -> None:
        """Lose something."""

    def lose_all(self) -> None:
        """Lose everything."""


class FilesInRoot:
    """Bodies in the data root."""

    def __init__(self, layout: RootLayout) -> None:
        self.factory: BodyStoreFactory | None = None
        self._blobs = layout.blobs

    def names(self) -> list[str]:
        return [str(path.relative_to(self._blobs)) for path in self._files()]

    def sizes_bytes(self) -> list[int]:
        return [path.stat().st_size for path in self._files()]

    def _files(self) -> list[Path]:
        return [path for path in self._blobs.rglob("*") if path.is_file()]

    def truncate(self, name: str, size_bytes: int) -> None:
        os.truncate(self._blobs / name, size_bytes)

    def remove(self, name: str) -> None:
        (self._blobs / name).unlink()

    def lose_all(self) -> None:
        shutil.rmtree(self._blobs)


class ObjectsInBucket:
    """Bodies below a prefix of their own."""

    def __init__(self, layout: RootLayout, url: str | None = None) -> None:
        self.location = location = parse_s3_location(url or shared_s3_server().new_location())
        self.factory = body_store_factory(Settings(root=layout.root, bodies=location), None)
        self.prefix = location.prefix
        self.store = S3Store(
            location.bucket,
            prefix=location.prefix,
            config={"endpoint": location.endpoint or "", "region": location.region or ""},
            client_options={"allow_http": True},
        )

    def names(self) -> list[str]:
        return [each["path"] for each in obstore.list(self.store).collect()]

    def sizes_bytes(self) -> list[int]:
        return [each["size"] for each in obstore.list(self.store).collect()]

    def contents(self) -> list[bytes]:
        """What the objects contain."""
        return [bytes(obstore.get(self.store, name).bytes()) for name in self.names()]

    def truncate(self, name: str, size_bytes: int) -> None:
        content = obstore.get_range(self.store, name, start=0, end=size_bytes)
        obstore.put(self.store, name, content)

    def replace(self, name: str, content: bytes) -> None:
        """Store something else in its place."""
        obstore.put(self.store, name, content)

    def rename(self, name: str, new_name: str) -> None:
        """Give an object another name."""
        obstore.rename(self.store, name, new_name)

    def remove(self, name: str) -> None:
        obstore.delete(self.store, name)

    def lose_all(self) -> None:
        obstore.delete(self.store, self.names())


def kept_bodies(kind: str, layout: RootLayout) -> KeptBodies:
    """The bodies of a new data root, in one of the :data:`STORES`."""
    return FilesInRoot(layout) if kind == "files" else ObjectsInBucket(layout)
