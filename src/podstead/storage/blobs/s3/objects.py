"""The objects of one prefix in a bucket. Only this module knows the library.

Every request is signed with the hash of its content, and stores are sent with a SHA-256 that S3
verifies. No step takes longer than a limit, and each is repeated a limited number of times, so that
a service that does not answer means 503 and not a request that hangs.

What is sent into a network that drops it, or over a connection that nobody at the other end knows
any more, is not answered when the network is back. It looks like a request that takes long because
the network is slow, which must have its time. So while a request takes long, S3 is asked something
small now and then. If that fails and then succeeds, whatever was begun before is begun anew, over
new connections.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar, cast

import msgspec
import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from podstead.core.errors import Overloaded, StorageError, StoreUnavailable
from podstead.core.request_context import requester
from podstead.storage.blobs.s3.credentials import shared_credentials
from podstead.storage.blobs.s3_location import S3Location
from podstead.storage.keyed_semaphores import KeyedSemaphores

if TYPE_CHECKING:
    from obstore import Attributes, Bytes, ObjectMeta
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3CredentialProvider


LONG_S: Final = 2.0
"""How long a request may take before S3 is asked whether it is there."""

_AGAIN_S: Final = 1.0
"""How long after one answer it is asked again."""


class Outages:
    """The requests of one worker that are under way. For one event loop."""

    def __init__(
        self, is_reachable: Callable[[], Awaitable[bool]], on_return: Callable[[], None]
    ) -> None:
        """``is_reachable`` asks S3 with a limit of its own, and raises nothing. ``on_return`` is
        called before the requests are ended."""
        self._is_reachable = is_reachable
        self._on_return = on_return
        self._under_way: dict[asyncio.Timeout, float] = {}
        self._looking: asyncio.Task[None] | None = None
        self._missed_s: float | None = None
        """When it was last asked in vain."""

    @contextmanager
    def during(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Let ``limit`` end at once if what is sent in the context goes astray."""
        loop = asyncio.get_running_loop()
        watch = loop.call_later(LONG_S, self._look)
        self._under_way[limit] = loop.time()
        try:
            yield
        finally:
            watch.cancel()
            self._under_way.pop(limit, None)

    def has_ended(self, limit: asyncio.Timeout) -> bool:
        """Whether it was ended so; to be asked within :meth:`during`."""
        return limit not in self._under_way

    def _look(self) -> None:
        if self._looking is None:
            self._looking = asyncio.create_task(self._run(), name="podstead-outages")

    async def _run(self) -> None:
        """Ask until no request takes long."""
        loop = asyncio.get_running_loop()
        while any(loop.time() - begun_s > LONG_S for begun_s in self._under_way.values()):
            asked_s = loop.time()
            if not await self._is_reachable():
                self._missed_s = asked_s
            elif self._missed_s is not None:
                self._end_those_begun_before(loop.time())
                self._missed_s = None
            await asyncio.sleep(_AGAIN_S)
        self._looking = self._missed_s = None

    def _end_those_begun_before(self, now_s: float) -> None:
        self._on_return()
        for limit in list(self._under_way):
            del self._under_way[limit]
            limit.reschedule(now_s)


AT_ONCE: Final = 4
"""The parts that a worker holds in memory."""

OF_REQUESTER: Final = 2
"""Those of one network, so that others have a place whatever it sends."""

WAIT_S: Final = 30.0
"""How long a part waits for its turn."""


class PartLimit:
    """The turns of one worker. Each part waits in the line of its requester first."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE)
        self._of_requesters = KeyedSemaphores(OF_REQUESTER)

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Wait for a turn, which lasts until the context is left. Raises Overloaded."""
        waiting = asyncio.timeout(WAIT_S)
        try:
            async with waiting, self._of_requesters.take(requester()), self._free:
                waiting.reschedule(None)
                yield
        except TimeoutError as error:
            if not waiting.expired():
                raise
            raise Overloaded("Too many large bodies are being stored; try again") from error


