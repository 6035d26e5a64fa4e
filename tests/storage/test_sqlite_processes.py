"""Several processes on one data root: one winner, nothing lost, and nothing torn by a kill."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import apsw

from podstead.storage.layout import RootLayout
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.storage.engine_suite.engine import commit, content_of, plant, put, read_present, write

PROCESSES = 3
PATHS = 30
ROUNDS = 5
ACTIONS = 20

_PRELUDE = """
import asyncio, sys
from pathlib import Path
from podstead.core.identifiers import ResourcePath
from podstead.storage.records import *
from podstead.storage.sqlite import SqliteStore

me, root = sys.argv[1], Path(sys.argv[2])

def put(path, body, *, creates):
    return Put(ResourcePath(path), ResourceKind.DOCUMENT, "text/plain", body, creates)

async def main():
    store = SqliteStore(root, inline_body_bytes=1000)
    await store.open()
    await work(store)
    await store.close()
"""

_CREATE = """
async def work(store):
    sys.stdin.readline()
    for number in range(%d):
        path = ResourcePath(f"/alice/c/{number}")
        wanted = Write(Version(f"{me}-{number}"), 1, (Absent(path),),
                       (put(path, InlineBody(me.encode()), creates=True),))
        if isinstance(await store.commit(wanted), Committed):
            print(number, flush=True)
asyncio.run(main())
"""

_COUNT = """
async def work(store):
    path, done = ResourcePath("/alice/c/count"), 0
    sys.stdin.readline()
    while done < %d:
        metadata = (await store.read_metadata([path]))[path]
        body = await store.open_body(metadata)
        if body is None:
            continue
        new = InlineBody(b"%%d" %% (int(body.content) + 1))
        wanted = Write(Version(f"{me}-{done}"), 1, (AtVersion(path, metadata.version),),
                       (put(path, new, creates=False),))
        done += isinstance(await store.commit(wanted), Committed)
asyncio.run(main())
"""

# Each writer replaces its own resource again and again, small and large bodies in turn, and says
# the number of each write once it is acknowledged.
_REPLACE = """
async def one(store, writer):
    path, number = ResourcePath(f"/alice/c/{me}-{writer}"), 0
    while True:
        content = b"%d " % number * (10 if number % 3 else 1000)
        async def chunks():
            yield content
        body = await store.stage_body(chunks())
        wanted = Write(Version(f"{me}-{writer}-{number}"), 1, (),
                       (put(path, body, creates=number == 0),),
                       changes=(Change(path, ChangeType.UPDATE),))
        assert isinstance(await store.commit(wanted), Committed)
        print(f"{path} {number}", flush=True)
        number += 1

async def work(store):
    await asyncio.gather(*[one(store, writer) for writer in range(4)])
asyncio.run(main())
"""

# Workers as a server forks them write to the same few documents, and compare the rows that they
# have cached with those in the database. Their parent kills, replaces, stops and continues them.
_WORKERS = """
import asyncio, os, random, select, signal, sys, traceback
from pathlib import Path
import apsw
from podstead.core.identifiers import ResourcePath
from podstead.storage.layout import RootLayout
from podstead.storage.records import *
from podstead.storage.sqlite import SharedChanges, SqliteStore, fair_lock, writer

writer.MAX_LOCK_WAIT_S = fair_lock.MAX_RESOURCE_WAIT_S = 0.05  # for what is stopped
root, actions, shared = Path(sys.argv[1]), int(sys.argv[2]), SharedChanges()
PATHS = [ResourcePath(f"/alice/c/{number}") for number in range(6)]
progress, report = os.pipe()
stop, keep_open = os.pipe()

def stored(database):
    return {path: database.execute("SELECT version FROM resources WHERE path = ?", (path,)).get
            for path in PATHS}

async def put(store, path, rows, version):
    turn = store.interprocess_lock(path)
    await turn.take()
    try:
        await store.commit(Write(version, 1, (), (Put(path, ResourceKind.DOCUMENT, "text/plain",
            InlineBody(b"1"), creates=rows[path] is None),)))
    finally:
        turn.end()

async def work(me):
    store, database = SqliteStore(root, shared=shared), apsw.Connection(
        str(RootLayout(root).database))
    database.set_busy_timeout(60_000)
    await store.open()
    draw, count = random.Random(me), 0
    while not select.select([stop], [], [], 0)[0]:
        rows = stored(database)
        await asyncio.gather(*[put(store, path, rows, Version(f"{me}-{count}-{path}"))
            for path in draw.sample(PATHS, draw.randint(1, 3))])
        count += 1
        await asyncio.sleep(0)
        before = stored(database)
        cached = await store.read_metadata(PATHS)
        if before == stored(database):
            found = {path: row and row.version for path, row in cached.items()}
            assert found == before, (found, before)
            os.write(report, b".")
    await store.close()

