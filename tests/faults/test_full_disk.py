"""A full disk under a real server: reading and deleting still work, and nothing is corrupted.

Where the machine allows it the server has a small file system of its own, which is filled to the
last byte. Elsewhere its disk is as good as full by the floor that it is told to keep free.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apsw
import pytest

from podstead.storage.layout import RootLayout
from tests.support.client import Client, Pod, create_pod
from tests.support.server import DEADLINE_S, ServerProcess
from tests.support.small_disk import SmallDisk, small_disk
from tests.support.waiting import wait_until
from tests.support.wire import Wire, compose

MIB = 1024 * 1024
NEVER_FREE = ("--min-free-bytes", str(2**53))
LARGE = b"x" * 300_000


@dataclass
class Filling:
    """A server and its disk."""

    server: ServerProcess
    disk: SmallDisk | None

    @property
    def layout(self) -> RootLayout:
        if self.disk is None:
            return RootLayout(self.server.root)
        return RootLayout(self.disk.files / "root")

    def fill(self) -> None:
        """Leave no room; while the server runs if that is possible."""
        if self.disk is not None:
            self.disk.fill()
        else:
            self.server.stop()
            self.server.options = NEVER_FREE
            self.server.start()

    def make_room(self) -> None:
        if self.disk is not None:
            self.disk.make_room()
        else:
            self.server.stop()
            self.server.options = ()
            self.server.start()

    def restart(self) -> None:
        """As after a failure of what filled the disk: not a byte is free at the start."""
        self.server.stop()
        if self.disk is not None:
            self.disk.fill()
        self.server.start()


@pytest.fixture
def filling(tmp_path: Path) -> Iterator[Filling]:
    place = tmp_path / "disk"
    place.mkdir()
    with small_disk(place, size_bytes=48 * MIB) as disk:
        if disk is None:
            server = ServerProcess(place / "root")
        else:
            server = ServerProcess(place / "root", command=disk.command)
        try:
            server.start()
            yield Filling(server, disk)
        finally:
            server.close()


def revoke_tokens(filling: Filling, pod: Pod) -> None:
    """As the operator does, beside the running server."""
    disk, root = filling.disk, filling.server.root
    podstead = (sys.executable, "-m", "podstead.cli") if disk is None else disk.podstead
    command = (*podstead, "token", "revoke", "--pod", pod.name, "--root", str(root))
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert ended.returncode == 0, ended.stderr


def wait_until_refused(client: Client, pod: Pod) -> None:
    """The free space is looked at now and then, so a few bytes may still get in."""
    probe = f"{pod.root}private/probe"
    wait_until(lambda: client.put(probe, "x").status == 507, "a refusal for want of space")


def stored_names(layout: RootLayout) -> set[str]:
    """The files that large bodies are kept in, and what is left of such."""
    return {path.name for path in layout.blobs.rglob("*") if path.is_file()}


def referred_names(layout: RootLayout, copy: Path) -> set[str]:
    """What the database of a server that has stopped refers to; SQLite opens a copy of it only,
    since the path to the other file system leads through a link."""
    shutil.copyfile(layout.database, copy)
    connection = apsw.Connection(str(copy))
    try:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        rows = connection.execute(
            "SELECT blob FROM resources WHERE blob IS NOT NULL UNION SELECT blob FROM garbage"
            " UNION SELECT blob FROM former_states"
        )
        return {str(name) for (name,) in rows}
    finally:
        connection.close()


def documents(pod: Pod, count: int) -> list[str]:
    return [f"{pod.root}private/{number}" for number in range(count)]


def test_on_a_full_disk_reading_and_deleting_go_on_and_nothing_new_is_stored(
    filling: Filling, tmp_path: Path
) -> None:
    pod, other = create_pod(filling.server), create_pod(filling.server)
    small, large = documents(pod, 40), f"{pod.root}private/large"
    with pod.owner() as owner:
        for path in small:
            assert owner.put(path, "y" * 2000).status == 201
        assert owner.put(large, LARGE, "image/png").status == 201
    filling.fill()
    with pod.owner() as owner:
        wait_until_refused(owner, pod)
        assert owner.put(f"{pod.root}private/new", LARGE, "image/png").status == 507
        assert owner.get(f"{pod.root}private/new").status == 404
        assert owner.get(large).body == LARGE
        for path in small:
            assert owner.get(path).body == b"y" * 2000
            assert owner.delete(path).status == 204
            assert owner.get(path).status == 404
        assert owner.delete(large).status == 204
        revoke_tokens(filling, other)
        with other.owner() as revoked:
            assert revoked.get(other.root).status == 401
    assert filling.server.errors.count("disk is full") == 1
    filling.make_room()
    with pod.owner() as owner:
        wait_until(
            lambda: owner.put(f"{pod.root}private/new", LARGE, "image/png").status in (201, 204),
            "a write that is stored",
        )
        assert owner.get(f"{pod.root}private/new").body == LARGE
    filling.server.stop()
    # Records of what is removed stay until the next sweep.
    assert stored_names(filling.layout) <= referred_names(filling.layout, tmp_path / "copy.db")


@pytest.mark.parametrize("size_bytes", [40_000, 400_000])
def test_what_is_deleted_on_a_full_disk_makes_room(filling: Filling, size_bytes: int) -> None:
    """Whether it is in the database or in files, and although nothing else makes room."""
    if filling.disk is None:
        pytest.skip("this account may not mount a file system")
    pod, content = create_pod(filling.server), b"z" * size_bytes
    paths = documents(pod, 12_000_000 // size_bytes)
    with pod.owner() as owner:
        for path in paths:
            assert owner.put(path, content, "image/png").status == 201
        filling.disk.fill()
        wait_until_refused(owner, pod)
        for path in paths:
            assert owner.delete(path).status == 204
        # As much as before fits again, except for the reserve and the minimum.
        for path in paths[: len(paths) // 2]:
            wait_until(partial(is_stored, owner, path, content), "a write that is stored")
            assert owner.get(path).body == content


def is_stored(client: Client, path: str, content: bytes) -> bool:
    return client.put(path, content, "image/png").status == 201


def test_a_server_starts_on_a_full_disk_and_writes_once_there_is_room(filling: Filling) -> None:
    pod = create_pod(filling.server)
    path = f"{pod.root}private/kept"
    with pod.owner() as owner:
        assert owner.put(path, "kept").status == 201
    filling.fill()
    for _ in range(2):
        filling.restart()
        with pod.owner() as owner:
            assert owner.get(path).text == "kept"
            wait_until_refused(owner, pod)
    with pod.owner() as owner:
        assert owner.delete(path).status == 204
    filling.make_room()
    with pod.owner() as owner:
        wait_until(lambda: owner.put(path, "again").status == 201, "a write that is stored")
        assert owner.get(path).text == "again"


def test_a_waiting_client_learns_of_a_full_disk_before_it_sends(filling: Filling) -> None:
    pod = create_pod(filling.server)
    filling.fill()
    with pod.owner() as owner:
        wait_until_refused(owner, pod)
    with Wire(filling.server) as wire:
        wire.send(
            compose(
                "PUT",
                f"{pod.root}private/new",
                {
                    "Authorization": f"Bearer {pod.token}",
                    "Content-Type": "text/plain",
                    "Expect": "100-continue",
                },
                host=f"localhost:{filling.server.port}",
                content_length=5,
            )
        )
        assert wire.receive("PUT").status == 507
