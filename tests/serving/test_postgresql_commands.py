"""The operator's commands on a running server whose records are in PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from podstead.app.operator.backup_series import BackupSeries, SeriesResult, keep_backing_up
from podstead.config import Settings, read_settings
from tests.serving.recorded_writers import LARGE_BYTES, RecordedWriter, writing
from tests.support.client import Client, Pod, create_pod
from tests.support.postgresql import new_database
from tests.support.seaweedfs import bodies_of
from tests.support.server import ServerProcess, run_command, running_server

WRITERS = 4
HOUR_S = 3600

pytestmark = pytest.mark.embedded


@dataclass(frozen=True)
class Cluster:
    """A server on PostgreSQL, and a pod in it."""

    server: ServerProcess
    database: str
    pod: Pod

    def execute(self, statement: str, *values: object) -> None:
        with psycopg.connect(self.database) as connection:
            connection.execute(statement.encode(), values)

    def blob(self, path: str) -> Path:
        with psycopg.connect(self.database) as connection:
            row = connection.execute("SELECT blob FROM resources WHERE path = %s", [path])
            ((blob,),) = row.fetchall()
        return self.server.root.joinpath("blobs", blob[:2], blob[2:4], blob)

    def run(self, command: str, *options: str) -> tuple[int, str]:
        """The exit code, and what was printed."""
        place = ("--root", str(self.server.root))
        ended = run_command(command, *options, *place, environment=self.server.environment)
        return ended.returncode, ended.stdout + (ended.stderr if ended.returncode > 1 else "")

    def check(self, *options: str) -> tuple[int, list[dict[str, Any]]]:
        code, output = self.run("check", "--json", *options)
        assert code in {0, 1}, output
        return code, [json.loads(line) for line in output.splitlines()]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("commands") / "root") as running:
        yield running


@pytest.fixture
def cluster_on_s3(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(
        tmp_path / "root", PODSTEAD_BODIES=bodies_of(tmp_path / "root")
    ) as running:
        yield running


@contextmanager
def running_cluster(root: Path, **environment: str) -> Iterator[Cluster]:
    with new_database() as database:
        environment["PODSTEAD_DATABASE"] = database
        server = ServerProcess(root, ("--workers", "1"), environment=environment)
        with running_server(server):
            yield Cluster(server, database, create_pod(server))


def test_each_damage_is_found_and_repaired(cluster: Cluster) -> None:
    pod, path = cluster.pod, f"/{cluster.pod.name}/"
    with pod.owner() as client:
        for name in ("1.bin", "2.bin"):
            client.put(pod.root + name, name.encode() * LARGE_BYTES)
        for name in ("1.txt", "2.txt", "3.txt", "c/x", "d/e/deep.txt", "f/moved"):
            assert client.put(pod.root + name, b"deep").status == 201
        acl = pod.acl(pod.root + "3.txt", public=["Read"])
        assert client.put(pod.root + "3.txt.acl", acl, "text/turtle").status == 201
    assert cluster.check() == (0, [])

    cluster.blob(f"{path}1.bin").unlink()
    damaged = cluster.blob(f"{path}2.bin")
    damaged.write_bytes(b"x" + damaged.read_bytes()[1:])
    for statement, name in (
        ("DELETE FROM bodies WHERE path = %s", "1.txt"),
        ("UPDATE bodies SET content = convert_to('else', 'UTF8') WHERE path = %s", "2.txt"),
        (
            (
                "UPDATE bodies SET content = convert_to('<', 'UTF8'), sha256 = sha256('<')"
                " WHERE path = %s"
            ),
            "3.txt.acl",
        ),
        ("UPDATE resources SET size_bytes = 1 WHERE path = %s", "3.txt.acl"),
        ("UPDATE resources SET member_count = 7 WHERE path = %s", "c/"),
        ("DELETE FROM resources WHERE path = %s", "d/e/"),
        ("UPDATE resources SET container = container || 'c/' WHERE path = %s", "f/moved"),
    ):
        cluster.execute(statement, path + name)
    cluster.execute("INSERT INTO private_keys (name, content) VALUES ('provider/1.json', '{}')")
    cluster.execute("UPDATE storages SET used_bytes = 5 WHERE root = %s", path)
    cluster.execute(
        "INSERT INTO bodies (root, path, content, sha256) VALUES (%s, %s, 'x', sha256('x'))",
        path,
        f"{path}none",
    )

    code, findings = cluster.check()
    assert code == 1
    assert {(each["code"], each["where"]) for each in findings} >= {
        ("body-missing", f"{path}1.bin"),
        ("body-damaged", f"{path}2.bin"),
        ("body-missing", f"{path}1.txt"),
        ("body-damaged", f"{path}2.txt"),
        ("acl-unreadable", f"{path}3.txt.acl"),
        ("count-wrong", f"{path}c/"),
        ("container-missing", f"{path}d/e/deep.txt"),
        ("container-missing", f"{path}f/moved"),
        ("key-damaged", "provider/1.json"),
        ("usage-wrong", path),
        ("body-orphaned", f"{path}none"),
    }
    _, repaired = cluster.check("--repair")
    assert all(each["repaired"] or each["loss"] for each in repaired)
    assert cluster.check() == (0, [])
    with pod.owner() as client:
        assert b"moved" in client.get(f"{pod.root}f/").body
        assert client.get(f"{pod.root}d/e/deep.txt").body == b"deep"


def test_a_row_that_is_not_with_its_pod_is_damage(cluster: Cluster) -> None:
    """Reads would not find it, and another pod would be charged for it."""
    cluster.execute(
        "INSERT INTO bodies (root, path, content, sha256) VALUES ('/a/', '/b/x', '', '')"
    )
    try:
        code, (finding, *_) = cluster.check("--quick")
    finally:
        cluster.execute("DELETE FROM bodies WHERE path = '/b/x'")
    assert (code, finding["code"], finding["where"]) == (1, "database-damaged", "PostgreSQL")
    assert "/b/x" in finding["what"]


def test_a_backup_of_a_busy_database_has_each_write_before_its_moment(
    cluster_on_s3: Cluster, tmp_path: Path
) -> None:
    """It is restored into a data root with an SQLite database and files, and served in its
    place."""
    cluster, server, pod = cluster_on_s3, cluster_on_s3.server, cluster_on_s3.pod
    writers = [RecordedWriter(pod, each, seed=str(each)) for each in range(WRITERS)]
    with writing(pod, writers):
        code, output = cluster.run("backup", str(tmp_path / "backup"), "--json")
    assert code == 0, output
    moment_ms = datetime.fromisoformat(json.loads(output)["moment"]).timestamp() * 1000
    root = tmp_path / "again"
    ended = run_command("restore", str(tmp_path / "backup"), "--root", str(root))
    assert ended.returncode == 0, ended.stderr
    ended = run_command("check", "--root", str(root))
    assert ended.returncode == 0, ended.stdout
    other = ServerProcess(root, ("--workers", "1"), port=server.port)
    server.stop()
    try:
        with running_server(other), Client(other, token=pod.token) as client:
            for writer in writers:
                assert writer.find(writer.read(client), moment_ms=moment_ms), writer.home
    finally:
        server.start()
    assert all(writer.history[0].acknowledged_ms < moment_ms for writer in writers)
    assert all(writer.history[-1].acknowledged_ms > moment_ms for writer in writers)


class Enough(Exception):
    """Ends a series of backups."""


def back_up_when_due(settings: Settings, place: Path) -> tuple[int, float]:
    """How many backups a node makes before it waits for the next, and how long it waits then."""
    results: list[SeriesResult] = []
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        raise Enough

    def fail(error: Exception) -> None:
        raise error

    making = keep_backing_up(
        BackupSeries(settings, place, ()),
        HOUR_S,
        on_step=lambda *_: None,
        on_result=results.append,
        on_failure=fail,
        wait=wait,
    )
    with suppress(Enough):
        asyncio.run(making)
    return len(results), waits[0]


def test_nodes_that_make_backups_of_one_series_make_one(cluster: Cluster, tmp_path: Path) -> None:
    named = {"root": str(cluster.server.root), "database": cluster.database}
    settings = read_settings(named, {}, folder=tmp_path)
    place = tmp_path / "series"
    with ThreadPoolExecutor(2) as threads:
        nodes = [threads.submit(back_up_when_due, settings, place) for _ in range(2)]
        counts, waits_s = zip(*(node.result() for node in nodes), strict=True)
    assert sorted(counts) == [0, 1]
    assert all(HOUR_S - 60 < wait_s <= HOUR_S for wait_s in waits_s)
    # As on a node whose disk at the same path is its own.
    shutil.rmtree(place)
    count, wait_s = back_up_when_due(settings, place)
    assert count == 0
    assert HOUR_S - 60 < wait_s <= HOUR_S


def test_compacting_says_what_it_leaves_to_postgresql(cluster: Cluster) -> None:
    code, output = cluster.run("compact", "--json")
    sizes = json.loads(output)
    assert code == 0
    assert sizes["database_outcome"] == "vacuumed"
    assert sizes["database"]["before_bytes"] > 0