def fork(me):
    child = os.fork()
    if child:
        return child
    os.close(keep_open)
    try:
        asyncio.run(work(me))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

def wait_for(comparisons, timeout_s):
    while comparisons > 0 and select.select([progress], [], [], timeout_s)[0]:
        comparisons -= len(os.read(progress, comparisons))
    return comparisons <= 0

draw, workers = random.Random(0), [fork(number) for number in range(3)]
for number in range(actions):
    assert wait_for(draw.randint(1, 40), 60)
    index = draw.randrange(3)
    if number % 2:
        os.kill(workers[index], signal.SIGSTOP)
        wait_for(20, 0.5)  # in vain if it was stopped while it had SQLite's lock
        os.kill(workers[index], signal.SIGCONT)
    else:
        os.kill(workers[index], signal.SIGKILL)
        assert os.waitpid(workers[index], 0)[1] == signal.SIGKILL
        workers[index] = fork(3 + number)
os.close(keep_open)
print(*[os.waitpid(worker, 0)[1] for worker in workers])
"""


def start(script: str, root: Path, count: int = PROCESSES) -> list[subprocess.Popen[str]]:
    return [
        subprocess.Popen(
            [sys.executable, "-c", _PRELUDE + script, str(number), str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]


def finish(processes: Sequence[subprocess.Popen[str]]) -> list[list[str]]:
    """Let all go on, and collect what each one printed."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    outputs = []
    for process in processes:
        assert process.stdout is not None
        with process:
            outputs.append(process.stdout.read().split())
        assert process.returncode == 0
    return outputs


async def prepared(root: Path) -> SqliteStore:
    store = SqliteStore(prepare_root(root).root, inline_body_bytes=1000)
    await store.open()
    await plant(store)
    return store


async def test_each_resource_is_created_by_exactly_one_process(tmp_path: Path) -> None:
    store = await prepared(tmp_path)
    outputs = finish(start(_CREATE % PATHS, tmp_path))
    assert sorted(int(number) for output in outputs for number in output) == list(range(PATHS))
    for me, output in enumerate(outputs):
        for number in output:
            assert await content_of(store, f"/alice/c/{number}") == b"%d" % me
    await store.close()


async def test_counting_together_misses_no_number(tmp_path: Path) -> None:
    store = await prepared(tmp_path)
    await commit(store, write(put("/alice/c/count", b"0")))
    finish(start(_COUNT % PATHS, tmp_path))
    assert await content_of(store, "/alice/c/count") == b"%d" % (PATHS * PROCESSES)
    await store.close()


async def test_no_acknowledged_write_is_lost_and_none_torn_by_a_kill(disk_path: Path) -> None:
    await (await prepared(disk_path)).close()
    for number in range(ROUNDS):
        (process,) = start(_REPLACE.replace("/alice/c/", f"/alice/c/{number}-"), disk_path, 1)
        with process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(20 * (number + 1))]
            process.kill()
            lines += process.stdout.read().splitlines(keepends=True)
        acknowledged: dict[str, int] = {}
        for line in lines:
            if line.endswith("\n"):
                target, write_number = line.split()
                acknowledged[target] = int(write_number)
        await _check(disk_path, acknowledged)


async def _check(root: Path, acknowledged: dict[str, int]) -> None:
    connection = apsw.Connection(str(RootLayout(root).database))
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()
    store = SqliteStore(root)
    await store.open()
    for target, number in acknowledged.items():
        content = await content_of(store, target)
        found = int(content.split()[0])
        assert found in (number, number + 1)
        assert content == b"%d " % found * (10 if found % 3 else 1000)
        assert (await read_present(store, target)).version.endswith(f"-{found}")
    await store.close()


async def test_workers_have_the_rows_that_are_stored_whatever_becomes_of_others(
    tmp_path: Path,
) -> None:
    """Killed while they write, have a turn or tell what they wrote, stopped, and replaced."""
    await (await prepared(tmp_path)).close()
    command = [sys.executable, "-c", _WORKERS, str(tmp_path), str(ACTIONS)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)  # noqa: ASYNC221
    assert ended.stdout == "0 0 0\n"
