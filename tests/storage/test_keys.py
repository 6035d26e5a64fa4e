"""Private keys in files and in a database: the same promises."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podstead.app.adapters.keys import adopt_keys, ensure_token_key, load_token_keys
from podstead.app.adapters.provider_keys import LOOK_AGAIN_MS, KeyFolder
from podstead.core.errors import StorageError
from podstead.storage.keys import KeyFiles, KeyStorage
from podstead.storage.postgresql import PostgresKeys, migrate
from tests.support.clock import FakeClock
from tests.support.postgresql import new_database

PROCESSES = 4


@pytest.fixture(params=["files", "database"])
def keys(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeyStorage]:
    if request.param == "files":
        yield KeyFiles(tmp_path)
        return
    with new_database() as url:
        migrate(url)
        yield PostgresKeys(url)


def test_keys_are_kept_under_their_names(keys: KeyStorage) -> None:
    assert keys.read("a.key") is None
    assert not keys.has_folder("some")
    keys.add("a.key", b"\x00first")
    keys.add("some/2.json", b"2")
    before = keys.mark("some")
    keys.add("some/1.json", b"1")
    assert keys.mark("some") != before
    keys.add("a.key", b"second")  # which does not replace it
    assert keys.read("a.key") == b"\x00first"
    assert list(keys.read_folder("some").items()) == [("some/1.json", b"1"), ("some/2.json", b"2")]
    assert keys.remove("some/1.json")
    assert not keys.remove("some/1.json")
    assert list(keys.read_folder("some")) == ["some/2.json"]


def test_servers_that_start_together_use_one_token_key(keys: KeyStorage) -> None:
    with ThreadPoolExecutor(PROCESSES) as threads:
        list(threads.map(lambda _: ensure_token_key(keys), range(PROCESSES)))
    (key,) = load_token_keys(keys)
    ensure_token_key(keys)
    assert load_token_keys(keys) == [key]


async def test_a_worker_uses_the_keys_that_another_has_made(keys: KeyStorage) -> None:
    clock = FakeClock()
    first, second = KeyFolder(keys, clock), KeyFolder(keys, clock)
    first.maintain()
    second.maintain()
    made = first.roster().keys
    assert [key.pair.algorithm for key in made].count("ES256") == 1
    assert (await second.current()).keys == made
    first.replace_all()
    clock.advance(LOOK_AGAIN_MS / 1000)
    replaced = (await second.current()).keys
    assert replaced == first.roster().keys
    assert not {key.pair.key_id for key in replaced} & {key.pair.key_id for key in made}


def test_nodes_with_one_database_add_each_key_once() -> None:
    with new_database() as url:
        migrate(url)
        folders = [KeyFolder(PostgresKeys(url), FakeClock()) for _ in range(PROCESSES)]
        with ThreadPoolExecutor(PROCESSES) as threads:
            list(threads.map(KeyFolder.maintain, folders))
        algorithms = sorted(key.pair.algorithm for key in folders[0].roster().keys)
    assert algorithms == ["ES256", "RS256"]


def test_the_keys_of_a_data_root_are_taken_over_once(keys: KeyStorage, tmp_path: Path) -> None:
    (tmp_path / "former").mkdir()
    former = KeyFiles(tmp_path / "former")
    ensure_token_key(former)
    former_keys = KeyFolder(former, FakeClock())
    former_keys.maintain()
    adopt_keys(keys, former)
    assert load_token_keys(keys) == load_token_keys(former)
    assert KeyFolder(keys, FakeClock()).roster().keys == former_keys.roster().keys
    (tmp_path / "other").mkdir()
    other = KeyFiles(tmp_path / "other")
    ensure_token_key(other)
    adopt_keys(keys, other)
    assert load_token_keys(keys) == load_token_keys(former)


async def test_keys_in_a_database_that_is_away_are_trouble(tmp_path: Path) -> None:
    keys = PostgresKeys(f"postgresql://podstead@/podstead?host={tmp_path}")
    with pytest.raises(StorageError):
        await KeyFolder(keys, FakeClock()).current()
    with pytest.raises(StorageError):
        load_token_keys(keys)
