"""Large bodies in S3: as they were written, never lost, and trouble is never absence."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podstead.app.adapters.engine import (
    check_bodies,
    claim_bodies,
    new_store,
    object_blobs,
    prepare_engine,
    stored_facts,
)
from podstead.config import Settings
from podstead.core.errors import BodyTooLarge, RootUnusable, StorageError, StoreUnavailable
from podstead.core.identifiers import ResourcePath
from podstead.storage.blobs import staging
from podstead.storage.blobs.body_store import CHUNK_BYTES
from podstead.storage.blobs.s3 import Objects, objects
from podstead.storage.blobs.s3.credentials import shared_credentials
from podstead.storage.blobs.s3.objects import PartLimit
from podstead.storage.blobs.s3.uploads import Part, Piece, draft_pieces
from podstead.storage.blobs.s3_location import S3Location, parse_s3_location
from podstead.storage.disk_space import DiskSpace
from podstead.storage.layout import RootLayout
from podstead.storage.records import BlobId
from podstead.storage.sqlite import SqliteStore
from podstead.storage.uploads import UPLOADS, DraftGone, UploadRecord
from tests.storage.engine_suite.engine import (
    LARGE_BYTES,
    commit,
    content_of,
    plant,
    put,
    read_present,
    stage_large,
    write,
)
from tests.support.body_stores import ObjectsInBucket
from tests.support.seaweedfs import S3Server, s3_environment, shared_s3_server

# A proxy before a server that loses what is sent, as a network does that drops packets.
#
# Connections that were open meanwhile stay open, and nothing ever comes back over them.

_PIECE_BYTES = 64 * 1024


@dataclass
class LossyProxy:
    """Passes on bytes in both directions. For one event loop."""

    port: int = 0
    _is_cut: bool = False
    _open: set[_Connection] = field(default_factory=set)
    _asked: asyncio.Condition = field(default_factory=asyncio.Condition)

    def cut(self) -> None:
        """Lose everything from now on."""
        self._is_cut = True
        for each in self._open:
            each.is_lost = True

    def restore(self) -> None:
        """Pass on what comes over new connections."""
        self._is_cut = False

    async def lose(self, connections: int) -> None:
        """Wait until something was lost on so many of them."""
        async with self._asked:
            await self._asked.wait_for(
                lambda: sum(each.has_lost for each in self._open) >= connections
            )

    async def serve(
        self, target_port: int, client: asyncio.StreamReader, back: asyncio.StreamWriter
    ) -> None:
        server, there = await asyncio.open_connection("127.0.0.1", target_port)
        connection = _Connection((back, there), is_lost=self._is_cut)
        self._open.add(connection)
        await asyncio.gather(
            self._pass_on(client, there, connection), self._pass_on(server, back, connection)
        )

    async def end(self) -> None:
        """Close all connections."""
        for each in self._open:
            for end in each.ends:
                end.transport.abort()
                with suppress(ConnectionError):
                    await end.wait_closed()

    async def _pass_on(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, connection: _Connection
    ) -> None:
        try:
            while piece := await source.read(_PIECE_BYTES):
                if connection.is_lost:
                    connection.has_lost = True
                    async with self._asked:
                        self._asked.notify_all()
                else:
                    target.write(piece)
                    await target.drain()
            if not connection.is_lost:
                target.close()
        except ConnectionError:
            target.close()


@dataclass(eq=False)
class _Connection:
    ends: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    is_lost: bool
    has_lost: bool = False


@asynccontextmanager
async def running_lossy_proxy(target_port: int) -> AsyncIterator[LossyProxy]:
    """A proxy before a port of this machine."""
    proxy = LossyProxy()
    server = await asyncio.start_server(
        lambda client, back: proxy.serve(target_port, client, back), "127.0.0.1", 0
    )
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.end()


HOUR_MS = 60 * 60 * 1000
LEAST_PART_BYTES = 5 * 1024 * 1024
"""S3 accepts smaller parts only at the end."""
PATH = "/alice/c/a"
BACK_S = 10.0
"""How long after S3's return large bodies are acknowledged again, at the latest."""


