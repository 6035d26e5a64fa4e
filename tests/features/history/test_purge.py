"""What is purged is in no file any more; what is interrupted is done later."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from podstead.app.services import Services
from podstead.config import Settings
from podstead.core.date_times import DAY_MS
from podstead.core.errors import StorageError
from podstead.features.history import retention
from podstead.features.history.retention import Keeper, Retention
from podstead.storage.layout import RootLayout
from podstead.storage.record_store import RecordStore
from podstead.storage.removal_lock import removals_locked
from podstead.storage.sqlite import SqliteStore
from tests.support.application import Start
from tests.support.body_stores import ObjectsInBucket
from tests.support.client import create_pod
from tests.support.clock import FakeClock
from tests.support.postgresql import files_of, new_database
from tests.support.seaweedfs import bodies_of, s3_environment
from tests.support.server import ServerProcess, run_command, running_server
from tests.support.waiting import wait_until

SECRET = "a secret that must be gone"


def files_with(root: Path, text: str) -> list[Path]:
    return [
        each for each in root.rglob("*") if each.is_file() and text.encode() in each.read_bytes()
    ]


@pytest.mark.feature("previews")
@pytest.mark.feature("search")
def test_what_is_purged_is_in_no_file(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with running_server(ServerProcess(root)) as server:
        pod = create_pod(server)
        with pod.owner() as owner:
            for name in ("f/a.txt", "f/b.txt", "other.txt"):
                for content in (SECRET + " small", SECRET * 10_000, "harmless"):
                    assert owner.put(pod.root + name, content).status in {201, 204}
            assert owner.put(f"{pod.root}f/c.txt", SECRET).status == 201
            # The text is in the index of the search before the document is deleted.
            wait_until(
                lambda: b"c.txt" in owner.get(f"/.search/in{pod.root}?q=secret").body, "the index"
            )
            assert owner.delete(f"{pod.root}f/", Depth="infinity").status in {200, 204}
        base = server.base_url
    # As a page leaves it that has shown a picture.
    (root / "thumbnails").mkdir(exist_ok=True)
    (root / "thumbnails" / ("0" * 64)).write_text(SECRET)
    assert files_with(root, SECRET)
    done = run_command("purge", f"{base}{pod.root}f/", "--root", str(root))
    assert done.returncode == 0, done.stderr
    assert files_with(root, SECRET)
    done = run_command("purge", f"{base}{pod.root}other.txt", "--root", str(root))
    assert done.returncode == 0, done.stderr
    assert "still exists" in done.stdout + done.stderr
    assert files_with(root, SECRET) == []
    backup = run_command("backup", str(tmp_path / "backup"), "--root", str(root))
    assert backup.returncode == 0, backup.stderr
    assert files_with(tmp_path / "backup", SECRET) == []
    assert run_command("purge", "https://elsewhere.example/a", "--root", str(root)).returncode != 0
    assert run_command("check", "--root", str(root)).returncode == 0


@pytest.mark.embedded
def test_a_backup_that_is_being_made_keeps_large_bodies_until_it_is_done(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with running_server(ServerProcess(root)) as server:
        pod = create_pod(server)
        with pod.owner() as owner:
            assert owner.put(f"{pod.root}a.txt", SECRET * 10_000).status == 201
            assert owner.delete(f"{pod.root}a.txt").status in {200, 204}
        purge = ("purge", f"{server.base_url}{pod.root}a.txt", "--root", str(root))
    with removals_locked(RootLayout(root).removal_lock):
        done = run_command(*purge)
        assert done.returncode == 0, done.stderr
        assert "A backup is being made" in done.stdout + done.stderr
        assert files_with(root, SECRET)
    done = run_command(*purge)
    assert "A backup is being made" not in done.stdout + done.stderr
    assert files_with(root, SECRET) == []


@pytest.mark.embedded
@pytest.mark.parametrize("place", ["postgresql", "s3"])
def test_what_is_purged_is_in_no_table_and_no_object(tmp_path: Path, place: str) -> None:
    root = tmp_path / "root"
    # Random, so that it is found wherever it is: no database makes it smaller.
    secrets = [os.urandom(size) for size in (100, 30_000, 200_000)]
    with contextlib.ExitStack() as stack:
        on_postgresql = place == "postgresql"
        url = stack.enter_context(new_database()) if on_postgresql else bodies_of(root)
        options = ["--database" if on_postgresql else "--bodies", url]
        environment = {} if on_postgresql else s3_environment()
        server = ServerProcess(root, options, environment=environment)
        with running_server(server):
            pod = create_pod(server)
            with pod.owner() as owner:
                for number, secret in enumerate(secrets):
                    path = f"{pod.root}{number}.bin"
                    for content in (secret, "harmless", secret):
                        assert owner.put(path, content).status in {201, 204}
                    assert owner.delete(path).status in {200, 204}

        def contents() -> Iterator[bytes]:
            files = [each for each in root.rglob("*") if each.is_file()]
            if on_postgresql:
                files += files_of(url)
            else:
                yield from ObjectsInBucket(RootLayout(root), url).contents()
            yield from (each.read_bytes() for each in files)

        def found() -> list[bool]:
            everything = list(contents())
            return [any(each[:32] in content for content in everything) for each in secrets]

        assert found() == [True, True, True]
        done = run_command(
            "purge",
            f"{server.base_url}{pod.root}",
            *("--root", str(root), *options),
            environment=environment,
        )
        assert done.returncode == 0, done.stderr
        assert found()[2] is False
        if on_postgresql:
            assert "Run VACUUM FULL there" in done.stdout + done.stderr
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("VACUUM FULL")
        assert found() == [False, False, False]


async def test_a_removal_that_was_interrupted_is_done_by_the_next_sweep(
    start: Start, clock: FakeClock, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await start(clock=clock)
    large = "y" * 200_000
    for name in range(5):
        assert (await server.alice.put(f"/alice/{name}", large, "text/plain")).status == 201
        assert (await server.alice.delete(f"/alice/{name}")).status in {200, 204, 205}
    blobs = settings.root / "blobs"
    monkeypatch.setattr(retention, "BATCH", 2)
    clock.advance(31 * 24 * 3600)
    store = SqliteStore(settings.root)
    await store.open()
    try:
        services = Services(settings, clock)
        services.store = store
        month = Retention(30 * DAY_MS, 30 * DAY_MS)
        keeper = Keeper(services.records, services.capacity.quotas, month)
        commit, calls = RecordStore.commit, 0

        async def fail_later(self: RecordStore, *given: object, **more: object) -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise StorageError("killed")
            await commit(self, *given, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(RecordStore, "commit", fail_later)
        with pytest.raises(StorageError):
            await keeper.sweep()
        assert len(await store.fetch("SELECT 1 FROM former_states WHERE deleted = %s", 1)) == 3
        await keeper.sweep()
        assert await store.fetch("SELECT 1 FROM former_states WHERE deleted = %s", 1) == []
        await store.sweep(now_ms=clock.now_ms())
        assert files_with(blobs, "yyyy") == []
    finally:
        await store.close()


def test_a_damaged_former_state_is_found_and_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with running_server(ServerProcess(root)) as server:
        pod = create_pod(server)
        with pod.owner() as owner:
            for content in ("small", "x" * 200_000, "now"):
                assert owner.put(f"{pod.root}a.txt", content).status in {201, 204}
    assert run_command("check", "--root", str(root)).returncode == 0
    with closing(sqlite3.connect(root / "podstead.db")) as database, database:
        database.execute("UPDATE former_states SET content = x'00' WHERE content IS NOT NULL")
        [(blob,)] = database.execute("SELECT blob FROM former_states WHERE blob IS NOT NULL")
    [body] = [each for each in (root / "blobs").rglob("*") if each.name == blob]
    body.write_bytes(b"y" * 200_000)
    found = run_command("check", "--root", str(root))
    assert found.returncode == 1
    assert found.stdout.count("a.txt") == 2
    run_command("check", "--repair", "--root", str(root))
    assert run_command("check", "--root", str(root)).returncode == 0
    with closing(sqlite3.connect(root / "podstead.db")) as database:
        left = database.execute("SELECT count(*) FROM former_states WHERE path LIKE '%a.txt'")
        assert left.fetchone() == (0,)
