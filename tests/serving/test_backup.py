"""Backups of a running server: complete, consistent, verified, and restored by one command."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest
import zstandard

from tests.serving.recorded_writers import LARGE_BYTES, RecordedWriter, writing
from tests.support import tus
from tests.support.client import Client, Pod, create_pod
from tests.support.features import GIT_OPTIONS
from tests.support.git import Git, url_of
from tests.support.processes import clean_environment, start_process
from tests.support.server import (
    DEADLINE_S,
    ServerProcess,
    run_command,
    running_server,
    server_fixture,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.embedded

WRITERS = 8


server = server_fixture((*GIT_OPTIONS, "--workers", "2"))


@pytest.fixture
def pod(server: ServerProcess) -> Pod:
    return create_pod(server)


def back_up(server: ServerProcess, target: Path, *options: str) -> dict[str, Any]:
    """The manifest of a new backup."""
    command = ("backup", str(target), "--root", str(server.root), "--json", *options)
    ended = run_command(*command)
    assert ended.returncode == 0, ended.stderr
    manifest: dict[str, Any] = json.loads(ended.stdout)
    assert manifest["faults"] == []
    return manifest


def restore(backup: Path, root: Path) -> None:
    ended = run_command("restore", str(backup), "--root", str(root))
    assert ended.returncode == 0, ended.stderr


def moment_ms(manifest: dict[str, Any]) -> float:
    return datetime.fromisoformat(manifest["moment"]).timestamp() * 1000


@contextlib.contextmanager
def stopped(server: ServerProcess) -> Iterator[None]:
    """Another server can have the port, and with it the base URL."""
    server.stop()
    try:
        yield
    finally:
        server.start()


@contextlib.contextmanager
def restored(server: ServerProcess, backup: Path, root: Path) -> Iterator[ServerProcess]:
    """The server of a restored backup, in place of the one that was backed up."""
    restore(backup, root)
    other = ServerProcess(root, (*GIT_OPTIONS, "--workers", "1"), port=server.port)
    with stopped(server), running_server(other):
        yield other


def test_a_backup_has_each_write_before_its_moment_and_none_torn(
    server: ServerProcess, pod: Pod, tmp_path: Path
) -> None:
    writers = [RecordedWriter(pod, each, seed=str(random.random())) for each in range(WRITERS)]
    with writing(pod, writers):
        manifest = back_up(server, tmp_path / "backup")
    moment = moment_ms(manifest)
    with (
        restored(server, tmp_path / "backup", tmp_path / "again") as other,
        Client(other, token=pod.token) as client,
    ):
        for writer in writers:
            assert writer.find(writer.read(client), moment_ms=moment), writer.home
    assert all(writer.history[0].acknowledged_ms < moment for writer in writers)
    assert all(writer.history[-1].acknowledged_ms > moment for writer in writers)


def test_an_unchanged_body_is_shared_with_the_previous_backup(
    server: ServerProcess, pod: Pod, tmp_path: Path
) -> None:
    with pod.owner() as client:
        client.put(f"{pod.root}kept.bin", b"a" * LARGE_BYTES)
        client.put(f"{pod.root}replaced.bin", b"b" * LARGE_BYTES)
        back_up(server, tmp_path / "first")
        client.put(f"{pod.root}replaced.bin", b"c" * LARGE_BYTES)
    second = back_up(server, tmp_path / "second", "--previous", str(tmp_path / "first"))
    kept, new = hashlib.sha256(b"a" * LARGE_BYTES), hashlib.sha256(b"c" * LARGE_BYTES)
    (path,) = (tmp_path / "second").rglob(f"*-{kept.hexdigest()}")
    (earlier,) = (tmp_path / "first").rglob(f"*-{kept.hexdigest()}")
    assert path.samefile(earlier)
    (path,) = (tmp_path / "second").rglob(f"*-{new.hexdigest()}")
    assert path.stat().st_nlink == 1
    assert second["linked"]["bytes"] >= LARGE_BYTES
    shutil.rmtree(tmp_path / "first")
    ended = run_command("restore", "--verify-only", str(tmp_path / "second"))
    assert ended.returncode == 0, ended.stderr


def test_keys_are_restored_with_their_modes(server: ServerProcess, tmp_path: Path) -> None:
    back_up(server, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "again")
    for key in (server.root / "keys").rglob("*.key"):
        copy = tmp_path / "again" / key.relative_to(server.root)
        assert copy.read_bytes() == key.read_bytes()
        assert stat.S_IMODE(copy.stat().st_mode) == stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "again/keys").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o700


@pytest.mark.needs("git")
def test_a_repository_has_what_was_pushed_before_and_is_whole(
    server: ServerProcess, pod: Pod, tmp_path: Path
) -> None:
    """Pushes go on, and each forces the history of the one before it away."""
    git = Git(tmp_path).with_token(pod.token)
    work = git.new("work")
    work("remote", "add", "origin", url_of(pod, "private/notes"))
    work.commit("first", "1")
    work("push", "--quiet", "--set-upstream", "origin", "main")
    first = work.tip()
    enough = Event()

    def push_on() -> list[str]:
        tips = [first]
        while not enough.is_set():
            work("commit", "--quiet", "--amend", "--message", f"state {len(tips)}")
            work("push", "--quiet", "--force", "origin", "main")
            tips.append(work.tip())
        return tips

    with ThreadPoolExecutor(1) as threads:
        pushing = threads.submit(push_on)
        try:
            manifest = back_up(server, tmp_path / "backup")
        finally:
            enough.set()
        tips = pushing.result()
    assert manifest["counts"]["repositories"] >= 1
    with restored(server, tmp_path / "backup", tmp_path / "again"):
        clone = git.cloned(url_of(pod, "private/notes"), "clone")
        assert clone.tip() in tips
        clone("fsck", "--full", "--strict")
        clone.commit("later", "2")
        clone("push", "--quiet")


@pytest.mark.feature("uploads")
def test_an_upload_in_progress_goes_on_after_the_restore(
    server: ServerProcess, pod: Pod, tmp_path: Path
) -> None:
    fields = {**tus.VERSION, "Authorization": f"Bearer {pod.token}"}
    content = b"0123456789" * 20_000
    target = f"{pod.root}private/upload.bin"
    asked = {"Upload-Length": str(len(content)), "Upload-Metadata": tus.metadata(target=target)}
    begun = server.request("POST", tus.PLACE, headers={**fields, **asked})
    assert begun.status == 201, begun.text
    place = urlsplit(begun.headers["location"]).path
    half = len(content) // 2
    sent = {**fields, "Content-Type": tus.OCTETS, "Upload-Offset": "0"}
    assert server.request("PATCH", place, content[:half], sent).status == 204
    back_up(server, tmp_path / "backup")
    with restored(server, tmp_path / "backup", tmp_path / "again") as other:
        known = other.request("HEAD", place, headers=fields)
        assert known.headers["upload-offset"] == str(half)
        rest = {**sent, "Upload-Offset": str(half)}
        assert other.request("PATCH", place, content[half:], rest).status == 204
        answer = other.get(target, {"Authorization": f"Bearer {pod.token}"})
        assert answer.body == content


@pytest.fixture(scope="module")
def kept_backup(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup that no test changes."""
    pod = create_pod(server)
    with pod.owner() as client:
        for byte in (b"x", b"y"):
            client.put(f"{pod.root}{byte.decode()}.bin", byte * LARGE_BYTES)
    backup = tmp_path_factory.mktemp("kept") / "backup"
    back_up(server, backup)
    return backup


