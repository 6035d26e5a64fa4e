"""With too little free space nothing new is stored, and everything else goes on."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from podstead.config import Settings
from podstead.core.media_types import SPARQL_UPDATE
from podstead.resources.service import ResourceService
from podstead.storage import disk_space
from podstead.storage.blobs import files, local
from podstead.storage.disk_space import DiskUsage
from tests.support import tus
from tests.support.application import Server, Start
from tests.support.clock import FakeClock
from tests.support.rdf import TURTLE

MIB = 1024 * 1024
INSERT = b"INSERT DATA { <#a> <#b> <#c> }"


@dataclass
class Disk:
    """The file system that the server finds itself on."""

    free_bytes: int = 1000 * MIB

    def fill(self) -> None:
        self.free_bytes = 64 * MIB - 1

    def make_room(self) -> None:
        self.free_bytes = 1000 * MIB


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    found = Disk()
    monkeypatch.setattr(disk_space, "READING_VALID_S", 0.0)
    monkeypatch.setattr(
        disk_space, "read_disk_usage", lambda _place: DiskUsage(100_000 * MIB, found.free_bytes)
    )
    return found


@pytest.fixture
async def server(disk: Disk, start: Start) -> Server:
    """One that looks at the disk before every request."""
    assert disk.free_bytes
    return await start()


def files_of(settings: Settings) -> list[Path]:
    return [path for path in (settings.root / "blobs").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("method", "target", "headers", "body"),
    [
        ("PUT", "/alice/private/new", {"Content-Type": "text/plain"}, b"x"),
        ("PUT", "/alice/private/new", {"Content-Type": "image/png"}, b"x" * 200_000),
        ("PUT", "/alice/private/old", {"Content-Type": "text/plain"}, b"x"),
        ("PUT", "/alice/private/new/", {"Content-Type": TURTLE}, b""),
        ("PUT", "/alice/private/.acl", {"Content-Type": TURTLE}, b""),
        ("POST", "/alice/private/", {"Content-Type": "text/plain", "Slug": "new"}, b"x"),
        ("PATCH", "/alice/private/new", {"Content-Type": SPARQL_UPDATE}, INSERT),
        ("PATCH", "/alice/private/old.ttl", {"Content-Type": SPARQL_UPDATE}, INSERT),
        ("POST", "/.pods", {"Content-Type": "application/json"}, b'{"name": "carol"}'),
    ],
)
async def test_nothing_new_is_stored_on_a_full_disk(
    server: Server,
    settings: Settings,
    disk: Disk,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
) -> None:
    """The answer says why, nothing is left behind, and it is stored once there is room."""
    await server.alice.put("/alice/private/old", "old", "text/plain")
    await server.alice.put("/alice/private/old.ttl", "<#x> <#y> <#z>.", TURTLE)
    disk.fill()
    refused = await server.alice.request(method, target, headers=headers, body=body)
    assert refused.status == 507
    assert "disk space" in refused.json()["message"]
    assert (await server.alice.get("/alice/private/new")).status == 404
    assert (await server.alice.get("/alice/private/new/")).status == 404
    assert (await server.alice.get("/carol/")).status == 403
    assert (await server.alice.get("/alice/private/old")).text == "old"
    assert files_of(settings) == []
    disk.make_room()
    if target != "/alice/private/.acl":
        stored = await server.alice.request(method, target, headers=headers, body=body)
        assert stored.status in (201, 204)


async def test_reading_and_deleting_go_on_on_a_full_disk(server: Server, disk: Disk) -> None:
    for path in ("a", "a.acl", "a.meta"):
        content = "<#a> <#b> <#c>." if path != "a.acl" else ""
        if path == "a.acl":
            assert (await server.put_acl("/alice/private/a")).status == 201
        else:
            put = await server.alice.put(f"/alice/private/{path}", content, TURTLE)
            assert put.status == 201
    await server.alice.put("/alice/private/c/", "<#a> <#b> <#c>.", TURTLE)
    disk.fill()
    assert (await server.alice.get("/alice/private/a")).status == 200
    assert (await server.alice.head("/alice/private/a")).status == 200
    assert (await server.alice.request("OPTIONS", "/alice/private/a")).status == 204
    # Emptying a container's description is a deletion too.
    for path in ("a.meta", "a.acl", "a", "c/.meta", "c/"):
        assert (await server.alice.delete(f"/alice/private/{path}")).status == 204
        described = await server.alice.get(f"/alice/private/{path}")
        assert described.status == (200 if path.endswith(".meta") else 404)
        assert described.text == "" or described.status == 404


async def test_a_stranger_does_not_learn_that_the_disk_is_full(server: Server, disk: Disk) -> None:
    disk.fill()
    for client, status in ((server.public, 401), (server.bob, 403)):
        answer = await client.put("/alice/private/new", "x", "text/plain")
        assert answer.status == status


async def test_a_body_ends_when_the_disk_fills_up_while_it_arrives(
    server: Server, settings: Settings, disk: Disk
) -> None:
    async def content() -> AsyncIterator[bytes]:
        for number in range(100):
            if number == 50:
                disk.fill()
            yield b"x" * 65_536

    headers = {"Content-Type": "image/png", "Transfer-Encoding": "chunked"}
    answer = await server.alice.request(
        "PUT", "/alice/private/large", headers=headers, body=content()
    )
    assert answer.status == 507
    assert files_of(settings) == []
    assert (await server.alice.get("/alice/private/large")).status == 404


async def test_the_floor_can_be_set_and_switched_off(start: Start, disk: Disk) -> None:
    disk.free_bytes = 10 * MIB
    low = await start(min_free_bytes=0)
    assert (await low.alice.put("/alice/private/a", "x", "text/plain")).status == 201


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
async def test_a_disk_that_turns_out_to_be_full_is_507_and_leaves_nothing(
    server: Server, settings: Settings, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Whatever the free space was said to be."""

    def fail(*_arguments: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(files, "write_all", fail)
        answer = await server.alice.put("/alice/private/a", b"x" * 200_000, "image/png")
    assert answer.status == 507
    assert files_of(settings) == []
    with monkeypatch.context() as patched:
        patched.setattr(local, "sync_directory", fail)
        answer = await server.alice.put("/alice/private/a", b"x" * 200_000, "image/png")
    assert answer.status == 507
    assert (await server.alice.get("/alice/private/a")).status == 404
    stored = await server.alice.put("/alice/private/a", b"x" * 200_000, "image/png")
    assert stored.status == 201
    assert len(files_of(settings)) == 1


async def test_a_full_disk_is_507_everywhere_and_logged_once_a_minute(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    server = await start(clock=clock)

    async def fail(*_arguments: object) -> None:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as error:
            raise ValueError("somewhere deep in a library") from error

    monkeypatch.setattr(ResourceService, "handle", fail)
    with caplog.at_level(logging.ERROR):
        for _ in range(10):
            assert (await server.alice.get("/alice/private/a")).status == 507
        assert len(caplog.records) == 1
        clock.time_ms += 59_000
        assert (await server.alice.get("/alice/private/a")).status == 507
        assert len(caplog.records) == 1
        clock.time_ms += 1_000
        assert (await server.alice.get("/alice/private/a")).status == 507
    assert len(caplog.records) == 2
    assert all(record.exc_info is None for record in caplog.records)


@pytest.mark.feature("uploads")
async def test_an_upload_that_meets_a_full_disk_continues_once_there_is_room(
    server: Server, disk: Disk
) -> None:
    content = os.urandom(2 * MIB)
    upload = await tus.created(server.alice, "/alice/private/new", len(content))
    assert (await tus.append(server.alice, upload, 0, content[:MIB])).status == 204

    async def pieces() -> AsyncIterator[bytes]:
        yield content[MIB : MIB + 300_000]
        disk.fill()
        yield content[MIB + 300_000 :]

    answer = await tus.append(server.alice, upload, MIB, pieces(), content_length=MIB)
    assert answer.status == 507
    assert (await tus.create(server.alice, "/alice/private/other", 5)).status == 507
    assert await tus.offset(server.alice, upload) == MIB
    disk.make_room()
    assert (await tus.append(server.alice, upload, MIB, content[MIB:])).status == 204
    assert (await server.alice.get("/alice/private/new")).body == content


@pytest.mark.feature("uploads")
async def test_an_agent_announces_at_most_half_of_the_free_space(
    server: Server, disk: Disk
) -> None:
    """What others upload is not in the way, and what was announced and not yet sent counts."""
    await tus.created(server.alice, "/alice/private/a", 400 * MIB)
    answer = await tus.create(server.alice, "/alice/private/b", 200 * MIB)
    assert answer.status == 507
    await tus.created(server.bob, "/bob/private/b", 200 * MIB)
