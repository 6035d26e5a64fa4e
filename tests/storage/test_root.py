"""The data root: made private, refused with a clear sentence, and one server's at a time."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from podstead.core.errors import RootInUse, RootUnusable, SchemaTooNew
from podstead.storage.migrations import Migration, read_migrations
from podstead.storage.root import lock_root, prepare_root
from podstead.storage.sqlite import SqliteFacts, SqliteStore, migrate


def mode_of(place: Path) -> int:
    return stat.S_IMODE(place.stat().st_mode)


def test_everything_is_made_for_this_account_only(tmp_path: Path) -> None:
    layout = prepare_root(tmp_path / "new" / "data")
    assert layout.root == tmp_path / "new" / "data"
    assert layout.database == layout.root / "podstead.db"
    for directory in (layout.root, layout.blobs, layout.keys):
        assert mode_of(directory) == 0o700
    assert mode_of(layout.database) == 0o600


def test_preparing_again_keeps_what_is_there(tmp_path: Path) -> None:
    layout = prepare_root(tmp_path)
    (layout.keys / "token.key").write_bytes(b"secret")
    SqliteFacts(layout.database).write_fact("a", "b")
    layout.keys.chmod(0o755)
    prepare_root(tmp_path)
    assert (layout.keys / "token.key").read_bytes() == b"secret"
    assert SqliteFacts(layout.database).read_fact("a") == "b"
    assert mode_of(layout.keys) == 0o700


def test_files_of_a_root_that_had_other_names_are_kept(tmp_path: Path) -> None:
    """What was in passing.db, such as which proofs have been used, is in ephemeral.db."""
    layout = prepare_root(tmp_path)
    with apsw.Connection(str(layout.ephemeral_database)) as connection:
        connection.execute("INSERT INTO used_once (key, until_ms) VALUES (x'01', 5)")
    connection.close()
    layout.ephemeral_database.rename(tmp_path / "passing.db")
    layout.change_pipes.rename(tmp_path / "doorbells")
    prepare_root(tmp_path)
    connection = apsw.Connection(str(layout.ephemeral_database))
    assert connection.execute("SELECT until_ms FROM used_once").get == 5
    connection.close()
    assert layout.change_pipes.is_dir()
    assert not (tmp_path / "passing.db").exists()
    assert not (tmp_path / "doorbells").exists()


async def test_a_prepared_root_can_be_opened(tmp_path: Path) -> None:
    store = SqliteStore(prepare_root(tmp_path).root)
    await store.open()
    await store.close()


def test_a_root_that_cannot_be_made_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for root in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(RootUnusable, match=str(root)):
            prepare_root(root)
        with pytest.raises(RootUnusable, match=str(root)):
            lock_root(root)


def test_a_root_whose_database_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "podstead.db").mkdir()
    with pytest.raises(RootUnusable, match=str(tmp_path)):
        prepare_root(tmp_path)


def test_a_root_whose_database_is_damaged_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "podstead.db").write_text("this is no database")
    with pytest.raises(RootUnusable, match="damaged or no database: restore") as caught:
        prepare_root(tmp_path)
    assert str(caught.value).startswith(f"The data root {tmp_path} cannot be used. ")


def test_a_root_that_this_account_may_not_write_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # the account of the tests may be allowed everything
    with pytest.raises(
        RootUnusable, match=r"Permission denied. Allow the current user to write there"
    ):
        lock_root(tmp_path)


def test_a_root_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    newer = Migration(read_migrations()[-1].number + 1, "CREATE TABLE newer (a BIGINT)")
    migrate(prepare_root(tmp_path).database, steps=[*read_migrations(), newer])
    with pytest.raises(SchemaTooNew, match="newer version of Podstead") as caught:
        prepare_root(tmp_path)
    assert isinstance(caught.value, RootUnusable)


# --- One server at a time ---------------------------------------------------------------------


def test_a_root_is_locked_once(tmp_path: Path) -> None:
    prepare_root(tmp_path)
    with lock_root(tmp_path), pytest.raises(RootInUse, match=str(tmp_path)):
        lock_root(tmp_path)
    with lock_root(tmp_path):
        pass


def test_a_released_lock_may_be_released_again(tmp_path: Path) -> None:
    prepare_root(tmp_path)
    lock = lock_root(tmp_path)
    lock.release()
    with lock_root(tmp_path):
        lock.release()
        with pytest.raises(RootInUse):
            lock_root(tmp_path)


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    prepare_root(tmp_path)
    script = (
        "import sys; from pathlib import Path; from podstead.storage.root import lock_root;"
        " lock = lock_root(Path(sys.argv[1])); print('locked', flush=True); sys.stdin.readline()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(RootInUse):
            lock_root(tmp_path)
        holder.kill()
    with lock_root(tmp_path):
        pass


async def test_other_commands_write_beside_a_running_server(tmp_path: Path) -> None:
    prepare_root(tmp_path)
    with lock_root(tmp_path):
        store = SqliteStore(tmp_path)
        await store.open()
        assert await store.take("a", capacity=1, per_s=1, now_ms=0) is None
        await store.close()
        SqliteFacts(tmp_path / "podstead.db").write_fact("a", "b")