@pytest.fixture
def backup(kept_backup: Path, tmp_path: Path) -> Path:
    """A backup for one test."""
    return Path(shutil.copytree(kept_backup, tmp_path / "backup"))


def assert_refused(backup: Path, root: Path, reason: str) -> None:
    """A backup is not restored, and the root is as empty as before."""
    ended = run_command("restore", str(backup), "--root", str(root))
    assert ended.returncode != 0
    assert reason in ended.stderr
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    "pattern", ["blobs/*/*/*", "keys/token.key", "podstead.db", "files.jsonl", "manifest.json"]
)
def test_a_damaged_backup_is_not_restored(backup: Path, tmp_path: Path, pattern: str) -> None:
    damaged = min(backup.glob(pattern))
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    verified = run_command("restore", "--verify-only", str(backup))
    assert verified.returncode == 1
    assert damaged.name in verified.stderr
    assert_refused(backup, tmp_path / "again", damaged.name)


def test_a_missing_body_is_noticed(backup: Path, tmp_path: Path) -> None:
    missing = min(backup.glob("blobs/*/*/*"))
    missing.unlink()
    assert_refused(backup, tmp_path / "again", missing.name)


def test_an_unfinished_backup_is_not_restored(backup: Path, tmp_path: Path) -> None:
    (backup / "manifest.json").unlink()
    assert_refused(backup, tmp_path / "again", "not a complete backup")