logger = logging.getLogger("podstead.storage")

PART_BYTES: Final = 8 * 1024 * 1024
"""How much is stored with one request."""
MAX_PARTS: Final = 10_000
"""How many parts S3 allows an object to have."""
MAX_COPY_BYTES: Final = 5 * 1024**3
"""What S3 copies with one request."""

ASK_S: Final = 12.0
"""The limit for a request without much content, with its repetitions."""
STORE_S: Final = 60.0
"""The limit for storing a part, or for copying an object within S3, with its repetitions."""
READ_BYTES: Final = 1024 * 1024
"""How much is read with one request, and held in memory of a body that is being read."""

LIST_S: Final = 60.0
"""The limit for listing objects, a thousand with each request."""

_PROBE_S: Final = 2
"""The limit for asking whether S3 can be reached."""
_ANY_NAME: Final = "is-anybody-there"

_CONNECT_S: Final = 5
_PAGE: Final = 1000
_LOGGED_EVERY_S: Final = 10.0
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


T = TypeVar("T")

PartReader = Callable[[int, int], Awaitable[bytes]]
"""Reads the bytes from a position up to, not including, another one."""


class StaleRequest(StoreUnavailable):
    """A request was sent while S3 could not be reached, which it can be now."""


class ListedObject(msgspec.Struct, frozen=True):
    """An object in a listing."""

    key: str
    size_bytes: int
    modified_ms: int


