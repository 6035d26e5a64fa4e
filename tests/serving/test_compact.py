"""Space is given back, beside a running server and without one, and nothing is lost."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.recorded_writers import LARGE_BYTES, RecordedWriter, writing
from tests.support.client import Client, Pod, create_pod
from tests.support.features import GIT_OPTIONS, NO_HISTORY_OPTIONS
from tests.support.git import Git, url_of
from tests.support.git_requests import noise
from tests.support.server import ServerProcess, run_command, running_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.embedded

MANY = 150
SMALL_BYTES = 20_000
LEFT = "00000000"
"""What the name of the file contains that a killed server left."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with running_server(
        ServerProcess(tmp_path / "root", (*GIT_OPTIONS, "--workers", "1", *NO_HISTORY_OPTIONS))
    ) as running:
        yield running


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    """A pod in which much was deleted, and a body that a killed server did not remove."""
    pod = create_pod(server)
    with pod.owner() as client:
        client.put(f"{pod.root}kept.bin", b"k" * LARGE_BYTES)
        client.put(f"{pod.root}deleted.bin", b"d" * LARGE_BYTES)
        names = [f"{pod.root}many/{number}" for number in range(MANY)]
        for name in names:
            client.put(name, b"x" * SMALL_BYTES)
        for name in (*names[1:], f"{pod.root}deleted.bin"):
            assert client.delete(name).status == 204
    # The file of a deleted body may go right after the answer.
    wait_until(lambda: len(body_files(server)) == 1, "file of a body")
    (kept,) = body_files(server)
    left = kept.with_name(f"{kept.name[:4]}{LEFT}{kept.name[12:]}")
    left.write_bytes(b"l" * LARGE_BYTES)
    connection = sqlite3.connect(server.root / "podstead.db")
    with contextlib.closing(connection), connection:
        connection.execute("INSERT INTO garbage (blob, dropped_ms) VALUES (?, 1)", (left.name,))
    return pod


def body_files(server: ServerProcess) -> list[Path]:
    return [each for each in (server.root / "blobs").rglob("*-*") if each.is_file()]


def compact(server: ServerProcess) -> dict[str, Any]:
    ended = run_command("compact", "--json", "--root", str(server.root))
    assert ended.returncode == 0, ended.stderr
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def freed(result: dict[str, Any], part: str) -> int:
    sizes: dict[str, int] = result[part]
    return sizes["before_bytes"] - sizes["after_bytes"]


def assert_whole(server: ServerProcess, pod: Pod) -> None:
    with Client(server, token=pod.token) as client:
        assert client.get(f"{pod.root}kept.bin").body == b"k" * LARGE_BYTES
        assert client.members(f"{pod.root}many/") == {f"{pod.root}many/0"}
        assert client.get(f"{pod.root}many/0").body == b"x" * SMALL_BYTES
    assert not list((server.root / "blobs").rglob(f"*{LEFT}*"))
    assert run_command("check", "--root", str(server.root)).returncode == 0


def test_without_a_server_the_database_is_rewritten(server: ServerProcess, pod: Pod) -> None:
    server.stop()
    result = compact(server)
    assert result["database_outcome"] == "rewritten"
    assert freed(result, "database") > MANY * SMALL_BYTES // 2
    assert result["bodies"] == {"before_bytes": 2 * LARGE_BYTES, "after_bytes": LARGE_BYTES}
    server.start()
    assert_whole(server, pod)
    assert freed(compact(server), "bodies") == 0


@pytest.mark.needs("git")
def test_beside_a_running_server_space_is_given_back_while_clients_write(
    server: ServerProcess, pod: Pod, tmp_path: Path
) -> None:
    git = Git(tmp_path).with_token(pod.token)
    work = git.new("work")
    for state in range(3):  # a pack for each push, and nothing reaches the earlier ones
        (work.place / "noise").write_bytes(noise(20_000))
        work("add", "noise")
        work("commit", "--quiet", *(["--amend"] if state else []), "--message", f"state {state}")
        work("push", "--quiet", "--force", url_of(pod, "private/notes"), "HEAD:main")
    writer = RecordedWriter(pod, 1, seed="compact")
    with writing(pod, [writer]):
        result = compact(server)
    with pod.owner() as client:
        assert writer.read(client) == writer.history[-1].documents
    assert result["database_outcome"] == "shrunk"

    def is_packed() -> bool:
        """The server may still be tidying up after a push."""
        return bool(compact(server)["packed_repositories"] == 1)

    wait_until(is_packed, "the repository is not in use")
    assert compact(server)["repositories"]["after_bytes"] < 30_000
    assert_whole(server, pod)
    clone = git.cloned(url_of(pod, "private/notes"), "clone")
    assert clone.tip() == work.tip()


def test_the_figures_are_printed_as_a_table(tmp_path: Path) -> None:
    ended = run_command("compact", "--root", str(tmp_path / "none"))
    assert ended.returncode == 2
    with running_server(ServerProcess(tmp_path / "root")) as running:
        ended = run_command("compact", "--root", str(running.root))
    assert ended.returncode == 0
    head, *rows, note = ended.stdout.splitlines()
    assert head.split() == ["BEFORE", "AFTER", "GIVEN", "BACK"]
    assert [row.split()[0] for row in rows] == [
        *("database", "bodies"),
        *(["repositories"] if GIT_OPTIONS else []),
        "total",
    ]
    assert "not rewritten" in note
