"""A start refuses, unless told, where part of the data is missing."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.support.client import create_pod
from tests.support.engine import bodies_in
from tests.support.engine_choice import CHOICE
from tests.support.features import GIT_OPTIONS
from tests.support.postgresql import database_of
from tests.support.server import ServerProcess, running_server

LARGE = b"x" * 300_000


@pytest.fixture
def server(tmp_path: Path) -> ServerProcess:
    """A stopped server with a pod, a token, a large body and the keys of a provider."""
    server = ServerProcess(tmp_path / "root")
    with running_server(server):
        pod = create_pod(server)
        with pod.owner() as owner:
            assert owner.put(f"{pod.root}large", LARGE, "text/plain").status == 201
        assert server.stop() == 0
    server.options = ("--idp",)
    with running_server(server):
        assert server.stop() == 0
    return server


def lose_records(root: Path) -> None:
    if CHOICE.on_postgresql:
        with psycopg.connect(database_of(root), autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
    for name in ("podstead.db", "podstead.db-wal", "podstead.db-shm"):
        (root / name).unlink(missing_ok=True)


def started_with(server: ServerProcess, option: str) -> int:
    server.options = (*server.options, option)
    with running_server(server):
        status = server.get("/").status
        assert server.stop() == 0
    return status


def test_a_lost_database_starts_no_empty_server(server: ServerProcess) -> None:
    lose_records(server.root)
    before = bodies_in(server.root).names()
    error = server.refusal()
    assert "large bod" in error
    assert "--accept-loss" in error
    assert not (server.root / "podstead.db").exists()
    assert bodies_in(server.root).names() == before
    server.refusal()  # again, and not only once
    assert started_with(server, "--accept-loss") < 500


@pytest.mark.embedded
@pytest.mark.parametrize(
    "left", ["keys", pytest.param("git", marks=pytest.mark.feature("git")), "blobs"]
)
def test_each_of_what_is_left_is_enough(server: ServerProcess, left: str) -> None:
    lose_records(server.root)
    (server.root / "git/abc.git").mkdir(parents=True)
    (server.root / "git/abc.git/HEAD").write_text("ref: refs/heads/main\n")
    for name in {"keys", "git", "blobs"} - {left}:
        shutil.rmtree(server.root / name)
    assert {"keys": "keys", "git": "git repositories", "blobs": "large bodies"}[
        left
    ] in server.refusal()


@pytest.mark.embedded
def test_an_empty_file_is_no_database(server: ServerProcess) -> None:
    lose_records(server.root)
    (server.root / "podstead.db").touch()
    assert "--accept-loss" in server.refusal()


@pytest.mark.embedded
def test_an_empty_folder_is_a_new_root(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "root", ("--idp", *GIT_OPTIONS))
    for name in ("keys/provider", "git", "blobs/drafts", "lost+found"):
        (server.root / name).mkdir(parents=True)
    with running_server(server):
        assert server.stop() == 0


def the_token_key(root: Path) -> Path:
    return root / "keys/token.key"


def a_provider_key(root: Path) -> Path:
    return min((root / "keys/provider").glob("*.json"))


@pytest.mark.embedded
def test_a_lost_key_is_not_replaced_in_silence(server: ServerProcess) -> None:
    key = the_token_key(server.root)
    key.unlink()
    assert str(key) in server.refusal()
    assert not key.exists()
    assert started_with(server, "--accept-loss") < 500
    assert key.exists()


@pytest.mark.embedded
def test_lost_keys_of_the_provider_are_not_replaced_in_silence(server: ServerProcess) -> None:
    folder = server.root / "keys/provider"
    shutil.rmtree(folder)
    assert str(folder) in server.refusal()
    assert not folder.exists()
    assert started_with(server, "--accept-loss") < 500


@pytest.mark.embedded
@pytest.mark.parametrize("key", [the_token_key, a_provider_key])
@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 8])
def test_a_damaged_key_is_named(
    server: ServerProcess, key: Callable[[Path], Path], content: bytes
) -> None:
    file = key(server.root)
    file.write_bytes(content)
    assert str(file) in server.refusal()


def damaged(database: Path) -> None:
    """Damage the page at which a table begins that no start reads."""
    with closing(sqlite3.connect(database)) as connection:
        [(page,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'changes'")
        [(size_bytes,)] = connection.execute("PRAGMA page_size")
    with database.open("r+b") as file:
        file.seek((page - 1) * size_bytes)
        file.write(b"\x00" * size_bytes)


@pytest.mark.embedded
def test_a_start_says_what_check_would_of_a_damaged_page(server: ServerProcess) -> None:
    database = server.root / "podstead.db"
    damaged(database)
    server.start()
    assert "database-damaged" in server.errors
    assert str(database) in server.errors
    assert "podstead check" in server.errors
    server.stop()
    server.close()