@pytest.fixture
def kept(layout: RootLayout) -> ObjectsInBucket:
    return ObjectsInBucket(layout)


@pytest.fixture
async def store(layout: RootLayout, kept: ObjectsInBucket) -> AsyncIterator[SqliteStore]:
    async with opened(layout, kept) as store:
        await plant(store)
        yield store


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server that tests may stop."""
    os.environ.update(s3_environment())
    server = S3Server(tmp_path_factory.mktemp("s3"))
    server.start()
    yield server
    server.kill()


@asynccontextmanager
async def opened(layout: RootLayout, kept: ObjectsInBucket) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(layout.root, bodies=kept.factory)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def staged_rows(layout: RootLayout) -> list[tuple[str, int]]:
    connection = apsw.Connection(str(layout.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute("SELECT blob, staged_ms FROM staged"))
    finally:
        connection.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


# --- As written ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def location() -> S3Location:
    return parse_s3_location(shared_s3_server().new_location())


@given(data=st.data())
@settings(max_examples=20)
def test_ranges_are_read_as_they_were_written(location: S3Location, data: st.DataObject) -> None:
    """However the pieces in which they are read fall."""
    content = os.urandom(data.draw(st.integers(0, 40_000), "size"))
    start = data.draw(st.integers(0, len(content)), "start")
    end = data.draw(st.integers(start, len(content)), "end")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "READ_BYTES", data.draw(st.sampled_from([5_000, 16_384])))
        assert asyncio.run(round_trip(location, content, start, end)) == content[start:end]


@pytest.mark.parametrize("more", [0, 1, LEAST_PART_BYTES, LEAST_PART_BYTES + 1])
async def test_what_is_stored_in_parts_is_read_as_it_was_written(
    location: S3Location, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", LEAST_PART_BYTES)
    content = os.urandom(LEAST_PART_BYTES + more)
    assert await round_trip(location, content, 0, len(content)) == content


async def round_trip(location: S3Location, content: bytes, start: int, end: int) -> bytes:
    async def read(first: int, stop: int) -> bytes:
        return content[first:stop]

    kept = Objects(location)
    key = f"bodies/{os.urandom(8).hex()}"
    await kept.put(key, read, len(content))
    assert await kept.size(key) == len(content)
    return b"".join([piece async for piece in kept.read(key, start, end)])


async def test_an_object_is_never_overwritten(location: S3Location) -> None:
    kept = Objects(location)

    async def read(_first: int, stop: int) -> bytes:
        return b"x" * stop

    await kept.put("bodies/taken", read, 10)
    with pytest.raises(StoreUnavailable):
        await kept.put("bodies/taken", read, 11)
    assert await kept.size("bodies/taken") == 10
    await kept.put("bodies/taken", read, 10)  # as after a lost response


async def test_a_damaged_body_is_not_sent_to_its_end(
    store: SqliteStore, kept: ObjectsInBucket
) -> None:
    await commit(store, write(put(PATH, await stage_large(store))))
    (name,) = kept.names()
    kept.replace(name, b"y" + b"x" * (LARGE_BYTES - 1))
    body = await store.open_body(await read_present(store, PATH))
    assert body is not None
    chunks = body.chunks()
    with pytest.raises(StorageError, match="hash"):
        await anext(chunks)  # which would be the only one


async def test_a_missing_body_is_trouble_and_not_absence(
    store: SqliteStore, kept: ObjectsInBucket
) -> None:
    await commit(store, write(put(PATH, await stage_large(store))))
    kept.lose_all()
    with pytest.raises(StorageError, match="missing"):
        await store.open_body(await read_present(store, PATH))


async def test_bodies_of_earlier_servers_are_found_and_removed(
    store: SqliteStore, layout: RootLayout, kept: ObjectsInBucket
) -> None:
    """The hash was in the names of their objects."""
    await commit(store, write(put(PATH, await stage_large(store))))
    (name,) = kept.names()
    digest = hashlib.sha256(b"x" * LARGE_BYTES).hexdigest()
    kept.rename(name, f"{name}-{digest}")
    assert await content_of(store, PATH) == b"x" * LARGE_BYTES
    commands = object_blobs(kept.location)
    blob = BlobId(f"{name.removeprefix('bodies/')}-{digest}")
    assert await commands.size_of(blob) == LARGE_BYTES
    assert (
        b"".join([piece async for piece in commands.read(blob, LARGE_BYTES)]) == b"x" * LARGE_BYTES
    )
    await commit(store, write(put(PATH, await stage_large(store), creates=False)))
    await store.sweep(now_ms=now_ms() + HOUR_MS)
    assert len(kept.names()) == 1


# --- Slow uploads and sweeps --------------------------------------------------------------------


async def test_a_body_that_takes_hours_to_store_is_not_swept(
    store: SqliteStore,
    layout: RootLayout,
    kept: ObjectsInBucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its record exists before the object does, and is renewed until it is stored."""
    monkeypatch.setattr(staging, "RENEWAL_S", 0.01)
    store_object, begun, goes_on = Objects.put, asyncio.Event(), asyncio.Event()

    async def slow(
        self: Objects,
        key: str,
        read: objects.PartReader,
        size_bytes: int,
        content_type: str | None,
    ) -> None:
        begun.set()
        await goes_on.wait()
        await store_object(self, key, read, size_bytes, content_type)

    monkeypatch.setattr(Objects, "put", slow)
    staging_body = asyncio.create_task(stage_large(store))
    await begun.wait()
    ((blob, _),) = staged_rows(layout)
    connection = apsw.Connection(str(layout.database))
    connection.execute("UPDATE staged SET staged_ms = 0")
    connection.close()
    while staged_rows(layout) == [(blob, 0)]:  # noqa: ASYNC110 - no event, but the record
        await asyncio.sleep(0.01)
    async with opened(layout, kept) as other:
        await other.sweep(now_ms=now_ms() + HOUR_MS - 60_000)
    goes_on.set()
    await commit(store, write(put(PATH, await staging_body)))
    assert await content_of(store, PATH) == b"x" * LARGE_BYTES