def test_a_folder_of_backups_names_one_of_them(kept_backup: Path, tmp_path: Path) -> None:
    (tmp_path / "series").symlink_to(kept_backup.parent)
    reason = f"It contains backups, such as {tmp_path / 'series' / kept_backup.name}."
    assert_refused(tmp_path / "series", tmp_path / "again", reason)


def test_a_backup_that_is_killed_is_never_taken_for_a_complete_one(
    kept_backup: Path, tmp_path: Path
) -> None:
    restore(kept_backup, tmp_path / "root")
    place = tmp_path / "place"
    place.mkdir()
    command = ["backup", str(place / "killed"), "--root", str(tmp_path / "root")]
    with (tmp_path / "errors").open("wb") as errors:
        process = start_process(
            [sys.executable, "-m", "podstead.cli", *command],
            environment=clean_environment(),
            errors=errors,
        )
    wait_until(lambda: any(place.iterdir()), "it has begun")
    process.kill()
    process.wait(DEADLINE_S)
    assert process.stdout is not None
    process.stdout.close()
    if (place / "killed").exists():  # it was faster
        assert run_command("restore", "--verify-only", str(place / "killed")).returncode == 0
    ended = run_command("backup", str(place / "next"), "--root", str(tmp_path / "root"))
    assert ended.returncode == 0, "nothing holds the root, or the place"
    assert {path.name for path in place.iterdir()} <= {"killed", "next"}


