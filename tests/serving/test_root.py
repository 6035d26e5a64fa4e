"""A data root that does not serve stops the start of the real server, in one sentence."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.client import create_pod
from tests.support.server import ServerProcess, running_server

pytestmark = pytest.mark.embedded


@pytest.fixture
def server(tmp_path: Path) -> ServerProcess:
    """A server that was started once and stopped."""
    server = ServerProcess(tmp_path / "root")
    with running_server(server):
        assert server.stop() == 0
    return server


def test_a_root_of_a_newer_version_stops_the_start(server: ServerProcess) -> None:
    with closing(sqlite3.connect(server.root / "podstead.db")) as database, database:
        database.execute("UPDATE schema_version SET version = version + 1")
    assert "newer" in server.refusal()


def test_a_root_of_another_base_url_stops_the_start(server: ServerProcess) -> None:
    server.options = ("--base-url", "https://pods.example")
    assert server.base_url in server.refusal()


def test_a_database_that_is_none_stops_the_start(server: ServerProcess) -> None:
    (server.root / "podstead.db").write_bytes(b"no database" * 1000)
    assert str(server.root) in server.refusal()


def test_a_root_that_is_not_a_folder_stops_the_start(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "root", options=("--port", "0"))
    server.root.symlink_to(tmp_path / "missing" / "elsewhere")
    assert str(server.root) in server.refusal()


def test_the_root_is_for_the_servers_account_alone(server: ServerProcess) -> None:
    """A-32, A-43"""
    for path in (server.root, server.root / "keys", server.root / "keys" / "token.key"):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.feature("nostr")
def test_profiles_of_an_earlier_version_are_read_once_for_their_keys(tmp_path: Path) -> None:
    """A-127: an earlier version made no records of the Nostr keys that they name."""
    server, key = ServerProcess(tmp_path / "root"), "ab" * 32
    with running_server(server):
        pod = create_pod(server)
        with pod.owner() as owner:
            said = f"<#me> <http://www.w3.org/2002/07/owl#sameAs> <did:nostr:{key}> ."
            answer = owner.put(pod.root, said, "text/turtle")
            assert answer.status < 300, answer.text
        assert server.stop() == 0

    def change(statement: str) -> list[tuple[str]]:
        with closing(sqlite3.connect(server.root / "podstead.db")) as database, database:
            return database.execute(statement).fetchall()

    def restart() -> list[tuple[str]]:
        with running_server(server):
            assert server.stop() == 0
        return change("SELECT entry FROM entries WHERE entry LIKE 'profile-key/%'")

    found = [(f"profile-key/{key}{pod.root}",)]
    assert restart() == found
    change("DELETE FROM entries WHERE entry LIKE 'profile-key/%'")
    change("DELETE FROM facts WHERE name = 'profile-keys'")
    assert restart() == found
    change("DELETE FROM entries WHERE entry LIKE 'profile-key/%'")
    assert restart() == []