async def test_a_body_whose_sender_leaves_while_it_is_stored_leaves_nothing(
    store: SqliteStore,
    layout: RootLayout,
    kept: ObjectsInBucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", LEAST_PART_BYTES)
    take, parts = PartLimit.take, 0
    stalled = asyncio.Event()

    @asynccontextmanager
    async def stall(self: PartLimit) -> AsyncIterator[None]:
        nonlocal parts
        parts += 1
        if parts == 3:
            stalled.set()
            await asyncio.Event().wait()
        async with take(self):
            yield

    monkeypatch.setattr(PartLimit, "take", stall)
    staging_body = asyncio.create_task(store.stage_body(bytes(3 * LEAST_PART_BYTES)))
    await stalled.wait()
    staging_body.cancel()
    with pytest.raises(asyncio.CancelledError):
        await staging_body
    assert kept.names() == []
    assert staged_rows(layout) == []
    assert shared_s3_server().unfinished_uploads(kept.prefix) == []


# --- While they arrive --------------------------------------------------------------------------


class CountedTurns:
    """How many parts have had their turn, and how many have it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.ended = self.now = 0
        self.one_has_ended = asyncio.Event()
        take = PartLimit.take

        @asynccontextmanager
        async def counted(turns: PartLimit) -> AsyncIterator[None]:
            async with take(turns):
                self.now += 1
                yield
            self.now -= 1
            self.ended += 1
            self.one_has_ended.set()

        patch.setattr(PartLimit, "take", counted)


async def test_parts_are_stored_while_the_rest_arrives(
    store: SqliteStore,
    layout: RootLayout,
    kept: ObjectsInBucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And a sender who takes hours for the rest takes no other part's turn meanwhile."""
    monkeypatch.setattr(objects, "PART_BYTES", LEAST_PART_BYTES)
    turns = CountedTurns(monkeypatch)
    content = os.urandom(2 * LEAST_PART_BYTES + 1000)

    async def slow() -> AsyncIterator[bytes]:
        yield content[: LEAST_PART_BYTES + CHUNK_BYTES]
        async with asyncio.timeout(60):
            await turns.one_has_ended.wait()
        assert (turns.now, turns.ended) == (0, 1)
        # There is no object before its record.
        assert (kept.names(), staged_rows(layout)) == ([], [])
        yield content[LEAST_PART_BYTES + CHUNK_BYTES :]

    await commit(store, write(put(PATH, await store.stage_body(slow()))))
    assert await content_of(store, PATH) == content
    assert turns.ended == 3
    assert len(kept.names()) == 1


async def test_a_body_that_breaks_off_or_is_refused_after_some_parts_leaves_nothing(
    store: SqliteStore,
    layout: RootLayout,
    kept: ObjectsInBucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", LEAST_PART_BYTES)
    turns = CountedTurns(monkeypatch)

    async def refused() -> AsyncIterator[bytes]:
        yield bytes(LEAST_PART_BYTES + CHUNK_BYTES)
        async with asyncio.timeout(60):
            await turns.one_has_ended.wait()
        assert len(shared_s3_server().unfinished_uploads(kept.prefix)) == 1
        raise BodyTooLarge("Too large")

    with pytest.raises(BodyTooLarge):
        await store.stage_body(refused())
    assert kept.names() == []
    assert staged_rows(layout) == []
    assert shared_s3_server().unfinished_uploads(kept.prefix) == []


async def test_what_fails_while_a_body_arrives_is_repeated_when_it_has(
    store: SqliteStore, kept: ObjectsInBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "PART_BYTES", LEAST_PART_BYTES)
    content, failed = os.urandom(LEAST_PART_BYTES + CHUNK_BYTES + 10), asyncio.Event()

    def fail() -> None:
        failed.set()
        raise StoreUnavailable("S3 is away")

    fail_at_part(monkeypatch, 1, fail)

    async def arriving() -> AsyncIterator[bytes]:
        yield content[:-10]
        await failed.wait()
        yield content[-10:]

    await commit(store, write(put(PATH, await store.stage_body(arriving()))))
    assert await content_of(store, PATH) == content
    assert len(kept.names()) == 1
    assert shared_s3_server().unfinished_uploads(kept.prefix) == []


# --- Faults -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["kill", "pause"])
async def test_trouble_with_s3_is_trouble_for_a_while_and_loses_nothing(
    layout: RootLayout, server: S3Server, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Before a transfer, and after some parts have been stored or read."""
    kept = ObjectsInBucket(layout, server.new_location())
    async with opened(layout, kept) as store:
        await plant(store)
        await commit(store, write(put(PATH, await stage_large(store))))
        original = await read_present(store, PATH)
        with monkeypatch.context() as patch:
            for name in ("ASK_S", "STORE_S", "LIST_S"):
                patch.setattr(objects, name, 2.0)
            patch.setattr(objects, "PART_BYTES", LEAST_PART_BYTES)
            patch.setattr(objects, "READ_BYTES", 300_000)
            objects._open_both.cache_clear()
            async with opened(layout, kept) as impatient:
                body = await impatient.open_body(original)
                assert body is not None
                chunks = body.chunks()
                await anext(chunks)
                fail_at_part(patch, 2, getattr(server, fault))
                try:
                    with pytest.raises(StoreUnavailable):
                        await impatient.stage_body(bytes(2 * LEAST_PART_BYTES))
                    with pytest.raises(StoreUnavailable):
                        [chunk async for chunk in chunks]
                    with pytest.raises(StoreUnavailable):
                        await impatient.stage_body(bytes(LARGE_BYTES))
                    with pytest.raises(StoreUnavailable):
                        await impatient.open_body(original)
                    with pytest.raises(StoreUnavailable):
                        await impatient.stage_copies([original])
                finally:
                    server.resume() if fault == "pause" else server.start()
        objects._open_both.cache_clear()
    async with opened(layout, kept) as store:
        assert await content_of(store, PATH) == b"x" * LARGE_BYTES
        await commit(store, write(put(PATH, await stage_large(store, b"y"), creates=False)))
        assert await content_of(store, PATH) == b"y" * LARGE_BYTES
        # Whatever was abandoned had been recorded, and a sweep removes it.
        await store.sweep(now_ms=now_ms() + 2 * HOUR_MS)
        assert len(kept.names()) == 1
        assert staged_rows(layout) == []


@pytest.mark.parametrize("size_bytes", [LARGE_BYTES, 3 * LEAST_PART_BYTES])
async def test_what_was_lost_while_s3_was_away_is_sent_again_when_it_is_back(
    layout: RootLayout, monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    """Over connections that were open before, too."""
    monkeypatch.setattr(objects, "PART_BYTES", LEAST_PART_BYTES)
    server = shared_s3_server()
    async with running_lossy_proxy(server.port) as proxy:
        through = server.new_location().replace(f":{server.port}", f":{proxy.port}")
        kept = ObjectsInBucket(layout, through)
        async with opened(layout, kept) as store:
            await plant(store)
            await commit(store, write(put("/alice/c/b", await stage_large(store))))
            read = await read_present(store, "/alice/c/b")
            proxy.cut()
            content = os.urandom(size_bytes)
            staging = asyncio.create_task(store.stage_body(content))
            reading = asyncio.create_task(store.open_body(read))
            with suppress(TimeoutError):
                async with asyncio.timeout(3 * objects.LONG_S):
                    await proxy.lose(3)  # what S3 is asked because the others take long
            proxy.restore()
            async with asyncio.timeout(BACK_S):
                body = await staging
                assert await reading is not None
            await commit(store, write(put(PATH, body)))
            assert await content_of(store, PATH) == content


def fail_at_part(patch: pytest.MonkeyPatch, number: int, fail: Callable[[], None]) -> None:
    """Call ``fail`` before the part of that number, counted from now, is stored."""
    take, taken = PartLimit.take, count(1)

    @asynccontextmanager
    async def fail_first(self: PartLimit) -> AsyncIterator[None]:
        if next(taken) == number:
            fail()
        async with take(self):
            yield

    patch.setattr(PartLimit, "take", fail_first)


# --- Resumable uploads on several nodes ---------------------------------------------------------


def test_parts_count_up_to_where_a_later_request_began() -> None:
    first, late, second = Part(1, 0, 100), Part(1, 100, 100), Part(2, 99, 51)
    assert draft_pieces([first, late, second], 150) == [Piece(first, 0, 99), Piece(second, 99, 150)]
    assert draft_pieces([first, late], 200) == [Piece(first, 0, 100), Piece(late, 100, 200)]
    assert draft_pieces([], 0) == []
    for missing in ([late], [first, Part(2, 120, 50)]):
        with pytest.raises(DraftGone):
            draft_pieces(missing, 150)


async def test_an_upload_is_continued_on_another_node(
    layout: RootLayout, kept: ObjectsInBucket
) -> None:
    content = os.urandom(LARGE_BYTES)
    name = "f" * 48
    async with opened(layout, kept) as one, opened(layout, kept) as other:
        await plant(one)
        record = UploadRecord(ResourcePath(PATH), len(content), "text/plain")
        await commit(one, write(records=[UPLOADS.put(name, record)]))
        await one.uploads.create(name)
        async with one.uploads.hold(name) as draft:
            await draft.append(content[:400_000])
            await draft.sync()
            await draft.append(b"not acknowledged")
        async with other.uploads.hold(name) as draft:
            await draft.truncate(400_000)
            await draft.append(content[400_000:])
            await draft.sync()
            body = await other.stage_upload(name, len(content))
        await commit(other, write(put(PATH, body)))
        await one.uploads.remove(name)
        assert await content_of(one, PATH) == content
        assert len(kept.names()) == 1


async def test_a_draft_has_one_holder_on_all_nodes(
    layout: RootLayout, kept: ObjectsInBucket
) -> None:
    name = "e" * 48
    async with opened(layout, kept) as one, opened(layout, kept) as other:
        await plant(one)
        record = UploadRecord(ResourcePath(PATH), 10, "text/plain")
        await commit(one, write(records=[UPLOADS.put(name, record)]))
        order = []

        async def take() -> None:
            async with other.uploads.hold(name):
                order.append("other")

        async with one.uploads.hold(name) as draft:
            waiting = asyncio.create_task(take())
            await draft.wanted()
            order.append("one")
        await waiting
        assert order == ["one", "other"]
        with pytest.raises(DraftGone):
            async with one.uploads.hold("d" * 48):
                pass


# --- Settings -----------------------------------------------------------------------------------


def test_a_server_does_not_start_where_the_bodies_are_not(tmp_path: Path) -> None:
    in_s3 = Settings(root=tmp_path, bodies=parse_s3_location("s3://bucket/pods?region=eu-1"))
    prepare_engine(in_s3, DiskSpace(tmp_path))
    facts = stored_facts(in_s3)
    claim_bodies(in_s3, facts, is_new=True)
    elsewhere = replace(in_s3, bodies=parse_s3_location("s3://bucket/pods?region=eu-2"))
    claim_bodies(elsewhere, facts, is_new=False)  # the same place
    for bodies in (None, parse_s3_location("s3://bucket/other"), tmp_path / "bodies"):
        with pytest.raises(RootUnusable, match="are at s3://bucket/pods"):
            check_bodies(replace(in_s3, bodies=bodies), facts)


def test_bodies_in_the_data_root_are_not_looked_for_elsewhere(tmp_path: Path) -> None:
    in_root = Settings(root=tmp_path)
    prepare_engine(in_root, DiskSpace(tmp_path))
    facts = stored_facts(in_root)
    claim_bodies(in_root, facts, is_new=True)
    with pytest.raises(RootUnusable, match="are in it, not at /mnt/x"):
        claim_bodies(replace(in_root, bodies=Path("/mnt/x")), facts, is_new=False)


async def test_bodies_may_be_in_another_folder(tmp_path: Path) -> None:
    folder = tmp_path / "bodies"
    settings = Settings(root=tmp_path / "root", bodies=folder)
    settings.root.mkdir()
    prepare_engine(settings, DiskSpace(settings.root))
    async with AsyncExitStack() as stack:
        store = new_store(settings)
        await store.open()
        stack.push_async_callback(store.close)
        await plant(store)
        await commit(store, write(put(PATH, await stage_large(store))))
        assert [path.stat().st_size for path in folder.rglob("*") if path.is_file()] == [
            LARGE_BYTES
        ]
        assert await content_of(store, PATH) == b"x" * LARGE_BYTES


def test_credentials_are_read_from_the_shared_file(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    environment = {"AWS_SHARED_CREDENTIALS_FILE": str(file)}
    assert shared_credentials(environment) is None
    file.write_text(
        "[default]\naws_access_key_id = a\naws_secret_access_key = b%c\n"
        "[pods]\naws_access_key_id = d\naws_secret_access_key = e\naws_session_token = f\n"
    )
    provide = shared_credentials(environment)
    assert provide is not None
    assert (provide()["access_key_id"], provide()["secret_access_key"]) == ("a", "b%c")
    provide = shared_credentials({**environment, "AWS_PROFILE": "pods"})
    assert provide is not None
    assert provide()["token"] == "f"
    file.write_text("[pods]\naws_access_key_id = new\naws_secret_access_key = e\n")
    assert provide()["access_key_id"] == "new"
    assert shared_credentials({**environment, **s3_environment()}) is None
    with pytest.raises(StorageError, match="no keys for the profile other"):
        shared_credentials({**environment, "AWS_PROFILE": "other"})
    file.write_text("nonsense")
    with pytest.raises(StorageError, match="cannot be read"):
        shared_credentials(environment)