def test_a_root_that_is_not_empty_is_not_overwritten(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    (tmp_path / "again/mine").write_text("x")
    ended = run_command("restore", str(backup), "--root", str(tmp_path / "again"))
    assert ended.returncode == 1
    assert "not empty" in ended.stderr
    assert (tmp_path / "again/mine").read_text() == "x"


def test_a_backup_of_a_newer_schema_is_refused(backup: Path, tmp_path: Path) -> None:
    database = backup / "podstead.db"
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE schema_version SET version = 9999")
    lines = [json.loads(line) for line in (backup / "files.jsonl").read_text().splitlines()]
    for line in lines:
        if line["name"] == "podstead.db":
            line["sha256"] = hashlib.sha256(database.read_bytes()).hexdigest()
            line["size"] = database.stat().st_size
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    (backup / "files.jsonl").write_bytes(text)
    manifest = json.loads((backup / "manifest.json").read_text())
    manifest["files_sha256"] = hashlib.sha256(text).hexdigest()
    (backup / "manifest.json").write_text(json.dumps(manifest))
    assert_refused(backup, tmp_path / "again", "newer version of Podstead (schema 9999")


def test_a_restore_that_was_killed_can_be_repeated(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "again/.restoring/keys").mkdir(parents=True)
    (tmp_path / "again/podstead.lock").touch()
    restore(backup, tmp_path / "again")
    assert not (tmp_path / "again/.restoring").exists()


def test_no_server_starts_where_a_restore_was_interrupted(tmp_path: Path) -> None:
    (tmp_path / "root/.restoring").mkdir(parents=True)
    ended = run_command("start", "--root", str(tmp_path / "root"), "--port", "0")
    assert ended.returncode == 2
    assert "restore again" in ended.stderr


@pytest.mark.parametrize(
    ("name", "options"),
    [("backup", ()), ("backup.tar.zst", ()), ("series/place", ("--keep", "7d"))],
)
def test_no_backup_is_made_where_a_disk_is_not_mounted(
    server: ServerProcess, tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    target = tmp_path / "mnt" / name
    ended = run_command("backup", str(target), "--root", str(server.root), *options)
    assert ended.returncode == 1
    assert "does not exist. If a disk is mounted there, mount it" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_backup_does_not_overwrite_anything(server: ServerProcess, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup/mine").write_text("x")
    ended = run_command("backup", str(tmp_path / "backup"), "--root", str(server.root))
    assert ended.returncode == 1
    assert "exists" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["backup"]


# --- archives ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept_archive(
    server: ServerProcess, kept_backup: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """An archive of the same content, which no test changes."""
    archive = tmp_path_factory.mktemp("archive") / "backup.tar.zst"
    assert kept_backup.exists()
    back_up(server, archive)
    return archive


def content_of(root: Path) -> dict[str, bytes]:
    """The large bodies and keys of a root."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for place in ("blobs", "keys")
        for path in (root / place).rglob("*")
        if path.is_file()
    }


def test_an_archive_restores_the_same(
    kept_backup: Path, kept_archive: Path, tmp_path: Path
) -> None:
    restore(kept_archive, tmp_path / "again")
    restored_content = content_of(tmp_path / "again")
    assert content_of(kept_backup).items() <= restored_content.items()
    assert stat.S_IMODE((tmp_path / "again/keys/token.key").stat().st_mode) == 0o600
    assert stat.S_IMODE(kept_archive.stat().st_mode) == 0o600
    assert [path.name for path in kept_archive.parent.iterdir()] == [kept_archive.name]


@pytest.mark.needs("zstd")
def test_an_archive_is_unpacked_by_tar_and_is_a_backup_then(
    kept_archive: Path, tmp_path: Path
) -> None:
    subprocess.run(["tar", "--zstd", "-xf", kept_archive, "-C", tmp_path], check=True, timeout=60)
    ended = run_command("restore", "--verify-only", str(tmp_path / "podstead-backup"))
    assert ended.returncode == 0, ended.stderr


def test_a_damaged_archive_is_not_restored(kept_archive: Path, tmp_path: Path) -> None:
    content = bytearray(kept_archive.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "damaged.tar.zst").write_bytes(content)
    assert_refused(tmp_path / "damaged.tar.zst", tmp_path / "again", "damaged")


def test_a_shortened_archive_is_not_restored(kept_archive: Path, tmp_path: Path) -> None:
    content = kept_archive.read_bytes()
    (tmp_path / "short.tar.zst").write_bytes(content[: len(content) * 2 // 3])
    assert_refused(tmp_path / "short.tar.zst", tmp_path / "again", "not a complete backup")


def test_an_archive_without_a_body_is_not_restored(kept_archive: Path, tmp_path: Path) -> None:
    """It is packed again, and everything in it is as it was."""
    with kept_archive.open("rb") as file, (tmp_path / "less.tar.zst").open("wb") as less:
        packed = zstandard.ZstdDecompressor().stream_reader(file)
        repacked = zstandard.ZstdCompressor().stream_writer(less, closefd=False)
        with (
            repacked,
            tarfile.open(fileobj=packed, mode="r|") as old,
            tarfile.open(fileobj=repacked, mode="w|") as new,
        ):
            is_left_out = False
            for entry in old:
                if "/blobs/" in entry.name and not is_left_out:
                    is_left_out = True
                else:
                    new.addfile(entry, old.extractfile(entry) if entry.isreg() else None)
    assert is_left_out
    assert_refused(tmp_path / "less.tar.zst", tmp_path / "again", "not what was stored")


def test_no_file_of_an_archive_leaves_the_root(tmp_path: Path) -> None:
    with (tmp_path / "evil.tar.zst").open("wb") as file:
        stream = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
        with stream, tarfile.open(fileobj=stream, mode="w|") as tar:
            entry = tarfile.TarInfo("podstead-backup/../../outside")
            entry.size = 1
            tar.addfile(entry, io.BytesIO(b"x"))
    assert_refused(tmp_path / "evil.tar.zst", tmp_path / "again", "impossible name")
    assert not (tmp_path / "outside").exists()


# --- series -----------------------------------------------------------------------------------


def test_a_series_is_incremental_and_pruned(kept_backup: Path, tmp_path: Path) -> None:
    """Backups of earlier days are there; the newest of two days are kept."""
    restore(kept_backup, tmp_path / "root")
    place = tmp_path / "series"
    for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
        shutil.copytree(kept_backup, place / f"{day}T100000Z")
    (place / "mine").mkdir()
    shutil.copytree(kept_backup, place / "also-mine")
    options = ("--root", str(tmp_path / "root"), "--keep", "2d", "--json")
    ended = run_command("backup", str(place), *options)
    assert ended.returncode == 0, ended.stderr
    result = json.loads(ended.stdout)
    assert result["removed"] == ["2026-01-01T100000Z", "2026-01-02T100000Z"]
    assert result["linked_files"] >= 2
    new = Path(result["folder"])
    left = {"mine", "also-mine", "2026-01-03T100000Z", new.name}
    assert {path.name for path in place.iterdir()} == left
    last = json.loads((tmp_path / "root/last-backup.json").read_text())
    assert last["place"] == str(new)
    assert last["linked_bytes"] == result["linked_bytes"] >= 2 * LARGE_BYTES


def test_a_schedule_runs_as_a_service(kept_backup: Path, tmp_path: Path) -> None:
    """The first backup is made at once, and the service ends when it is told to."""
    restore(kept_backup, tmp_path / "root")
    command = ["backup", str(tmp_path / "series"), "--root", str(tmp_path / "root")]
    with (tmp_path / "errors").open("wb") as errors:
        process = start_process(
            [sys.executable, "-m", "podstead.cli", *command, "--every", "6h", "--keep", "7d"],
            environment=clean_environment(),
            errors=errors,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith(str(tmp_path / "series")), (tmp_path / "errors").read_text()
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_S) == 0
    process.stdout.close()
    assert len(list((tmp_path / "series").iterdir())) == 1


@pytest.mark.parametrize(
    "options",
    [
        ("series", "--every", "often"),
        ("series", "--keep", "7"),
        ("series", "--keep", "7d", "--previous", "other"),
        ("file.tar.zst", "--keep", "7d"),
        ("file.tar.zst", "--previous", "other"),
    ],
)
def test_options_that_contradict_are_refused(options: tuple[str, ...], tmp_path: Path) -> None:
    target, *rest = options
    ended = run_command("backup", str(tmp_path / target), *rest, "--root", str(tmp_path))
    assert ended.returncode == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["backups/today", "today.tar.zst"])
def test_no_backup_is_made_in_the_data_root(server: ServerProcess, name: str) -> None:
    """It would be a part of the next backup, and lost together with the root."""
    ended = run_command("backup", str(server.root / name), "--root", str(server.root))
    assert ended.returncode == 1
    assert "in the data root" in ended.stderr
    assert not (server.root / name).exists()
    failed = json.loads((server.root / "failed-backup.json").read_text())
    assert failed["place"] == str(server.root / name)


def test_a_damaged_root_is_backed_up_with_a_warning(kept_backup: Path, tmp_path: Path) -> None:
    """A backup without one body is better than none."""
    restore(kept_backup, tmp_path / "root")
    missing, damaged, *_ = sorted((tmp_path / "root/blobs").glob("*/*/*"))
    missing.unlink()
    damaged.write_bytes(b"z" * damaged.stat().st_size)
    root = ("--root", str(tmp_path / "root"))
    ended = run_command("backup", str(tmp_path / "backup"), *root, "--json")
    assert ended.returncode == 1
    faults = json.loads(ended.stdout)["faults"]
    assert len(faults) == 2
    assert any(missing.name in fault and "missing" in fault for fault in faults)
    assert any(damaged.name in fault and "damaged" in fault for fault in faults)
    assert run_command("restore", "--verify-only", str(tmp_path / "backup")).returncode == 1
