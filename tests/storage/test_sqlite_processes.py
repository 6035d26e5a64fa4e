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
