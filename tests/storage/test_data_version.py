"""One look at the store serves a turn of the event loop, and nobody can tell.

Commits are made here by another program, at the worst moments for a reader: while a callback runs,
and between two steps of one look. What a client sends reaches the loop as the HTTP server hands it
over, by a callback that is queued after it has arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import apsw
import pytest
import uvloop

from podstead.storage.layout import RootLayout
from podstead.storage.records import EntryId, Metadata
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from podstead.storage.sqlite.connection import open_reader
from podstead.storage.sqlite.row_changes import DataVersion
from podstead.web.asgi import Message
from podstead.web.websocket import WebSocket
from tests.storage.engine_suite.engine import (
    NOW_MS,
    commit,
    new_version,
    path,
    plant,
    put,
    read_present,
    write,
)

DOCUMENT = path("/alice/c/a")
LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])


class AnotherProgram:
    """Commits at once, without the event loop."""

    def __init__(self, root: Path) -> None:
        self._connection = apsw.Connection(str(RootLayout(root).database))
        self.commits = 0

    def commit(self) -> None:
        self.commits += 1
        self._connection.execute(
            "UPDATE resources SET content_type = ? WHERE path = ?",
            (f"text/x-{self.commits}", DOCUMENT),
        )

    def replace_body(self) -> None:
        self._connection.execute("UPDATE resources SET version = 'new' WHERE path = ?", (DOCUMENT,))

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    prepare_root(tmp_path)
    return tmp_path


@pytest.fixture
async def store(root: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(root)
    await store.open()
    await plant(store)
    await commit(store, write(put(DOCUMENT, b"text")))
    yield store
    await store.close()


@pytest.fixture
def another(root: Path) -> AnotherProgram:
    return AnotherProgram(root)


async def commits_seen(store: SqliteStore) -> int:
    """How many of the other program's commits a request finds."""
    metadata = await read_present(store, DOCUMENT)
    return int(metadata.content_type.partition("text/x-")[2] or 0)


async def test_a_request_that_is_sent_after_a_commit_finds_it(
    store: SqliteStore, another: AnotherProgram
) -> None:
    """Whatever has been read in the same turn, before and after the commit."""
    loop = asyncio.get_running_loop()
    found: list[tuple[int, int]] = []
    done: list[asyncio.Task[None]] = []

    async def answer(committed: int) -> None:
        found.append((committed, await commits_seen(store)))

    def receive() -> None:
        """What the server's thread does when a request has arrived."""
        committed = another.commits
        loop.call_soon_threadsafe(lambda: done.append(loop.create_task(answer(committed))))

    async def busy_turn() -> None:
        for _ in range(4):
            await commits_seen(store)  # the look of this turn
            receive()
            another.commit()
            receive()
            await commits_seen(store)
            await asyncio.sleep(0)

    await asyncio.gather(busy_turn(), busy_turn(), busy_turn())
    for _ in range(100):
        await asyncio.sleep(0)
    await asyncio.gather(*done)
    assert len(found) == 24
    assert [(committed, seen) for committed, seen in found if seen < committed] == []


@LOOPS
def test_a_callback_gets_no_answer_that_is_older_than_itself(
    new_loop: Callable[[], asyncio.AbstractEventLoop], root: Path
) -> None:
    """Not even one that is queued while SQLite is being asked, as a thread may do it."""
    connection, another = open_reader(RootLayout(root).database), AnotherProgram(root)
    loop = new_loop()
    answers: list[int] = []

    class Interrupted(DataVersion):
        """A thread queues a callback right after the answer."""

        def _ask(self) -> int:
            answer = super()._ask()
            another._connection.execute("UPDATE counters SET value = value + 1")
            if len(answers) < 5:
                loop.call_soon_threadsafe(look)
            return answer

    async def begin() -> DataVersion:
        return Interrupted(connection)

    def look() -> None:
        answers.append(version.current())

    version = loop.run_until_complete(begin())
    loop.call_soon(look)
    for _ in range(20):
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    connection.close()
    another.close()
    assert len(answers) == len(set(answers)) > 4


async def test_one_look_serves_all_reads_of_a_turn(
    store: SqliteStore, another: AnotherProgram
) -> None:
    """What this is for."""
    assert await commits_seen(store) == 0
    before = store.data_version()
    another.commit()
    assert store.data_version() == before
    assert await commits_seen(store) == 0
    await asyncio.sleep(0)
    assert store.data_version() != before
    assert await commits_seen(store) == 1


async def test_rows_that_are_not_cached_are_read_with_those_that_are_in_one_state(
    store: SqliteStore, another: AnotherProgram
) -> None:
    """The snapshot is newer than the look of the turn: so what is cached is brought up to it."""
    assert await commits_seen(store) == 0
    another.commit()
    snapshot = await store.read_metadata([path("/alice/c/never-read"), DOCUMENT])
    metadata = snapshot[DOCUMENT]
    assert metadata is not None
    assert metadata.content_type == "text/x-1"


async def test_who_finds_a_version_replaced_reads_the_newer_one_at_the_next_attempt(
    store: SqliteStore, another: AnotherProgram
) -> None:
    """In the same turn, since it is given up after some attempts."""

    async def attempt() -> tuple[Metadata, bool]:
        metadata = await read_present(store, DOCUMENT)
        body = await store.open_body(metadata)
        return metadata, body is not None

    metadata, found = await attempt()
    assert found
    assert await read_present(store, DOCUMENT) == metadata
    another.replace_body()
    assert await attempt() == (metadata, False)
    metadata, found = await attempt()
    assert (metadata.version, found) == ("new", True)


async def test_reads_never_go_back_in_time(store: SqliteStore, another: AnotherProgram) -> None:
    """Who has found something that SQLite was asked for finds what was committed before."""
    queries: list[Callable[[], Awaitable[object]]] = [
        partial(store.list_members, path("/alice/c/"), limit=1),
        partial(store.changes_after, 0, limit=9),
        store.newest_sequence,
        partial(store.read_entry, EntryId("account/1"), now_ms=NOW_MS),
        partial(store.list_entries, "account", limit=1, now_ms=NOW_MS),
        partial(store.count_entries, "account", at_most=1),
        partial(store.list_pods, limit=9),
        store.list_tokens,
        partial(store.used_bytes, "alice"),
        partial(store.list_charges, path("/alice/")),
        partial(store.deleted_acls, new_version(), [DOCUMENT]),
        partial(store.open_body, await read_present(store, DOCUMENT)),
    ]
    for query in queries:
        await commits_seen(store)
        another.commit()
        await query()
        assert await commits_seen(store) == another.commits, query


async def test_messages_of_a_socket_are_each_answered_by_a_look_of_their_own(
    store: SqliteStore, another: AnotherProgram
) -> None:
    """Also where the next one is there already, so that nothing has to be waited for."""

    async def receive() -> Message:
        another.commit()  # acknowledged, and then the message was sent
        return {"type": "websocket.receive", "text": str(another.commits)}

    async def send(message: Message) -> None:
        raise AssertionError(message)

    socket = WebSocket({"type": "websocket"}, receive, send)
    for _ in range(4):
        committed = int(await socket.receive())
        assert await commits_seen(store) == committed