class Objects:
    """The objects below the prefix of a location. For one event loop."""

    def __init__(self, location: S3Location) -> None:
        """Does no I/O besides reading files with credentials. Raises StorageError."""
        self._location = location
        self._asking, self._storing = _open_both(location, os.getpid())
        self._outages = Outages(self._is_reachable, self._open_anew)
        self._turns = PartLimit()
        self._logged_s = -_LOGGED_EVERY_S

    async def put(
        self, key: str, read: PartReader, size_bytes: int, content_type: str | None = None
    ) -> None:
        """Store an object with a name that was never used before. Raises StorageError, Overloaded.

        At most two parts of it are held in memory, by this process and the library.
        """
        part_bytes = max(PART_BYTES, -(-size_bytes // MAX_PARTS))
        if size_bytes > part_bytes:

            async def arrived(wanted_bytes: int) -> int:
                return min(wanted_bytes, size_bytes)

            await self._put_parts(key, read, arrived, part_bytes, content_type)
            return
        async with self._turns.take():
            content = await read(0, size_bytes)

            async def store() -> None:
                try:
                    await self._storing.put_async(
                        key,
                        content,
                        attributes=_attributes(content_type),
                        mode="create",
                        use_multipart=False,
                    )
                except AlreadyExistsError:
                    # Names are random. This object is what an earlier attempt stored, whose
                    # response was lost.
                    if await self.size(key) != size_bytes:
                        raise

            await self._tried(STORE_S, store)

    async def put_arriving(
        self,
        key: str,
        read: PartReader,
        arrived: Callable[[int], Awaitable[int]],
        content_type: str | None,
    ) -> None:
        """As :meth:`put`, each part as soon as it has arrived. There is no object before the last.

        ``arrived`` waits until there are so many bytes or no more will come, and returns how many
        of them there are. If it is cancelled, this leaves nothing behind.
        """
        await self._put_parts(key, read, arrived, PART_BYTES, content_type)

    async def _put_parts(
        self,
        key: str,
        read: PartReader,
        arrived: Callable[[int], Awaitable[int]],
        part_bytes: int,
        content_type: str | None,
    ) -> None:
        async with self._trying(None), AsyncExitStack() as stack:
            # Leaving the writer creates the object, or abandons it after an error.
            writer = await stack.enter_async_context(
                obstore.open_writer_async(
                    self._storing,
                    key,
                    attributes=_attributes(content_type),
                    buffer_size=part_bytes,
                    max_concurrency=1,
                )
            )
            start = 0
            while True:
                # The library stores a part while it accepts more, so the first byte of the next
                # part is accepted once this one is stored.
                end = (start // part_bytes + 1) * part_bytes
                stop = await arrived(end + 1)
                async with self._turns.take():
                    content = memoryview(await read(start, stop))
                    async with self._trying(STORE_S):
                        await writer.write(content[: end - start])
                        await writer.write(content[end - start :])
                        if stop <= end:
                            await stack.aclose()
                            return
                    del content  # before the next part is read
                start = stop

    async def size(self, key: str) -> int | None:
        """The size of an object in bytes; ``None`` if there is none. Raises StorageError."""

        async def ask() -> int | None:
            try:
                return (await self._asking.head_async(key))["size"]
            except FileNotFoundError:
                return None

        return await self._tried(ASK_S, ask)

    async def content_type(self, key: str) -> str | None:
        """The type with which S3 sends an object, if it has one. Raises StorageError."""
        async with self._trying(ASK_S):
            found = await self._asking.get_async(key, options={"head": True})
            content_type = found.attributes.get("Content-Type")
            await found.bytes_async()  # a stream of the library must be read to its end
            return content_type

    async def address(self, key: str, *, lasts_s: int) -> str:
        """A URL at which anybody can read an object for that time. Raises StorageError."""
        async with self._trying(ASK_S):
            return await obstore.sign_async(self._asking, "GET", key, timedelta(seconds=lasts_s))

    async def read(self, key: str, start: int, end: int) -> AsyncIterator[bytes]:
        """Stream the bytes from ``start`` up to, not including, ``end``, which must exist.

        One request reads one piece, so a receiver may take its time, and a body that nobody wants
        any more leaves nothing behind: a stream of the library must not be left before its end.
        Raises StorageError.
        """
        while start < end:
            stop = min(end, start + READ_BYTES)
            piece = await self._tried(ASK_S, partial(self._read_piece, key, start, stop))
            if len(piece) != stop - start:
                raise StorageError("A large body is shorter than it should be")
            start = stop
            yield bytes(piece)

    async def _read_piece(self, key: str, start: int, end: int) -> Bytes:
        try:
            return await self._asking.get_range_async(key, start=start, end=end)
        except FileNotFoundError as error:
            raise StorageError("A large body is missing") from error

    async def copy(self, key: str, copy: str, size_bytes: int) -> None:
        """Store a copy of an object. Raises StorageError."""
        if size_bytes > MAX_COPY_BYTES:

            async def read(start: int, end: int) -> bytes:
                return b"".join([piece async for piece in self.read(key, start, end)])

            await self.put(copy, read, size_bytes)
            return
        await self._tried(STORE_S, lambda: self._storing.copy_async(key, copy))

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove those of the objects that exist. Raises StorageError."""
        if keys:
            await self._tried(STORE_S, lambda: self._storing.delete_async(keys))

    async def list(self, prefix: str) -> Sequence[ListedObject]:
        """The objects whose names begin with ``prefix`` and a slash, in no order. Raises
        StorageError."""
        return _listed(await self._tried(LIST_S, lambda: self._asking.list(prefix).collect_async()))

    async def pages(self, prefix: str) -> AsyncIterator[Sequence[ListedObject]]:
        """As :meth:`list`, a page at a time, for commands. S3 sends them in the order of their
        names, other services may not."""
        pages = self._asking.list(prefix, chunk_size=_PAGE)
        while True:
            # Only the library limits the time: its stream must not be left during a request.
            async with self._trying(None):
                page = await anext(pages, None)
            if page is None:
                return
            yield _listed(page)

    async def _tried(self, limit_s: float, call: Callable[[], Awaitable[T]]) -> T:
        """What a request to S3 gives, which is sent again if it went astray. Raises
        StoreUnavailable."""
        try:
            async with self._trying(limit_s):
                return await call()
        except StaleRequest:
            async with self._trying(limit_s):
                return await call()

    @asynccontextmanager
    async def _trying(self, limit_s: float | None) -> AsyncIterator[None]:
        """Raise StoreUnavailable for whatever fails or takes too long in the context,
        StaleRequest if it may succeed now."""
        limit = asyncio.timeout(limit_s)
        watch = nullcontext() if limit_s is None else self._outages.during(limit)
        with watch:
            try:
                async with limit:
                    yield
            except StorageError:
                raise
            except (BaseError, OSError, ValueError) as error:  # TimeoutError is an OSError
                if limit_s is not None and self._outages.has_ended(limit):
                    raise StaleRequest(_UNAVAILABLE) from error
                self._log(error)
                raise StoreUnavailable(_UNAVAILABLE) from error

    async def _is_reachable(self) -> bool:
        try:
            await _open_to_probe(self._location, os.getpid()).head_async(_ANY_NAME)
        except (FileNotFoundError, PermissionDeniedError, UnauthenticatedError):
            return True  # it has answered
        except (BaseError, OSError):
            return False
        return True

    def _open_anew(self) -> None:
        """Use no connection that was open."""
        _open_both.cache_clear()
        self._asking, self._storing = _open_both(self._location, os.getpid())

    def _log(self, error: Exception) -> None:
        """Log what is wrong, at most once in a period."""
        if monotonic() - self._logged_s >= _LOGGED_EVERY_S:
            self._logged_s = monotonic()
            logger.error("Large bodies cannot be reached: %s", str(error) or "no answer in time")


def _attributes(content_type: str | None) -> Attributes | None:
    return None if content_type is None else {"Content-Type": content_type}


def in_parts(size_bytes: int) -> bool:
    """Whether so much is stored in parts."""
    return size_bytes > PART_BYTES


_UNAVAILABLE: Final = (
    "Large bodies can be neither read nor stored at the moment; nothing was changed. Try again."
)


@cache
def _open_both(location: S3Location, process_id: int) -> tuple[S3Store, S3Store]:  # noqa: ARG001
    """What asks and reads, and what stores, for this process and until it ends."""
    return (
        _open(location, timeout_s=ASK_S / 2, retries=2, retried_s=ASK_S),
        _open(location, timeout_s=STORE_S / 2, retries=3, retried_s=STORE_S / 2),
    )


@cache
def _open_to_probe(location: S3Location, process_id: int) -> S3Store:  # noqa: ARG001
    return _open(location, timeout_s=_PROBE_S, retries=0, retried_s=_PROBE_S)


def _open(location: S3Location, *, timeout_s: float, retries: int, retried_s: float) -> S3Store:
    endpoint = location.endpoint or next(
        (os.environ[name] for name in _ENDPOINTS if name in os.environ), ""
    )
    client: ClientConfig = {
        "connect_timeout": timedelta(seconds=min(_CONNECT_S, timeout_s)),
        "allow_http": endpoint.startswith("http://"),
        "timeout": timedelta(seconds=timeout_s),
    }
    retry: RetryConfig = {
        "max_retries": retries,
        "retry_timeout": timedelta(seconds=retried_s),
        "backoff": {"max_backoff": timedelta(seconds=2)},
    }
    given = {
        "endpoint": location.endpoint,
        "region": location.region,
        "server_side_encryption": location.encryption,
        "sse_kms_key_id": location.kms_key,
    }
    config = cast(
        "S3Config",
        {
            "checksum_algorithm": "sha256",
            **{name: value for name, value in given.items() if value is not None},
        },
    )
    try:
        return S3Store(
            location.bucket,
            prefix=location.prefix or None,
            config=config,
            client_options=client,
            retry_config=retry,
            credential_provider=cast("S3CredentialProvider | None", shared_credentials()),
        )
    except (BaseError, ValueError) as error:
        raise StorageError(f"The bodies at {location.url} cannot be reached: {error}") from error


def _listed(found: Sequence[ObjectMeta]) -> list[ListedObject]:
    return [
        ListedObject(each["path"], each["size"], _milliseconds(each["last_modified"]))
        for each in found
    ]


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
