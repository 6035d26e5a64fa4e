"""What does the suite need of an engine, and how do its tests write briefly?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from itertools import count
from typing import Protocol

from podstead.core.identifiers import ResourcePath, auxiliary_kind, is_container
from podstead.storage.open_body import OpenBody
from podstead.storage.protocol import Store
from podstead.storage.records import (
    Body,
    Change,
    Committed,
    InlineBody,
    Metadata,
    Precondition,
    Put,
    Record,
    ResourceKind,
    Version,
    Write,
)

LARGE_BYTES = 1_000_000
"""A size at which every engine under test keeps a body as a blob."""

NOW_MS = 1_790_000_000_000

STORAGE = ResourcePath("/alice/")
CONTAINER = ResourcePath("/alice/c/")

_versions = count(1)


class Engine(Protocol):
    """One engine with data of its own, empty at first."""

    async def open_store(self) -> Store:
        """Open the data once more, as another worker would; closed when the test is over."""

    async def break_driver(self, store: Store) -> None:
        """Let everything fail that ``store`` asks its driver for from now on."""

    async def lose_blobs(self) -> None:
        """Lose the bytes of every large body, behind the engine's back."""


def path(text: str) -> ResourcePath:
    """A path that is canonical already."""
    return ResourcePath(text)


def new_version() -> Version:
    """A version never given before."""
    return Version(f"{next(_versions):016x}")


def put(
    target: str, body: bytes | Body = b"", *, creates: bool = True, kind: ResourceKind | None = None
) -> Put:
    """A put whose kind follows from the path, unless told."""
    resource = ResourcePath(target)
    content = InlineBody(body) if isinstance(body, bytes) else body
    return Put(resource, kind or _kind_of(resource), "text/turtle", content, creates)


def _kind_of(resource: ResourcePath) -> ResourceKind:
    auxiliary = auxiliary_kind(resource)
    if auxiliary is not None:
        return ResourceKind.ACL if auxiliary.value == ".acl" else ResourceKind.DESCRIPTION
    if is_container(resource):
        return ResourceKind.STORAGE if resource.count("/") == 2 else ResourceKind.CONTAINER
    return ResourceKind.DOCUMENT


def write(
    *puts: Put,
    deletes: Iterable[str] = (),
    preconditions: Iterable[Precondition] = (),
    records: Iterable[Record] = (),
    changes: Iterable[Change] = (),
    at_ms: int = NOW_MS,
    quota_bytes: int = 0,
) -> Write:
    """A write with a version of its own."""
    return Write(
        version=new_version(),
        at_ms=at_ms,
        preconditions=tuple(preconditions),
        puts=puts,
        deletes=tuple(map(ResourcePath, deletes)),
        records=tuple(records),
        changes=tuple(changes),
        default_quota_bytes=quota_bytes,
    )


async def commit(store: Store, wanted: Write) -> Version:
    """Commit what must succeed, and give its version."""
    outcome = await store.commit(wanted)
    assert isinstance(outcome, Committed), outcome
    return wanted.version


async def plant(store: Store) -> None:
    """Make the storage ``/alice/`` with the container ``/alice/c/``."""
    await commit(store, write(put(STORAGE), put(CONTAINER)))


async def read(store: Store, target: str) -> Metadata | None:
    """The metadata of one resource."""
    return (await store.read_metadata([ResourcePath(target)]))[ResourcePath(target)]


async def read_present(store: Store, target: str) -> Metadata:
    """The metadata of one resource that must be there."""
    metadata = await read(store, target)
    assert metadata is not None, f"{target} is not there"
    return metadata


async def content_of(store: Store, target: str) -> bytes:
    """The current bytes of a resource."""
    body = await store.open_body(await read_present(store, target))
    assert body is not None
    return await bytes_of(body)


async def bytes_of(body: OpenBody, start: int = 0, end: int | None = None) -> bytes:
    """The bytes of an open body, or a range of them."""
    return b"".join([chunk async for chunk in body.chunks(start, end)])


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    """A body as it arrives."""
    for chunk in chunks:
        yield chunk


async def stage_large(store: Store, byte: bytes = b"x") -> Body:
    """Stage a body that is kept as a blob."""
    return await store.stage_body(stream(*[byte * 1000] * (LARGE_BYTES // 1000)))
